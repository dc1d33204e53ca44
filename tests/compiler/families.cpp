#include "compiler/instructions/families.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "compiler/emit/emit_source.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/harness.h"
#include "tests/support/words.h"

namespace tessera::test_families {

using namespace tessera::test;

static Expr operand(int i, DType type, DType of) { return cast(type, input(i, of)); }

// f32 += bf16 * bf16, two products that are added to each other first, each step with a rounding. No processor has it. Its C is its own.
static Instruction pair_sum() {
    const auto x = [](int i) { return operand(i, DType::f32, DType::bf16); };
    Instruction family{.name = "pair_sum", .shape = {1, 1, 2}, .first = DType::bf16, .second = DType::bf16};
    family.meaning = left(0, DType::f32) + (x(0) * x(1) + x(2) * x(3));
    family.features = {"avx512_bf16"};
    family.c.portable = R"(    $result r;
    uint16_t x[$elements], y[$elements];
    __builtin_memcpy(x, &a, sizeof x);
    __builtin_memcpy(y, &b, sizeof y);
    for (int i = 0; i < $lanes; i++) {
        float p[2];
        for (int j = 0; j < 2; j++)
            p[j] = $f32_of_bits((int32_t)((uint32_t)x[2 * i + j] << 16)) * $f32_of_bits((int32_t)((uint32_t)y[2 * i + j] << 16));
        r[i] = sum[i] + (p[0] + p[1]);
    }
    return r;
)";
    return family;
}

// i32 += u8 * u8, three products: without any emission, on any processor that has the feature.
static Instruction three_bytes() {
    Instruction family{.name = "three_bytes", .shape = {1, 1, 3}, .accumulator = DType::i32, .first = DType::u8, .second = DType::u8};
    family.meaning = left(0, DType::i32);
    for (int i = 0; i < 3; i++)
        family.meaning = fma(operand(2 * i, DType::i32, DType::u8), operand(2 * i + 1, DType::i32, DType::u8), family.meaning);
    family.features = {"avx512_vnni"};
    return family;
}

// i32 += u8 * u8, 2 rows and 3 columns of four products, with columns innermost: fragments that no emitter has an instruction for.
static Instruction small_tiles() {
    Instruction family{.name = "small_tiles", .shape = {2, 3, 4}, .accumulator = DType::i32, .first = DType::u8, .second = DType::u8};
    family.meaning = left(0, DType::i32);
    for (int i = 0; i < 4; i++)
        family.meaning = fma(operand(2 * i, DType::i32, DType::u8), operand(2 * i + 1, DType::i32, DType::u8), family.meaning);
    family.a = {{"M", 0, false}, {"K", 0, false}};
    family.b = {{"K", 0, false}, {"N", 0, false}};
    family.registers = 7;
    family.features = {"avx512_vnni"};
    return family;
}

static const Instruction &added(Instruction family) {
    const std::string name = family.name;
    if (!find_family(name)) add_family(std::move(family));
    return *find_family(name);
}

static Algorithm product_of_bytes() {
    Builder f("bytes", {});
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    return f.output("y", dot(f.input("x", {M, K}, DType::u8), f.input("w", {K, N}, DType::u8)), DType::i32).build();  // (M, N)
}

TEST_CASE("each family is found under its name, Tessera's first, which the schema shows as examples") {
    const std::vector<std::string> own = {"fma",   "mul_add", "dot2",   "dot4",     "amx_bf16", "amx_u8s8", "amx_s8s8",
                                          "smmla", "usmmla",  "bfmmla", "mma_bf16", "mma_f16",  "mma_s8",   "mma_u8s8"};
    std::vector<std::string> names = family_names();
    REQUIRE(names.size() >= own.size());
    names.resize(own.size());
    CHECK(names == own);
    for (const Instruction &family : families()) CHECK(find_family(family.name) == &family);
    CHECK(find_family("dot8") == nullptr);
    CHECK(find_family(usual_family) == &families().front());
    const nlohmann::json schema = nlohmann::json::parse(std::ifstream(TESSERA_SOURCE_DIR "/schedules/tessera-schedule.schema.json"));
    CHECK(schema["definitions"]["knobs"]["properties"]["instruction"]["examples"] == own);
}

TEST_CASE("a family that a generator adds is right in every code by its meaning") {
    const Target target = target_named("znver4");
    std::vector<Case> cases = {{"pairs", library::matmul_wide(numerics_named("bf16")), {}, {}}, {"bytes", product_of_bytes(), {}, {}}};
    const Instruction *used[] = {&added(pair_sum()), &added(three_bytes())};
    std::vector<TileProgram> programs;
    for (size_t i = 0; i < cases.size(); i++) {
        const int k_of = used[i]->shape.k;
        Knobs &k = cases[i].stages["y"];
        k.instruction = used[i]->name;
        k.micro = {{"M", 3}, {"N", 32}}, k.vector = {{"N", 16}}, k.loops = {"micro.N", "micro.M"};
        k.pack["w"] = {"micro.N", {{"N", 32, false}, {"K", k_of, false}, {"N", 32, true}, {"K", k_of, true}}};
        Knobs &copy = cases[i].stages["y.w.packed"];
        copy.micro = {{"K", k_of}, {"N", 16}}, copy.vector = {{"N", 16}}, copy.loops = {"micro.K", "micro.N"};
        programs.push_back(lowered(cases[i], target));
        CHECK(to_text(programs.back()).find("= " + used[i]->name + "(") != std::string::npos);
    }
    CHECK(source_of({{"pairs", {{{}, programs[0]}}}}, target).find("pair_sum_f32x16(") != std::string::npos);
    std::vector<std::unique_ptr<Loaded>> codes;
    for (const Build &build : {Build{}, Build{"gcc", "-O1"}, Build{"gcc", "-O1 -DTESS_PORTABLE"}})
        codes.push_back(std::make_unique<Loaded>(programs, target, build));
    for (size_t i = 0; i < cases.size(); i++)
        for (int64_t depth : {0, 1, 2, 3, 7, 12}) {
            const Extents shape = {{"M", 4}, {"N", 35}, {"K", depth}};
            INFO(cases[i].name << " K=" << depth);
            const Arrays inputs = make_inputs(cases[i].algorithm, shape, static_cast<uint32_t>(depth));
            const Arrays expected = run_interpreter(programs[i], shape, inputs, {});
            if (i == 1) CHECK(differ_in_bits(expected, run_reference(cases[i].algorithm, shape, inputs, {})) == "");
            const Array &y = expected.at("y"), &x = inputs.at("x"), &w = inputs.at("w");
            for (int64_t at = 0; i == 0 && at < y.size(); at++) {
                const auto p = [&](int64_t k) {
                    return k < depth ? static_cast<float>(x.get(at / 35 * depth + k).real * w.get(k * 35 + at % 35).real) : 0.0f;
                };
                float sum = 0;
                for (int64_t k = 0; k < depth; k += 2) sum = sum + (p(k) + p(k + 1));
                CHECK(static_cast<float>(y.get(at).real) == sum);
            }
            for (const auto &code : codes)
                if (runs_here(target)) CHECK(differ_in_bits(code->run(programs[i], shape, inputs, {}, {}), expected) == "");
        }
}

TEST_CASE("a family with fragments that a generator adds is right in every code by its meaning") {
    const Target target = target_named("znver4");
    added(small_tiles());
    std::vector<Case> cases;
    for (const char *packed : {"nothing", "at loops"}) {
        cases.push_back({packed[0] == 'n' ? "as_they_lie" : "packed", product_of_bytes(), {}, {}});
        Knobs &k = cases.back().stages["y"];
        k.instruction = "small_tiles", k.micro = {{"M", 4}, {"N", 6}}, k.loops = {"micro.N", "micro.M"};
        if (packed[0] == 'a') k.pack["x"] = {"root", {}}, k.pack["w"] = {"micro.N", {}};
    }
    std::vector<TileProgram> programs;
    for (const Case &c : cases) {
        programs.push_back(lowered(c, target));
        CHECK(to_text(programs.back()).find("small_tiles y.sum += ") != std::string::npos);
    }
    std::vector<std::unique_ptr<Loaded>> codes;
    for (const Build &build : {Build{}, Build{"gcc", "-O1"}}) codes.push_back(std::make_unique<Loaded>(programs, target, build));
    for (size_t i = 0; i < cases.size(); i++)
        for (int64_t extent : {0, 1, 4, 5, 13}) {
            const Extents shape = {{"M", extent}, {"N", 14 - extent}, {"K", extent + 2}};
            INFO(cases[i].name << " M=" << extent);
            const Arrays inputs = make_inputs(cases[i].algorithm, shape, static_cast<uint32_t>(extent));
            const Arrays expected = run_reference(cases[i].algorithm, shape, inputs, {});
            CHECK(differ_in_bits(run_interpreter(programs[i], shape, inputs, {}), expected) == "");
            for (const auto &code : codes)
                if (runs_here(target)) CHECK(differ_in_bits(code->run(programs[i], shape, inputs, {}, {}), expected) == "");
        }
}

TEST_CASE("what is no family is refused where it is added") {
    const auto refused = [](const std::function<void(Instruction &)> &change, const std::vector<std::string> &words) {
        Instruction family = pair_sum();
        family.name = "mine";
        change(family);
        check_words([&] { add_family(family); }, words);
        CHECK(find_family("mine") == nullptr);
    };
    refused([](Instruction &f) { f.name = "dot2"; }, {"error[instruction.family]: instruction family 'dot2': expected a name that no other "
                                                      "has; there are fma, mul_add, dot2, dot4, amx_bf16",
                                                      "Give it another name."});
    refused([](Instruction &f) { f.name = "a b"; }, {"instruction family 'a b': expected a name of letters, digits and '_'."});
    refused(
        [](Instruction &f) {
            f.shape = {16, 16, 32};
        },
        {"instruction family 'mine': expected, of 16×16×32, a layout of a by digits of M and K, one of b by digits of N and K, and at "
         "least 3 registers; got 0. State a, b and registers."});
    refused([](Instruction &f) { f.scope = ExecutionScope::warp; }, {"expected accumulators of one thread and at least 2 products"});
    refused([](Instruction &f) { f.shape.k = 1; }, {"got 1×1×1. Another step for one product is another algorithm."});
    refused(
        [](Instruction &f) { f.meaning = Expr(); },
        {"expected a meaning that is a value of the accumulator's type, f32; got none. State it over left(0) and input(0), input(1), …"});
    refused([](Instruction &f) { f.meaning = left(0, DType::f32) + parameter("p", DType::f32); },
            {"expected a meaning over left(0) of f32 and, of each of 2 products, input(2 * i) of bf16 and input(2 * i + 1) of bf16, in "
             "operations; it has $p. Expand functions (expand_functions)."});
    refused(
        [](Instruction &f) {
            f.meaning = fma(operand(0, DType::f32, DType::bf16), operand(1, DType::f32, DType::bf16), left(0, DType::f32));
        },
        {"expected a meaning that uses its accumulator and both elements of each of its 2 products; one of them is missing."});
    refused(
        [](Instruction &f) {
            f.shape.k = 3;
            f.meaning = f.meaning + operand(4, DType::f32, DType::bf16) * operand(5, DType::f32, DType::bf16);
        },
        {"expected 32 bits of elements for each accumulator where C is stated; got 3 of bf16. Leave the C out: its meaning is emitted."});
}

}  // namespace tessera::test_families
