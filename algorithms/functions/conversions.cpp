#include "algorithms/functions/conversions.h"

#include <cmath>
#include <map>

#include "algorithms/expr/function.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int f32_mantissa = 23, f32_bias = 127;
constexpr int64_t f32_infinity = 0x7f800000, f32_nan = 0x7fc00000, f32_hidden = 1 << f32_mantissa;

Expr k(int64_t value) { return constant_int(DType::i32, value); }
Expr both(const Expr &a, const Expr &b) { return operation(Op::bit_and, {a, b}); }
Expr either(const Expr &a, const Expr &b) { return operation(Op::bit_or, {a, b}); }
Expr left_by(const Expr &a, const Expr &count) { return operation(Op::shl, {a, count}); }
Expr right_by(const Expr &a, const Expr &count) { return operation(Op::shr, {a, count}); }
Expr bits_of(const Expr &real) { return bitcast(DType::i32, real); }

// That of a format with fewer exponents than f32. Its fields where f32 has its own, A, are right where the exponent's field is not 0; where
// it is 0, 2A - 2^(1 - bias) is. Each of the two is the larger one where it is wrong. No number is subnormal on the way, as one would be in
// a product by a power of two, which takes some processors a hundred times as long.
Expr number_of_narrow(const DTypeTraits &f, const Expr &code) {
    const int wider = f32_mantissa - f.mantissa, unused = 31 - f.exponent - f.mantissa, gap = 8 - f.exponent;
    const int64_t mask = int64_t{magnitude_mask(f)} << wider, special = int64_t{first_special(f)} << wider;
    const Expr fields = right_by(left_by(code, k(unused)), k(gap)), magnitude = both(fields, k(mask)), sign = both(fields, k(INT32_MIN));
    const Expr a = bitcast(DType::f32, magnitude + k(int64_t{f32_bias - f.bias} << f32_mantissa));
    const Expr number = min(a, fma(a, constant(DType::f32, 2), constant(DType::f32, -std::ldexp(1, 1 - f.bias))));
    Expr bits = either(bits_of(number), sign);
    switch (f.specials) {
    case Specials::ieee: bits = select(magnitude < k(special), bits, either(fields, k(f32_infinity))); break;
    case Specials::all_ones: bits = select(magnitude == k(special), k(f32_nan), bits); break;
    case Specials::minus_zero: bits = select(both(code, k(sign_bit(f) | magnitude_mask(f))) == k(sign_bit(f)), k(f32_nan), bits); break;
    case Specials::none: break;
    }
    return bitcast(DType::f32, bits);
}

// The number of a code, an i32, in f32.
Expr number_of(const DTypeTraits &f, const Expr &code) {
    if (f.bias != f32_bias) return number_of_narrow(f, code);
    const Expr moved = left_by(code, k(31 - f.exponent - f.mantissa));
    if (f.is_signed) return bitcast(DType::f32, moved);
    require(f.mantissa == 0 && !f.has_zero && f.specials == Specials::all_ones, "a scale has the exponents of f32");
    const Expr bits = max(moved, k(f32_hidden / 2));  // its least number is subnormal in f32
    return bitcast(DType::f32, select(code == k(first_special(f)), k(f32_nan), bits));
}

// A magnitude of f32 where a format cuts it: its code is base plus significand / 2^shift, rounded.
struct Cut {
    Expr base, significand;
    Expr shift;           // at most `most_shift`, where the whole significand is cut off
    Expr exact_shift;     // or more
    bool is_odd = false;  // the last bit that stays is always 1
};
constexpr int most_shift = f32_mantissa + 2;

Cut cut(const DTypeTraits &f, const Expr &magnitude) {
    const Expr field = right_by(magnitude, k(f32_mantissa));
    if (!f.has_zero) {  // a number below 2^-126 gets the exponent 0 in front of its mantissa, as the format has it
        const Expr small = max(left_by(magnitude, k(1)) - k(f32_hidden), k(0));
        return {k(0), select(field == k(0), small, magnitude), k(f32_mantissa), k(f32_mantissa), true};
    }
    const int wider = f32_mantissa - f.mantissa, least = f32_bias + 1 - f.bias;  // the exponent of the least normal number
    const Expr exponent = max(field, k(1)), significand = magnitude - left_by(exponent - k(1), k(f32_mantissa));
    const Expr base = left_by(max(exponent - k(least), k(0)), k(f.mantissa));
    if (least == 1) return {base, significand, k(wider), k(wider)};
    const Expr shift = max(k(wider + least) - exponent, k(wider));
    return {base, significand, min(shift, k(most_shift)), shift};
}

// What rounding adds to the significand before it is cut.
Expr added(const Cut &c, Rounding rounding, const Expr &negative) {
    const Expr below_one = left_by(k(1), c.shift) - k(1);
    switch (rounding) {
    case Rounding::nearest_even: {
        const Expr half = left_by(k(1), c.shift - k(1));
        return c.is_odd ? half : half - k(1) + both(right_by(c.significand, c.shift), k(1));
    }
    case Rounding::toward_zero: return k(0);
    case Rounding::up: return select(negative, k(0), below_one);
    case Rounding::down: return select(negative, below_one, k(0));
    }
    throw InternalError("an unknown rounding");
}

// The code of a rounded magnitude, which may be that of no finite number, with its sign and what is special.
Expr finished(const DTypeTraits &f, Expr code, const Expr &bits, const Expr &magnitude, const Expr &rises, bool saturate) {
    const int64_t special = first_special(f), largest = special - 1;
    // Infinity stays one in every rounding.
    const Expr over =
        saturate || f.specials == Specials::none ? k(largest) : select(rises || magnitude == k(f32_infinity), k(special), k(largest));
    code = select(k(largest) < code, over, code);
    if (f.is_signed) {
        const Expr sign = both(right_by(bits, k(31 - f.exponent - f.mantissa)), k(sign_bit(f)));
        code = either(code, f.specials == Specials::minus_zero ? select(code == k(0), k(0), sign) : sign);
    }
    Expr nan = k(f32_infinity) < magnitude;
    if (!f.is_signed) nan = nan || bits <= k(0);
    return select(nan, k(nan_code(f)), code);
}

// The code of x, an f32, as an i32.
Expr code_of(const DTypeTraits &f, const Expr &x, Rounding rounding, bool saturate) {
    const Expr bits = bits_of(x), magnitude = both(bits, k(0x7fffffff)), negative = bits < k(0);
    const Cut c = cut(f, magnitude);
    const Expr code = c.base + right_by(c.significand + added(c, rounding, negative), c.shift);
    const Expr never = constant_int(DType::boolean, 0);
    const Expr rises = rounding == Rounding::nearest_even ? !never
                       : rounding == Rounding::up         ? !negative
                       : rounding == Rounding::down       ? negative
                                                          : never;
    return finished(f, code, bits, magnitude, rises, saturate);
}

Expr stored(DType type, const Expr &code) {
    if (is_coded(type)) return bitcast(type, cast(DType::u8, code));
    return cast(type, number_of(traits_of(type), code));  // exact
}

// An f32 that any narrower format rounds as it would round the value: where it is not exact, it is cut and its last bit is 1.
Expr odd(const Expr &near, const Expr &inexact, const Expr &above) {
    const Expr bits = bits_of(near);
    return bitcast(DType::f32, select(inexact, either(bits - cast(DType::i32, above), k(1)), bits));
}

Expr odd_f32(const Expr &x) {
    const DType type = x.type();
    if (type == DType::f32) return x;
    if (type == DType::f64) {
        const Expr near = cast(DType::f32, x), back = cast(DType::f64, near);
        return odd(near, back != x, abs(x) < abs(back));
    }
    if (type == DType::index) return odd_f32(cast(DType::i64, x));
    if (type != DType::i32 && type != DType::i64) return cast(DType::f32, x);
    // Above the largest f32 within the type's range, all numbers are cut to that one.
    const int64_t last = traits_of(type).highest - (type == DType::i32 ? int64_t{1} << 7 : int64_t{1} << 39) + 1;
    const Expr limited = min(x, constant_int(type, last + 1)), near = cast(DType::f32, limited);
    const Expr back = cast(type, near, Rounding::toward_zero), zero = constant_int(type, 0);
    return odd(near, back != limited, select(limited < zero, back < limited, limited < back));
}

// The number of a code of four bits, an i32 in 0 ..= 15, in i32.
Expr whole_number_of(const DTypeTraits &f, const Expr &code) {
    return f.lowest < 0 ? operation(Op::bit_xor, {code, k(-f.lowest)}) + k(f.lowest) : code;
}

// The code of x, of any type but one of codes, for a type of integers of four bits: as `convert` has it.
Expr whole_code_of(const DTypeTraits &f, Expr x, Rounding rounding, bool saturate) {
    if (!is_float(x.type()) && !is_arithmetic(x.type())) x = cast(DType::i32, x);
    if (x.type() == DType::boolean) x = cast(DType::i32, x);
    if (is_float(x.type())) {
        const Expr wide = is_arithmetic(x.type()) ? x : cast(DType::f32, x), whole = cast(DType::i32, wide, rounding, true);
        const Expr fits = wide == wide && k(f.lowest) <= whole && whole <= k(f.highest);
        x = saturate ? min(max(whole, k(f.lowest)), k(f.highest)) : select(fits, whole, k(f.lowest));
    } else if (saturate) {
        x = min(max(x, constant_int(x.type(), f.lowest)), constant_int(x.type(), f.highest));
    }
    return both(cast(DType::i32, x), k(15));
}

Expr expanded_cast(const Expr &e) {
    const DType type = e.type();
    Expr x = e->args[0];
    if (is_coded(x.type())) {
        const DTypeTraits &from = traits_of(x.type());
        const Expr code = code_in(x);
        x = is_float(from.type) ? number_of(from, code) : whole_number_of(from, code);
        if (x.type() == type) return x;
    }
    if (is_coded(type) && !is_float(type)) return stored(type, whole_code_of(traits_of(type), x, e->rounding, e->saturate));
    if (!is_narrow_float(type)) return cast(type, x, e->rounding, e->saturate);
    x = odd_f32(x);
    if (!is_coded(type) && e->rounding == Rounding::nearest_even && !e->saturate) return cast(type, x);
    return stored(type, code_of(traits_of(type), x, e->rounding, e->saturate));
}

}  // namespace

Expr code_in(const Expr &x) {
    if (is_in_half_bytes(x.type()) && x.kind() == ExprKind::bitcast && x->args[0].kind() == ExprKind::cast) {
        const Expr &from = x->args[0]->args[0];
        const auto is_mask = [](const Expr &e) { return e.is_constant() && e->value.integer == 15; };
        if (from.type() == DType::i32 && from.is_operation(Op::bit_and) && (is_mask(from->args[0]) || is_mask(from->args[1]))) return from;
    }
    return cast(DType::i32, bitcast(DType::u8, x));
}

Expr expand_conversions(const Expr &e) { return replace_conversions(e, expanded_cast); }
Expr in_operations(const Expr &e) { return expand_conversions(expand_functions(e)); }

Expr round_stochastic(const Expr &x, DType type, const Expr &word, bool saturate) {
    if (x.type() != DType::f32 || !is_narrow_float(type) || word.type() != DType::i64)
        throw UserError("expr.cast",
                        std::string("stochastic rounding goes from f32 to a float that is only stored, by random bits of i64, got ") +
                            name_of(x.type()) + " to " + name_of(type) + " by " + name_of(word.type()) + "; cast to f32 first.");
    const DTypeTraits &f = traits_of(type);
    auto wide = [](int64_t value) { return constant_int(DType::i64, value); };
    const Expr bits = bits_of(x), magnitude = both(bits, k(0x7fffffff));
    const Cut c = cut(f, magnitude);
    const Expr kept = right_by(c.significand, c.shift), rest = c.significand - left_by(kept, c.shift);
    const Expr shift = cast(DType::i64, c.exact_shift);
    const Expr raised = left_by(cast(DType::i64, rest), max(wide(32) - shift, wide(0)));
    const Expr fraction = right_by(raised, min(max(shift - wide(32), wide(0)), wide(63)));
    const Expr carry = right_by(fraction + both(word, wide(0xffffffff)), wide(32));
    return stored(type, finished(f, c.base + kept + cast(DType::i32, carry), bits, magnitude, constant_int(DType::boolean, 1), saturate));
}

// A function that gives its first operand, but for less than `least`.
static FunctionFacts facts_of_flush(int arity, double least) {
    FunctionFacts facts;
    facts.derivative = derivatives(arity, [](const Operands &x, int by) { return constant(x[0].type(), by == 0 ? 1 : 0); });
    facts.rounds = RoundingFacts{.absolute = least};
    return facts;
}

static Expr zero_of_sign(const Expr &x) {
    const DType bits = x.type() == DType::f64 ? DType::i64 : DType::i32;
    const Expr sign = constant_int(bits, bits == DType::i64 ? INT64_MIN : INT32_MIN);
    return bitcast(x.type(), operation(Op::bit_and, {bitcast(bits, x), sign}));
}

static FunctionRef make_flush(const DTypeTraits &format) {
    const double least = std::ldexp(1.0, 1 - format.bias);
    return make_function(
        std::string("flush_subnormals_") + format.name, 1,
        [least](const Operands &x) { return select(abs(x[0]) < constant(x[0].type(), least), zero_of_sign(x[0]), x[0]); },
        facts_of_flush(1, least));
}

Expr flush_subnormals(const Expr &x, DType of) {
    if (!is_float(of) || !traits_of(of).has_zero)
        throw UserError("expr.cast", std::string("flush_subnormals: expected a float type that has a zero, got ") + name_of(of) + ".");
    static const std::map<DType, FunctionRef> all = [] {
        std::map<DType, FunctionRef> made;
        for (const DTypeTraits &format : dtypes)
            if (format.kind == DTypeKind::real && format.has_zero) made[format.type] = make_flush(format);
        return made;
    }();
    return applied(all.at(of), {x});
}

constexpr double least_normal = 0x1p-126, scale = 0x1p60;

Expr flush_tiny_sum(const Expr &sum, const Expr &scaled) {
    static const FunctionRef flush = make_function(
        "flush_tiny_sum", 2,
        [](const Operands &x) {
            auto number = [&](double value) { return constant(x[0].type(), value); };
            const Expr is_tiny = abs(x[0]) <= number(least_normal) && abs(x[1]) < number(least_normal * scale);
            return select(is_tiny, zero_of_sign(x[0]), x[0]);
        },
        facts_of_flush(2, least_normal));
    return applied(flush, {sum, scaled});
}

// Where scaling overflows, the sum is 0 or far from tiny: both products of 24 bits and what they cancel with are multiples of more.
Expr flushed_fma(const Expr &a, const Expr &b, const Expr &c) {
    const Expr x = flush_subnormals(a, DType::f32), y = flush_subnormals(b, DType::f32), z = flush_subnormals(c, DType::f32);
    const Expr up = constant(DType::f32, scale);
    return flush_tiny_sum(fma(x, y, z), fma(x * up, y, z * up));
}

Expr round_tf32(const Expr &x) {
    if (x.type() != DType::f32)
        throw UserError("functions.type", std::string("round_tf32: expected f32, got ") + name_of(x.type()) + "; cast it first.");
    static const FunctionRef function = [] {
        FunctionFacts facts;
        facts.derivative = derivatives(1, [](const Operands &x, int) { return constant(x[0].type(), 1); });
        facts.rounds = RoundingFacts{.relative = 0x1p-11, .absolute = 0x1p-137};
        return make_function(
            "round_tf32", 1,
            [](const Operands &of) {
                if (of[0].type() == DType::f64) return of[0];  // in the exact algorithm nothing rounds
                constexpr int cut_off = f32_mantissa - 10;
                const Expr bits = bits_of(of[0]), last = both(right_by(bits, k(cut_off)), k(1));
                const Expr rounded = both(bits + k((1 << (cut_off - 1)) - 1) + last, k(-(1 << cut_off)));
                return select(of[0] == of[0], bitcast(DType::f32, rounded), of[0]);
            },
            facts);
    }();
    return applied(function, {x});
}

}  // namespace tessera
