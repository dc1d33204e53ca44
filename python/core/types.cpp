#include "python/core/types.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "algorithms/ir/numerics.h"

namespace tessera::python {

namespace {

// What "bf16 @ accum(f32)" takes on its right: in which type sums are kept.
struct Accumulator {
    DType dtype;
};

// The policy that is called like the storage, with this accumulator.
Numerics policy_of(DType storage, DType sums) {
    const std::vector<std::string> names = numerics_names();
    const bool has_name = std::find(names.begin(), names.end(), name_of(storage)) != names.end();
    Numerics policy = has_name ? numerics_named(name_of(storage)) : Numerics();
    policy.storage = storage;
    if (!has_name || policy.accumulate != sums) policy.name = std::string(name_of(storage)) + "_" + name_of(sums);
    policy.accumulate = sums;
    if (sums == DType::f64) policy.compute = DType::f64;
    check(policy);
    return policy;
}

}  // namespace

Type type_named(const std::string &name) { return {dtype_named(name)}; }

void declare_types(nb::module_ &m) {
    nb::class_<Accumulator>(m, "Accumulator", "What accum(f32) gives.").def("__repr__", [](const Accumulator &a) {
        return std::string("accum(") + name_of(a.dtype) + ")";
    });
    nb::class_<Numerics>(m, "Numerics", "A numerics policy: in which types numbers are kept, computed and added up.")
        .def_static("named", &numerics_named, nb::arg("name"),
                    "One of those that `tessera list` shows, such as 'bf16', with words that license more: 'f32+contraction+functions'.")
        .def_static("names", &numerics_names)
        .def_static("words", &numerics_words, "What may follow '+' in a name.")
        .def(
            "with_words", [](const Numerics &n, const nb::args &words) { return with_words(n, nb::cast<std::vector<std::string>>(words)); },
            "The policy with these words, and without those it has.", nb::sig("def with_words(self, *words: str) -> Numerics"))
        .def_ro("name", &Numerics::name)
        .def_prop_ro("storage", [](const Numerics &n) { return Type{n.storage}; })
        .def_prop_ro("compute", [](const Numerics &n) { return Type{n.compute}; })
        .def_prop_ro("accumulate", [](const Numerics &n) { return Type{n.accumulate}; })
        .def_prop_ro("licensed",
                     [](const Numerics &n) {
                         std::vector<std::string> words;
                         for (const Licence l : n.licensed) words.emplace_back(name_of(l));
                         return words;
                     })
        .def(
            "__eq__", [](const Numerics &a, const Numerics &b) { return a == b; }, nb::is_operator(),
            nb::sig("def __eq__(self, arg: object, /) -> bool"))
        .def("__hash__", [](const Numerics &n) { return std::hash<std::string>()(text_of(n)); })
        .def("__repr__", [](const Numerics &n) { return "<numerics " + n.name + ": " + text_of(n) + ">"; });
    nb::class_<Type>(m, "DType", "The type of a tensor's elements, such as tessera.f32.")
        .def_static("named", &type_named, nb::arg("name"))
        .def_prop_ro("name", [](Type t) { return name_of(t.dtype); })
        .def_prop_ro("bits", [](Type t) { return traits_of(t.dtype).in_half_bytes ? 4 : 8 * traits_of(t.dtype).bytes; })
        .def_prop_ro("is_float", [](Type t) { return is_float(t.dtype); })
        .def(
            "__matmul__", [](Type t, const Accumulator &a) { return policy_of(t.dtype, a.dtype); }, nb::is_operator())
        .def(
            "__eq__", [](Type a, Type b) { return a.dtype == b.dtype; }, nb::is_operator(),
            nb::sig("def __eq__(self, arg: object, /) -> bool"))
        .def("__hash__", [](Type t) { return static_cast<size_t>(t.dtype); })
        .def("__repr__", [](Type t) { return std::string("tessera.") + name_of(t.dtype); });
    m.def(
        "accum", [](Type t) { return Accumulator{t.dtype}; }, nb::arg("type"), "bf16 @ accum(f32): numbers kept in bf16, sums in f32.");
    std::vector<Type> all;
    for (const DTypeTraits &traits : dtypes)
        if (traits.type != DType::index) all.push_back({traits.type});
    m.attr("dtypes") = nb::cast(all);
}

}  // namespace tessera::python
