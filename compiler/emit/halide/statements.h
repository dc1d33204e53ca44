// The nodes of a tile program as Halide statements, and the memory that they need.
#pragma once
#include "compiler/emit/halide/values.h"

namespace tessera::emit {

// One function body: the program over the frame of runtime/kernel.h.
struct EmittedBody {
    Halide::Internal::Stmt body;              // uses the variables "frame" and "__user_context"
    Halide::Expr shared_bytes, worker_bytes;  // of workspace, over extent_name(dim); Int(64)
};

// What is in the module, or beside it, that a body refers to.
struct Surroundings {
    std::map<std::string, std::string> constants;  // of the program -> buffers of the module
    struct Invoked {
        const TileProgram *program;
        std::string symbol;
        Halide::Expr shared_bytes, worker_bytes;  // over extent_name(dim) of its own dims
    };
    std::map<std::string, Invoked> programs;  // by the name that Invoke gives
};

EmittedBody emit_body(const TileProgram &program, const Surroundings &around);
// The first element of a buffer that a module holds.
Halide::Expr module_data(const std::string &buffer);

// Binds what the frame holds: extents, and unless `extents_only`, data pointers, strides and parameters.
Halide::Internal::Stmt bind_frame(const TileProgram &program, const Halide::Internal::Stmt &inside, bool extents_only);
// Leaves the function with the status, unless it is 0.
Halide::Internal::Stmt returning(const Halide::Expr &status);
// Slot `index` of the frame.
Halide::Expr frame_word(int64_t index);

}  // namespace tessera::emit
