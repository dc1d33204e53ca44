// What is asked for: a kernel of an algorithm, for these extents and this target. How it is made comes after (choice.h).
#pragma once
#include <memory>
#include <vector>

#include "algorithms/build/option.h"
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"
#include "generators/registry/options.h"
#include "generators/registry/registry.h"
#include "schedules/artifact/callee_schedules.h"
#include "schedules/target/target.h"
#include "support/text/note.h"

namespace tessera {

// Nothing in it changes after it is made.
struct KernelRequest {
    Algorithm declared;                     // as its author wrote it, in the policy, elements of four bits in bytes
    Options options;                        // a value for each that the algorithm has
    std::vector<std::string> transforms;    // what was made of it before: "grad x w" (transforms.h)
    std::shared_ptr<const MadeOf> made_of;  // of what, where its stages have roles there
    Extents fixed;
    Algorithm bound;     // with the fixed dims
    Algorithm elements;  // the same where nothing of four bits is in bytes yet: what results are compared with
    Target target;
    std::vector<Note> notes;
};

// UserError as load_algorithm, command.shape, and those of bind_extents.
KernelRequest request_of(const Registry &registry, const KernelOptions &options, const Target &target);

// The algorithm that the options give, or name: of the registry or in a file (algorithm_file.h); `complete` gets a value for each of its
// options. What the options make of it, where they do. UserErrors of transformed (transforms.h), as Registry::make and read_algorithm,
// command.numerics: others than a file's own.
Algorithm load_algorithm(const Registry &registry, const KernelOptions &options, Options *complete = nullptr);

}  // namespace tessera
