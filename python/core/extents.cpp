#include "python/core/extents.h"

#include <algorithm>

namespace tessera::python {

std::optional<int64_t> applied(Op op, const std::vector<int64_t> &operands) {
    Operands all;
    for (const int64_t n : operands) all.push_back(Expr(n));
    return operation(op, all)->value.integer;
}

static nb::object by(PyObject *(*function)(PyObject *, PyObject *), const std::vector<nb::object> &operands) {
    PyObject *result = function(operands[0].ptr(), operands[1].ptr());
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
}

std::optional<nb::object> applied(Op op, const std::vector<nb::object> &operands) {
    if (std::all_of(operands.begin(), operands.end(), [](const nb::object &o) { return PyLong_CheckExact(o.ptr()); })) {
        std::vector<int64_t> numbers;
        for (const nb::object &o : operands) numbers.push_back(nb::cast<int64_t>(o));
        return nb::object(nb::int_(*applied(op, numbers)));
    }
    if (operands.size() != 2) return std::nullopt;
    switch (op) {
    case Op::add: return by(PyNumber_Add, operands);
    case Op::sub: return by(PyNumber_Subtract, operands);
    case Op::mul: return by(PyNumber_Multiply, operands);
    case Op::div: return by(PyNumber_FloorDivide, operands);
    case Op::mod: return by(PyNumber_Remainder, operands);
    case Op::min: return nb::object(nb::module_::import_("builtins").attr("min")(operands[0], operands[1]));
    case Op::max: return nb::object(nb::module_::import_("builtins").attr("max")(operands[0], operands[1]));
    default: return std::nullopt;
    }
}

}  // namespace tessera::python
