// Operations and their meaning: what each is called, what it takes and what it gives. Both interpreters, the constant folder and the
// cost model evaluate by what stands here; emitters give the same bits, each by a table of its own.
//
// Floats follow IEEE 754, round to nearest even, never reassociated or contracted.
//   min and max give NaN when either operand is NaN, and the first of two that are equal, which may be zeros of different sign:
//   min(a, b) = b < a || b is NaN ? b : a, and max(a, b) = b > a || b is NaN ? b : a.
//   Integers wrap. div and mod round toward minus infinity; by zero both give 0.
//   shl and shr take the count modulo the width; shr of a signed value is arithmetic.
//   round is to nearest, ties to even.
//
// A new operation is an enumerator, a row of the table and a case of the functions below; then everything that switches over
// operations, or has a table of code for those that are defined on a type (OpTable), does not compile without it.
#pragma once
#include <array>
#include <cmath>
#include <string>

#include "algorithms/expr/dtype.h"

namespace tessera {

enum class Op : uint8_t {
    neg,
    abs,
    sqrt,
    floor,
    ceil,
    round,
    trunc,
    logical_not,  // one operand
    add,
    sub,
    mul,
    div,
    mod,
    min,
    max,
    bit_and,
    bit_or,
    bit_xor,
    shl,
    shr,  // two
    eq,
    ne,
    lt,
    le,      // two, giving bool
    fma,     // a * b + c with one rounding
    select,  // condition ? a : b; the last operation
};
constexpr size_t op_count = static_cast<size_t>(Op::select) + 1;

struct OpRow {
    Op op;
    const char *name;
    int arity;
    bool floats, integers, truths;  // what it is defined on: f32 and f64; i32, i64 and index; bool
    bool compares = false;          // gives bool
    // As texts have it: between its operands (null: a call), and what binds tighter has a higher precedence.
    const char *infix = nullptr;
    int precedence = 1;
};

inline constexpr std::array<OpRow, op_count> op_table = {{
    {Op::neg, "neg", 1, true, true, false},
    {Op::abs, "abs", 1, true, true, false},
    {Op::sqrt, "sqrt", 1, true, false, false},
    {Op::floor, "floor", 1, true, false, false},
    {Op::ceil, "ceil", 1, true, false, false},
    {Op::round, "round", 1, true, false, false},
    {Op::trunc, "trunc", 1, true, false, false},
    {Op::logical_not, "not", 1, false, true, true},
    {Op::add, "add", 2, true, true, false, false, " + ", 2},
    {Op::sub, "sub", 2, true, true, false, false, " - ", 2},
    {Op::mul, "mul", 2, true, true, false, false, "*", 3},
    {Op::div, "div", 2, true, true, false, false, "/", 3},
    {Op::mod, "mod", 2, false, true, false, false, "%", 3},
    {Op::min, "min", 2, true, true, true},
    {Op::max, "max", 2, true, true, true},
    {Op::bit_and, "and", 2, false, true, true, false, " & ", 0},
    {Op::bit_or, "or", 2, false, true, true, false, " | ", 0},
    {Op::bit_xor, "xor", 2, false, true, true},
    {Op::shl, "shl", 2, false, true, false},
    {Op::shr, "shr", 2, false, true, false},
    {Op::eq, "eq", 2, true, true, true, true, " == "},
    {Op::ne, "ne", 2, true, true, true, true, " != "},
    {Op::lt, "lt", 2, true, true, true, true, " < "},
    {Op::le, "le", 2, true, true, true, true, " <= "},
    {Op::fma, "fma", 3, true, true, false},
    {Op::select, "select", 3, true, true, true},
}};
static_assert(
    [] {
        for (size_t i = 0; i < op_count; i++)
            if (op_table[i].op != static_cast<Op>(i) || op_table[i].arity == 0) return false;
        return true;
    }(),
    "the table has a row for each operation, in the order of the enumerators");

constexpr const OpRow &row_of(Op op) { return op_table[static_cast<size_t>(op)]; }
constexpr const char *name_of(Op op) { return row_of(op).name; }
constexpr int arity(Op op) { return row_of(op).arity; }
constexpr bool is_comparison(Op op) { return row_of(op).compares; }
Op op_named(const std::string &name);  // UserError op.unknown

[[noreturn]] void undefined_on(Op op, const char *operands);  // InternalError

// What a table of code may be for.
constexpr bool is_on_floats(Op op) { return row_of(op).floats && op != Op::select; }
constexpr bool is_on_integers(Op op) { return row_of(op).integers && op != Op::select; }
constexpr bool is_on_truths(Op op) { return row_of(op).truths && op != Op::select; }
constexpr bool keeps_floats(Op op) { return is_on_floats(op) && !is_comparison(op); }
constexpr bool keeps_truths(Op op) { return is_on_truths(op) && !is_comparison(op); }

template <typename Code>
struct OpCode {
    Op op;
    Code code;
};

// What an emitter writes for each operation that `covers` says: signs, names or functions. A constant with a row that is missing, one too
// many or there twice does not compile.
template <typename Code>
class OpTable {
public:
    template <size_t n>
    constexpr OpTable(bool (*covers)(Op), const OpCode<Code> (&rows)[n]) : covers_(covers) {
        if (!fits(covers, rows)) throw "a row for each operation that is covered, and no other";
        for (const OpCode<Code> &row : rows) codes_[static_cast<size_t>(row.op)] = row.code;
    }
    // InternalError where the operation is not covered; `operands` says on what.
    const Code &at(Op op, const char *operands) const {
        if (!covers_(op)) undefined_on(op, operands);
        return codes_[static_cast<size_t>(op)];
    }
    template <size_t n>
    static constexpr bool fits(bool (*covers)(Op), const OpCode<Code> (&rows)[n]) {
        for (const OpRow &known : op_table) {
            int count = 0;
            for (const OpCode<Code> &row : rows) count += row.op == known.op;
            if (count != covers(known.op)) return false;
        }
        return true;
    }

private:
    bool (*covers_)(Op);
    std::array<Code, op_count> codes_{};
};

// The value on floats, rounded to Real; unused operands are 0.
template <typename Real>
Real real_value(Op op, Real a, Real b, Real c) {
    switch (op) {
    case Op::neg: return -a;
    case Op::abs: return std::fabs(a);
    case Op::sqrt: return std::sqrt(a);
    case Op::floor: return std::floor(a);
    case Op::ceil: return std::ceil(a);
    case Op::round: return std::nearbyint(a);
    case Op::trunc: return std::trunc(a);
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return a / b;
    case Op::min: return b < a || b != b ? b : a;
    case Op::max: return b > a || b != b ? b : a;
    case Op::fma: return std::fma(a, b, c);
    case Op::logical_not:
    case Op::mod:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shl:
    case Op::shr:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select: break;
    }
    undefined_on(op, "floats");
}

inline int64_t floor_quotient_or_zero(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
    const int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

// The value on integers and truth values, which wraps to their type.
inline uint64_t integer_value(Op op, DType type, int64_t a, int64_t b, int64_t c) {
    auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
    const unsigned last_bit = type == DType::i32 ? 31 : 63;
    switch (op) {
    case Op::neg: return -u(a);
    case Op::abs: return a < 0 ? -u(a) : u(a);
    case Op::logical_not: return type == DType::boolean ? !a : ~u(a);
    case Op::add: return u(a) + u(b);
    case Op::sub: return u(a) - u(b);
    case Op::mul: return u(a) * u(b);
    case Op::div: return u(floor_quotient_or_zero(a, b));
    case Op::mod: return b == 0 ? 0 : u(a) - u(floor_quotient_or_zero(a, b)) * u(b);
    case Op::min: return u(a < b ? a : b);
    case Op::max: return u(a > b ? a : b);
    case Op::bit_and: return u(a) & u(b);
    case Op::bit_or: return u(a) | u(b);
    case Op::bit_xor: return u(a) ^ u(b);
    case Op::shl: return u(a) << (u(b) & last_bit);
    case Op::shr: return u(a >> (u(b) & last_bit));
    case Op::fma: return u(a) * u(b) + u(c);
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select: break;
    }
    undefined_on(op, "integers");
}

template <typename Number>
bool compared(Op op, Number a, Number b) {
    if (op == Op::eq) return a == b;
    if (op == Op::ne) return a != b;
    if (op == Op::lt) return a < b;
    if (op == Op::le) return a <= b;
    undefined_on(op, "numbers to compare");
}

}  // namespace tessera
