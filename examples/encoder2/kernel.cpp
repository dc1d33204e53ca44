#include "kernel.h"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <stdexcept>

int64_t Kernel::Argument::size() const { return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>()); }

Kernel::Kernel(int32_t (*describe)(TessKernel *), const std::map<std::string, int64_t> &extents, int32_t threads)
    : workspace_(nullptr, &std::free), pool_(threads > 1 ? tess_pool_create(threads) : nullptr, &tess_pool_destroy) {
    check(describe(&kernel_));
    TessKernelInfo about = {};
    about.size = sizeof about;
    check(tess_kernel_info(&kernel_, &about));
    parameter_bytes_ = about.parameter_bytes;
    std::vector<int64_t> of_dims;
    for (int32_t i = 0; i < about.dims; i++) {
        TessDimInfo dim = {};
        dim.size = sizeof dim;
        check(tess_kernel_dim(&kernel_, i, &dim));
        const auto given = extents.find(dim.name);
        of_dims.push_back(dim.fixed >= 0 || given == extents.end() ? dim.fixed : given->second);
    }
    for (int32_t i = 0; i < about.tensors; i++) {
        TessTensorInfo tensor = {};
        tensor.size = sizeof tensor;
        check(tess_kernel_tensor(&kernel_, i, &tensor));
        Argument argument{tensor.name, static_cast<TessDType>(tensor.type.code | tensor.type.bits << 8), {}};
        for (int32_t a = 0; a < tensor.rank; a++) argument.extents.push_back(of_dims.at(static_cast<size_t>(tensor.dims[a])));
        arguments_.push_back(std::move(argument));
    }
    for (int32_t i = 0; i < about.parameters; i++) {
        TessParameterInfo parameter = {};
        parameter.size = sizeof parameter;
        check(tess_kernel_parameter(&kernel_, i, &parameter));
        parameters_.push_back(parameter);
    }
    context_.threads = threads, context_.pool = pool_.get();
}

const Kernel::Argument &Kernel::argument(const std::string &name) const {
    for (const Argument &a : arguments_)
        if (a.name == name) return a;
    throw std::runtime_error("the generated function has no argument " + name);
}

void Kernel::run(const std::map<std::string, void *> &data, const std::map<std::string, double> &parameters) {
    std::vector<TessTensor> tensors;
    for (const Argument &a : arguments_)
        tensors.push_back(tess_dense(data.at(a.name), a.type, static_cast<int32_t>(a.extents.size()), a.extents.data()));
    std::vector<const TessTensor *> pointers;
    for (const TessTensor &t : tensors) pointers.push_back(&t);
    std::vector<int64_t> values((parameter_bytes_ + 7) / 8);
    for (const TessParameterInfo &p : parameters_) {
        char *at = reinterpret_cast<char *>(values.data()) + p.offset;
        const double given = parameters.at(p.name);
        const float single = static_cast<float>(given);
        const int64_t whole = static_cast<int64_t>(given);
        const auto type = static_cast<TessDType>(p.type.code | p.type.bits << 8);
        if (type == TESS_F32) std::memcpy(at, &single, sizeof single);
        else if (type == TESS_F64) std::memcpy(at, &given, sizeof given);
        else if (type == TESS_I64) std::memcpy(at, &whole, sizeof whole);
        else throw std::runtime_error(std::string("the parameter ") + p.name + " is of a type that is not passed on here");
    }
    context_.fault = &fault_;
    uint64_t bytes = 0;
    check(tess_call_workspace(&kernel_, pointers.data(), &context_, &bytes));
    if (bytes > context_.workspace_bytes) {
        const uint64_t whole = (bytes + 63) / 64 * 64;
        workspace_.reset(std::aligned_alloc(64, whole));
        if (!workspace_) throw std::bad_alloc();
        context_.workspace = workspace_.get(), context_.workspace_bytes = whole;
    }
    check(tess_call(&kernel_, pointers.data(), values.data(), &context_));
}

void Kernel::check(int32_t status) const {
    if (status == TESS_OK) return;
    std::vector<const char *> names;
    for (const Argument &a : arguments_) names.push_back(a.name.c_str());
    names.push_back(nullptr);
    char message[256];
    tess_status_message(status, &fault_, names.data(), message, sizeof message);
    throw std::runtime_error(std::string("a generated function failed: ") + message);
}
