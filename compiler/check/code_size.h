// How much code a tile program becomes once its unrolled loops are written out, and what it keeps in registers, before anything is
// compiled. Compilers take quadratic time or worse in straight-line code, so a schedule that asks for too much is refused in words
// rather than stopped by a clock.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

struct CodeSize {
    int64_t instructions = 0;     // about so many on whole vectors in the run without a loop that is nearest to its limit, or beyond
    bool is_written_out = false;  // loops or wide vectors are written out there, so that a schedule can make it shorter
    std::string computes;         // the buffer that most of them are for
    int64_t registers = 0;        // vectors (or scalars) in the largest register tile, of all parts of a fold
    std::string keeps;            // one of its buffers
};
CodeSize code_size(const TileProgram &program, const Target &target);

// A formula of one element or vector has few values that live at a time, and compiles in time that is nearly linear.
constexpr int64_t max_written_out = 1500, max_in_formula = 12000;
constexpr int64_t max_register_files = 8;  // as many times what the target has

// Gives notes: register tiles that do not fit the target's registers. UserError schedule.register-tile, which names the stage and
// its knobs, for code that takes minutes to compile, and schedule.formula where no knob is to blame. `stages` are the knobs that the
// program was lowered with. A GPU's program is for another compiler and always passes.
std::vector<std::string> check_code_size(const TileProgram &program, const KnobsByStage &stages, const Target &target);

}  // namespace tessera
