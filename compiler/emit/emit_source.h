// From tile programs to one file of C: the same functions as the library of emit_library.h, to be read, checked in and
// compiled by gcc or clang with nothing of Tessera's but its runtime and that runtime's headers.
//
// The file is C11 with GNU vector types. On x86-64 the bodies are compiled for the target's features by attributes, so it
// needs no -m options, and a processor that lacks one is refused by code that runs anywhere. Elsewhere, or with
// -DTESS_PORTABLE, it has no intrinsics, asks for no features and gives the same bits, slower.
#pragma once
#include "compiler/emit/emit_library.h"

namespace tessera {

// Calls that a schedule emits once are refused (emit.call). `about`: lines for the comment at its top. Deterministic. Throws UserError
// emit.* for what C or a CPU cannot do.
std::string source_of(const std::vector<Kernel> &kernels, const Target &target, const std::vector<std::string> &about = {});

}  // namespace tessera
