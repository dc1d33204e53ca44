// From tile programs to a static library, by way of Halide's statement IR. The emitter translates: every loop, store and
// rounding is the tile program's.
#pragma once
#include <filesystem>

#include "compiler/tile_program.h"
#include "schedules/schedule.h"
#include "schedules/target.h"

namespace tessera {

// A program and the condition under which the library runs it: all of `when` hold. The last variant of a kernel has
// none, so one always applies.
struct KernelVariant {
    std::vector<Condition> when;
    TileProgram program;
};

// One public function. All variants have the same arguments, packed alike.
struct Kernel {
    std::string name;  // a C identifier
    std::vector<KernelVariant> variants;
    // The last variant's, which is of all extents: what the arguments are, and what is checked of them.
    const TileProgram &general() const { return variants.back().program; }
};

// The same kernels, each lowered for one target under its own schedule.
struct TargetKernels {
    Target target;
    std::vector<Kernel> kernels;
};

struct EmitOptions {
    std::filesystem::path archive;                  // the static library to write
    std::optional<std::filesystem::path> assembly;  // where to write the assembly of the variants, if anywhere
};

// Writes lib<…>.a with, for each kernel, the symbols `name` and `name_workspace`, and `name_size` of one that packs (header.h); all
// others are hidden. Of several targets, best first as targets_named gives them, the first that the processor and the call's
// context have runs, and among its variants the first whose conditions hold. All have the same kernels, in order, with the same
// arguments. Deterministic: the same kernels give the same bytes. Throws UserError emit.* for what the
// target cannot do, InternalError when Halide refuses.
void emit_library(const std::vector<TargetKernels> &targets, const EmitOptions &options);
void emit_library(const std::vector<Kernel> &kernels, const Target &target, const EmitOptions &options);

// Where in the library what is: the object of a target, and what the names of all functions of a variant begin with.
std::string object_name(const std::string &archive_stem, const Target &target);
std::string symbol_prefix(const Kernel &kernel, const Target &target, size_t variant);

// The TessDType of runtime/tessera.h; an index has none.
int32_t abi_dtype(DType type);
// The dims whose extents an argument states: those of the operand where it is packed.
const std::vector<std::string> &carried_dims(const Argument &argument);
// The dims that the table lists, in order: all but derived ones that no argument carries.
std::vector<Dim> spec_dims(const TileProgram &program);
// The mask of 1 << TessCpuFeature.
uint64_t feature_mask(const std::vector<std::string> &features);
// The same kernel for one of a library's targets: what it asks of the processor, and the layouts of its packed arguments.
struct TargetLayouts {
    uint64_t features = 0;
    const TileProgram *program = nullptr;
};
// The table of runtime/kernel.h that describes a kernel's arguments. `targets`, best first: where packed arguments have
// layouts that differ by target; without it those of `program` hold for all.
std::vector<int64_t> spec_of(const TileProgram &program, uint64_t required_features, const std::vector<TargetLayouts> &targets = {});
// Whether the kernel packs an operand ahead of time.
bool is_packing(const TileProgram &program);

}  // namespace tessera
