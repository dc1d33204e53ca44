// What a program runs by its calls: which callees, at which extents, and how often.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"

namespace tessera {

// A callee at extents of its own. Calls of one name, meaning and surface at the same extents are of one callee.
struct CalledKernel {
    std::shared_ptr<const Algorithm> algorithm;
    Extents fixed;                    // of its symbolic dims, those that its callers know, as the best match sees them
    Extents dynamic;                  // of the others
    Extents extents;                  // of all its dims whose sizes depend on no data
    int64_t runs = 0;                 // in one run of the program; at most, where rounds may end early
    bool may_end_early = false;       // they may
    std::vector<std::string> scopes;  // of its calls, with those around them: "ffn.up"

    bool is_leaf() const { return algorithm->calls().empty(); }
};

// A call whose extents or rounds depend on data, so that nobody can say what it runs.
struct UncountedCall {
    std::string scope, callee;
    std::string dim;  // of the caller, which depends on data
};

struct Callees {
    std::vector<CalledKernel> all;  // in the order in which they are first called, each before its own
    std::vector<UncountedCall> uncounted;

    std::vector<CalledKernel> leaves() const;  // those that run
};

// The distinct callees of a program. `fixed` are the extents that its kernel fixes, `dynamic` those of its other symbolic dims.
// UserError as all_extents.
Callees callees_of(const Algorithm &program, const Extents &fixed, const Extents &dynamic);

}  // namespace tessera
