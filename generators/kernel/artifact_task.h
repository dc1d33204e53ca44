// What a schedule is lowered for, where nobody says it.
#pragma once
#include <optional>
#include <string>

#include "generators/registry/options.h"
#include "generators/registry/registry.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/provenance.h"

namespace tessera {

// The target that a schedule's name ends in, "" for none: attention/two_pass_avx2 is for avx2, matmul_u8s8/arm64+asimddp for
// arm64+asimddp.
std::string target_in(const std::string &schedule);

// An artifact that says what it was tuned for (provenance.h) is lowered for that. Any other is lowered for the algorithm and the
// target that it is named after, <algorithm>[/<numerics>]/<anything><target>, or that its nearest ancestor with such a name is, or
// the smallest target that has what it requires; with dynamic dims, standard options, and the transforms that it states. Nothing where no
// algorithm is known for it.
std::optional<KernelTask> task_for(const Registry &registry, const Schedule &schedule, const Library &library);

// A task as a command's options, without a schedule.
KernelOptions options_of(const KernelTask &task);

}  // namespace tessera
