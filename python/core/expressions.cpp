#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "algorithms/functions/functions.h"
#include "python/core/tiles.h"

namespace tessera::python {

namespace {

// A number as a constant of the other operand's type, which has to hold it (UserError expr.number).
Expr number_like(const Expr &like, double value) {
    if (is_float(like.type())) return constant(like.type(), value);
    const auto whole = static_cast<int64_t>(value);
    if (static_cast<double>(whole) != value)
        refuse("expr.number", std::string("an expression of ") + name_of(like.type()) + " and the number " + std::to_string(value) +
                                  ": the type does not hold it; cast the expression to a float type first");
    return constant_int(like.type(), whole);
}

template <typename Apply>
void binary(nb::class_<Expr> &c, const char *name, const char *reflected, Apply apply) {
    c.def(
        name, [apply](const Expr &a, const Expr &b) { return apply(a, b); }, nb::is_operator());
    c.def(
        name, [apply](const Expr &a, double b) { return apply(a, number_like(a, b)); }, nb::is_operator());
    if (reflected != nullptr)
        c.def(
            reflected, [apply](const Expr &a, double b) { return apply(number_like(a, b), a); }, nb::is_operator());
}

}  // namespace

void declare_expressions(nb::module_ &m) {
    nb::class_<Expr> c(m, "Expr", "A scalar expression: a position, an extent, a value of a monoid's element. Operators combine them.");
    c.def_prop_ro("dtype", [](const Expr &e) { return Type{e.type()}; })
        .def(
            "cast", [](const Expr &e, Type t) { return cast(t.dtype, e); }, nb::arg("dtype"))
        .def(
            "__neg__", [](const Expr &e) { return -e; }, nb::is_operator())
        .def(
            "__invert__", [](const Expr &e) { return !e; }, nb::is_operator())
        .def(
            "__abs__", [](const Expr &e) { return abs(e); }, nb::is_operator())
        .def("__repr__", [](const Expr &e) { return brief(e); })
        .def("__bool__", [](const Expr &) -> bool {
            refuse("python.truth", "an expression has no truth while it is declared; write select(condition, a, b) in place of 'if'");
        });
    c.attr("__hash__") = nb::none();
    binary(c, "__add__", "__radd__", [](const Expr &a, const Expr &b) { return a + b; });
    binary(c, "__sub__", "__rsub__", [](const Expr &a, const Expr &b) { return a - b; });
    binary(c, "__mul__", "__rmul__", [](const Expr &a, const Expr &b) { return a * b; });
    binary(c, "__truediv__", "__rtruediv__", [](const Expr &a, const Expr &b) { return a / b; });
    binary(c, "__floordiv__", "__rfloordiv__", [](const Expr &a, const Expr &b) {
        if (is_float(a.type())) refuse("python.division", "'//' is of integers; of floats write floor(a / b)");
        return a / b;
    });
    binary(c, "__mod__", "__rmod__", [](const Expr &a, const Expr &b) { return a % b; });
    binary(c, "__lt__", nullptr, [](const Expr &a, const Expr &b) { return a < b; });
    binary(c, "__le__", nullptr, [](const Expr &a, const Expr &b) { return a <= b; });
    binary(c, "__gt__", nullptr, [](const Expr &a, const Expr &b) { return a > b; });
    binary(c, "__ge__", nullptr, [](const Expr &a, const Expr &b) { return a >= b; });
    binary(c, "__eq__", nullptr, [](const Expr &a, const Expr &b) { return a == b; });
    binary(c, "__ne__", nullptr, [](const Expr &a, const Expr &b) { return a != b; });
    binary(c, "__and__", nullptr, [](const Expr &a, const Expr &b) { return a && b; });
    binary(c, "__or__", nullptr, [](const Expr &a, const Expr &b) { return a || b; });

    m.def(
        "extent", [](const std::string &dim) { return extent(dim); }, nb::arg("dim"), "The extent of a dim, as an expression.");
    m.def(
        "position", [](const std::string &dim) { return variable(dim); }, nb::arg("dim"), "The index of a dim, as an expression.");
    m.def(
        "constant",
        [](Type t, double value) {
            return is_float(t.dtype) ? constant(t.dtype, value) : constant_int(t.dtype, static_cast<int64_t>(value));
        },
        nb::arg("dtype"), nb::arg("value"));
    m.def(
        "left", [](int part, Type t) { return left(part, t.dtype); }, nb::arg("part"), nb::arg("dtype"));
    m.def(
        "right", [](int part, Type t) { return right(part, t.dtype); }, nb::arg("part"), nb::arg("dtype"));
    m.def(
        "element", [](int number, Type t) { return input(number, t.dtype); }, nb::arg("number"), nb::arg("dtype"));
    m.def("min", [](const Expr &a, const Expr &b) { return min(a, b); });
    m.def("max", [](const Expr &a, const Expr &b) { return max(a, b); });
    m.def("fma", [](const Expr &a, const Expr &b, const Expr &x) { return fma(a, b, x); });
    m.def("select", [](const Expr &condition, const Expr &a, const Expr &b) { return select(condition, a, b); });
    struct Unary {
        const char *name;
        Expr (*apply)(Expr);
    };
    for (const Unary &u : {Unary{"sqrt", sqrt}, Unary{"abs", abs}, Unary{"floor", floor}, Unary{"round", round}, Unary{"exp", exp},
                           Unary{"log", log}, Unary{"expm1", expm1}, Unary{"log1p", log1p}, Unary{"sin", sin}, Unary{"cos", cos},
                           Unary{"atan", atan}, Unary{"erf", erf}, Unary{"erfc", erfc}, Unary{"tanh", tanh}, Unary{"sigmoid", sigmoid}})
        m.def(u.name, [apply = u.apply](const Expr &x) { return apply(x); });
}

}  // namespace tessera::python
