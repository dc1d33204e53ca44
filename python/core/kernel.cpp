#include "python/core/kernel.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "support/text/error.h"

namespace tessera::python {

namespace {

void expect_ok(int32_t status, const std::string &what) {
    if (status != TESS_OK)
        throw UserError("load.kernel", what + ": " + tess_status_kind(status) + "; was it made by this version of Tessera?");
}

// Scratch memory of this thread; it grows and is used by one call at a time.
class Workspace {
public:
    ~Workspace() { std::free(memory_); }
    void *memory() const { return memory_; }
    uint64_t bytes() const { return bytes_; }
    bool grow(uint64_t bytes) {
        std::free(memory_);
        bytes_ = (bytes + TESS_WORKSPACE_ALIGNMENT - 1) / TESS_WORKSPACE_ALIGNMENT * TESS_WORKSPACE_ALIGNMENT;
        memory_ = std::aligned_alloc(TESS_WORKSPACE_ALIGNMENT, bytes_);
        if (memory_ == nullptr) bytes_ = 0;
        return memory_ != nullptr;
    }

private:
    void *memory_ = nullptr;
    uint64_t bytes_ = 0;
};
thread_local Workspace workspace;

struct Threads {
    int32_t count = 1;
    TessPool *pool = nullptr;
} threads;

int set_threads(int count) {
    if (count < 1 || count > 4096) refuse("python.threads", "threads: expected 1 ..= 4096, got " + std::to_string(count));
    if (count == threads.count) return count;
    // A call of another thread may use a pool until it ends, so that none is destroyed; each count has one.
    static std::map<int, TessPool *> pools;
    TessPool *pool = count > 1 ? pools[count] : nullptr;
    if (count > 1 && pool == nullptr) pool = pools[count] = tess_pool_create(count);
    if (count > 1 && pool == nullptr) refuse("python.threads", "the system has no room for " + std::to_string(count) + " threads");
    threads = {count, pool};
    return count;
}

}  // namespace

bool write_parameter(PyObject *object, const KernelParameter &parameter, unsigned char *block) {
    unsigned char *to = block + parameter.offset;
    const int type = parameter.type.code | parameter.type.bits << 8;
    auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
    if (type == TESS_F32 || type == TESS_F64) {
        const double value = PyFloat_AsDouble(object);
        if (value == -1 && PyErr_Occurred() != nullptr) return false;
        type == TESS_F32 ? put(static_cast<float>(value)) : put(value);
        return true;
    }
    if (type == TESS_BOOL) {
        const int value = PyObject_IsTrue(object);
        if (value < 0) return false;
        put(static_cast<uint8_t>(value));
        return true;
    }
    if (parameter.type.code > 1) {
        PyErr_Format(PyExc_TypeError, "parameters of DLPack's type code %d and %d bits are not passed from Python", parameter.type.code,
                     parameter.type.bits);
        return false;
    }
    PyObject *whole = PyNumber_Index(object);
    if (whole == nullptr) return false;
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(whole, &overflow);
    Py_DECREF(whole);
    const int bits = parameter.type.bits;
    const bool fits =
        overflow == 0 && (bits == 64 || (parameter.type.code == 1 ? value >= 0 && value < (1LL << bits)
                                                                  : value >= -(1LL << (bits - 1)) && value < (1LL << (bits - 1))));
    if (!fits) {
        PyErr_Format(PyExc_TypeError, "expected an integer of %d bits, got %R", bits, object);
        return false;
    }
    switch (bits) {
    case 8: put(static_cast<int8_t>(value)); break;
    case 16: put(static_cast<int16_t>(value)); break;
    case 32: put(static_cast<int32_t>(value)); break;
    default: put(static_cast<int64_t>(value)); break;
    }
    return true;
}

int32_t run_kernel(const Kernel &kernel, const TessTensor *const *tensors, const void *parameters, void *stream, TessFault &fault) {
    TessContext context = tess_context();
    context.fault = &fault;
    context.threads = threads.count;
    context.pool = threads.pool;
    context.stream = stream;
    Workspace &scratch = workspace;
    context.workspace = scratch.memory();
    context.workspace_bytes = scratch.bytes();
    int32_t status = tess_call(&kernel.kernel(), tensors, parameters, &context);
    const int32_t kind = tess_status_code(status);
    if (kind == TESS_WORKSPACE_MISSING || kind == TESS_WORKSPACE_SMALL) {
        uint64_t bytes = 0;
        status = tess_call_workspace(&kernel.kernel(), tensors, &context, &bytes);
        if (status == TESS_OK && scratch.grow(bytes)) {
            context.workspace = scratch.memory();
            context.workspace_bytes = scratch.bytes();
            status = tess_call(&kernel.kernel(), tensors, parameters, &context);
        }
    }
    return status;
}

static TessKernel described(const Code &code, const std::string &name) {
    const auto describe = reinterpret_cast<int32_t (*)(TessKernel *)>(code.symbol(name + "_describe"));
    if (describe == nullptr) throw UserError("load.kernel", "the library has no kernel '" + name + "'");
    TessKernel kernel = tess_kernel();
    expect_ok(describe(&kernel), name);
    return kernel;
}

Kernel::Kernel(const std::shared_ptr<Code> &code, const std::string &name) : Kernel(code, name, described(*code, name)) {}

Kernel::Kernel(std::shared_ptr<const void> owner, const std::string &name, const TessKernel &kernel)
    : owner_(std::move(owner)), name_(name), kernel_(kernel) {
    TessKernelInfo info = {};
    info.size = sizeof info;
    expect_ok(tess_kernel_info(&kernel_, &info), name);
    parameter_bytes_ = info.parameter_bytes;
    for (int32_t i = 0; i < info.tensors; i++) {
        TessTensorInfo t = {};
        t.size = sizeof t;
        expect_ok(tess_kernel_tensor(&kernel_, i, &t), name);
        KernelTensor tensor{t.name, t.type, t.rank, t.role, {}, t.flags};
        std::copy(std::begin(t.dims), std::end(t.dims), tensor.dims.begin());
        tensors_.push_back(tensor);
        argument_names_.push_back(t.name);
    }
    for (int32_t i = 0; i < info.dims; i++) {
        TessDimInfo d = {};
        d.size = sizeof d;
        expect_ok(tess_kernel_dim(&kernel_, i, &d), name);
        dims_.push_back({d.name, d.fixed});
    }
    for (int32_t i = 0; i < info.parameters; i++) {
        TessParameterInfo p = {};
        p.size = sizeof p;
        expect_ok(tess_kernel_parameter(&kernel_, i, &p), name);
        parameters_.push_back({p.name, p.type, p.offset});
        argument_names_.push_back(p.name);
    }
    argument_names_.push_back(nullptr);
    for (size_t t = 0; t < tensors_.size(); t++) {
        const KernelTensor &tensor = tensors_[t];
        if (tensor.role == TESS_ROLE_OUTPUT || (tensor.flags & TESS_FLAG_PACKED) != 0) continue;
        for (int32_t axis = 0; axis < tensor.rank; axis++) {
            const int64_t fixed = dims_[static_cast<size_t>(tensor.dims[static_cast<size_t>(axis)])].fixed;
            if (fixed >= 0) fixed_axes_.push_back({t, axis, fixed});
        }
    }
}

std::vector<std::string> Kernel::targets() const {
    std::vector<std::string> all;
    TessCodeInfo info = {};
    for (int32_t i = 0;; i++) {
        info.size = sizeof info;
        if (tess_kernel_code(&kernel_, i, &info) != TESS_OK) return all;
        if (std::find(all.begin(), all.end(), info.target) == all.end()) all.emplace_back(info.target);
    }
}

void declare_kernels(nb::module_ &m) {
    nb::class_<Kernel>(m, "Kernel", "A kernel of a library that `generate` wrote, loaded into this process.")
        .def(nb::new_([](const std::string &file, const std::string &name) { return std::make_shared<Kernel>(Code::load(file), name); }),
             nb::arg("file"), nb::arg("name"))
        .def_prop_ro("name", &Kernel::name)
        .def_prop_ro("targets", &Kernel::targets)
        .def_prop_ro(
            "inputs",
            [](const Kernel &k) {
                std::vector<std::string> names;
                for (const KernelTensor &t : k.tensors())
                    if (t.role != TESS_ROLE_OUTPUT) names.push_back(t.name);
                for (const KernelParameter &p : k.parameters()) names.push_back(p.name);
                return names;
            },
            "Names of inputs and states, then of parameters.")
        .def_prop_ro("outputs",
                     [](const Kernel &k) {
                         std::vector<std::string> names;
                         for (const KernelTensor &t : k.tensors())
                             if (t.role == TESS_ROLE_OUTPUT) names.push_back(t.name);
                         return names;
                     })
        .def_prop_ro(
            "fixed",
            [](const Kernel &k) {
                nb::dict all;
                for (const KernelDim &d : k.dims())
                    if (d.fixed >= 0) all[d.name.c_str()] = d.fixed;
                return all;
            },
            nb::sig("def fixed(self) -> dict[str, int]"))
        .def(
            "parameter_block",
            [](const Kernel &k, const nb::dict &values) {
                std::vector<unsigned char> block(k.parameter_bytes());
                for (const KernelParameter &p : k.parameters())
                    if (!write_parameter(nb::object(values[p.name.c_str()]).ptr(), p, block.data())) throw nb::python_error();
                return nb::bytes(block.data(), block.size());
            },
            nb::arg("values"), nb::sig("def parameter_block(self, values: dict[str, object]) -> bytes"),
            "Parameters by name as the bytes that the kernel reads.")
        .def("__repr__", [](const Kernel &k) { return "<kernel " + k.name() + " for " + join(k.targets()) + ">"; });
    m.def("set_threads", &set_threads, nb::arg("count"), "One pool of so many threads for all calls of the process; 1: the caller alone.");
    m.def("threads", [] { return threads.count; });
    m.def("cpu_features", &tess_cpu_features, "What the processor and the system support, bit by bit (tess_cpu_features).");
    m.def("cpu_count", &tess_cpu_count, "Processors that this thread may run on.");
}

}  // namespace tessera::python
