#include "python/core/jax.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <mutex>
#include <string_view>
#include <unordered_map>

#include "python/core/xla.h"

namespace tessera::python {

namespace {

struct Kernels {
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<Kernel>> by_hash;
};

Kernels &kernels() {
    static auto *all = new Kernels;  // XLA's threads may outlive what is destroyed at the end
    return *all;
}

std::shared_ptr<Kernel> kernel_of(const std::string &hash) {
    const std::lock_guard lock(kernels().mutex);
    const auto found = kernels().by_hash.find(hash);
    return found == kernels().by_hash.end() ? nullptr : found->second;
}

struct NamedType {
    int xla;
    TessDType type;
};
constexpr NamedType named_types[] = {
    {1, TESS_BOOL},      {2, TESS_I8},          {4, TESS_I32},         {5, TESS_I64},     {6, TESS_U8},
    {10, TESS_F16},      {11, TESS_F32},        {12, TESS_F64},        {16, TESS_BF16},   {19, TESS_F8E5M2},
    {20, TESS_F8E4M3FN}, {24, TESS_F8E5M2FNUZ}, {25, TESS_F8E4M3FNUZ}, {28, TESS_F8E4M3}, {33, TESS_F8E8M0FNU},
};

xla::Error *error(const xla::Frame *frame, xla::ErrorCode code, const std::string &message) {
    xla::ErrorCreate create = {sizeof create, nullptr, message.c_str(), code};
    return frame->api->create_error(&create);
}

void fill(TessTensor &tensor, const xla::Buffer &buffer) {
    tensor = {};
    for (const NamedType &t : named_types)
        if (t.xla == buffer.type) tensor.type = tess_type(t.type);
    tensor.data = buffer.data;
    tensor.device = {TESS_HOST, 0};
    tensor.rank = static_cast<int32_t>(buffer.rank);
    tensor.extents = buffer.extents;
}

// Arguments are inputs and states in the kernel's order, results its states, each in the memory of its argument, and then its outputs.
xla::Error *call(const xla::Frame *frame, const Kernel &kernel, const void *parameters) {
    const size_t count = kernel.tensors().size();
    std::vector<TessTensor> tensors(count);
    std::vector<const TessTensor *> table(count);
    int64_t arguments = 0, results = 0;
    const auto next = [](const xla::Buffers &all, int64_t &at) {
        return at < all.size ? static_cast<xla::Buffer *>(all.values[at++]) : nullptr;
    };
    for (const bool outputs : {false, true})
        for (size_t t = 0; t < count; t++) {
            const int32_t role = kernel.tensors()[t].role;
            if ((role == TESS_ROLE_OUTPUT) != outputs) continue;
            const xla::Buffer *given = outputs ? next(frame->results, results) : next(frame->arguments, arguments);
            const xla::Buffer *updated = role == TESS_ROLE_INOUT ? next(frame->results, results) : given;
            if (given == nullptr || updated == nullptr || updated->data != given->data)
                return error(frame, xla::invalid_argument,
                             kernel.name() + ": the buffers are not those of its tensors; call it by tessera.jax.call");
            fill(tensors[t], *given);
            table[t] = &tensors[t];
        }
    TessFault fault = tess_fault();
    const int32_t status = run_kernel(kernel, table.data(), parameters, nullptr, fault);
    if (status == TESS_OK) return nullptr;
    char text[512];
    tess_status_message(status, &fault, kernel.argument_names().data(), text, sizeof text);
    return error(frame, xla::invalid_argument, kernel.name() + ": " + text);
}

xla::Error *handle(xla::Frame *frame) noexcept {
    if (frame->extension != nullptr && frame->extension->type == xla::metadata_extension) {
        xla::Version &version = reinterpret_cast<xla::MetadataExtension *>(frame->extension)->metadata->version;
        version.major = 0, version.minor = 3;
        return nullptr;
    }
    if (frame->stage != xla::execute) return nullptr;
    std::string hash;
    const void *parameters = nullptr;
    for (int64_t i = 0; i < frame->attributes.size; i++) {
        const std::string_view name(frame->attributes.names[i]->data, frame->attributes.names[i]->size);
        if (name == "kernel" && frame->attributes.types[i] == xla::string_attribute) {
            const auto *text = static_cast<const xla::Span *>(frame->attributes.values[i]);
            hash.assign(text->data, text->size);
        } else if (name == "parameters" && frame->attributes.types[i] == xla::array_attribute) {
            parameters = static_cast<const xla::Array *>(frame->attributes.values[i])->data;
        }
    }
    const std::shared_ptr<Kernel> kernel = kernel_of(hash);
    if (kernel == nullptr)
        return error(frame, xla::not_found,
                     "there is no kernel " + hash + " in this process; trace its function by tessera.jax.call first");
    return call(frame, *kernel, kernel->parameter_bytes() != 0 ? parameters : nullptr);
}

}  // namespace

void declare_jax(nb::module_ &m) {
    m.def(
        "xla_handler", [] { return nb::capsule(reinterpret_cast<void *>(&handle), xla::capsule); }, nb::sig("def xla_handler() -> object"),
        "The handler that XLA calls for all kernels, for jax.ffi.register_ffi_target.");
    m.def(
        "xla_kernel",
        [](const std::string &hash, std::shared_ptr<Kernel> kernel) {
            const std::lock_guard lock(kernels().mutex);
            kernels().by_hash[hash] = std::move(kernel);
        },
        nb::arg("hash"), nb::arg("kernel"), "Tells the handler of a kernel.");
}

}  // namespace tessera::python
