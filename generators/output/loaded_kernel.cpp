#include "generators/output/loaded_kernel.h"

#include <algorithm>
#include <cstring>

#include "bench/measure/parameter_words.h"
#include "compiler/emit/emitter.h"
#include "compiler/emit/spec.h"
#include "generators/output/emitted.h"
#include "runtime/abi/kernel.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

void check_runs_here(const Target &target) {
    if (target.is_gpu())
        throw UserError(
            "command.target",
            "target '" + target.name +
                "': this command runs kernels on the processor, and not on a GPU; choose --target host. 'generate' writes the kernel for " +
                target.name + ".");
    if (target.arch != host_arch())
        throw UserError(
            "command.target",
            "target '" + target.name + "': this machine is " + name_of(host_arch()) +
                ", so its code cannot run here. Choose --target host, or generate it and run it on a machine of the target's kind.");
    const std::vector<std::string> have = host_features();
    for (const std::string &feature : target.features)
        if (std::find(have.begin(), have.end(), feature) == have.end())
            throw UserError("command.target", "target '" + target.name + "': this processor lacks " + feature +
                                                  ", so its code cannot run here; its features are " + join(have) +
                                                  ". Choose --target host, or use the machine that the target describes.");
}

fs::path library_to_load(const PreparedKernel &p, const Limits &limits, const TemporaryFolder &folder) {
    check_runs_here(p.request.target);
    const PreparedLibrary library = library_of({p});
    return library_emitter().load({library.name, kernels_of(library), {}, false, limits}, folder.path());
}

LoadedKernel::LoadedKernel(const fs::path &library, const Kernel &kernel) : program_(kernel.general()) {
    TessLoaded *loaded = nullptr;
    TessLoadError error;
    const TessLoadStatus status = tess_load_file(library.c_str(), &loaded, &error);
    if (status != TESS_LOAD_OK) throw UserError(tess_load_status_id(status), error.text);
    library_.reset(loaded);
    table_ = tess_loaded_symbol(loaded, (kernel.name + "_table").c_str());
    const auto describe = reinterpret_cast<int32_t (*)(TessKernel *)>(tess_loaded_symbol(loaded, (kernel.name + "_describe").c_str()));
    require(table_ && describe && describe(&kernel_) == TESS_OK, "a library of a kernel has it");
}

// The context of a call, whose fault is kept.
static TessContext with_fault(const TessContext &context, TessFault &fault) {
    TessContext own = context;
    fault = tess_fault();
    own.fault = &fault;
    return own;
}

static std::vector<const TessTensor *> pointers_to(const std::vector<TessTensor> &arguments) {
    std::vector<const TessTensor *> tensors;
    for (const TessTensor &a : arguments) tensors.push_back(&a);
    return tensors;
}

int LoadedKernel::run(const std::vector<TessTensor> &arguments, const std::map<std::string, Scalar> &parameters,
                      const TessContext &context) const {
    const TessContext own = with_fault(context, fault_);
    const std::vector<const TessTensor *> tensors = pointers_to(arguments);
    if (program_.parameters.empty())
        return reinterpret_cast<int32_t (*)(const TessTensor *const *, const TessContext *)>(table_)(tensors.data(), &own);
    const std::vector<int64_t> words = parameter_words(program_, parameters);
    std::vector<int64_t> bytes(static_cast<size_t>(kernel_.spec[TESS_SPEC_PARAMETER_BYTES]) / sizeof(int64_t) + 1);
    for (size_t i = 0; i < words.size(); i++) {
        const int64_t *record = tess_spec_parameter(kernel_.spec, static_cast<int64_t>(i));
        std::memcpy(reinterpret_cast<char *>(bytes.data()) + record[TESS_SPEC_PARAMETER_OFFSET], &words[i],
                    tess_dtype_size(static_cast<int32_t>(record[TESS_SPEC_PARAMETER_DTYPE])));
    }
    return reinterpret_cast<int32_t (*)(const TessTensor *const *, const void *, const TessContext *)>(table_)(tensors.data(), bytes.data(),
                                                                                                               &own);
}

int LoadedKernel::workspace(const std::vector<TessTensor> &arguments, const TessContext &context, uint64_t &bytes) const {
    const TessContext own = with_fault(context, fault_);
    return tess_call_workspace(&kernel_, pointers_to(arguments).data(), &own, &bytes);
}

int LoadedKernel::size(const std::vector<TessTensor> &arguments, const TessContext &context, uint64_t &bytes) const {
    const TessContext own = with_fault(context, fault_);
    std::vector<const TessTensor *> tensors = pointers_to(arguments);
    tensors.back() = nullptr;  // what it would write
    return tess_abi2_packed_bytes(kernel_.spec, tensors.data(), &own, &bytes);
}

CodeRange LoadedKernel::code() const {
    const void *begin = nullptr;
    uint64_t bytes = 0;
    tess_loaded_code(library_.get(), &begin, &bytes);
    return {reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(begin) + bytes};
}

std::string LoadedKernel::message(int status) const {
    std::vector<const char *> names;
    for (const Argument &a : program_.arguments) names.push_back(a.tensor.name.c_str());
    for (const Parameter &p : program_.parameters) names.push_back(p.name.c_str());
    char text[256];
    tess_status_message(status, &fault_, names.data(), text, sizeof text);
    return text;
}

TessTensor descriptor_of(DType type, const std::vector<int64_t> &shape, void *data) {
    return tess_dense(data, static_cast<TessDType>(abi_dtype(type)), static_cast<int32_t>(shape.size()), shape.data());
}

}  // namespace tessera
