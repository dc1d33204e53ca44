// A schedule's variants, lowered one by one to the tile programs of a kernel. `compile` (compile.h) proves them and packs their operands;
// this is for who looks on while one is lowered, or judges thousands of candidates.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "compiler/lower/lowering_steps.h"
#include "compiler/tile/kernel.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"
#include "support/text/note.h"

namespace tessera {

// Is told before a variant is lowered, whose conditions these are, and gives its observer.
using ObserveVariant = std::function<LoweringObserver(const std::vector<Condition> &when)>;

struct LoweredVariants {
    Kernel kernel;  // by the algorithm's name; the last variant has no condition
    std::vector<Note> notes;
};

// Checks the schedule's stages against `bound`, the algorithm with its fixed dims, and lowers each variant that may run. UserErrors of
// check_stages and of lowering, with the schedule's name and place; schedule.register-tile before anybody compiles what would take minutes;
// schedule.prepack where one variant takes an operand packed ahead of time and another does not, or in another layout.
LoweredVariants lower_variants(const Algorithm &bound, const ResolvedSchedule &schedule, const Target &target,
                               const ObserveVariant &observe = {});

// One set of knobs without a schedule around it, for all extents: a candidate of a search, which nobody has proved yet. UserErrors of check
// and of lower_variants. With `max_proof_steps` it may keep guards that the program of a kernel has not (lower.h).
TileProgram lower_candidate(const Algorithm &bound, const KnobsByStage &stages, const Target &target,
                            std::optional<int64_t> max_proof_steps = std::nullopt);

// "w[K, N] packed as N/48, K, N%48", or "nothing": what the program's caller has to pack.
std::string packed_operands(const TileProgram &program);

}  // namespace tessera
