// Runs the kernels of a tile program for GPUs as a device may: the threads of a block in lock step from barrier to barrier, the blocks
// of a launch in any order. Needs no GPU, and knows what happens, where the verifier (verify_tiles.h) knows what may happen: whatever
// this finds, that has to refuse.
//
// A thread loop is a step that each thread of the block takes; what stands outside of thread loops, all of them do. Two accesses of an
// element with a store among them meet where no barrier stands between them and they are of different threads, or where they are of
// different blocks of one launch.
//
// What is copied asynchronously is in flight until each thread has awaited its group: whoever reads the element before, or stores to it,
// is told of. After that it counts as stored by the thread that copied it, where that waited.
//
// It also counts what memory does for each warp of 32 threads: shared memory has 32 banks of 4 bytes and serves a warp in as many turns as
// there are different words in the busiest bank, global memory in sectors of 32 bytes. Arguments and buffers count as aligned to sectors.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"

namespace tessera {

// Accesses of whole warps: one instruction of up to 32 threads.
struct WarpAccesses {
    int64_t accesses = 0;
    int64_t turns = 0;  // of banks, or sectors
    int64_t least = 0;  // of them for the same bytes without a conflict, side by side
};

// What the launches of one kernel did together.
struct KernelCounts {
    std::string kernel;                     // the variable of its loop over blocks
    int64_t threads = 0, shared_bytes = 0;  // of a block
    int64_t launches = 0, blocks = 0;
    int64_t barriers = 0;                     // that blocks passed
    int64_t awaits = 0, bytes_in_flight = 0;  // that blocks passed, and the most bytes of asynchronous copies that one of them found
    WarpAccesses shared_reads, shared_stores, global_reads, global_stores;
};

struct LockstepReport {
    // Each with the kernel, the buffer and element, both threads and what they do; and what the interpreter refuses. Empty: none found.
    std::vector<std::string> hazards;
    std::vector<KernelCounts> kernels;  // in the order in which they first run
};

struct LockstepOptions {
    size_t most_hazards = 8;  // it stops there
    bool counts = true;       // of warps: slower
    bool backwards = false;   // as in InterpretOptions: threads and blocks run from the last to the first
};

// As interpret() (interpret.h), whose results it leaves in the outputs.
LockstepReport run_in_lockstep(const TileProgram &program, const std::map<std::string, TensorView> &arguments, const Extents &extents = {},
                               const std::map<std::string, Scalar> &parameters = {}, const LockstepOptions &options = {});

// A table of the kernels, and the hazards.
std::string to_text(const LockstepReport &report);

}  // namespace tessera
