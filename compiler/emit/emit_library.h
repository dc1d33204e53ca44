// From tile programs to a static library, by way of Halide's statement IR. The emitter translates: every loop, store and
// rounding is the tile program's.
#pragma once
#include <filesystem>

#include "compiler/tile/kernel.h"

namespace tessera {

struct EmitOptions {
    std::filesystem::path archive;                  // the static library to write
    std::optional<std::filesystem::path> assembly;  // where to write the assembly of the variants, if anywhere
};

// Writes lib<…>.a with, for each kernel, the symbols `name` and `name_workspace`, and `name_size` of one that packs (header.h); all
// others are hidden. Of several targets, best first as targets_named gives them, the first that the processor and the call's
// context have runs, and among its variants the first whose conditions hold. All have the same kernels, in order, with the same
// arguments. Deterministic: the same kernels give the same bytes. Throws UserError emit.* for what the
// target cannot do, output.write where the files cannot be written, InternalError when Halide refuses.
void emit_library(const std::vector<TargetKernels> &targets, const EmitOptions &options);
void emit_library(const std::vector<Kernel> &kernels, const Target &target, const EmitOptions &options);

// Where in the library what is: the object of a target, and what the names of all functions of a variant begin with.
std::string object_name(const std::string &archive_stem, const Target &target);
std::string symbol_prefix(const Kernel &kernel, const Target &target, size_t variant);

}  // namespace tessera
