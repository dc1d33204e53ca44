// Folds by fragments: what their families mean, asked of the hardware where it has them; and that interpreter, C and machine code agree at
// every tail, whatever lies beyond it.
#include "compiler/tile/fragments.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/abi/archive.h"
#include "compiler/abi/fragment_code.h"
#include "compiler/abi/object_file.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/emit/emit_library.h"
#include "compiler/emit/emit_source.h"
#include "compiler/lower/lower.h"
#include "support/files/output_folder.h"
#include "tests/compiler/harness.h"
#include "tests/support/shell.h"
#include "tests/support/thorough.h"
#include "tests/support/words.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace tessera::test_fragments {

using namespace tessera::test;

static const Target &amx() {
    static const Target target = target_named("amx");
    return target;
}

// --- What amx_bf16 means, by arithmetic of its own -----

static float widened(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
static uint16_t cut(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }
static float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

// a * b + c, rounded once, where a zero stands for what is tiny before it is rounded. In double the product of 24 bits by 8 is exact, and
// `high + low` is the sum exactly.
static float step(float a, float b, float c) {
    const float x = flushed(a), y = flushed(b), z = flushed(c), rounded = std::fma(x, y, z);
    const double product = static_cast<double>(x) * y, high = product + z, part = high - product;
    const double low = (product - (high - part)) + (z - part);
    constexpr double rounds_to_normal = 0x1p-126 - 0x1p-151;
    const double size = std::fabs(high);
    const bool is_tiny = size < rounds_to_normal || (size == rounds_to_normal && (high < 0 ? low > 0 : low < 0));
    return is_tiny ? std::copysign(0.0f, rounded) : rounded;
}

// 32 products: two chains from 0, whose sum is added.
static float amx_bf16(float sum, const std::array<float, 32> &a, const std::array<float, 32> &b) {
    float chains[2] = {0, 0};
    for (size_t k = 0; k < 32; k++) chains[k % 2] = step(a[k], b[k], chains[k % 2]);
    return step(step(chains[0], 1, chains[1]), 1, sum);
}

static bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

// Operands of one tile of each kind.
struct Tiles {
    std::mt19937 random{11};
    alignas(64) uint16_t a[16][32], b[16][16][2];
    alignas(64) float sum[16][16];

    static constexpr std::array kinds = {"moderate",   "any bits",      "tiny",  "around the least normal", "huge", "special",
                                         "cancelling", "powers of two", "sliver"};

    bool coin() { return random() % 2 != 0; }
    float spread(int least, int most) {
        const int exponent = least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
        return std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f, exponent) * (coin() ? 1.0f : -1.0f);
    }
    float special() {
        constexpr float inf = std::numeric_limits<float>::infinity();
        constexpr float all[] = {0.0f,      1.0f,        inf,      std::numeric_limits<float>::quiet_NaN(), 0x1p-126f, 0x1p-127f,
                                 0x1p-149f, 0x1.fep127f, 0x1p-133f};
        return all[random() % std::size(all)] * (coin() ? 1.0f : -1.0f);
    }
    float first(size_t kind) {
        switch (kind) {
        case 0: return spread(-4, 4);
        case 1: return std::bit_cast<float>(static_cast<uint32_t>(random()));
        case 2: return spread(-126, -50);
        case 3: return spread(-66, -62);
        case 4: return spread(58, 66);
        case 5: return random() % 8 ? 1.0f : special();
        case 6: return spread(-10, 10);
        case 7: return coin() ? 0x1p24f : -1.0f;
        default: return random() % 8 ? 0.0f : spread(-75, -75);
        }
    }
    float second(size_t kind) {
        switch (kind) {
        case 2: return spread(-80, -1);
        case 3: return spread(-64, -60);
        case 7: return coin() ? 1.0f : -1.0f;
        case 8: return spread(-80, -75);
        default: return first(kind);
        }
    }
    float third(size_t kind) {
        switch (kind) {
        case 2: return spread(-149, -100);
        case 3: return spread(-128, -120);
        case 4: return spread(100, 127);
        case 8: return coin() ? 0x1p-126f : -0x1p-126f;
        default: return first(kind);
        }
    }
    void next(size_t kind) {
        for (auto &row : a)
            for (uint16_t &x : row) x = cut(first(kind));
        for (auto &row : b)
            for (auto &pair : row)
                for (uint16_t &x : pair) x = cut(second(kind));
        for (auto &row : sum)
            for (float &x : row) x = third(kind);
        if (kind != 6) return;
        for (auto &row : a)  // the second half of the products takes back the first
            for (size_t k = 16; k < 32; k++) row[k] = row[k - 16] ^ 0x8000;
        for (size_t k = 8; k < 16; k++) std::memcpy(b[k], b[k - 8], sizeof b[k]);
    }
    float meant(size_t m, size_t n) const {
        std::array<float, 32> x, y;
        for (size_t k = 0; k < 32; k++) x[k] = widened(a[m][k]), y[k] = widened(b[k / 2][n][k % 2]);
        return amx_bf16(sum[m][n], x, y);
    }
};

TEST_CASE("amx_bf16 means two chains of flushing fmas, whose sum is added") {
    const Instruction &family = *find_family("amx_bf16");
    Tiles t;
    int differs_from_dot2 = 0;
    for (size_t kind = 0; kind < Tiles::kinds.size(); kind++)
        for (int i = 0; i < 3; i++) {
            t.next(kind);
            for (size_t at = 0; at < 16; at++) {
                const size_t m = at, n = (5 * at + 3) % 16;
                std::vector<Expr> operands;
                auto bf16 = [](uint16_t bits) { return constant(Scalar{DType::bf16, widened(bits), 0}); };
                float chain = t.sum[m][n];
                for (size_t k = 0; k < 32; k++) {
                    operands.push_back(bf16(t.a[m][k])), operands.push_back(bf16(t.b[k / 2][n][k % 2]));
                    chain = step(widened(t.a[m][k]), widened(t.b[k / 2][n][k % 2]), chain);
                }
                const Expr value = apply(family, constant(Scalar{DType::f32, t.sum[m][n], 0}), operands);
                REQUIRE(value.is_constant());
                INFO(Tiles::kinds[kind]);
                CHECK(same(static_cast<float>(value->value.real), t.meant(m, n)));
                differs_from_dot2 += !same(chain, t.meant(m, n));
            }
        }
    CHECK(differs_from_dot2 > 50);
}

#if defined(__x86_64__) && defined(__GNUC__)
static const struct {
    uint8_t palette = 1, first = 0, none[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
} tiles_of_one_shape;

__attribute__((target("amx-tile,amx-bf16"), noinline)) static void hardware_bf16(const Tiles &t, float (*out)[16]) {
    _tile_loadconfig(&tiles_of_one_shape);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    _tile_loadd(0, &t.sum, 64);
    _tile_loadd(1, &t.a, 64);
    _tile_loadd(2, &t.b, 64);
    _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, out, 64);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    _tile_release();
}

// The family is trusted because this holds on each processor that the tests have run on; compiler/DECISIONS.md names them.
TEST_CASE("tdpbf16ps does what amx_bf16 means, in every mode of rounding and of subnormal numbers") {
    if (!runs_here(amx())) {
        WARN("this processor has no AMX");
        return;
    }
    constexpr unsigned usual = 0x1f80, downwards = 0x2000, flushes = 0x8040;
    Tiles t;
    alignas(64) float got[16][16];
    for (unsigned mode : {usual, usual | downwards, usual | flushes})
        for (size_t kind = 0; kind < Tiles::kinds.size(); kind++)
            for (int i = 0; i < 40; i++) {
                t.next(kind);
                _mm_setcsr(mode);
                hardware_bf16(t, got);
                _mm_setcsr(usual);
                for (size_t m = 0; m < 16; m++)
                    for (size_t n = 0; n < 16; n++)
                        if (!same(got[m][n], t.meant(m, n)))
                            FAIL(Tiles::kinds[kind] << ": [" << m << ", " << n << "] is " << got[m][n] << " by the processor, means "
                                                    << t.meant(m, n));
            }
}
#endif

// --- Folds -----

// A stage by fragments, alone at root or in the tiles of another.
static KnobsByStage by_fragments(const std::string &family, const std::string &fold, int64_t m, int64_t n, const std::string &outer = "") {
    KnobsByStage stages;
    Knobs &k = stages[fold];
    k.instruction = family, k.micro = {{"M", m}, {"N", n}};
    if (outer.empty()) {
        k.loops = {"micro.N", "micro.M"};
        return stages;
    }
    k.place = Place{Place::Kind::at, outer, "micro"};
    Knobs &y = stages[outer];
    y.micro = {{"M", m}, {"N", n}}, y.vector = {{"N", 16}}, y.loops = {"micro.N", "micro.M"};
    return stages;
}

static std::vector<Extents> tails(int64_t fragment_k) {
    std::vector<Extents> shapes = {{{"M", 0}, {"N", 5}, {"K", 3}}, {{"M", 3}, {"N", 0}, {"K", 2}}, {{"M", 2}, {"N", 3}, {"K", 0}}};
    for (int64_t i = 1; i <= 33; i++) {
        shapes.push_back({{"M", i}, {"N", (7 * i) % 33 + 1}, {"K", (11 * i) % 33 + 1}});
        if (i % 4 == 1) shapes.push_back({{"M", (5 * i) % 33 + 1}, {"N", i}, {"K", fragment_k}});
        if (i % 8 == 1) shapes.push_back({{"M", 17}, {"N", 33}, {"K", 2 * fragment_k + i - 1}});
    }
    return shapes;
}

// Copies near the register tiles, of the cases that are called packed.
static void with_packs(Case &c) {
    if (!c.name.starts_with("packed")) return;
    Knobs &fold = c.stages.count("dot") ? c.stages["dot"] : c.stages["y"];
    fold.pack["x"] = {"micro.M", {}}, fold.pack["w"] = {"micro.N", {}};
    if (!c.stages.count("dot")) return;
    c.stages["dot.x.packed"].place = Place{Place::Kind::at, "y", "micro.M"};
    c.stages["dot.w.packed"].place = Place{Place::Kind::at, "y", "micro.N"};
}

static Algorithm signed_bytes() {
    Builder f("bytes", {});
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    return f.output("y", dot(f.input("x", {M, K}, DType::i8), f.input("w", {K, N}, DType::i8)), DType::i32).build();  // (M, N)
}

static std::vector<Case> arm_cases() {
    const Numerics bf16 = numerics_named("bf16"), f32;
    std::vector<Case> all = {
        {"plain_bf16", library::matmul_wide(bf16), by_fragments("bfmmla", "y", 8, 8), tails(4)},
        {"rounded_bf16", library::matmul(bf16), by_fragments("bfmmla", "dot", 4, 16, "y"), tails(4)},
        {"plain_u8s8", library::matmul_u8s8(f32), by_fragments("usmmla", "y", 8, 8), tails(8)},
        {"plain_s8s8", signed_bytes(), by_fragments("smmla", "y", 2, 4), tails(8)},
        {"packed_s8s8", signed_bytes(), by_fragments("smmla", "y", 8, 8), tails(8)},
        {"packed_bf16", library::matmul(bf16), by_fragments("bfmmla", "dot", 8, 8, "y"), tails(4)},
    };
    for (Case &c : all) with_packs(c);
    return all;
}

static std::vector<Case> cases() {
    const Numerics bf16 = numerics_named("bf16"), f32;
    std::vector<Case> all = {
        {"plain_bf16", library::matmul_wide(bf16), by_fragments("amx_bf16", "y", 32, 32), tails(32)},
        {"rounded_bf16", library::matmul(bf16), by_fragments("amx_bf16", "dot", 32, 32, "y"), tails(32)},
        {"plain_u8s8", library::matmul_u8s8(f32), by_fragments("amx_u8s8", "y", 16, 32), tails(64)},
        {"tall_u8s8", library::matmul_u8s8(f32), by_fragments("amx_u8s8", "y", 48, 16), tails(64)},
        {"wide_bf16", library::matmul_wide(bf16), by_fragments("amx_bf16", "y", 16, 64), tails(32)},
        {"packed_bf16", library::matmul(bf16), by_fragments("amx_bf16", "dot", 32, 32, "y"), tails(32)},
        {"packed_u8s8", library::matmul_u8s8(f32), by_fragments("amx_u8s8", "y", 32, 32), tails(64)},
        {"slices_bf16", library::matmul_wide(bf16), by_fragments("amx_bf16", "y", 32, 32), tails(32)},
        {"narrow_bf16", library::matmul(bf16), by_fragments("amx_bf16", "dot", 32, 32, "y"), tails(32)},
        {"fixed_bf16", bind_extents(library::matmul(bf16), {{"N", 40}, {"K", 64}}), by_fragments("amx_bf16", "dot", 32, 32, "y"), {}},
    };
    for (Case &c : all) {
        Knobs &fold = c.stages.count("dot") ? c.stages["dot"] : c.stages["y"];
        with_packs(c);
        if (c.name.starts_with("slices")) fold.k = {{"K", 32}}, fold.loops = {"k.K", "micro.N", "micro.M"};
        if (c.name.starts_with("narrow")) c.stages["y"].tail = {{"M", Tail::narrow}, {"N", Tail::narrow}};
        if (c.name.starts_with("fixed"))
            for (int64_t m : {1, 15, 16, 31, 32, 33}) c.shapes.push_back({{"M", m}});
    }
    return all;
}

// By the definition of amx_bf16 above, in whole fragments of products.
static std::vector<float> products(const Array &x, const Array &w, const Extents &shape) {
    const int64_t M = shape.at("M"), N = shape.at("N"), K = shape.at("K");
    std::vector<float> y;
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            float sum = 0;
            for (int64_t k0 = 0; k0 < K; k0 += 32) {
                std::array<float, 32> a = {}, b = {};
                for (int64_t k = k0; k < std::min(K, k0 + 32); k++)
                    a[static_cast<size_t>(k - k0)] = static_cast<float>(x.get(m * K + k).real),
                                              b[static_cast<size_t>(k - k0)] = static_cast<float>(w.get(k * N + n).real);
                sum = amx_bf16(sum, a, b);
            }
            y.push_back(sum);
        }
    return y;
}

TEST_CASE("a fold by fragments gives the bits of its family, at every tail") {
    for (const Case &c : cases()) {
        const TileProgram program = lowered(c, amx());
        CHECK(has_fragments(program.body));
        CHECK(is_proved(program));
        uint32_t seed = 0;
        const size_t each = c.shapes.size() > 10 ? every(2) : 1;
        for (size_t s = 0; s < c.shapes.size(); s += each) {
            const Extents &shape = c.shapes[s];
            INFO(c.name << " M=" << shape.at("M") << (shape.count("N") ? " N=" + std::to_string(shape.at("N")) : ""));
            const Arrays inputs = make_inputs(c.algorithm, shape, ++seed);
            const Arrays got = run_interpreter(program, shape, inputs, {});
            const Extents all = complete(c.algorithm, shape);
            const Array &y = got.at("y");
            if (y.dtype == DType::i32) {
                CHECK(differ_in_bits(got, run_reference(c.algorithm, shape, inputs, {})) == "");
                continue;
            }
            const std::vector<float> want = products(inputs.at("x"), inputs.at("w"), all);
            for (int64_t i = 0; i < y.size(); i++) {
                const float expected = want[static_cast<size_t>(i)];
                const Scalar stored = y.dtype == DType::f32 ? Scalar{DType::f32, expected, 0}
                                                            : cast(DType::bf16, constant(Scalar{DType::f32, expected, 0}))->value;
                REQUIRE(same(static_cast<float>(y.get(i).real), static_cast<float>(stored.real)));
            }
        }
    }
}

TEST_CASE("a schedule whose fragments do not fit is refused") {
    const Algorithm matmul = library::matmul_wide(numerics_named("bf16"));
    const auto refused = [&](const std::function<void(Knobs &)> &change, const std::vector<std::string> &words) {
        KnobsByStage stages = by_fragments("amx_bf16", "y", 32, 32);
        change(stages["y"]);
        check_words([&] { lowered("refused", matmul, stages, amx()); }, words);
    };
    const std::string computes =
        "error[schedule.instruction]: y: the instruction family amx_bf16 computes 16 rows and 16 columns of 32 products at once; ";
    refused([](Knobs &k) { k.micro["M"] = 24; },
            {computes + "expected 'micro' to have a multiple of 16 along 'M'; got 24. Choose such a multiple."});
    refused([](Knobs &k) { k.micro.erase("N"), k.loops = {"micro.M"}; },
            {computes + "expected 'micro' to have a multiple of 16 along 'N'; got none. State it."});
    refused(
        [](Knobs &k) {
            k.vector = {{"N", 16}};
        },
        {computes + "its vectors are the family's own; got 'vector'. Delete that knob (null)."});
    refused(
        [](Knobs &k) {
            k.micro = {{"M", 32}, {"N", 64}};
        },
        {computes + "a register tile of 2 by 4 of them needs 11 registers, with those of operands; there are 8. Make micro smaller."});
    refused(
        [](Knobs &k) {
            k.k = {{"K", 48}}, k.loops = {"k.K", "micro.N", "micro.M"};
        },
        {computes + "expected tiles along 'K' to be multiples of 32; got 48. Choose such a multiple."});
    refused([](Knobs &k) { k.tail = {{"M", Tail::loop}}; }, {computes + "the last tile along 'M' cannot be a loop over points."});
    refused([](Knobs &k) { k.tail = {{"K", Tail::mask}}; }, {computes + "what is left over along 'K' is zeros. Delete its tail (null)."});
}

// --- What the back end writes -----

TEST_CASE("more or other instructions of AMX than a program's fragments make are found") {
    const FragmentCode meant{.steps = 4, .zeros = 4, .loads = 4, .stores = 4, .tasks = 1};
    CHECK(unlike_fragment_code(meant, meant) == "");
    FragmentCode found = meant;
    found.steps = 0;
    CHECK(unlike_fragment_code(meant, found) == "0 steps of fragments where the program has 4");
    found = meant, found.loads = 5;
    CHECK(unlike_fragment_code(meant, found) == "");
    found.stores = 6;
    CHECK(unlike_fragment_code(meant, found) == "5 loads of fragments where the program has 4, and 6 stores where the program has 4");
    found = meant, found.tasks = 2;
    CHECK(unlike_fragment_code(meant, found) == "2 configurations of tiles where the program has 1");
    found = meant, found.steps = 6, found.loads = 8;  // a loop that was partly written out
    CHECK(unlike_fragment_code(meant, found) == "");
    found.loads = found.stores = 9;
    CHECK(unlike_fragment_code(meant, found) == "9 loads of fragments where the program has 8, and 9 stores where the program has 8");
    CHECK(fragment_code_in(std::string("\xc4\xe2\x7b\x4b\x04", 5)).loads == 1);
    CHECK(fragment_code_in(std::string("\xc4\xe2\x7b\x4b", 4)) == FragmentCode());
}

// By objdump, which we did not write.
TEST_CASE("objects have the instructions of AMX that fragments are, and no more") {
    const TemporaryFolder folder;
    for (const Case &c : cases()) {
        INFO(c.name);
        const std::string archive = (folder.path() / ("lib" + c.name + ".a")).string();
        const TileProgram program = lowered(c, amx());
        emit_library({{c.name, {{{}, program}}}}, amx(), {archive, {}});
        FragmentCode found;
        for (const auto &[member, object] : members_of(read_file(archive)))
            for (const std::string &code : code_of(object)) found += fragment_code_in(code);
        const FragmentCode meant = fragment_code_of(program.body);
        if (!c.name.starts_with("fixed")) CHECK(found.steps == meant.steps);  // there are no tails of what is known
        CHECK(found.steps > 0);
        CHECK(unlike_fragment_code(meant, found) == "");
        const Outcome listed = shell("objdump -d --no-show-raw-insn '" + archive + "'");
        if (listed.code != 0) continue;
        const auto count = [&](const std::vector<std::string> &names) {
            int64_t all = 0;
            for (const std::string &name : names)
                for (size_t at = 0; (at = listed.out.find("\t" + name, at)) != std::string::npos; at++) all++;
            return all;
        };
        CHECK(found == FragmentCode{.steps = count({"tdp"}),
                                    .zeros = count({"tilezero"}),
                                    .loads = count({"tileloadd"}),
                                    .stores = count({"tilestored"}),
                                    .tasks = count({"ldtilecfg"})});
    }
}

// Every so many shapes of each of the cases.
static void check_code(const Target &target, const Build &build, size_t each, const std::vector<Case> &all) {
    INFO(build.compiler << " " << build.options);
    std::vector<TileProgram> programs;
    for (const Case &c : all) programs.push_back(lowered(c, target));
    const Loaded code(programs, target, build);
    if (target.arch == host_arch() && !runs_here(target) && build.options.find("TESS_PORTABLE") == std::string::npos) return;
    for (size_t i = 0; i < all.size(); i++)
        for (size_t s = i % each; s < all[i].shapes.size(); s += each) {
            const Extents &shape = all[i].shapes[s];
            INFO(all[i].name << " shape " << s << " M=" << shape.at("M"));
            const Arrays inputs = make_inputs(all[i].algorithm, shape, static_cast<uint32_t>(s + 1), s % 3 == 0);
            const Arrays expected = run_interpreter(programs[i], shape, inputs, {});
            for (const Layout &layout : {Layout{}, Layout{false, 2, 1, 2}})
                CHECK(differ_in_bits(code.run(programs[i], shape, inputs, {}, layout), expected) == "");
        }
}

// Floats and bytes, with operands as they lie: without intrinsics, C of wide vectors takes long to compile.
TEST_CASE("portable C of fragments gives the interpreter's bits") {
    std::vector<Case> few;
    for (Case &c : cases())
        if (c.name == "plain_bf16" || c.name == "plain_u8s8") few.push_back(std::move(c));
    check_code(amx(), {"gcc", "-O1 -DTESS_PORTABLE"}, 6, few);
}
TEST_CASE("C of fragments by AMX gives the interpreter's bits") { check_code(amx(), {"gcc", "-O2"}, every(6), cases()); }
TEST_CASE("machine code of fragments gives the interpreter's bits") { check_code(amx(), {}, every(6), cases()); }

// --- ARM, under an emulator -----

static const Target &arm64() {
    static const Target target = target_named("arm64+i8mm+bf16");
    return target;
}

TEST_CASE("C of fragments by ARM's products of matrices gives the interpreter's bits", "[.][arm64]") {
    if (!can_emulate(arm64())) return;
    check_code(arm64(), {"gcc", "-O2"}, 3, arm_cases());
    check_code(arm64(), {"gcc", "-O1 -DTESS_PORTABLE"}, 12, arm_cases());
}
TEST_CASE("machine code of fragments for ARM gives the interpreter's bits", "[.][arm64]") {
    if (can_emulate(arm64())) check_code(arm64(), {}, 12, arm_cases());
}

TEST_CASE("sums of ARM's products of bytes are exact") {
    for (const Case &c : arm_cases()) {
        if (!c.name.ends_with("s8")) continue;
        const TileProgram program = lowered(c, arm64());
        CHECK(has_fragments(program.body));
        for (size_t s = 0; s < c.shapes.size(); s += 3) {
            const Arrays inputs = make_inputs(c.algorithm, c.shapes[s], static_cast<uint32_t>(s));
            CHECK(differ_in_bits(run_interpreter(program, c.shapes[s], inputs, {}), run_reference(c.algorithm, c.shapes[s], inputs, {})) ==
                  "");
        }
    }
}

// Where roundings to odd, overflow and tiny numbers are: all kinds of operands, whose bits the emulator has too.
TEST_CASE("bfmmla does what its family means, in every class of operands", "[.][arm64]") {
    if (!can_emulate(arm64())) return;
    const Case c{"classes", library::matmul_wide(numerics_named("bf16")), by_fragments("bfmmla", "y", 2, 2), {}};
    const TileProgram program = lowered(c, arm64());
    const Loaded code({program}, arm64(), {"gcc", "-O2"});
    Tiles t;
    const Extents shape = {{"M", 16}, {"N", 16}, {"K", 32}};
    int differs_from_chain = 0;
    for (size_t kind = 0; kind < Tiles::kinds.size(); kind++)
        for (uint32_t round = 0; round < 3; round++) {
            t.next(kind);
            Arrays inputs = make_inputs(c.algorithm, shape, round);
            for (int64_t m = 0; m < 16; m++)
                for (int64_t k = 0; k < 32; k++) {
                    const auto i = static_cast<size_t>(m), j = static_cast<size_t>(k);
                    inputs.at("x").set(m * 32 + k, {DType::bf16, widened(t.a[i][j]), 0});
                    inputs.at("w").set(k * 16 + m, {DType::bf16, widened(t.b[j / 2][i][j % 2]), 0});
                }
            const Arrays meant = run_interpreter(program, shape, inputs, {});
            INFO(Tiles::kinds[kind]);
            CHECK(differ_in_bits(code.run(program, shape, inputs, {}, {}), meant) == "");
            for (int64_t i = 0; i < 256; i++) {
                float chain = 0;
                for (int64_t k = 0; k < 32; k++)
                    chain = std::fma(static_cast<float>(inputs.at("x").get(i / 16 * 32 + k).real),
                                     static_cast<float>(inputs.at("w").get(k * 16 + i % 16).real), chain);
                differs_from_chain += !same(chain, static_cast<float>(meant.at("y").get(i).real));
            }
        }
    CHECK(differs_from_chain > 500);
}

}  // namespace tessera::test_fragments
