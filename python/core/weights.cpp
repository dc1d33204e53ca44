#include "python/core/weights.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "algorithms/import/weights/weights_file.h"
#include "runtime/bundle/stored_tensor.h"
#include "support/text/error.h"

namespace tessera::python {

namespace {

using Tensor = nb::ndarray<nb::array_api, nb::ro>;

// Its tensors keep it.
class Weights : public std::enable_shared_from_this<Weights> {
public:
    Weights(const std::string &file, const std::optional<std::string> &floats)
        : file_(file, floats ? std::optional(dtype_named(*floats)) : std::nullopt), subject_(file) {}

    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const SafeTensor &t : file_.tensors()) all.push_back(t.name);
        return all;
    }
    std::vector<std::string> notes() const { return file_.notes(); }

    Tensor tensor(const std::string &name) const {
        const std::vector<SafeTensor> &all = file_.tensors();
        const auto t = std::lower_bound(all.begin(), all.end(), name, [](const SafeTensor &a, const std::string &n) { return a.name < n; });
        if (t == all.end() || t->name != name)
            throw UserError("safetensors.missing", "file of weights '" + subject_ + "': there is no tensor '" + name + "' among its " +
                                                       std::to_string(all.size()) + "." + did_you_mean(name, names()));
        const TessType type = tess_stored_type(t->type.c_str());
        if (type.bits == 0)
            throw UserError("safetensors.type", "file of weights '" + subject_ + "': tensor '" + name + "' is of " + t->type +
                                                    ", which takes parts of bytes, and no framework has it so.");
        const std::vector<size_t> extents(t->extents.begin(), t->extents.end());
        const void *data = t->bytes.data();
        nb::capsule owner;
        if (reinterpret_cast<uintptr_t>(data) % (type.bits / 8)) {  // a file need not align them
            auto *copy = new std::vector<uint64_t>(t->bytes.size() / 8 + 1);
            owner = nb::capsule(copy, [](void *kept) noexcept { delete static_cast<std::vector<uint64_t> *>(kept); });
            std::memcpy(copy->data(), data, t->bytes.size());
            data = copy->data();
        } else {
            auto *self = new std::shared_ptr<const Weights>(shared_from_this());
            owner = nb::capsule(self, [](void *kept) noexcept { delete static_cast<std::shared_ptr<const Weights> *>(kept); });
        }
        return Tensor(data, extents.size(), extents.data(), owner, nullptr, {type.code, type.bits, type.lanes});
    }

private:
    WeightsFile file_;
    std::string subject_;
};

}  // namespace

void declare_weights(nb::module_ &m) {
    nb::class_<Weights>(m, "Weights", "A file of weights, safetensors or GGUF, as tensors that kernels take (docs/weights.md).")
        .def(nb::new_([](const std::string &file, const std::optional<std::string> &floats) {
                 const nb::gil_scoped_release free;
                 return std::make_shared<Weights>(file, floats);
             }),
             nb::arg("file"), nb::arg("floats") = nb::none())
        .def_prop_ro("names", &Weights::names, "Names of the tensors, in their order.")
        .def_prop_ro("notes", &Weights::notes, "What was rounded.")
        .def("tensor", &Weights::tensor, nb::arg("name"), nb::sig("def tensor(self, name: str) -> Any"),
             "A tensor, read only, for __dlpack__.");
}

}  // namespace tessera::python
