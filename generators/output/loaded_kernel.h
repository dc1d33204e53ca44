// A kernel compiled and loaded into this process, so that it can be checked and timed. It needs no C compiler; the run-time library that it
// calls is the one inside this program.
#pragma once
#include <filesystem>
#include <list>
#include <memory>

#include "algorithms/evaluate/array.h"
#include "bench/measure/instruction_count.h"
#include "generators/kernel/prepare.h"
#include "runtime/abi/tessera.h"
#include "runtime/load/load.h"
#include "support/files/output_folder.h"
#include "support/processes/limited_process.h"

namespace tessera {

// UserError command.target when this processor lacks a feature of the target.
void check_runs_here(const Target &target);

// Emits the kernel and what packs its operands; gives the path of a static library in `folder`. UserError compile.limit when it takes too
// long, and those of check_runs_here.
std::filesystem::path library_to_load(const PreparedKernel &prepared, const Limits &limits, const TemporaryFolder &folder);

class LoadedKernel {
public:
    // One of the kernels in the library. UserError load.… where it cannot be loaded.
    LoadedKernel(const std::filesystem::path &library, const Kernel &kernel);

    // Arguments in the order of the kernel's signature. Gives a status of the runtime.
    int run(const std::vector<TessTensor> &arguments, const std::map<std::string, Scalar> &parameters, const TessContext &context) const;
    int workspace(const std::vector<TessTensor> &arguments, const TessContext &context, uint64_t &bytes) const;
    // For a kernel that packs: the bytes that it writes.
    int size(const std::vector<TessTensor> &arguments, const TessContext &context, uint64_t &bytes) const;
    // The message of the status that the last call gave.
    std::string message(int status) const;
    // Where the code of its library is.
    CodeRange code() const;

private:
    struct Close {
        void operator()(TessLoaded *library) const { tess_loaded_close(library); }
    };
    const TileProgram &program_;
    std::unique_ptr<TessLoaded, Close> library_;
    void *table_ = nullptr;  // the entry point that takes its tensors in a table
    TessKernel kernel_ = tess_kernel();
    mutable TessFault fault_ = tess_fault();
};

// A kernel with what packs its operands, in the order of `PreparedKernel::packings`; both live as long as `prepared`.
struct LoadedKernels {
    LoadedKernels(const std::filesystem::path &library, const PreparedKernel &prepared) : kernel(library, prepared.compiled.kernel) {
        for (const Kernel &packing : prepared.compiled.packings) packings.emplace_back(library, packing);
    }
    LoadedKernel kernel;
    std::list<LoadedKernel> packings;
};

// It points to `shape`, which has to live as long.
TessTensor descriptor_of(DType type, const std::vector<int64_t> &shape, void *data);

}  // namespace tessera
