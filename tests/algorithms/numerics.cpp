// Numerics policies: those that ship, those of a file, and what each of their words does to an algorithm.
#include "algorithms/ir/numerics.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/build/weights.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "algorithms/text/json.h"
#include "algorithms/text/numerics_file.h"
#include "support/files/output_folder.h"
#include "tests/support/words.h"

namespace tessera::test_numerics {

using namespace tessera::test;
using nlohmann::json;

static const json mine = {{"format", "tessera-numerics"}, {"version", 1}, {"name", "mine"}, {"storage", "bf16"}};

static Numerics read(const json &document) {
    const TemporaryFolder folder;
    const auto file = folder.path() / "policy.json";
    std::ofstream(file) << document.dump();
    return read_numerics(file);
}

static json with(json document, const json &more) {
    document.update(more);
    return document;
}

TEST_CASE("tf32: products round their operands to ten bits of mantissa, and nothing else does") {
    Builder f("product", numerics_named("tf32"));
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), w = f.input("w", {N});
    f.output("y", dot(x, w, {N}));
    const Algorithm a = f.output("sum", sum(x, N)).build();
    const auto run = [&](std::vector<double> xs, std::vector<double> ws) {
        const std::vector<int64_t> shape = {static_cast<int64_t>(xs.size())};
        return evaluate(a, {{"x", Array(DType::f32, shape, xs)}, {"w", Array(DType::f32, shape, ws)}});
    };
    const double unit = 0x1p-10, nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    // A middle goes to the even neighbour; what is below or above it to the nearer one; exact numbers stay, subnormal ones too.
    CHECK(run({1 + unit / 2}, {1}).at("y").values()[0] == 1);
    CHECK(run({1 + 3 * unit / 2}, {1}).at("y").values()[0] == 1 + 2 * unit);
    CHECK(run({1 + unit / 2 + 0x1p-23}, {1}).at("y").values()[0] == 1 + unit);
    CHECK(run({1}, {-(1 + unit / 2 + 0x1p-23)}).at("y").values()[0] == -(1 + unit));
    CHECK(run({0x1p-136}, {1}).at("y").values()[0] == 0x1p-136);
    CHECK(run({0x1.fffffep127}, {1}).at("y").values()[0] == inf);
    CHECK(run({-inf}, {1}).at("y").values()[0] == -inf);
    CHECK(std::isnan(run({nan}, {1}).at("y").values()[0]));
    CHECK(run({1 + unit / 2}, {1}).at("sum").values()[0] == 1 + unit / 2);
    CHECK(algorithm_from_json(to_json(a)).numerics == a.numerics);
    CHECK(text_of(read(with(mine, {{"storage", "f32"}, {"multiply", "tf32"}}))).find("multiply tf32") != std::string::npos);
    CHECK(text_of(read(with(mine, {{"products", "machine"}}))).find("products machine") != std::string::npos);
    check_words([&] { read(with(mine, {{"products", "any"}})); }, {"/products", "'any'", "expected one of exact, machine"});
    CHECK(weaker_in(numerics_named("bf16_machine"), numerics_named("bf16")) == "has products of the machine, whose bits are not promised");
    CHECK(weaker_in(numerics_named("bf16"), numerics_named("bf16_machine")).empty());
    check_words([&] { read(with(mine, {{"multiply", "tf19"}})); }, {"/multiply", "'tf19'", "expected one of full, tf32, bf16"});
    check_words([&] { read(with(mine, {{"compute", "f64"}, {"multiply", "tf32"}})); }, {"error[numerics.policy]", "tf32", "f64"});
}

TEST_CASE("bf16 products round what a dot multiplies, and the weights and values of online softmax") {
    const Numerics policy = numerics_named("fast_bf16");
    Builder f("mean", policy);
    const Dim T = f.dim("T"), E = f.dim("E");
    const Tile s = f.input("s", {T}), v = f.input("v", {T, E});
    f.output("dot", dot(s, s, {T}));
    const Algorithm a = f.output("y", online_softmax(s, v, T, E)).build();
    const auto run = [&](std::vector<double> scores, std::vector<double> values) {
        const auto n = static_cast<int64_t>(scores.size());
        return evaluate(a, {{"s", Array(DType::f32, {n}, scores)}, {"v", Array(DType::f32, {n, 1}, values)}});
    };
    const double unit = 0x1p-7;
    CHECK(run({1 + unit / 2}, {1}).at("dot").values()[0] == 1);
    CHECK(run({1}, {1 + 3 * unit / 2}).at("y").values()[0] == 1 + 2 * unit);
    // Weights are rounded where they multiply, and their sum is of those that are not.
    const double w = std::exp(-1.0f), rounded = cast(DType::bf16, constant(DType::f32, w))->value.real;
    CHECK(run({0, -1}, {0, 1}).at("y").values()[0] == Approx(rounded / (1 + w)).epsilon(1e-6));
    CHECK(rounded != Approx(w).epsilon(1e-4));
    CHECK(algorithm_from_json(to_json(a)).numerics == policy);
    // What is stored in bf16, or in less, is multiplied as it is.
    Builder g("product", numerics_named("bf16_products"));
    const Dim N = g.dim("N");
    const Tile x = g.input("x", {N}), w8 = g.input("w", {N}, DType::f8e4m3fn), h = g.input("h", {N}, DType::f16);
    g.output("y", dot(x, w8, {N})), g.output("z", dot(x, h, {N}));
    const Algorithm b = g.build();
    std::vector<std::string> folded;
    for (const Stage &stage : b.stages())
        if (auto *reduce = std::get_if<Reduce>(&stage.body))
            for (const Expr &e : reduce->inputs) folded.push_back(to_string(e));
    CHECK(join(folded) == "f32(x[N]), f32(w[N]), f32(x[N]), f32(h_bf16[N])");
}

TEST_CASE("a policy is read from a file, and what is left out is as the file's form says") {
    const Numerics plain = read(mine);
    CHECK(text_of(plain) == "storage bf16, compute f32, accumulate f32, nearest_even, denormals any");
    CHECK(read(with(mine, {{"storage", "f64"}})).accumulate == DType::f64);
    CHECK(read(with(mine, {{"compute", "f64"}})).accumulate == DType::f64);
    const Numerics all = read(with(mine, {{"outputs", "f16"},
                                          {"states", "f16"},
                                          {"weights", "nvfp4"},
                                          {"compute", "f64"},
                                          {"accumulate", "f64"},
                                          {"rounding", "up"},
                                          {"saturate", true},
                                          {"denormals", "flushed"}}));
    CHECK(text_of(all) ==
          "storage bf16, outputs f16, states f16, weights nvfp4, compute f64, accumulate f64, up, saturate, denormals flushed");
    // As in the document of an algorithm.
    const Algorithm a = library::matmul(plain);
    CHECK(algorithm_from_json(to_json(a)).numerics == plain);
    Numerics with_all = all;
    with_all.weights = WeightFormat::storage;
    CHECK(algorithm_from_json(to_json(library::softmax(with_all))).numerics == with_all);
}

TEST_CASE("a policy that cannot be kept is refused, with its place") {
    const auto refuse = [](const json &document, const std::vector<std::string> &words) { check_words([&] { read(document); }, words); };
    refuse(with(mine, {{"name", "bf16"}}), {"error[numerics.duplicate]", "/name", "none of Tessera's own, f32, f64", "got 'bf16'"});
    refuse(with(mine, {{"name", "a/b"}}), {"error[numerics.policy]", "'a/b'", "lower-case letters"});
    refuse(with(mine, {{"name", ""}}), {"error[numerics.policy]"});
    refuse(with(mine, {{"storage", "i8"}}), {"error[numerics.policy]", "a float with a sign as storage, got i8"});
    refuse(with(mine, {{"states", "f8e8m0fnu"}}), {"as states, got f8e8m0fnu"});
    refuse(with(mine, {{"compute", "bf16"}}), {"expected f32 or f64 as compute", "Narrower types are for storage"});
    refuse(with(mine, {{"storage", "f64"}, {"compute", "f32"}}), {"compute in f32 does not hold every number of f64"});
    refuse(with(mine, {{"compute", "f64"}, {"accumulate", "f32"}}), {"computes in f64 and accumulates in f32", "Do both in f64."});
    refuse(with(mine, {{"outputs", "f32"}, {"compute", "f64"}, {"saturate", true}}), {"where f64 becomes f32", "nearest_even, saturated"});
    refuse(with(mine, {{"denormals", "zero"}}), {"/denormals", "'zero'", "gradual, any, flushed"});
    refuse(with(mine, {{"rounding", "random"}}), {"/rounding"});
    refuse(with(mine, {{"weights", "int3"}}), {"/weights", "nvfp4"});
    refuse(with(mine, {{"sturate", true}}), {"error[json.unknown-field]", "saturate"});
    refuse(with(mine, {{"version", 2}}), {"error[numerics.format]", "tessera-numerics.schema.json"});
    refuse(json::array(), {"error[json."});
    check_words([] { read_numerics("/no/such/policy.json"); }, {"error[numerics.file]"});
    check_words([] { numerics_named("trainig"); }, {"error[numerics.unknown]", "training", "a file (*.json)"});
}

TEST_CASE("the schema has the fields and words that are read") {
    const json schema = json::parse(read_file(TESSERA_SOURCE_DIR "/schedules/tessera-numerics.schema.json"));
    const json &fields = schema["properties"];
    for (const auto &[name, values] : {std::pair("rounding", json::array()), {"denormals", json::array()}, {"weights", json::array()}})
        for (const std::string word : fields[name]["enum"]) CHECK_NOTHROW(read(with(mine, {{name, word}})));
    CHECK(fields["rounding"]["enum"].size() == std::size(roundings));
    CHECK(fields["denormals"]["enum"].size() == std::size(denormals_all));
    CHECK(fields["weights"]["enum"].size() == std::size(weight_formats));
    for (const std::string type : schema["definitions"]["stored"]["enum"])
        CHECK_NOTHROW(read(with(mine, {{"storage", type}, {"compute", "f64"}})));
    for (const auto &[name, field] : fields.items())
        if (!mine.contains(name)) CHECK(schema["required"].dump().find("\"" + name + "\"") == std::string::npos);
}

TEST_CASE("a callee keeps to its caller's policy, or to a stricter one") {
    const auto call = [](const Numerics &outer, const Numerics &inner) {
        Builder f("caller", outer);
        const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
        return f.output("y", f.call("product", library::matmul(inner), {f.input("x", {M, K}), f.input("w", {K, N})})[0]).build();
    };
    Numerics any = numerics_named("bf16"), strict = any, wide = any;
    strict.name = "strict", strict.denormals = Denormals::gradual;
    wide.name = "wide", wide.accumulate = DType::f64;
    CHECK_NOTHROW(call(any, any));
    CHECK_NOTHROW(call(any, strict));
    CHECK_NOTHROW(call(any, wide));
    check_words([&] { call(strict, any); },
                {"error[algorithm.call]: caller.product: the callee matmul keeps to the policy 'bf16', which is weaker than 'strict'",
                 "has denormals 'any', not 'gradual'", "Declare it with a policy as strict."});
    check_words([&] { call(wide, any); }, {"accumulates in f32, not f64"});
}

TEST_CASE("states, outputs and rounding are the policy's") {
    const Algorithm trained = library::adamw(numerics_named("training"), {{"narrow", 0}});
    for (const Tensor &t : trained.tensors)
        if (t.role == Role::state) CHECK(t.dtype == DType::f32);
        else if (t.name == "g") CHECK(t.dtype == DType::bf16);
    // What forward passes read is the master, rounded.
    std::map<std::string, Scalar> numbers;
    for (const auto &[name, x] :
         std::map<std::string, double>{{"beta1", 0.9}, {"beta2", 0.99}, {"scale", 1}, {"epsilon", 1e-8}, {"decay", 1}, {"step", 0.1}})
        numbers[name] = Scalar::of_real(DType::f32, x);
    const Algorithm masters = library::adamw(numerics_named("training"), {{"narrow", 1}});
    const Array state(DType::f32, {1}, {1}), gradient(DType::bf16, {1}, {0.5});
    const auto made = evaluate(masters, {{"m", state}, {"v", state}, {"w", state}, {"g", gradient}}, numbers);
    CHECK(made.at("weights").dtype == DType::bf16);
    CHECK(made.at("weights").values()[0] == Scalar::of_real(DType::bf16, made.at("w").values()[0]).real);
    CHECK(made.at("weights").values()[0] != made.at("w").values()[0]);

    const auto rounded = [](const json &more, float x) {
        Builder f("kept", read(with({{"format", "tessera-numerics"}, {"version", 1}, {"name", "mine"}, {"storage", "f32"}}, more)));
        const Algorithm a = f.output("y", f.input("x", {f.dim("N", 1)}) * 1).build();
        return evaluate(a, {{"x", Array(DType::f32, {1}, {x})}}).at("y").values()[0];
    };
    CHECK(rounded({{"outputs", "bf16"}}, 1 + 0x1p-9f) == 1);
    CHECK(rounded({{"outputs", "bf16"}, {"rounding", "up"}}, 1 + 0x1p-9f) == 1 + 0x1p-7);
    CHECK(std::isinf(rounded({{"outputs", "f16"}}, 1e6f)));
    CHECK(rounded({{"outputs", "f16"}, {"saturate", true}}, 1e6f) == 65504);
}

// y = x * 0.5 * 2 and z = x * 0.5 in this storage, with subnormal numbers flushed.
static std::map<std::string, Array> halves(DType storage, const std::vector<double> &x) {
    Numerics n;
    n.name = "flushed", n.storage = storage, n.denormals = Denormals::flushed;
    n.compute = n.accumulate = storage == DType::f64 ? DType::f64 : DType::f32;
    Builder f("halves", n);
    const Tile half = f.input("x", {f.dim("N")}) * 0.5;
    f.output("y", half * 2).output("z", half);
    return evaluate(f.build(), {{"x", Array(storage, {static_cast<int64_t>(x.size())}, x)}});
}

TEST_CASE("where they are flushed, subnormal numbers are zeros of their sign as they are read and as they are written, not between") {
    for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::f8e4m3fn, DType::f8e5m2}) {
        INFO(name_of(type));
        const double least = std::ldexp(1.0, 1 - traits_of(type).bias);
        const auto results = halves(type, {least, -least, least / 2, -least / 2, 2 * least, 0.0, NAN, 1});
        const std::vector<double> y = results.at("y").values(), z = results.at("z").values();
        CHECK(y[0] == least);
        CHECK(y[1] == -least);
        CHECK((z[0] == 0 && !std::signbit(z[0])));
        CHECK((z[1] == 0 && std::signbit(z[1])));
        CHECK((y[2] == 0 && !std::signbit(y[2])));
        CHECK((y[3] == 0 && std::signbit(y[3])));
        CHECK(z[4] == least);
        CHECK(y[5] == 0);
        CHECK((std::isnan(y[6]) && std::isnan(z[6])));
        CHECK(z[7] == 0.5);
    }
}

TEST_CASE("what is read and written of a state is flushed too") {
    Numerics n;
    n.name = "flushed", n.denormals = Denormals::flushed;
    Builder f("decayed", n);
    const Dim N = f.dim("N");
    const Tile s = f.state("s", {N});
    f.update("decay", s, {f.index(N)}, s * 0.5);
    const Array after = evaluate(f.build(), {{"s", Array(DType::f32, {3}, {0x1p-126, 0x1p-127, 1})}}).at("s");
    CHECK(after.values() == std::vector<double>{0, 0, 0.5});

    Builder g("in_place", n);
    const Tile x = g.input("x", {g.dim("N")});
    g.output_in_place(x, x * 0.5);
    CHECK(evaluate(g.build(), {{"x", Array(DType::f32, {2}, {0x1p-126, 3})}}).at("x").values() == std::vector<double>{0, 1.5});
}

TEST_CASE("weights are kept as the policy says, and products are of the numbers that their codes stand for") {
    constexpr int64_t M = 3, K = 32, N = 5;
    std::vector<double> x(M * K);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<double>(i * 37 % 17) - 8;
    const auto code = [](int64_t at) { return static_cast<uint32_t>(at * 101 + 13) % 256; };
    const auto scale = [](int64_t at) { return std::ldexp(1 + static_cast<double>(at % 3) / 4, static_cast<int>(at % 5) - 2); };
    for (const WeightFormat format : weight_formats) {
        INFO(name_of(format));
        Numerics n;
        n.name = "mine", n.weights = format;
        std::map<std::string, Array> in = {{"x", Array(DType::f32, {M, K}, x)}};
        std::vector<double> w(K * N);  // what the product is of
        if (format == WeightFormat::storage) {
            for (int64_t i = 0; i < K * N; i++) w[static_cast<size_t>(i)] = scale(i);
            in["w"] = Array(DType::f32, {K, N}, w);
        } else if (format == WeightFormat::nvfp4) {
            constexpr double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
            std::vector<double> bytes, scales;
            for (int64_t i = 0; i < N * K / 2; i++) bytes.push_back(code(i));
            for (int64_t i = 0; i < N * K / 16; i++) scales.push_back(scale(i));
            for (int64_t at = 0; at < N * K; at++) {
                const uint32_t nibble = code(at / 2) >> (at % 2 * 4) & 15;
                w[static_cast<size_t>(at % K * N + at / K)] = (nibble < 8 ? 1 : -1) * e2m1[nibble % 8] * scale(at / 16) * 0.25;
            }
            in["w"] = Array(DType::u8, {N, K / 2}, bytes), in["w_scales"] = Array(DType::f8e4m3fn, {N, K / 16}, scales);
            in["w_tensor_scale"] = Array(DType::f32, {}, {0.25});
        } else {
            const bool whole = format == WeightFormat::i8;
            std::vector<double> scales;
            for (int64_t i = 0; i < N; i++) scales.push_back(scale(i));
            for (int64_t i = 0; i < K * N; i++)
                w[static_cast<size_t>(i)] = whole ? static_cast<int8_t>(code(i)) : decoded(traits_of(DType::f8e4m3fn), code(i) & 0xef);
            in["w"] = Array(whole ? DType::i8 : DType::f8e4m3fn, {K, N}, w), in["w_scales"] = Array(DType::f32, {N}, scales);
            for (int64_t i = 0; i < K * N; i++) w[static_cast<size_t>(i)] *= scale(i % N);
        }
        const std::vector<double> y = evaluate(library::matmul(n), in).at("y").values();
        for (int64_t m = 0; m < M; m++)
            for (int64_t c = 0; c < N; c++) {
                double sum = 0;
                for (int64_t k = 0; k < K; k++) sum += x[static_cast<size_t>(m * K + k)] * w[static_cast<size_t>(k * N + c)];
                CHECK(y[static_cast<size_t>(m * N + c)] == sum);  // all of it is exact in f32
            }
    }
    Builder f("rows", numerics_named("nvfp4"));
    check_words([&] { weights(f, "w", {}, f.dim("K"), f.dim("N")); },
                {"error[weights.rows]: weights 'w': expected rows 'K' of a known multiple of 16", "rows_of_weights"});
}

}  // namespace tessera::test_numerics
