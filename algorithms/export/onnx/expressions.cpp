// The part of function.h that makes nodes of expressions.
#include <cmath>
#include <numbers>

#include "algorithms/export/onnx/function.h"
#include "algorithms/expr/function.h"
#include "algorithms/functions/conversions.h"
#include "support/text/error.h"

namespace tessera::onnx {

std::vector<Term> FunctionMaker::values(const Operands &args, Place &at) {
    std::vector<Term> all;
    for (const Expr &e : args) all.push_back(value(e, at));
    return all;
}

Term FunctionMaker::value(const Expr &e, Place &at) {
    if (const auto it = at.known.find(e.get()); it != at.known.end()) return it->second;
    Term term = value_of(e, at);
    kept_.push_back(e);
    at.known[e.get()] = term;
    return term;
}

Term FunctionMaker::value_of(const Expr &e, Place &at) {
    const Expr::Node &x = *e.get();
    switch (x.kind) {
    case ExprKind::constant: {
        Scalar held = x.value;
        held.type = held_type(x.type);
        return number(held, at.body);
    }
    case ExprKind::variable: {
        const auto bound = at.variables.find(x.name);
        return bound != at.variables.end() ? bound->second : range(x.name, at.body);
    }
    case ExprKind::extent: {
        // The extent of a ragged dim varies with its parent; axes of values over it go up to the largest.
        const Dim *dim = a_.find_dim(root_of(x.name));
        if (!dim || dim->kind != DimKind::derived || variables_in(dim->size).empty()) return extent_of(x.name);
        return element_wise("Max", {value(dim->size, at), number(DType::i64, 0, at.body)}, DType::i64, at.body);
    }
    case ExprKind::parameter: {
        const Stored &p = tensors_.at("%" + x.name);
        return {p.name, p.dtype, {}};
    }
    case ExprKind::load: {
        const auto from = tensors_.find(x.name);
        if (from == tensors_.end()) throw Refused{};  // what makes it is refused already
        const size_t rank = x.args.size() - (x.guarded ? 2 : 0);
        const std::vector<Expr> index(x.args.begin(), x.args.begin() + static_cast<std::ptrdiff_t>(rank));
        return load(from->second, index, x.guarded ? x.args[rank] : Expr(), x.guarded ? x.args[rank + 1] : Expr(), at);
    }
    case ExprKind::bounded: {
        const std::vector<Term> v = values(x.args, at);
        const Term last = operation_of(Op::sub, {v[2], number(DType::i64, 1, at.body)}, false, at.body);
        const Term below = operation_of(Op::min, {converted(v[0], DType::i64, at.body), last}, false, at.body);
        return operation_of(Op::max, {below, v[1]}, false, at.body);
    }
    case ExprKind::operation: return operation_of(x.op, values(x.args, at), at.is_definition, at.body);
    case ExprKind::bitcast: return bitcast_of(e, at);
    case ExprKind::cast: return cast_of(e, at);
    case ExprKind::left: return at.left.at(static_cast<size_t>(x.number));
    case ExprKind::right: return at.right.at(static_cast<size_t>(x.number));
    case ExprKind::input: return at.inputs.at(static_cast<size_t>(x.number));
    case ExprKind::function: return function_of(e, at);
    }
    broken("an expression of a kind that is none");
}

Term FunctionMaker::bitcast_of(const Expr &e, Place &at) {
    const DType from = e->args[0].type(), type = e.type();
    const Term x = value(e->args[0], at);
    if (is_coded(type)) {
        // The number of each code.
        const DType held = held_type(type);
        const int64_t codes = traits_of(type).in_half_bytes ? 16 : 256;
        std::string numbers;
        for (int64_t code = 0; code < codes; code++) {
            Scalar s = bitcast(type, Scalar::of_integer(DType::u8, code));
            s.type = held;
            numbers.resize(numbers.size() + static_cast<size_t>(size_of(held)));
            store_scalar(numbers.data() + numbers.size() - size_of(held), s);
        }
        const std::string table = at.body.table(held, {codes}, numbers);
        const Term code = converted(x, DType::i64, at.body);
        return {at.body.one("Gather", {table, code.name}, attributes({integer_attribute("axis", 0)})), held, x.axes};
    }
    if (onnx_type(from) == 0 || traits_of(from).in_half_bytes)
        throw Refused{"bits of " + std::string(name_of(from)), "Store the values in a type that ONNX has."};
    functions_.parts.needs_opset(26);
    const Term as_stored = converted(x, from, at.body);
    return {at.body.one("BitCast", {as_stored.name}, attributes({integer_attribute("to", onnx_type(type))})), type, x.axes};
}

Term FunctionMaker::cast_of(const Expr &e, Place &at) {
    const DType type = e.type();
    const Expr &operand = e->args[0];
    const Term x = value(operand, at);
    Body &body = at.body;
    if (type == DType::boolean)
        return element_wise("Not", {element_wise("Equal", {x, number(x.dtype, 0, body)}, DType::boolean, body)}, type, body);
    if (is_float(type)) {
        if (!is_narrow_float(type)) return converted(x, type, body);
        if (e->rounding != Rounding::nearest_even || onnx_type(type) == 0) {
            if (is_expanded(e)) return value(kept_.emplace_back(expand_conversions(e)), at);
            throw Refused{std::string("a cast to ") + name_of(type) + " that rounds " + name_of(e->rounding),
                          "Round to nearest even, as ONNX's Cast does."};
        }
        Term wide = is_float(x.dtype) ? x : converted(x, DType::f32, body);
        if (e->saturate && !is_coded_float(type)) {
            // Cast gives infinities here.
            const double most = highest_finite(traits_of(type));
            const Term low = operation_of(Op::max, {wide, number(wide.dtype, -most, body)}, false, body);
            wide = operation_of(Op::min, {low, number(wide.dtype, most, body)}, false, body);
        }
        const bool loses = is_coded_float(type) && !e->saturate && traits_of(type).specials != Specials::none;
        if (!loses) return converted(converted(wide, type, body), held_type(type), body);
        const int64_t number = onnx_type(type);
        if (number == 0) return converted(wide, type, body);  // which refuses it
        const Attributes exact = attributes({integer_attribute("to", number), integer_attribute("saturate", 0)});
        return converted({body.one("Cast", {wide.name}, exact), type, wide.axes}, held_type(type), body);
    }
    // Integers: rounded, then kept within the type where that is asked for.
    const DType held = held_type(type);
    if (is_float(x.dtype)) {
        const char *rounds = e->rounding == Rounding::nearest_even ? "Round" : e->rounding == Rounding::up ? "Ceil" : "Floor";
        Term r = is_narrow_float(x.dtype) ? converted(x, DType::f32, body) : x;
        if (e->rounding != Rounding::toward_zero) r = element_wise(rounds, {r}, r.dtype, body);
        if (!e->saturate) return converted(r, held, body);
        r = converted(r, DType::f64, body);
        r = where(element_wise("IsNaN", {r}, DType::boolean, body), number(DType::f64, 0, body), r, body);
        const Term low = operation_of(Op::max, {r, number(DType::f64, static_cast<double>(traits_of(type).lowest), body)}, false, body);
        const Term kept = operation_of(Op::min, {low, number(DType::f64, highest_real(type), body)}, false, body);
        const Term whole = converted(kept, held, body);
        if (static_cast<int64_t>(highest_real(type)) == traits_of(type).highest) return whole;
        return where(operation_of(Op::lt, {number(DType::f64, highest_real(type), body), low}, false, body),
                     number(Scalar::of_integer(type, traits_of(type).highest), body), whole, body);
    }
    const DTypeTraits &from = traits_of(x.dtype), &to = traits_of(type);
    if (e->saturate && x.dtype != DType::boolean && (from.lowest < to.lowest || from.highest > to.highest)) {
        const DType wide = x.dtype == DType::i64 ? DType::i64 : DType::i32;
        Term r = converted(x, wide, body);
        if (from.lowest < to.lowest) r = operation_of(Op::max, {r, number(Scalar::of_integer(wide, to.lowest), body)}, false, body);
        if (from.highest > to.highest) r = operation_of(Op::min, {r, number(Scalar::of_integer(wide, to.highest), body)}, false, body);
        return converted(r, held, body);
    }
    return converted(x, held, body);
}

namespace {

// An operator of ONNX that computes the function of one argument.
struct Named {
    const char *function, *op;
};
constexpr Named named[] = {{"exp", "Exp"},         {"exp_nonpositive", "Exp"}, {"log", "Log"},          {"sin", "Sin"},
                           {"cos", "Cos"},         {"atan", "Atan"},           {"erf", "Erf"},          {"tanh", "Tanh"},
                           {"sigmoid", "Sigmoid"}, {"relu", "Relu"},           {"softplus", "Softplus"}};

}  // namespace

Term FunctionMaker::function_of(const Expr &e, Place &at) {
    const std::string &name = e->name;
    Body &body = at.body;
    const std::vector<Term> x = values(e->args, at);
    const DType type = e.type();
    auto unary = [&](const char *op, const Term &of) { return element_wise(op, {of}, type, body); };
    auto binary = [&](Op op, const Term &a, const Term &b) { return operation_of(op, {a, b}, false, body); };
    const Term one = number(type, 1, body);
    for (const Named &n : named)
        if (name == n.function) return unary(n.op, x[0]);
    if (name == "pow") return element_wise("Pow", x, type, body);
    if (name == "rsqrt") return binary(Op::div, one, unary("Sqrt", x[0]));
    if (name == "silu") return binary(Op::mul, x[0], unary("Sigmoid", x[0]));
    if (name == "erfc") return binary(Op::sub, one, unary("Erf", x[0]));
    // Written out, as exporters of frameworks do: runtimes fuse it, and some have no Gelu.
    if (name == "gelu" || name == "gelu_tanh") {
        const auto times = [&](double factor, const Term &of) { return binary(Op::mul, of, number(type, factor, body)); };
        const Term inner =
            name == "gelu"
                ? unary("Erf", times(std::sqrt(0.5), x[0]))
                : unary("Tanh",
                        times(std::sqrt(2 / std::numbers::pi),
                              binary(Op::add, x[0], times(0.044715, element_wise("Pow", {x[0], number(type, 3, body)}, type, body)))));
        return times(0.5, binary(Op::mul, x[0], binary(Op::add, inner, one)));
    }
    // expm1(x) = tanh(x / 2) (exp(x) + 1), which loses nothing near 0.
    if (name == "expm1")
        return binary(Op::mul, unary("Tanh", binary(Op::mul, x[0], number(type, 0.5, body))), binary(Op::add, unary("Exp", x[0]), one));
    // Kahan's: what rounding 1 + x loses, the quotient restores.
    if (name == "log1p") {
        const Term u = binary(Op::add, one, x[0]), log = unary("Log", u), part = binary(Op::sub, u, one);
        const Term exact = binary(Op::mul, log, binary(Op::div, x[0], part));
        const Term small = binary(Op::eq, u, one), infinite = binary(Op::eq, x[0], number(type, INFINITY, body));
        return where(small, x[0], where(infinite, x[0], exact, body), body);
    }
    // Any other by its definition, which may rest on fma's one rounding.
    Place inside{body, at.variables, at.inputs, at.left, at.right, at.known, true};
    return value(kept_.emplace_back(definition_of(e)), inside);
}

}  // namespace tessera::onnx
