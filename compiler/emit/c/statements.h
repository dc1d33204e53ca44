// The nodes of a tile program as C functions over the frame of runtime/abi/kernel.h.
#pragma once
#include "compiler/emit/c/operations.h"
#include "compiler/tile/tile_program.h"

namespace tessera::emit_c {

// The functions of one program: "<stem>_plan" and "<stem>_body" and before them what they use, all static: those of the programs that
// it invokes too. UserError emit.cpu
// for what a CPU cannot run, emit.unrolled for more unrolled statements than a C compiler should be given.
std::string functions_of(const TileProgram &program, const std::string &stem, Operations &operations);

}  // namespace tessera::emit_c
