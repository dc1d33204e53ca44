// How a sum of products is one of fragments: whose rows and columns go along which dims, and in which layouts its operands lie best.
#pragma once
#include <optional>
#include <string>

#include "compiler/instructions/families.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

struct FragmentFold {
    std::string rows, columns;  // the dims of the stage along which accumulators have them
    std::string folded;         // the dim along which one step has several products
    Expr a, b;                  // the operands before their casts: of rows and of columns
};

// By a family that has fragments. Nothing where the stage is no sum of products for it, or where no dim has only rows, or only columns.
std::optional<FragmentFold> fragment_fold(const Instruction &family, const Stage &stage, const Knobs &knobs);

// Registers that a register tile of so many rows and columns of fragments takes: its accumulators, the operands of the shorter side, and
// one of the longer.
int64_t registers_of_tile(int64_t rows, int64_t columns);

// The knobs with a layout for each operand that such a stage packs and says none for: fragment by fragment, each as the family has it in
// memory, those of b in panels as wide as the register tile; and tiles of copies in that layout at loops, where none are stated. Where
// warps load operands from shared memory, tiles of copies alone: 16 bytes for each thread.
KnobsByStage with_fragment_layouts(const Algorithm &algorithm, KnobsByStage stages);

}  // namespace tessera
