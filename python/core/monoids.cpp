#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "algorithms/evaluate/monoid_laws.h"
#include "python/core/tiles.h"
#include "support/text/error.h"

namespace tessera::python {

void declare_monoids(nb::module_ &m) {
    nb::class_<Monoid>(m, "RawMonoid", "A fold over elements, as expressions. tessera.Monoid is the one to write.")
        .def(nb::new_([](const std::string &name, const std::vector<std::string> &parts, const std::vector<Type> &types,
                         const std::vector<double> &identities, const std::vector<Type> &inputs, const std::vector<Expr> &lift,
                         const std::vector<Expr> &combine, const std::vector<Expr> &step, bool commutative) {
                 Monoid monoid;
                 monoid.name = name;
                 for (size_t i = 0; i < parts.size(); i++) {
                     const DType type = types.at(i).dtype;
                     const double value = identities.at(i);
                     const bool whole = value >= -9.3e18 && value <= 9.2e18 && static_cast<double>(static_cast<int64_t>(value)) == value;
                     if (!is_float(type) && !whole)
                         refuse("expr.number",
                                "the identity of part '" + parts[i] + "': " + name_of(type) + " does not hold " + std::to_string(value));
                     monoid.parts.push_back(
                         {parts[i],
                          is_float(type) ? Scalar::of_real(type, value) : Scalar::of_integer(type, static_cast<int64_t>(value)),
                          {}});
                 }
                 for (const Type &t : inputs) monoid.inputs.push_back(t.dtype);
                 monoid.lift = lift, monoid.combine = combine, monoid.step = step, monoid.commutative = commutative;
                 return monoid;
             }),
             nb::arg("name"), nb::arg("parts"), nb::arg("types"), nb::arg("identities"), nb::arg("inputs"), nb::arg("lift"),
             nb::arg("combine"), nb::arg("step"), nb::arg("commutative") = true)
        .def_static(
            "standard",
            [](const std::string &name, Type t) {
                std::vector<std::string> names;
                for (const StandardMonoid &s : standard_monoids) {
                    if (name == s.name) return s.make(t.dtype);
                    names.push_back(s.name);
                }
                refuse("python.monoid",
                       "there is no standard monoid '" + name + "'; there are " + join(names) + "." + did_you_mean(name, names));
            },
            nb::arg("name"), nb::arg("dtype"))
        .def_ro("name", &Monoid::name)
        .def_prop_ro("arity", [](const Monoid &monoid) { return monoid.parts.size(); })
        .def("broken_law", &broken_law, "None, or the first law that values were found to break, in words.")
        .def("__repr__", [](const Monoid &monoid) { return "<monoid " + monoid.name + ">"; });
}

}  // namespace tessera::python
