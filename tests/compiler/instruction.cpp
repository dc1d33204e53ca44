#include "compiler/instructions/families.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <sstream>

#include "algorithms/build/builder.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "tests/compiler/harness.h"
#include "tests/support/words.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace tessera::test_instruction {

using namespace tessera::test;

static float widened(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
static float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

// The product is exact in double, and its sum with an f32 is `high + low` exactly: so whether it is tiny is asked of the sum itself.
static float step(uint16_t a, uint16_t b, float sum) {
    const float x = flushed(widened(a)), y = flushed(widened(b)), z = flushed(sum), rounded = std::fma(x, y, z);
    const double product = static_cast<double>(x) * y, high = product + z, part = high - product;
    const double low = (product - (high - part)) + (z - part);
    constexpr double rounds_to_normal = 0x1p-126 - 0x1p-151;
    const double size = std::fabs(high);
    const bool is_tiny = size < rounds_to_normal || (size == rounds_to_normal && (high < 0 ? low > 0 : low < 0));
    return is_tiny ? std::copysign(0.0f, rounded) : rounded;
}
static float dot2(float sum, const uint16_t *a, const uint16_t *b) { return step(a[0], b[0], step(a[1], b[1], sum)); }
// What differs from it only where a sum of less than 2^-126 rounds up to it.
static float dot2_of_rounded(float sum, const uint16_t *a, const uint16_t *b) {
    auto one = [](uint16_t x, uint16_t y, float z) { return flushed(std::fma(flushed(widened(x)), flushed(widened(y)), flushed(z))); };
    return one(a[0], b[0], one(a[1], b[1], sum));
}

static bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

struct Pairs {
    std::mt19937 random{7};
    uint16_t a[2], b[2];
    float sum;

    static constexpr std::array kinds = {"moderate", "any bits",      "tiny",  "around the least normal", "huge", "cancelling",
                                         "special",  "powers of two", "sliver"};

    bool coin() { return random() % 2 != 0; }
    // A number of a size in [2^least, 2^(most + 1)).
    float spread(int least, int most) {
        const int exponent = least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
        return std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f, exponent) * (coin() ? 1.0f : -1.0f);
    }
    static uint16_t cut(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }
    float special() {
        constexpr float inf = std::numeric_limits<float>::infinity();
        constexpr float all[] = {0.0f,      1.0f,        inf,      std::numeric_limits<float>::quiet_NaN(), 0x1p-126f, 0x1p-127f,
                                 0x1p-149f, 0x1.fep127f, 0x1p-133f};
        return all[random() % std::size(all)] * (coin() ? 1.0f : -1.0f);
    }
    void next(size_t kind) {
        for (int i = 0; i < 2; i++) {
            const int middle = static_cast<int>(random() % 60) - 100;
            switch (kind) {
            case 0: a[i] = cut(spread(-4, 4)), b[i] = cut(spread(-4, 4)), sum = spread(-4, 4); break;
            case 1: a[i] = cut(std::bit_cast<float>(static_cast<uint32_t>(random()))), b[i] = static_cast<uint16_t>(random()); break;
            case 2: a[i] = cut(spread(-126, -50)), b[i] = cut(spread(-80, -1)), sum = spread(-149, -100); break;
            case 3: a[i] = cut(spread(middle, middle)), b[i] = cut(spread(-128 - middle, -122 - middle)), sum = spread(-128, -124); break;
            case 4: a[i] = cut(spread(60, 66)), b[i] = cut(spread(55, 64)), sum = spread(100, 127); break;
            case 5: a[i] = cut(spread(-10, 10)), b[i] = cut(spread(-10, 10)); break;
            case 6: a[i] = cut(special()), b[i] = cut(special()), sum = special(); break;
            case 7: a[i] = cut(coin() ? 0x1p24f : -1.0f), b[i] = cut(coin() ? 1.0f : -1.0f), sum = coin() ? 0x1p24f : -1.0f; break;
            default: break;
            }
        }
        if (kind == 1) sum = std::bit_cast<float>(static_cast<uint32_t>(random()));
        if (kind == 5) {
            sum = -widened(a[0]) * widened(b[0]) * (coin() ? 1.0f : 1 + 0x1p-23f);
            if (coin()) a[1] = a[0], b[1] = b[0] ^ 0x8000;
        }
        // 2^-126 less a product that does not reach the next subnormal number; the other product is nothing, or too small to matter.
        if (kind == 8) {
            const int own = static_cast<int>(random() % 2), middle = -60 - static_cast<int>(random() % 30);
            const int size = -155 + static_cast<int>(random() % 6);
            sum = coin() ? 0x1p-126f : -0x1p-126f;
            const float x = coin() ? std::ldexp(1.0f, middle) : std::fabs(spread(middle, middle));
            const float y = coin() ? std::ldexp(1.0f, size - middle) : std::fabs(spread(size - middle, size - middle));
            a[own] = cut(std::copysign(x, -sum)), b[own] = cut(y);
            a[1 - own] = cut(coin() ? 0.0f : spread(-80, -80)), b[1 - own] = cut(spread(-74, -74));
        }
    }
    std::string text() const {
        std::ostringstream out;
        out << std::hexfloat << sum << " + " << widened(a[0]) << " * " << widened(b[0]) << " + " << widened(a[1]) << " * " << widened(b[1]);
        return out.str();
    }
};

TEST_CASE("dot2 means two flushing fmas, the second element first") {
    const Instruction &family = *find_family("dot2");
    std::vector<Expr> operands;
    Expr sum = parameter("sum", DType::f32);
    for (const char *name : {"a0", "b0", "a1", "b1"}) operands.push_back(parameter(name, DType::bf16));
    Expr meaning = apply(family, sum, operands);
    std::vector<Expr> matched = match(family, meaning);
    REQUIRE(matched.size() == 5);
    for (size_t i = 0; i < 4; i++) CHECK(equal(matched[i + 1], operands[i]));
    CHECK(equal(matched[0], sum));
    Pairs p;
    int in_sliver = 0;
    for (size_t i = 0; i < 9000; i++) {
        p.next(i % Pairs::kinds.size());
        auto bf16 = [](uint16_t bits) { return constant(Scalar{DType::bf16, widened(bits), 0}); };
        Expr value = apply(family, constant(Scalar{DType::f32, p.sum, 0}), {bf16(p.a[0]), bf16(p.b[0]), bf16(p.a[1]), bf16(p.b[1])});
        REQUIRE(value.is_constant());
        INFO(Pairs::kinds[i % Pairs::kinds.size()] << ": " << p.text());
        CHECK(same(static_cast<float>(value->value.real), dot2(p.sum, p.a, p.b)));
        in_sliver += !same(dot2(p.sum, p.a, p.b), dot2_of_rounded(p.sum, p.a, p.b));
    }
    CHECK(in_sliver > 100);
}

#if defined(__x86_64__) && defined(__GNUC__)
// By each width of the instruction that there is.
__attribute__((target("avx512bf16,avx512vl"))) static std::array<float, 3> hardware_dot2(const Pairs &p) {
    auto pair = [](const uint16_t *x) { return static_cast<int>(x[0] | static_cast<uint32_t>(x[1]) << 16); };
    const int a = pair(p.a), b = pair(p.b);
    return {_mm_cvtss_f32(_mm_dpbf16_ps(_mm_set1_ps(p.sum), (__m128bh)_mm_set1_epi32(a), (__m128bh)_mm_set1_epi32(b))),
            _mm256_cvtss_f32(_mm256_dpbf16_ps(_mm256_set1_ps(p.sum), (__m256bh)_mm256_set1_epi32(a), (__m256bh)_mm256_set1_epi32(b))),
            _mm512_cvtss_f32(_mm512_dpbf16_ps(_mm512_set1_ps(p.sum), (__m512bh)_mm512_set1_epi32(a), (__m512bh)_mm512_set1_epi32(b)))};
}

// The family is trusted because this holds on each processor that the tests have run on; compiler/DECISIONS.md names them.
TEST_CASE("vdpbf16ps does what dot2 means, in every mode of rounding and of subnormal numbers") {
    if (!target_named("host").has("avx512_bf16")) {
        WARN("this processor has no avx512_bf16");
        return;
    }
    constexpr unsigned usual = 0x1f80, downwards = 0x2000, flushes = 0x8040;
    Pairs p;
    for (unsigned mode : {usual, usual | downwards, usual | flushes})
        for (size_t kind = 0; kind < Pairs::kinds.size(); kind++)
            for (int i = 0; i < 60'000; i++) {
                p.next(kind);
                _mm_setcsr(mode);
                const std::array<float, 3> got = hardware_dot2(p);
                _mm_setcsr(usual);
                const float want = dot2(p.sum, p.a, p.b);
                for (float one : got)
                    if (!same(one, want))
                        FAIL(Pairs::kinds[kind] << ": " << p.text() << " is " << one << " by the processor, means " << want);
            }
}
#endif

static KnobsByStage grouped(const std::string &fold, const Instruction &family, int64_t unrolled, int64_t lanes) {
    KnobsByStage stages;
    Knobs &k = stages[fold];
    k.instruction = family.name, k.unroll = {{"K", unrolled}};
    k.micro = {{"M", 3}, {"N", 32}}, k.vector = {{"N", lanes}}, k.loops = {"micro.N", "micro.M"};
    k.pack["w"] = {"micro.N", {{"N", 32, false}, {"K", family.shape.k, false}, {"N", 32, true}, {"K", family.shape.k, true}}};
    Knobs &copy = stages[fold + ".w.packed"];
    copy.micro = {{"K", family.shape.k}, {"N", lanes}}, copy.vector = {{"N", lanes}}, copy.loops = {"micro.K", "micro.N"};
    return stages;
}

TEST_CASE("which sums a family computes") {
    const Instruction &dot4 = *find_family("dot4"), &dot2 = *find_family("dot2");
    const Expr i = variable("K"), u8 = load("a", DType::u8, {i}), i8 = load("b", DType::i8, {i}), bf16 = load("c", DType::bf16, {i});
    auto sum = [](DType type, const Expr &e) { return Reduce{sum_monoid(type), {"K"}, {e}, {}, {}}; };
    auto operands = operands_for(dot4, sum(DType::i32, cast(DType::i32, i8)));
    REQUIRE(operands.has_value());
    CHECK(equal((*operands)[0], constant_int(DType::u8, 1)));
    CHECK(equal((*operands)[1], i8));
    operands = operands_for(dot4, sum(DType::i32, cast(DType::i32, u8)));
    REQUIRE(operands.has_value());
    CHECK(equal((*operands)[0], u8));
    CHECK(equal((*operands)[1], constant_int(DType::i8, 1)));
    // Not of what is no operand, and not of floats, whose sums would round in another way.
    CHECK(!operands_for(dot4, sum(DType::i32, cast(DType::i32, load("d", DType::i64, {i})))));
    CHECK(!operands_for(dot4, sum(DType::i32, load("e", DType::i32, {i}))));
    CHECK(!operands_for(dot2, sum(DType::f32, cast(DType::f32, bf16))));
    // A constant is an operand where it is a value of that type.
    auto applied = [&](int64_t value) {
        std::vector<Expr> all;
        for (int n = 0; n < 4; n++) all.insert(all.end(), {constant_int(DType::u8, 1), load("b", DType::i8, {i + Expr(n)})});
        return rewrite(apply(dot4, load("s", DType::i32, {Expr(0)}), all),
                       [&](const Expr &n) { return n.is_constant() && n.type() == DType::i32 ? constant_int(DType::i32, value) : Expr(); });
    };
    REQUIRE(match(dot4, applied(1)).size() == 9);
    CHECK(equal(match(dot4, applied(255))[1], constant_int(DType::u8, 255)));
    CHECK(match(dot4, applied(256)).empty());
    CHECK(match(dot4, applied(-1)).empty());
}

TEST_CASE("a family that flushes is refused where the policy keeps subnormal numbers, the callee's own policy where it is called") {
    const Target target = target_named("avx512+avx512_bf16");
    const Instruction &dot2 = *find_family("dot2");
    Numerics any = numerics_named("bf16"), strict = any;
    strict.name = "strict", strict.denormals = Denormals::gradual;
    const KnobsByStage stages = grouped("y", dot2, 3, 16);
    CHECK_NOTHROW(lower(library::matmul_wide(any), stages, target));
    check_words(
        [&] { lower(library::matmul_wide(strict), stages, target); },
        {"error[schedule.instruction]: y: the instruction family dot2 takes subnormal numbers for zeros, and the policy 'strict' has "
         "denormals 'gradual'",
         "Delete the knob (null)"});
    const auto called = [&](const Numerics &inner) {
        Builder f("caller", any);
        const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
        return f.output("z", f.call("product", library::matmul_wide(inner), {f.input("x", {M, K}), f.input("w", {K, N})})[0]).build();
    };
    KnobsByStage of_call = {{"product.y", stages.at("y")}};
    of_call["product.y"].pack.clear();
    CHECK_NOTHROW(lower(called(any), of_call, target));
    check_words([&] { lower(called(strict), of_call, target); }, {"product.y: ", "the policy 'strict'"});
}

// In vectors of so many lanes, which may be more or fewer than the target's. Portable C takes long to compile.
static void check_grouped(const Target &target, int64_t lanes, bool portable = true) {
    INFO(target.name << " " << lanes << " lanes");
    const bool runs = runs_here(target);
    const Instruction &dot4 = *find_family("dot4"), &dot2 = *find_family("dot2");
    std::vector<Case> cases = {
        {"bytes", library::matmul_u8s8({}), grouped("y", dot4, 1, lanes), {}},
        {"signed_bytes", library::matmul_s8s8({}), grouped("acc", dot4, 2, lanes), {}},
        {"ones", library::matmul_s8s8({}), grouped("excess", dot4, 1, lanes), {}},
        {"packed_by_groups", library::matmul_u8s8({}), grouped("y", dot4, 2, lanes), {}},
    };
    // A group's elements of an operand, where they are needed.
    cases[3].stages["y"].pack["w"].at = "K", cases[3].stages["y.w.packed"] = {};
    // A sum is one of products with ones; of a panel's columns, since it has no rows to tile.
    cases[2].stages["excess"].micro.erase("M"), cases[2].stages["excess"].loops = {"micro.N"};
    if (is_on(dot2, target)) cases.push_back({"wide", library::matmul_wide(numerics_named("bf16")), grouped("y", dot2, 3, lanes), {}});
    for (Case &c : cases)
        for (int64_t k : {0, 1, 2, 3, 4, 5, 7, 8, 33})
            c.shapes.push_back({{"M", c.name == "bytes"          ? 5
                                      : c.name == "signed_bytes" ? 1
                                                                 : 4},
                                {"N", c.name == "bytes"          ? 64
                                      : c.name == "signed_bytes" ? 31
                                                                 : 35},
                                {"K", k}});
    std::vector<TileProgram> programs;
    for (const Case &c : cases) {
        programs.push_back(lowered(c, target));
        CHECK(to_text(programs.back()).find(c.name == "wide" ? "= dot2(" : "= dot4(") != std::string::npos);
        CHECK((to_text(programs.back()).find("unrolled k") != std::string::npos) == (c.name != "bytes" && c.name != "ones"));
    }
    std::vector<Build> builds = {{}, {"gcc", "-O1"}};
    if (portable) builds.push_back({"gcc", "-O1 -DTESS_PORTABLE -fsanitize=undefined -fsanitize-undefined-trap-on-error"});
    std::vector<std::unique_ptr<Loaded>> libraries;
    for (const Build &build : builds) libraries.push_back(std::make_unique<Loaded>(programs, target, build));
    for (size_t i = 0; i < cases.size(); i++) {
        for (const Extents &shape : cases[i].shapes) {
            INFO(cases[i].name << " K=" << shape.at("K"));
            const bool floats = cases[i].name == "wide";
            Arrays inputs = make_inputs(cases[i].algorithm, shape, static_cast<uint32_t>(i), floats && shape.at("K") == 33);
            Arrays expected = run_interpreter(programs[i], shape, inputs, {});
            if (!floats) CHECK(differ_in_bits(expected, run_reference(cases[i].algorithm, shape, inputs, {})) == "");
            for (size_t b = 0; b < builds.size() && runs; b++)
                for (const Layout &layout : {Layout{}, Layout{false, 1, 3, 1}}) {
                    INFO(builds[b].compiler << " " << builds[b].options);
                    CHECK(differ_in_bits(libraries[b]->run(programs[i], shape, inputs, {}, layout), expected) == "");
                }
        }
    }
}

TEST_CASE("a sum by an instruction family gives its bits, whatever the group leaves over") {
    check_grouped(target_named("znver4"), 16);
    check_grouped(target_named("avx512"), 16, false);
    for (int64_t lanes : {4, 8, 16}) check_grouped(target_named("avx2"), lanes, lanes == 8);
}

// Products of which many are 2^-126 and many next to nothing, so that sums come to lie just below 2^-126.
static Arrays slivers_for(const Algorithm &algorithm, const Extents &shape, uint32_t seed) {
    std::mt19937 random(seed);
    Arrays arrays = make_inputs(algorithm, shape, seed);
    for (auto &[name, a] : arrays)
        for (int64_t i = 0; i < a.size(); i++) {
            const int64_t k = name == "x" ? i % shape.at("K") : i / shape.at("N");
            const double mantissa = 1 + random() % 128 / 128.0, sign = random() % 2 ? 1 : -1;
            const double small = name == "x" ? 0x1p-70 : std::ldexp(1.0, -81 - static_cast<int>(random() % 5));
            a.set(i, Scalar::of_real(a.dtype, sign * (k % 4 == 1 ? 0x1p-63 : mantissa * small)));
        }
    return arrays;
}

TEST_CASE("sums just below 2^-126 are zeros in every code") {
    const Target target = target_named("znver4");
    Case c{"wide", library::matmul_wide(numerics_named("bf16")), grouped("y", *find_family("dot2"), 2, 16), {}};
    const std::vector<TileProgram> programs = {lowered(c, target)};
    std::vector<std::unique_ptr<Loaded>> codes;
    for (const Build &build : {Build{}, Build{"gcc", "-O1"}, Build{"gcc", "-O1 -DTESS_PORTABLE"}})
        codes.push_back(std::make_unique<Loaded>(programs, target, build));
    int in_sliver = 0;
    for (int64_t k : {1, 2, 3, 8, 33}) {
        const Extents shape = {{"M", 4}, {"N", 37}, {"K", k}};
        INFO("K=" << k);
        const Arrays inputs = slivers_for(c.algorithm, shape, static_cast<uint32_t>(k)),
                     expected = run_interpreter(programs[0], shape, inputs, {});
        const Array &y = expected.at("y"), &x = inputs.at("x"), &w = inputs.at("w");
        for (int64_t m = 0; m < 4; m++)
            for (int64_t n = 0; n < 37; n++) {
                float sum = 0, rounded = 0;
                for (int64_t i = 0; i < k; i += 2) {
                    uint16_t a[2] = {}, b[2] = {};
                    for (int64_t j = i; j < std::min(k, i + 2); j++) {
                        a[j - i] = Pairs::cut(static_cast<float>(x.get(m * k + j).real));
                        b[j - i] = Pairs::cut(static_cast<float>(w.get(j * 37 + n).real));
                    }
                    sum = dot2(sum, a, b), rounded = dot2_of_rounded(rounded, a, b);
                }
                CHECK(same(static_cast<float>(y.get(m * 37 + n).real), sum));
                in_sliver += !same(sum, rounded);
            }
        for (const auto &code : codes)
            if (runs_here(target)) CHECK(differ_in_bits(code->run(programs[0], shape, inputs, {}, {}), expected) == "");
    }
    CHECK(in_sliver > 20);
}

// Every byte there is, in both signs.
static Arrays bytes_for(const Algorithm &algorithm, const Extents &shape, uint32_t seed) {
    std::mt19937 random(seed);
    Arrays arrays = make_inputs(algorithm, shape, seed);
    for (auto &[name, a] : arrays)
        for (int64_t i = 0; i < a.size(); i++) {
            const auto byte = static_cast<int64_t>(random() % 4 ? random() % 256 : random() % 2 * 255);
            a.set(i, Scalar::of_integer(a.dtype, a.dtype == DType::u8 ? byte : byte - 128));
        }
    return arrays;
}

// Code of the schedules that ship for products of bytes.
static void check_products_of_bytes(const Target &target, const Build &build = {}) {
    Library schedules;
    schedules.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    std::vector<Case> cases;
    std::vector<TileProgram> programs;
    for (const Algorithm &a : {library::matmul_u8s8({}), library::matmul_s8s8({})}) {
        const ResolvedSchedule resolved = resolve(schedules.find(a.name + "/" + target.name), schedules);
        check_requires(resolved, target);
        cases.push_back({a.name, a, resolved.stages, {}});
        programs.push_back(lowered(a.name, a, resolved.stages, target));
        CHECK(to_text(programs.back()).find("= dot4(") != std::string::npos);
    }
    const Loaded library(programs, target, build);
    INFO(build.compiler << " " << build.options);
    uint32_t seed = 0;
    for (size_t i = 0; i < cases.size(); i++)
        for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{0, 3, 4}, {2, 3, 0}, {1, 1, 1}, {9, 17, 7}, {8, 8, 4}, {17, 31, 66}}) {
            const Extents shape = {{"M", m}, {"N", n}, {"K", k}};
            INFO(cases[i].name << " " << Catch::Detail::stringify(shape));
            const Arrays inputs = bytes_for(cases[i].algorithm, shape, ++seed), expected = run_interpreter(programs[i], shape, inputs, {});
            CHECK(differ_in_bits(expected, run_reference(cases[i].algorithm, shape, inputs, {})) == "");
            for (const Layout &layout : {Layout{}, Layout{false, 1, 3, 2}})
                CHECK(differ_in_bits(library.run(programs[i], shape, inputs, {}, layout), expected) == "");
        }
    // The largest products, all of one sign: their sum passes the end of 32 bits.
    const int64_t k = 70'000, sum = -(255 * 128 * k) + (int64_t{1} << 32);
    const Extents shape = {{"M", 1}, {"N", 9}, {"K", k}};
    Arrays inputs = make_inputs(cases[0].algorithm, shape, 1);
    for (auto &[name, a] : inputs)
        for (int64_t i = 0; i < a.size(); i++) a.set(i, Scalar::of_integer(a.dtype, a.dtype == DType::u8 ? 255 : -128));
    const Array y = library.run(programs[0], shape, inputs, {}, {}).at("y");
    for (int64_t i = 0; i < y.size(); i++) CHECK(y.get(i).integer == sum);
}

TEST_CASE("products of all bytes") {
    for (const char *name : {"avx2", "avx512", "znver4"}) {
        const Target target = target_named(name);
        if (!runs_here(target)) continue;
        INFO(name);
        check_products_of_bytes(target);
        for (const Build &build : c_builds("-O1")) check_products_of_bytes(target, build);
    }
}

TEST_CASE("products of all bytes: arm64+asimddp", "[.][arm64]") {
    const Target target = target_named("arm64+asimddp");
    if (!can_emulate(target)) return;
    check_products_of_bytes(target);
    check_products_of_bytes(target, {"gcc", "-O2"});
}

}  // namespace tessera::test_instruction
