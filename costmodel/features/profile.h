// What a tile program does on one shape, counted without compiling it: instructions by kind, what each cache level has to
// bring, how the work is shared out. Everything is read off the program's own loops. Instructions are counted over the iterations that
// there are, where the conditions around hold (iteration_sum.h); where something lies, with each loop at its middle.
// Traffic is by working sets (working_set.h).
#pragma once
#include <array>
#include <cstdint>

#include "bench/measure/inputs.h"
#include "compiler/tile/tile_program.h"
#include "schedules/target/target.h"

namespace tessera {

// Issue slots, of which a cycle has two, of a division or a square root.
constexpr double slow_slots = 10;

struct Profile {
    // Instructions, each over as many elements as a vector register holds.
    double fma = 0, arithmetic = 0, slow = 0;  // multiply-adds; other float operations; divisions and square roots
    double grouped = 0;                        // multiply-adds of an instruction family's groups: dot2, dot4
    double integer = 0;                        // operations and comparisons on other types
    double loads = 0, broadcasts = 0, gathers = 0, stores = 0, scatters = 0;  // of memory; registers are free
    double masked = 0;                                                        // loads and stores of which some lanes may be off
    double scalar = 0;                                                        // of all of the above, how many work on one element
    double iterations = 0;                                                    // of loops that are not unrolled
    double guards = 0;                                                        // conditions tested
    double core_time = 0;  // in multiply-adds' issue slots: what the busiest unit or chain of results needs
    double chained = 0;    // of core_time, what waits for an earlier result
    double alone = 0;      // of core_time, what runs outside of parallel loops of two iterations or more: on one thread
    // Bytes that come from outside the first, second and third level, and those of arguments.
    std::array<double, 3> traffic{};
    double translations = 0;  // pages whose address has to be looked up beyond the first level
    double argument_bytes = 0;
    double written_bytes = 0;  // of arguments of which nothing is read: each of their elements is stored
    double copied = 0;         // elements that Copies move: packs
    // For the innermost loop whose arithmetic takes longest.
    double accumulators = 0, loads_per_fma = 0, inner_trips = 0, inner_bytes = 0;
    double inner_loads = 0;  // vectors loaded in an iteration that several multiply-adds use
    double live = 0;         // vectors that an iteration needs at one time
    double inner_rows = 0;   // that lie apart in memory and are touched in an iteration
    double in_turn = 1;      // multiply-adds to one accumulator in an iteration
    // For the program.
    double statements = 0;  // stores after unrolling: what the compiler has to do
    double stack_bytes = 0, workspace_bytes = 0;
    double parallel = 1, imbalance = 1;  // iterations of parallel loops; the busiest thread's share over the mean one's
    double regions = 0;                  // parallel loops entered
    double partial = 0;                  // points computed in tiles that run past an end, of all
};

// `extents` of all dims that no data decides. Dims that data decides count as 64.
Profile profile_of(const TileProgram &program, const Extents &extents, const Target &target, int threads);

}  // namespace tessera
