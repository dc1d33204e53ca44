// Formats of floats that are only stored: against ml_dtypes where it has an answer, against an oracle over exact numbers in every rounding,
// and what lowering makes of casts against what the casts mean.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>

#include "algorithms/build/random.h"
#include "algorithms/evaluate/tape.h"
#include "algorithms/functions/conversions.h"
#include "algorithms/text/json_expr.h"
#include "support/text/error.h"

namespace tessera::test_formats {

namespace {

constexpr DType coded_floats[] = {DType::f8e4m3fn,  DType::f8e4m3,   DType::f8e4m3fnuz, DType::f8e5m2,  DType::f8e5m2fnuz,
                                  DType::f8e8m0fnu, DType::f6e2m3fn, DType::f6e3m2fn,   DType::f4e2m1fn};
constexpr double inf = std::numeric_limits<double>::infinity();

Scalar f32(double v) { return Scalar::of_real(DType::f32, v); }
Scalar f64(double v) { return Scalar::of_real(DType::f64, v); }
Scalar i64(int64_t v) { return Scalar::of_integer(DType::i64, v); }

// An expression over input(0) and input(1).
class Program {
public:
    Program(const Expr &e, int inputs) : tape_({e}, {[](const Expr &leaf) { return leaf->number; }, {}}, inputs), frame_(size(tape_)) {
        tape_.prepare(frame_.data());
    }
    Scalar operator()(const Scalar &a, const Scalar &b = {}) {
        frame_[0] = to_register(a);
        if (b.type != DType::index) frame_[1] = to_register(b);
        tape_.run(frame_.data(), nullptr);
        return tape_.value(frame_.data(), 0);
    }

private:
    static size_t size(const Tape &t) { return static_cast<size_t>(t.end()); }
    Tape tape_;
    std::vector<Register> frame_;
};

// ---- inputs, as formats_by_ml_dtypes.py makes them

void add_with_neighbours(std::vector<float> &all, double value) {
    const auto v = static_cast<float>(value);
    for (float n : {v, std::nextafter(v, -INFINITY), std::nextafter(v, INFINITY)}) all.push_back(n), all.push_back(-n);
}

// The finite numbers from 0 on, and what would come after the last if exponents had no end.
std::vector<double> steps_of(DType type) {
    const DTypeTraits &f = traits_of(type);
    std::vector<double> steps;
    for (uint32_t code = 0; code < first_special(f); code++) steps.push_back(decoded(f, code));
    const size_t n = steps.size();
    steps.push_back(f.mantissa ? 2 * steps[n - 1] - steps[n - 2] : 2 * steps[n - 1]);
    return steps;
}

std::vector<float> edges_of(DType type) {
    std::vector<float> all;
    const std::vector<double> steps = steps_of(type);
    for (size_t i = 0; i + 1 < steps.size(); i++) add_with_neighbours(all, (steps[i] + steps[i + 1]) / 2);
    for (double step : steps) add_with_neighbours(all, std::min(step, 3.4e38));
    return all;
}

uint64_t random_word(uint64_t position) {
    uint64_t z = (position + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

uint64_t hash_of(const std::vector<uint32_t> &words) {
    uint64_t h = 0xcbf29ce484222325;
    for (uint32_t w : words) h = (h ^ w) * 0x100000001b3;
    return h;
}

struct ByMlDtypes {
    DType type;
    uint64_t decoded;  // all codes
    size_t count;      // of inputs
    uint64_t encoded;
};

// As formats_by_ml_dtypes.py prints it, with ml_dtypes 0.6.0.
constexpr ByMlDtypes by_ml_dtypes[] = {
    {DType::f8e4m3fn, 0x08993af4628bb725, 198138, 0xb57fd625201f632c},   {DType::f8e4m3, 0xb0ba52aad84bb725, 198054, 0x0a8182ecb2c862ec},
    {DType::f8e4m3fnuz, 0x4065565af2abb725, 198150, 0xf9d8cb268d160fa6}, {DType::f8e5m2, 0x00cee2838e6bb725, 198102, 0xd273d8ff39d1f4e9},
    {DType::f8e5m2fnuz, 0x39969815ceabb725, 198150, 0xb0e90bef9311d0c5}, {DType::f8e8m0fnu, 0x56f9e0582b6bb725, 199572, 0x72fde66c110958c0},
    {DType::f6e2m3fn, 0x437daba9a23d0825, 196998, 0xff09c806ba198a64},   {DType::f6e3m2fn, 0x4c67d1405afd0825, 196998, 0x4977f215169a468a},
    {DType::f4e2m1fn, 0x00737516397f6465, 196710, 0xad96d31e91e1786c},
};

// ---- the oracle: the format's numbers in a row, and exact comparisons with the middle between two of them

class Oracle {
public:
    explicit Oracle(DType type) : f_(traits_of(type)), type_(type), steps_(steps_of(type)) {}

    // x is exact: a double, or an i64 in the 64 bits of a long double.
    Scalar rounded(long double x, Rounding rounding, bool saturate) const {
        const bool negative = std::signbit(x);
        if (std::isnan(x) && f_.specials == Specials::none) return of(-0.0);
        if (std::isnan(x) || (!f_.is_signed && !(x > 0))) return of(NAN);
        const long double magnitude = std::fabs(x);
        const size_t last = steps_.size() - 2;
        size_t at = 0;
        if (std::isinf(magnitude)) {
            at = last + 1;
        } else {
            const auto above = std::upper_bound(steps_.begin(), steps_.end(), magnitude);
            const bool is_below_all = above == steps_.begin();  // of a format without zero
            at = is_below_all ? 0 : static_cast<size_t>(above - steps_.begin()) - 1;
            if (!is_below_all && at <= last && magnitude != steps_[at] && goes_away(at, magnitude, rounding, negative)) at++;
            const bool away = rounding == Rounding::nearest_even || rounding == (negative ? Rounding::down : Rounding::up);
            if (at > last && !away) at = last;
        }
        double value = at <= last                                  ? steps_[at]
                       : saturate || f_.specials == Specials::none ? steps_[last]
                       : f_.specials == Specials::ieee             ? inf
                                                                   : NAN;
        if (value == 0 && f_.specials == Specials::minus_zero) return of(0.0);
        return of(negative ? -value : value);
    }

private:
    bool goes_away(size_t at, long double magnitude, Rounding rounding, bool negative) const {
        if (rounding != Rounding::nearest_even) return rounding == (negative ? Rounding::down : Rounding::up);
        const long double middle = (static_cast<long double>(steps_[at]) + steps_[at + 1]) / 2;
        if (magnitude != middle) return magnitude > middle;
        return f_.mantissa == 0 || at % 2 == 1;
    }
    Scalar of(double value) const {
        Scalar s{type_};
        s.real = value;
        return s;
    }

    const DTypeTraits &f_;
    DType type_;
    std::vector<double> steps_;
};

std::vector<DType> narrow_types() {
    std::vector<DType> all;
    for (const DTypeTraits &t : dtypes)
        if (is_narrow_float(t.type)) all.push_back(t.type);
    return all;
}

std::string words(const Scalar &from, DType to, Rounding rounding, bool saturate, const Scalar &got, const Scalar &expected) {
    return to_string(constant(from)) + " to " + name_of(to) + " " + name_of(rounding) + (saturate ? " saturated" : "") + " is " +
           to_string(constant(got)) + ", not " + to_string(constant(expected));
}

// A cast's meaning and its expansion, beside the oracle; `every` of the values.
void check_casts(DType from, DType to, const std::vector<Scalar> &values) {
    const Oracle oracle(to);
    for (Rounding rounding : roundings)
        for (bool saturate : {false, true}) {
            const Expr e = cast(to, input(0, from), rounding, saturate);
            CHECK(is_expanded(e) == (is_coded_float(to) || from == DType::i64 || saturate || rounding != Rounding::nearest_even));
            Program program(expand_conversions(e), 1);
            int wrong = 0;
            for (const Scalar &x : values) {
                const long double exact = is_float(from) ? static_cast<long double>(x.real) : static_cast<long double>(x.integer);
                const Scalar expected = oracle.rounded(exact, rounding, saturate), meant = convert(to, rounding, saturate, x),
                             made = program(x);
                if (!(meant == expected) && wrong++ < 3) FAIL_CHECK(words(x, to, rounding, saturate, meant, expected));
                if (!(made == expected) && wrong++ < 3) FAIL_CHECK("expanded: " << words(x, to, rounding, saturate, made, expected));
            }
        }
}

}  // namespace

TEST_CASE("formats: the numbers that their names promise") {
    auto code = [](DType type, double v) { return bitcast(DType::u8, Scalar::of_real(type, v)).integer; };
    CHECK((highest_finite(traits_of(DType::f8e4m3fn)) == 448 && highest_finite(traits_of(DType::f8e4m3)) == 240));
    CHECK((highest_finite(traits_of(DType::f8e4m3fnuz)) == 240 && highest_finite(traits_of(DType::f8e5m2)) == 57344));
    CHECK((highest_finite(traits_of(DType::f8e5m2fnuz)) == 57344 && highest_finite(traits_of(DType::f8e8m0fnu)) == 0x1p127));
    CHECK((highest_finite(traits_of(DType::bf16)) == 0x1.fep127 && highest_finite(traits_of(DType::f16)) == 65504));
    CHECK((code(DType::f8e4m3fn, NAN) == 0x7f && code(DType::f8e4m3fnuz, NAN) == 0x80 && code(DType::f8e8m0fnu, 0) == 0xff));
    CHECK((code(DType::f8e5m2, -inf) == 0xfc && code(DType::f8e4m3, inf) == 0x78 && code(DType::f8e4m3fn, -0.0) == 0x80));
    CHECK((code(DType::f8e4m3fnuz, -0.0) == 0 && code(DType::f8e8m0fnu, 1) == 127 && code(DType::f8e8m0fnu, 0x1p-140) == 0));
    CHECK(Scalar::of_real(DType::f8e4m3fn, 464).real == 448);  // in the middle
    CHECK((highest_finite(traits_of(DType::f6e2m3fn)) == 7.5 && highest_finite(traits_of(DType::f6e3m2fn)) == 28));
    CHECK((highest_finite(traits_of(DType::f4e2m1fn)) == 6 && code(DType::f4e2m1fn, -100) == 0xf && code(DType::f4e2m1fn, NAN) == 8));
    CHECK(std::isnan(Scalar::of_real(DType::f8e4m3fn, 465).real));
}

TEST_CASE("formats: decoding and rounding to nearest even are ml_dtypes's") {
    for (const ByMlDtypes &expected : by_ml_dtypes) {
        const DType type = expected.type;
        INFO(name_of(type));
        Program decode(expand_conversions(cast(DType::f32, input(0, type))), 1);
        std::vector<uint32_t> numbers, again;
        const DTypeTraits &f = traits_of(type);
        for (int code = 0; code < 1 << (f.is_signed + f.exponent + f.mantissa); code++) {
            const Scalar value = bitcast(type, Scalar::of_integer(DType::u8, code));
            for (auto [list, real] : {std::pair{&numbers, value.real}, {&again, decode(value).real}})
                list->push_back(std::isnan(real) ? 0x7fc00000 : std::bit_cast<uint32_t>(static_cast<float>(real)));
            if (!std::isnan(value.real)) CHECK(bitcast(DType::u8, value).integer == code);
        }
        CHECK(hash_of(numbers) == expected.decoded);
        CHECK(numbers == again);

        std::vector<float> inputs;
        for (uint32_t bf16 = 0; bf16 < 65536; bf16++) inputs.push_back(std::bit_cast<float>(bf16 << 16));
        for (uint64_t i = 0; i < 1 << 17; i++) inputs.push_back(std::bit_cast<float>(static_cast<uint32_t>(random_word(i) >> 32)));
        for (float edge : edges_of(type)) inputs.push_back(edge);
        // ml_dtypes 0.6.0 gives 2^-126 there, the farther of the two numbers beside it.
        if (type == DType::f8e8m0fnu) std::erase_if(inputs, [](float x) { return x > 0x1p-127f && x < 0x1.8p-127f; });
        REQUIRE(inputs.size() == expected.count);
        Program encode(expand_conversions(cast(DType::u8, cast(DType::i32, bitcast(DType::u8, cast(type, input(0, DType::f32)))))), 1);
        std::vector<uint32_t> codes, made;
        for (float x : inputs) {
            const Scalar value = convert(type, Rounding::nearest_even, false, f32(x));
            const bool no_number = std::isnan(f.specials == Specials::none ? x : value.real);
            codes.push_back(no_number ? 0xff : static_cast<uint32_t>(bitcast(DType::u8, value).integer));
            const auto code = static_cast<uint32_t>(encode(f32(x)).integer);
            made.push_back(no_number || std::isnan(decoded(f, code)) ? 0xff : code);
        }
        CHECK(hash_of(codes) == expected.encoded);
        CHECK(codes == made);
    }
}

TEST_CASE("formats: every rounding equals the oracle at every midpoint, neighbour and limit") {
    for (DType to : narrow_types()) {
        INFO(name_of(to));
        std::vector<Scalar> singles, doubles;
        const std::vector<float> edges = edges_of(to);
        const size_t step = edges.size() > 20000 ? 37 : 1;  // bf16 and f16
        for (size_t i = 0; i < edges.size(); i += step) {
            singles.push_back(f32(edges[i]));
            const double x = edges[i];
            for (double y : {x, std::nextafter(x, -inf), std::nextafter(x, inf)}) doubles.push_back(f64(y));
        }
        for (double x : {0.0, -0.0, inf, -inf, static_cast<double>(NAN), 1e300, -1e300, 0x1p-1074, -0x1p-1074, 0x1.fffffep127, 0x1p-149})
            singles.push_back(f32(x)), doubles.push_back(f64(x));
        check_casts(DType::f32, to, singles);
        check_casts(DType::f64, to, doubles);
        if (to == DType::f16) continue;  // whose numbers bf16 has none of
        for (DType from : coded_floats) {
            std::vector<Scalar> codes;
            for (int code = 0; code < 256; code++) codes.push_back(bitcast(from, Scalar::of_integer(DType::u8, code)));
            if (from != to && is_coded_float(to)) check_casts(from, to, codes);
        }
    }
}

TEST_CASE("formats: integers of four bits, from all types, in every rounding") {
    for (DType to : {DType::i4, DType::u4}) {
        INFO(name_of(to));
        std::map<DType, std::vector<Scalar>> values;
        for (int64_t v = -300; v <= 300; v++) {
            for (DType from : {DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean, DType::i4, DType::u4})
                values[from].push_back(Scalar::of_integer(from, v));
            for (DType from : {DType::f32, DType::f64, DType::bf16, DType::f8e4m3fn, DType::f4e2m1fn})
                values[from].push_back(Scalar::of_real(from, static_cast<double>(v) / 8));
        }
        for (int64_t v : {INT64_MAX, INT64_MIN, int64_t{1} << 40, -(int64_t{1} << 40) + 3}) values[DType::i64].push_back(i64(v));
        for (double v : {inf, -inf, static_cast<double>(NAN), 1e30, -1e30, 7.5, 8.0, -8.5, 15.5, 16.0, -0.5, -0.6})
            for (DType from : {DType::f32, DType::f64}) values[from].push_back(Scalar::of_real(from, v));
        for (const auto &[from, all] : values)
            for (Rounding rounding : roundings)
                for (bool saturate : {false, true}) {
                    if (from == to) continue;
                    Program program(expand_conversions(cast(DType::i32, cast(to, input(0, from), rounding, saturate))), 1);
                    Program back(expand_conversions(cast(DType::f32, cast(to, input(0, from), rounding, saturate))), 1);
                    for (const Scalar &x : all) {
                        const double exact = is_float(from) ? x.real : static_cast<double>(x.integer);
                        const double whole = !is_float(from)                      ? exact
                                             : rounding == Rounding::nearest_even ? std::nearbyint(exact)
                                             : rounding == Rounding::toward_zero  ? std::trunc(exact)
                                             : rounding == Rounding::up           ? std::ceil(exact)
                                                                                  : std::floor(exact);
                        const double lowest = to == DType::i4 ? -8 : 0, highest = lowest + 15;
                        const bool fits = whole >= lowest && whole <= highest;
                        int64_t expected = fits ? static_cast<int64_t>(whole) : static_cast<int64_t>(lowest);
                        if (!fits && saturate) expected = static_cast<int64_t>(std::isnan(whole) ? 0 : whole < lowest ? lowest : highest);
                        if (!fits && !saturate && !is_float(from)) {  // the low bits
                            expected = x.integer & 15;
                            if (expected > static_cast<int64_t>(highest)) expected -= 16;
                        }
                        INFO(to_string(constant(x))
                             << " of " << name_of(from) << ", " << name_of(rounding) << (saturate ? ", saturated" : ""));
                        CHECK(program(x).integer == expected);
                        CHECK(back(x).real == static_cast<double>(expected));
                    }
                }
    }
}

TEST_CASE("formats: an integer is rounded once") {
    CHECK(convert(DType::bf16, Rounding::nearest_even, false, i64((1L << 60) + (1L << 52) + 1)).real == 0x1p60 + 0x1p53);
    CHECK(convert(DType::f16, Rounding::nearest_even, false, i64(2049)).real == 2048);
    for (DType to : narrow_types()) {
        INFO(name_of(to));
        std::map<DType, std::vector<Scalar>> values;
        auto add = [&](int64_t v) {
            for (int64_t w : {v - 1, v, v + 1, -v - 1, -v, -v + 1}) values[DType::i64].push_back(i64(w));
        };
        for (int bit = 0; bit < 63; bit++)
            for (int other = 0; other < bit; other++) add((1L << bit) + (1L << other)), add((1L << bit) - (1L << other));
        for (int i = 0; i < 2000; i++) add(static_cast<int64_t>(random_word(static_cast<uint64_t>(i)) >> (1 + i % 60)));
        for (int64_t v : {INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX - 1}) values[DType::i64].push_back(i64(v));
        for (const Scalar &v : values[DType::i64])
            for (DType from : {DType::i32, DType::u8, DType::i8, DType::boolean}) {
                const Scalar w = Scalar::of_integer(from, v.integer);
                if (w.integer == v.integer || from == DType::i32) values[from].push_back(w);
            }
        for (const auto &[from, all] : values) check_casts(from, to, all);
    }
}

TEST_CASE("formats: stochastic rounding rounds away as often as a number is near") {
    for (DType to : narrow_types()) {
        INFO(name_of(to));
        const std::vector<double> steps = steps_of(to);
        const Oracle oracle(to);
        for (bool saturate : {false, true}) {
            Program program(
                expand_conversions(cast(DType::f32, round_stochastic(input(0, DType::f32), to, input(1, DType::i64), saturate))), 2);
            int wrong = 0;
            const std::vector<float> edges = edges_of(to);
            for (size_t i = 0; i<edges.size(); i += edges.size()> 20000 ? 97 : 1) {
                const double x = edges[i], magnitude = std::fabs(x);
                const auto above = std::upper_bound(steps.begin(), steps.end(), magnitude);
                if (above == steps.begin() || above == steps.end() || (!traits_of(to).is_signed && x < 0)) continue;
                const size_t at = static_cast<size_t>(above - steps.begin()) - 1;
                // What is cut off, as a fraction of 2^32 cut to an integer.
                const auto fraction = static_cast<int64_t>((magnitude - steps[at]) / (steps[at + 1] - steps[at]) * 0x1p32);
                for (int64_t word : {int64_t{0}, (1L << 32) - 1, (1L << 32) - fraction, (1L << 32) - fraction - 1,
                                     static_cast<int64_t>(random_word(i) >> 32)}) {
                    if (word < 0 || word >> 32) continue;
                    const bool away = fraction + word >= 1L << 32;
                    const double exact = away ? steps[at + 1] : steps[at];
                    const Scalar expected = oracle.rounded(std::copysign(exact, x), Rounding::nearest_even, saturate);
                    const Scalar got = program(f32(x), i64(word));
                    if (!(got == f32(expected.real)) && wrong++ < 3)
                        FAIL_CHECK(x << " by " << word << " is " << got.real << ", not " << expected.real);
                }
            }
            const double nan = program(f32(NAN), i64(1)).real;
            CHECK((traits_of(to).specials == Specials::none ? nan == 0 && std::signbit(nan) : std::isnan(nan)));
        }
    }
}

TEST_CASE("formats: what casts take, and what they refuse") {
    auto code_of = [](auto &&f) {
        try {
            f();
        } catch (const UserError &e) { return e.id(); }
        return std::string();
    };
    const Expr x = input(0, DType::f32);
    CHECK(to_string(cast(DType::f8e4m3fn, x, Rounding::nearest_even, true)) == "cast<f8e4m3fn>(in.0, nearest_even, saturate)");
    CHECK(to_string(cast(DType::bf16, x, Rounding::up)) == "cast<bf16>(in.0, up)");
    CHECK(to_string(cast(DType::bf16, x)) == "bf16(in.0)");
    CHECK(to_string(cast(DType::i32, x, Rounding::down)) == "i32.rtz(floor(in.0))");
    for (Rounding rounding : roundings)
        for (bool saturate : {false, true}) {
            const Expr e = cast(DType::f8e5m2, x, rounding, saturate);
            CHECK(equal(expr_from_json(to_json(e)), e));
            CHECK_FALSE(expand_conversions(e)->conversions);
        }
    CHECK(code_of([&] { cast(DType::f32, input(0, DType::f64), Rounding::up); }) == "expr.cast");
    CHECK(code_of([&] { cast(DType::f64, x, Rounding::nearest_even, true); }) == "expr.cast");
    CHECK(code_of([&] { bitcast(DType::u8, input(0, DType::bf16)); }) == "expr.bitcast");
    CHECK(code_of([&] { bitcast(DType::f8e5m2, input(0, DType::f8e4m3)); }) == "expr.bitcast");
    CHECK(code_of([&] { input(0, DType::f8e5m2) + input(1, DType::f8e5m2); }) == "expr.type");
    CHECK(code_of([&] { round_stochastic(input(0, DType::f64), DType::bf16, input(1, DType::i64)); }) == "expr.cast");
}

TEST_CASE("flushed_fma decides by the sum itself whether it is tiny") {
    const Expr x = input(0, DType::f32), y = input(1, DType::f32), z = left(0, DType::f32);
    const Expr value = flushed_fma(x, y, z);
    auto of = [&](float a, float b, float c) {
        const Expr e = rewrite(value, [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::left) return constant(DType::f32, c);
            return n.kind() == ExprKind::input ? constant(DType::f32, n->number ? b : a) : Expr();
        });
        const Expr result = expand_functions(e);
        REQUIRE(result.is_constant());
        return static_cast<float>(result->value.real);
    };
    std::mt19937 random(17);
    auto integer = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    auto any = [&](int exponent) { return std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f, exponent); };
    int in_sliver = 0;
    for (int i = 0; i < 20000; i++) {
        // 24 bits each; c is -a b and a little, or a power of two, around 2^-126.
        const int middle = integer(-90, -30);
        const bool cancels = integer(0, 1) != 0, negative = integer(0, 1) != 0;
        const float a = any(middle), b = any((cancels ? integer(-128, -100) : integer(-156, -148)) - middle);
        float c = cancels ? -static_cast<float>(static_cast<double>(a) * b) + integer(-2, 2) * 0x1p-126f : -0x1p-126f;
        if (negative) c = -c;
        const float p = negative ? -a : a, z_is = std::fpclassify(c) == FP_SUBNORMAL ? std::copysign(0.0f, c) : c;
        const double product = static_cast<double>(p) * b, high = product + z_is, part = high - product;
        const double low = (product - (high - part)) + (z_is - part);
        const float rounded = std::fma(p, b, z_is);
        const double least = 0x1p-126 - 0x1p-151, size = std::fabs(high);
        const bool is_tiny = size < least || (size == least && (high < 0 ? low > 0 : low < 0));
        const float want = is_tiny ? std::copysign(0.0f, rounded) : rounded;
        INFO(p << " * " << b << " + " << c);
        CHECK(std::bit_cast<uint32_t>(of(p, b, c)) == std::bit_cast<uint32_t>(want));
        in_sliver += is_tiny && std::fabs(rounded) == 0x1p-126f;
    }
    CHECK(in_sliver > 1000);
    CHECK(std::isnan(of(NAN, 1, 1)));
    CHECK(of(0x1p100f, 0x1p-126f, -0x1p-26f) == 0);
    CHECK(of(0x1p100f, 0, 0x1p-126f) == 0x1p-126f);
    CHECK(of(0x1p127f, 0x1p127f, 1) == std::numeric_limits<float>::infinity());
    CHECK(of(0x1p-127f, 0x1p127f, 0x1p-126f) == 0x1p-126f);  // an operand that is subnormal is nothing
}

}  // namespace tessera::test_formats
