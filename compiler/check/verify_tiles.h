// Proves that a tile program is safe to run in any order that its loops allow, before anything is emitted.
//
//   names       every variable, extent, parameter and buffer is defined where it is used; one index for each axis
//   memory      every index is inside its buffer, for all shapes, by algorithms/index/prove.h
//   races       iterations of vector, parallel, block and thread loops never write what another one
//               writes or reads, unless the buffer is the iteration's own
//   order       a buffer is stored to before it is read; a state that a store reads is read where it is stored;
//               where threads of a block meet stands a barrier (barriers.h), and
//               never inside a thread loop
//   calls       what is invoked has its buffers, extents and parameters, and none is stored to and passed twice
//   storage     the spaces that the target has; registers and stack of constant size, at most stack_bytes_limit together;
//               no thread touches the registers of another one
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"

namespace tessera {

constexpr int64_t stack_bytes_limit = 128 * 1024;

// Gives what was assumed: indices of the program's own buffers that could not be proved to be inside, which the interpreter checks
// while it runs. InternalError for a rule that is broken. UserError schedule.unproved for an argument's or a constant's access or a
// race that cannot be shown to be safe, schedule.storage when tiles need more stack than there is.
std::vector<std::string> verify(const TileProgram &program);
// Whether it passes, and nothing was assumed. With `max_steps`, whether that takes no more steps of the prover: a search can do without
// a program that takes seconds. InternalError as verify.
bool is_proved(const TileProgram &program, std::optional<int64_t> max_steps = std::nullopt);

}  // namespace tessera
