// The nodes of a tile program as Halide statements, and the memory that they need.
#pragma once
#include "compiler/abi/memory_plan.h"
#include "compiler/emit/halide/values.h"

namespace tessera::emit {

// One function body: the program over the frame of runtime/abi/kernel.h.
struct EmittedBody {
    Halide::Internal::Stmt body;              // uses the variables "frame" and "__user_context"
    Halide::Expr shared_bytes, worker_bytes;  // of workspace, over extent_name(dim); Int(64)
};

// What is in the module, or beside it, that a body refers to.
struct Surroundings {
    std::map<std::string, std::string> constants;  // of those of the program that the body uses -> buffers of the module
    struct Invoked {
        const TileProgram *program;
        std::string symbol;
        Halide::Expr shared_bytes, worker_bytes;  // over extent_name(dim) of its own dims
    };
    std::map<std::string, Invoked> programs;  // by the name that Invoke gives
};

EmittedBody emit_body(const TileProgram &program, const Surroundings &around);
// Whether all of a program's fragments are tiles of AMX, for whose steps Halide has intrinsics; others are computed as they mean.
bool has_tiles_only(const TileProgram &program);

// One part of a program whose buffers share bytes, as a body of its own over the same frame. Its bytes are over where the plan's buffers
// begin; `whole_bytes` makes those of the program out of the most that any part needs.
EmittedBody emit_part(const TileProgram &program, const Surroundings &around, const MemoryPlan &plan, size_t part);
Halide::Expr whole_bytes(const TileProgram &program, const MemoryPlan &plan, const Halide::Expr &most_of_parts);
// The first element of a buffer that a module holds.
Halide::Expr module_data(const std::string &buffer);

// Binds what the frame holds: extents, and unless `extents_only`, data pointers, strides and parameters.
Halide::Internal::Stmt bind_frame(const TileProgram &program, const Halide::Internal::Stmt &inside, bool extents_only);
// Leaves the function with the status, unless it is 0.
Halide::Internal::Stmt returning(const Halide::Expr &status);
// Slot `index` of the frame.
Halide::Expr frame_word(int64_t index);

}  // namespace tessera::emit
