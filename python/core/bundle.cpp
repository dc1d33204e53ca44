#include "python/core/bundle.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "python/core/kernel.h"
#include "runtime/bundle/replay.h"
#include "runtime/crypto/ed25519.h"
#include "support/text/error.h"

namespace tessera::python {

namespace {

using Tensor = nb::ndarray<nb::array_api, nb::ro>;
// Run, kernel, argument, target, hash of bits, what came out, what was recorded ("" for nothing).
using Output = std::tuple<uint32_t, std::string, std::string, std::string, std::string, std::string, std::string>;

void expect_ok(int32_t status, const TessBundleError &error) {
    if (status == TESS_OK) return;
    std::string id = tess_status_kind(status);
    id = id.starts_with("bundle-") ? "bundle." + id.substr(7) : "bundle." + id;
    throw UserError(id, error.text);
}

// Kernels and tensors keep it open.
class Bundle : public std::enable_shared_from_this<Bundle> {
public:
    Bundle(const std::string &file, const std::optional<nb::bytes> &public_key, bool trust_weights, uint64_t features_off) {
        if (file.find('\0') != std::string::npos) throw UserError("bundle.file", "a file's name has a byte 0");
        TessBundleOptions options = tess_bundle_options();
        options.features_off = features_off;
        if (trust_weights) options.flags |= TESS_BUNDLE_TRUST_WEIGHTS;
        if (public_key) {
            if (public_key->size() != TESS_ED25519_KEY_BYTES)
                throw UserError("bundle.options", "public_key: expected 32 bytes, got " + std::to_string(public_key->size()));
            options.public_key = static_cast<const unsigned char *>(public_key->data());
            options.verify = tess_ed25519_verify;
        }
        TessBundleError error{};
        uint64_t bytes = 0;
        expect_ok(tess_bundle_bytes(file.c_str(), &bytes, &error), error);
        memory_.resize(bytes / 8 + 1);
        expect_ok(tess_bundle_open(file.c_str(), &options, memory_.data(), bytes, &bundle_, &error), error);
    }
    ~Bundle() { tess_bundle_close(bundle_); }
    Bundle(const Bundle &) = delete;
    Bundle &operator=(const Bundle &) = delete;

    std::string name() const { return info().name; }
    bool has_record() const { return info().replay != nullptr; }

    // The target of each kernel's code, nothing where none runs here.
    std::vector<std::tuple<std::string, std::optional<std::string>>> kernels() const {
        std::vector<std::tuple<std::string, std::optional<std::string>>> all;
        for (uint32_t i = 0; i < info().kernels; i++) {
            TessBundleKernelInfo kernel = {};
            kernel.size = sizeof kernel;
            tess_bundle_kernel_info(bundle_, i, &kernel);
            all.emplace_back(kernel.name, kernel.target ? std::optional<std::string>(kernel.target) : std::nullopt);
        }
        return all;
    }

    std::vector<std::string> tensors() const {
        std::vector<std::string> all;
        for (uint32_t i = 0; i < info().tensors; i++) all.emplace_back(tess_bundle_tensor_name(bundle_, i));
        return all;
    }

    std::shared_ptr<Kernel> kernel(const std::string &name) const {
        TessKernel kernel = tess_kernel();
        TessBundleError error{};
        expect_ok(tess_bundle_kernel(bundle_, name.c_str(), &kernel, &error), error);
        return std::make_shared<Kernel>(shared_from_this(), name, kernel);
    }

    Tensor tensor(const std::string &name) const {
        TessTensor tensor;
        TessBundleError error{};
        expect_ok(tess_bundle_tensor(bundle_, name.c_str(), &tensor, &error), error);
        return viewed(tensor);
    }

    std::optional<Tensor> weight(const std::string &kernel, const std::string &argument) const {
        TessTensor tensor;
        TessBundleError error{};
        const int32_t status = tess_bundle_weight(bundle_, kernel.c_str(), argument.c_str(), &tensor, &error);
        if (status == TESS_BUNDLE_TENSOR) return std::nullopt;
        expect_ok(status, error);
        return viewed(tensor);
    }

    nb::bytes member(const std::string &path) const {
        const void *data = nullptr;
        uint64_t bytes = 0;
        TessBundleError error{};
        expect_ok(tess_bundle_member(bundle_, path.c_str(), &data, &bytes, &error), error);
        return nb::bytes(data, bytes);
    }

    std::vector<Output> replay(const std::optional<nb::bytes> &record, const std::optional<nb::bytes> &inputs) const {
        std::vector<Output> all;
        const auto report = [](void *state, const TessReplayOutput *o) {
            static_cast<std::vector<Output> *>(state)->emplace_back(o->run, o->kernel, o->argument, o->target, o->bits, o->got,
                                                                    o->expected);
        };
        TessBundleError error{};
        int32_t status;
        {
            const nb::gil_scoped_release free;
            status = record ? tess_bundle_replay_record(bundle_, record->c_str(), record->size(), inputs ? inputs->data() : nullptr,
                                                        inputs ? inputs->size() : 0, nullptr, report, &all, &error)
                            : tess_bundle_replay(bundle_, nullptr, report, &all, &error);
        }
        expect_ok(status, error);
        return all;
    }

private:
    TessBundleInfo info() const {
        TessBundleInfo info = {};
        info.size = sizeof info;
        tess_bundle_info(bundle_, &info);
        return info;
    }

    Tensor viewed(const TessTensor &tensor) const {
        std::vector<size_t> extents;
        for (int32_t axis = 0; axis < tensor.rank; axis++) extents.push_back(static_cast<size_t>(tensor.extents[axis]));
        auto *owner = new std::shared_ptr<const Bundle>(shared_from_this());
        const nb::capsule capsule(owner, [](void *kept) noexcept { delete static_cast<std::shared_ptr<const Bundle> *>(kept); });
        return Tensor(tensor.data, extents.size(), extents.data(), capsule, nullptr,
                      {tensor.type.code, tensor.type.bits, tensor.type.lanes});
    }

    std::vector<uint64_t> memory_;
    TessBundle *bundle_ = nullptr;
};

}  // namespace

void declare_bundles(nb::module_ &m) {
    nb::class_<Bundle>(m, "Bundle", "A bundle that is open in this process (docs/bundle.md).")
        .def(nb::new_([](const std::string &file, const std::optional<nb::bytes> &public_key, bool trust_weights, uint64_t features_off) {
                 return std::make_shared<Bundle>(file, public_key, trust_weights, features_off);
             }),
             nb::arg("file"), nb::arg("public_key") = nb::none(), nb::arg("trust_weights") = false, nb::arg("features_off") = 0)
        .def_prop_ro("name", &Bundle::name)
        .def_prop_ro("kernels", &Bundle::kernels, "Name and target of each kernel; no target where this processor runs none of its code.")
        .def_prop_ro("tensors", &Bundle::tensors, "Names of the tensors.")
        .def_prop_ro("has_record", &Bundle::has_record)
        .def("kernel", &Bundle::kernel, nb::arg("name"))
        .def("tensor", &Bundle::tensor, nb::arg("name"), nb::sig("def tensor(self, name: str) -> Any"),
             "A tensor, read only, for __dlpack__.")
        .def("weight", &Bundle::weight, nb::arg("kernel"), nb::arg("argument"),
             nb::sig("def weight(self, kernel: str, argument: str) -> Any"),
             "What a kernel takes as a weight, packed where its code wants that; None where the argument is none.")
        .def("member", &Bundle::member, nb::arg("path"), "The bytes of a member of the file.")
        .def("replay", &Bundle::replay, nb::arg("record") = nb::none(), nb::arg("inputs") = nb::none(),
             "Runs what is recorded, or a record: run, kernel, argument, target, hash of bits, what came out, what was recorded.");
}

}  // namespace tessera::python
