// The nodes of a tile program as Halide statements, and the memory that they need.
#pragma once
#include "compiler/emit/values.h"

namespace tessera::emit {

// One function body: the program over the frame of runtime/kernel.h.
struct EmittedBody {
    Halide::Internal::Stmt body;          // uses the variables "frame" and "__user_context"
    Halide::Expr shared_bytes, worker_bytes;  // of workspace, over extent_name(dim); Int(64)
};

// `constants` maps the program's constants to buffers of the module that the body goes into.
EmittedBody emit_body(const TileProgram &program, const std::map<std::string, std::string> &constants);
// The first element of a buffer that a module holds.
Halide::Expr module_data(const std::string &buffer);

// Binds what the frame holds: extents, and unless `extents_only`, data pointers, strides and parameters.
Halide::Internal::Stmt bind_frame(const TileProgram &program, const Halide::Internal::Stmt &inside, bool extents_only);
// Slot `index` of the frame.
Halide::Expr frame_word(int64_t index);

}  // namespace tessera::emit
