// Kernels as Python calls them: code that was loaded, what it says of its arguments, and a call of it.
#pragma once
#include "python/core/arguments.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "python/core/code.h"

namespace tessera::python {

struct KernelTensor {
    std::string name;
    TessType type;
    int32_t rank, role;
    std::array<int32_t, TESS_MAX_RANK> dims;
    uint32_t flags;
};

struct KernelDim {
    std::string name;
    int64_t fixed;  // -1: dynamic
};

struct KernelParameter {
    std::string name;
    TessType type;
    uint32_t offset;
};

// An axis of an input or a state of which the kernel fixes the extent.
struct FixedAxis {
    size_t tensor;
    int32_t axis;
    int64_t extent;
};

class Kernel {
public:
    // UserError load.kernel where the library has no such kernel, or one of another version.
    Kernel(const std::shared_ptr<Code> &code, const std::string &name);
    // One of what `owner` keeps in memory.
    Kernel(std::shared_ptr<const void> owner, const std::string &name, const TessKernel &kernel);

    const TessKernel &kernel() const { return kernel_; }
    const std::string &name() const { return name_; }
    const std::vector<KernelTensor> &tensors() const { return tensors_; }
    const std::vector<KernelDim> &dims() const { return dims_; }
    const std::vector<KernelParameter> &parameters() const { return parameters_; }
    const std::vector<FixedAxis> &fixed_axes() const { return fixed_axes_; }
    uint64_t parameter_bytes() const { return parameter_bytes_; }
    // Which of its targets runs here: "avx512", … of a multi-target kernel.
    std::vector<std::string> targets() const;
    const std::vector<const char *> &argument_names() const { return argument_names_; }

private:
    std::shared_ptr<const void> owner_;
    std::string name_;
    TessKernel kernel_;
    std::vector<KernelTensor> tensors_;
    std::vector<KernelDim> dims_;
    std::vector<KernelParameter> parameters_;
    std::vector<FixedAxis> fixed_axes_;
    uint64_t parameter_bytes_ = 0;
    std::vector<const char *> argument_names_;
};

// Calls the kernel with the workspace of this thread and the threads of the process; on a device, in that stream. The interpreter's lock is
// not needed.
int32_t run_kernel(const Kernel &kernel, const TessTensor *const *tensors, const void *parameters, void *stream, TessFault &fault);

// A parameter's value in the block of all. False with an exception set.
bool write_parameter(PyObject *object, const KernelParameter &parameter, unsigned char *block);

// Kernel and set_threads.
void declare_kernels(nb::module_ &m);

}  // namespace tessera::python
