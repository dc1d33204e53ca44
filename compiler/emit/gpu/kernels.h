// The nodes of a tile program as kernel functions, and what a host must know to launch them.
#pragma once
#include "compiler/emit/emit_gpu.h"
#include "compiler/emit/gpu/constants.h"
#include "compiler/emit/gpu/expressions.h"
#include "compiler/emit/gpu/launches.h"

namespace tessera::emit_gpu {

// Blocks that run at once when each needs a part of the workspace; they take the blocks of the grid in turns.
constexpr int64_t resident_blocks = 64;

// Where a buffer lies in the workspace: for all blocks, or a part for each resident one.
struct Room {
    std::string buffer;
    Expr bytes;
    bool per_block = false;
};

struct KernelFunction {
    std::string name;
    Expr blocks;
    int64_t threads = 1;
    bool in_turns = false;     // see resident_blocks
    int64_t shared_bytes = 0;  // that its launch sets aside: all of a block's, where they are more than those that CUDA gives by itself
};

// The functions of one program take, in order: its arguments' data, the workspace, the constants where there are any, the extents of
// spec_dims, the strides of every argument but the last of each, where each begins, the parameters' bits, and the offset of each room in
// the workspace, those of a block's within its part; then where these parts begin and the bytes of one. Those of a program that is invoked
// have no parameters' bits. Those of one that calls or is called end with where the choice is written by which they run, or -1, where the
// parameters are, and the host's variables.
struct KernelProgram {
    std::string text;
    LaunchPlan plan;
    std::vector<KernelFunction> functions;  // of the plan's kernels
    std::vector<Room> rooms;
    bool in_calls = false;  // it calls or is called
    bool uses_double = false;
    // How many numbers follow the offsets of the rooms.
    size_t numbers_after_rooms() const { return 2 + (in_calls ? 2 + plan.variables.size() : 0); }
};

enum class Called : uint8_t { by_host, by_program };

// `constants` and `callees` are those of the whole file.
KernelProgram kernels_of(const TileProgram &program, const std::string &stem, const Constants &constants, const Callees &callees,
                         Called called, bool cuda);

}  // namespace tessera::emit_gpu
