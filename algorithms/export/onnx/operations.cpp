// The part of function.h that says what each operation is in ONNX.
#include "algorithms/export/onnx/function.h"
#include "support/text/error.h"

namespace tessera::onnx {

// Toward minus infinity, 0 by zero: Mod of integers takes the divisor's sign, so what it leaves is divided exactly.
Term FunctionMaker::integer_quotient(const Term &a, const Term &b, Body &body) {
    auto apply = [&](const char *op, const Term &x, const Term &y) { return element_wise(op, {x, y}, a.dtype, body); };
    return apply("Div", apply("Sub", a, apply("Mod", a, b)), b);
}

// ONNX shifts unsigned numbers alone. ~(~a >> n) is a shift of a negative number that keeps its sign.
Term FunctionMaker::shifted(Op op, const Term &a, const Term &count, Body &body) {
    const bool is_wide = a.dtype == DType::i64;
    const int32_t unsigned_number = is_wide ? 13 : 12;  // uint64, uint32
    const Term last_bit = number(a.dtype, is_wide ? 63 : 31, body);
    const Term n = element_wise("BitwiseAnd", {count, last_bit}, a.dtype, body);
    // The type of these terms is not a's; nothing but the shift sees them.
    auto as_unsigned = [&](const Term &t) {
        return Term{body.one("Cast", {t.name}, attributes({integer_attribute("to", unsigned_number)})), a.dtype, t.axes};
    };
    auto back = [&](const Term &t) {
        return Term{body.one("Cast", {t.name}, attributes({integer_attribute("to", onnx_type(a.dtype))})), a.dtype, t.axes};
    };
    auto shift = [&](const Term &t) {
        return back(element_wise("BitShift", {as_unsigned(t), as_unsigned(n)}, a.dtype, body,
                                 attributes({text_attribute("direction", op == Op::shl ? "LEFT" : "RIGHT")})));
    };
    if (op == Op::shl) return shift(a);
    const Term inverted = element_wise("BitwiseNot", {a}, a.dtype, body);
    const Term negative = element_wise("BitwiseNot", {shift(inverted)}, a.dtype, body);
    return where(element_wise("Less", {a, number(a.dtype, 0, body)}, DType::boolean, body), negative, shift(a), body);
}

Term FunctionMaker::operation_of(Op op, const std::vector<Term> &x, bool exact, Body &body) {
    const DType type = x[op == Op::select ? 1 : 0].dtype;
    const bool real = is_float(type), truth = type == DType::boolean;
    auto apply = [&](const char *name) { return element_wise(name, x, type, body); };
    auto compare = [&](const char *name) {
        std::vector<Term> operands = x;
        if (truth)
            for (Term &t : operands) t = converted(t, DType::i32, body);
        return element_wise(name, operands, DType::boolean, body);
    };
    switch (op) {
    case Op::neg: return apply("Neg");
    case Op::abs: return apply("Abs");
    case Op::sqrt: return apply("Sqrt");
    case Op::floor: return apply("Floor");
    case Op::ceil: return apply("Ceil");
    case Op::round: return apply("Round");
    case Op::trunc: {
        const Term below = element_wise("Less", {x[0], number(type, 0, body)}, DType::boolean, body);
        return where(below, apply("Ceil"), apply("Floor"), body);
    }
    case Op::logical_not: return apply(truth ? "Not" : "BitwiseNot");
    case Op::add: return apply("Add");
    case Op::sub: return apply("Sub");
    case Op::mul: return apply("Mul");
    case Op::div:
    case Op::mod: {
        if (real) return apply("Div");
        const Term zero = number(type, 0, body);
        const Term none = element_wise("Equal", {x[1], zero}, DType::boolean, body);
        const Term divisor = where(none, number(type, 1, body), x[1], body);
        const Term result = op == Op::div ? integer_quotient(x[0], divisor, body) : element_wise("Mod", {x[0], divisor}, type, body);
        return where(none, zero, result, body);
    }
    case Op::min: return apply(truth ? "And" : "Min");
    case Op::max: return apply(truth ? "Or" : "Max");
    case Op::bit_and: return apply(truth ? "And" : "BitwiseAnd");
    case Op::bit_or: return apply(truth ? "Or" : "BitwiseOr");
    case Op::bit_xor: return apply(truth ? "Xor" : "BitwiseXor");
    case Op::shl:
    case Op::shr: return shifted(op, x[0], x[1], body);
    case Op::eq: return element_wise("Equal", x, DType::boolean, body);
    case Op::ne: return element_wise("Not", {element_wise("Equal", x, DType::boolean, body)}, DType::boolean, body);
    case Op::lt: return compare("Less");
    case Op::le: return compare("LessOrEqual");
    case Op::fma: {
        // One rounding of a product and a sum in f64, which holds the product of two numbers of f32.
        const bool wide = exact && type == DType::f32;
        std::vector<Term> v = x;
        if (wide)
            for (Term &t : v) t = converted(t, DType::f64, body);
        const DType in = v[0].dtype;
        const Term sum = element_wise("Add", {element_wise("Mul", {v[0], v[1]}, in, body), v[2]}, in, body);
        return converted(sum, type, body);
    }
    case Op::select: return where(x[0], x[1], x[2], body);
    }
    broken("an operation that is none");
}

}  // namespace tessera::onnx
