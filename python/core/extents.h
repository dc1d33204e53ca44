// Extents of dims from those that the shapes of arguments tell: over whole numbers, or over what frameworks have for them while they trace.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <nanobind/nanobind.h>

#include "algorithms/ir/algorithm.h"

namespace tessera::python {

namespace nb = nanobind;

// Numbers are int64_t, or objects of Python; what these raise is thrown. Nothing for an operation that sizes of dims do not have.
std::optional<int64_t> applied(Op op, const std::vector<int64_t> &operands);
std::optional<nb::object> applied(Op op, const std::vector<nb::object> &operands);
inline int64_t number_of(int64_t value, const int64_t *) { return value; }
inline nb::object number_of(int64_t value, const nb::object *) { return nb::int_(value); }

template <class Number, class Told>
std::optional<Number> extent_of(const Algorithm &algorithm, const Dim &dim, const Told &told);

template <class Number, class Told>
std::optional<Number> value_of(const Algorithm &algorithm, const Expr &size, const Told &told) {
    if (size.is_constant()) return number_of(size->value.integer, static_cast<const Number *>(nullptr));
    if (size.kind() == ExprKind::extent) {
        const Dim *dim = algorithm.find_dim(size->name);
        return dim != nullptr ? extent_of<Number>(algorithm, *dim, told) : std::nullopt;
    }
    if (size.kind() != ExprKind::operation) return std::nullopt;
    std::vector<Number> operands;
    for (const Expr &e : size->args) {
        const std::optional<Number> value = value_of<Number>(algorithm, e, told);
        if (!value) return std::nullopt;
        operands.push_back(*value);
    }
    return applied(size->op, operands);
}

// As it is declared, fixed or derived from others; otherwise as `told(dim)` says. Nothing where neither tells it, as where it depends on
// data.
template <class Number, class Told>
std::optional<Number> extent_of(const Algorithm &algorithm, const Dim &dim, const Told &told) {
    if (dim.kind == DimKind::fixed) return number_of(dim.value, static_cast<const Number *>(nullptr));
    if (dim.kind == DimKind::derived)
        if (const std::optional<Number> value = value_of<Number>(algorithm, dim.size, told)) return value;
    return told(dim);
}

}  // namespace tessera::python
