// A kernel compiled, linked to a shared object and loaded into this process, so that it can be checked and timed. It needs
// a C compiler ("cc") on the path; the run-time library that it calls is the one inside this program.
#pragma once
#include <filesystem>
#include <list>

#include "algorithms/evaluate/array.h"
#include "generators/kernel/prepare.h"
#include "runtime/abi/tessera.h"
#include "support/files/output_folder.h"
#include "support/processes/limited_process.h"

namespace tessera {

// UserError command.target when this processor lacks a feature of the target.
void check_runs_here(const Target &target);

// Emits and links the kernel and what packs its operands; gives the shared object's path in `folder`. UserError command.cc
// when the C compiler is missing or fails, compile.limit when it takes too long, and those of check_runs_here.
std::filesystem::path link_kernel(const PreparedKernel &prepared, const Limits &limits, const TemporaryFolder &folder);

class LoadedKernel {
public:
    // One of the kernels in the object, which has the arguments of `program`.
    LoadedKernel(const std::filesystem::path &object, const Kernel &kernel);
    ~LoadedKernel();
    LoadedKernel(const LoadedKernel &) = delete;
    LoadedKernel &operator=(const LoadedKernel &) = delete;

    // Arguments in the order of the kernel's signature. Gives a status of the runtime.
    int run(const std::vector<TessTensor> &arguments, const std::map<std::string, Scalar> &parameters, const TessContext &context) const;
    int workspace(const std::vector<TessTensor> &arguments, const std::map<std::string, Scalar> &parameters, const TessContext &context,
                  uint64_t &bytes) const;
    // For a kernel that packs: the bytes that it writes.
    int size(const std::vector<TessTensor> &arguments, const TessContext &context, uint64_t &bytes) const;
    // The message of the status that the last call gave.
    std::string message(int status) const;
    // Somewhere in its object's code.
    const void *code() const { return reinterpret_cast<const void *>(call_); }

private:
    enum Query : int32_t { none, of_workspace, of_packed };
    using Call = int (*)(const void *const *tensors, const void *parameters, const void *context, uint64_t *bytes, int32_t query);
    int call(const std::vector<TessTensor> &arguments, const std::map<std::string, Scalar> &parameters, const TessContext &context,
             uint64_t *bytes, Query query) const;
    const TileProgram &program_;
    int file_ = -1;
    void *handle_ = nullptr;
    Call call_ = nullptr;
    mutable TessFault fault_ = tess_fault();
};

// A kernel with what packs its operands, in the order of `PreparedKernel::packings`; both live as long as `prepared`.
struct LoadedKernels {
    LoadedKernels(const std::filesystem::path &object, const PreparedKernel &prepared) : kernel(object, prepared.compiled.kernel) {
        for (const Kernel &packing : prepared.compiled.packings) packings.emplace_back(object, packing);
    }
    LoadedKernel kernel;
    std::list<LoadedKernel> packings;
};

// It points to `shape`, which has to live as long.
TessTensor descriptor_of(DType type, const std::vector<int64_t> &shape, void *data);

}  // namespace tessera
