// Casts to and from floats that are only stored, compiled: every code, every rounding, at midpoints, their neighbours and limits. The
// bits are the interpreter's, and both are what the algorithm means.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/build/quantized.h"
#include "algorithms/build/random.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/transform/half_bytes.h"
#include "tests/compiler/harness.h"
#include "tests/support/thorough.h"

namespace tessera::test_formats {

using namespace tessera::test;

namespace {

std::vector<DType> narrow_types(bool coded_only) {
    std::vector<DType> all;
    for (const DTypeTraits &t : dtypes)
        if (is_coded(t.type) || (is_narrow_float(t.type) && !coded_only)) all.push_back(t.type);
    return all;
}

std::string named(const char *what, DType type) { return std::string(what) + "_" + name_of(type); }

// x in all roundings, with saturation and without, and by random bits.
Algorithm encoded_from(DType from, DType to) {
    Builder f("encoded");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}, from), word = f.input("word", {N}, DType::i64);
    const Tile whole = from == DType::f32 ? x : f.tile(load("x", from, {variable("N")}), {N});
    for (bool saturate : {false, true}) {
        for (Rounding rounding : roundings)
            f.output(std::string(name_of(rounding)) + (saturate ? "_saturated" : ""), cast(to, whole, rounding, saturate), to);
        if (from == DType::f32 && is_float(to))
            f.output(saturate ? "random_saturated" : "random", round_stochastic(x, to, word, saturate), to);
    }
    return f.build();
}

// A sum of products of codes by their scale, stored again.
Algorithm decoded_by(DType type) {
    Builder f("decoded");
    const Dim M = f.dim("M"), K = f.dim("K");
    const Tile codes = f.input("x", {M, K}, type), scales = f.input("scales", {M}, DType::f8e8m0fnu), w = f.input("w", {K}, DType::bf16);
    f.output("real", codes, DType::f32);
    const Tile y = (dot(cast(DType::f32, codes), w, {K}) * scales).named("y");
    f.output("y_f32", y, DType::f32);
    return f.output("stored", cast(type, y, Rounding::nearest_even, true), type).build();
}

// What code writes out of a format: constants of it, as a table and where nothing is read.
Algorithm constants_of(DType type) {
    Builder f("constants");
    const Dim N = f.dim("N", 19);
    std::vector<double> values;
    for (int i = 0; i < 19; i++)
        values.push_back(is_float(type) ? std::min(std::ldexp(1 + i % 3 * 0.5, i - 9), highest_finite(traits_of(type))) : i % 8);
    const Tile table = f.constant("table", {N}, values, type);
    f.input("x", {N}, type);
    const Expr n = variable("N");
    const Tile moved = f.tile(load_or("x", type, {n + 3}, n + 3 < extent("N"), constant(type, is_float(type) ? 1.5 : 3)), {N});
    f.output("moved", moved, type);
    return f.output("y", cast(DType::f32, table) * cast(DType::f32, moved), DType::f32).build();
}

// Rows in groups, the last of which is not full: read in a product, and made of a vector.
Algorithm in_groups() {
    Builder f("in_groups");
    const Dim N = f.dim("N"), K = f.dim("K");
    const Quantized w = quantized(f, "w", {N, K}, {.codes = DType::i8, .scales = DType::bf16, .group = 32, .zeros = DType::u8});
    const Tile x = f.input("x", {K});
    f.output("y", dot(dequantize(w).named("real"), x, {K}));
    const Quantized made = quantize(x, "made", {.codes = DType::f8e4m3fn, .scales = DType::f8e8m0fnu, .group = 16});
    f.output("codes", made.codes, DType::f8e4m3fn);
    return f.output("again", dequantize(made)).build();
}

struct Kernel {
    Algorithm algorithm;
    TileProgram program;
    Extents shape;
    Arrays inputs;
};

void set_edges(Array &x, DType to) {
    const DTypeTraits &f = traits_of(is_float(to) ? to : DType::f8e4m3);  // for integers of four bits
    auto number = [&](uint32_t code) { return code < first_special(f) ? decoded(f, code) : 2 * highest_finite(f); };
    const uint32_t step = f.bytes == 1 ? 1 : 61;
    int64_t i = 0;
    auto add = [&](double v) {
        for (double w : {v, static_cast<double>(std::nextafter(static_cast<float>(v), INFINITY)),
                         static_cast<double>(std::nextafter(static_cast<float>(v), -INFINITY))})
            for (double signed_value : {w, -w})
                if (i < x.size())
                    x.set(i++, convert(x.dtype, Rounding::nearest_even, !is_float(x.dtype), Scalar::of_real(DType::f64, signed_value)));
    };
    for (double v : {0.0, static_cast<double>(INFINITY), static_cast<double>(NAN), 0x1p-149, 0x1p-140, highest_finite(f)}) add(v);
    for (uint32_t code = 0; code < first_special(f); code += step) add((number(code) + number(code + 1)) / 2), add(number(code));
}

std::vector<Kernel> kernels_for(const Target &target, int64_t lanes) {
    std::vector<Kernel> all;
    auto add = [&](const std::string &name, Algorithm a, Extents shape, const std::string &dim) {
        KnobsByStage stages;
        const Algorithm bytes = in_bytes(a);
        for (const Stage &s : bytes.stages())
            if (lanes > 1 && !is_fold(s) && (s.dims.back() == dim || s.dims.back() == dim + ".bytes"))
                stages[s.name].vector = {{s.dims.back(), lanes}};
        Arrays inputs = make_inputs(a, shape, 3, true);
        TileProgram program = lowered(name + "_" + std::to_string(lanes), a, stages, target);
        all.push_back({std::move(a), std::move(program), std::move(shape), std::move(inputs)});
    };
    for (DType to : narrow_types(false)) {
        add(named("encoded", to), encoded_from(DType::f32, to), {{"N", 3001}}, "N");
        Arrays &inputs = all.back().inputs;
        set_edges(inputs.at("x"), to);
        for (int64_t i = 0; i < 3001; i++)
            inputs.at("word").set(
                i, Scalar::of_integer(DType::i64, static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15 >> 32)));
    }
    for (DType from : {DType::f64, DType::i64, DType::i32, DType::u8, DType::boolean, DType::f16, DType::f8e5m2})
        for (DType to : {DType::bf16, DType::f8e4m3fn, DType::i4, DType::f4e2m1fn}) {
            add(named(name_of(from), to), encoded_from(from, to), {{"N", 1001}}, "N");
            if (from == DType::i64 || from == DType::i32) {
                Array &x = all.back().inputs.at("x");
                for (int64_t i = 0; i < x.size(); i++)
                    x.set(i, Scalar::of_integer(from, static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15) >> (i % 60)));
                const int64_t hard[] = {(1L << 60) + (1L << 52) + 1, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 464, 465};
                for (int64_t i = 0; i < 7; i++) x.set(i, Scalar::of_integer(from, hard[i]));
            } else if (from == DType::f64) {
                set_edges(all.back().inputs.at("x"), to);
            }
        }
    add("in_groups", in_groups(), {{"N", 9}, {"K", 70}}, "K");
    for (DType type : narrow_types(true)) {
        add(named("constants", type), constants_of(type), {}, "N");
        add(named("decoded", type), decoded_by(type), {{"M", 256}, {"K", 5}}, "K");
        Array &codes = all.back().inputs.at("x");
        for (int64_t i = 0; i < codes.size(); i++)
            codes.set(i, bitcast(type, Scalar::of_integer(DType::u8, is_in_half_bytes(type) ? i & 15 : i & 255)));
    }
    return all;
}

// Every kernel, or every so many-th from the `first` on.
void check(const Target &target, const Build &build = {}, size_t first = 0, size_t each = 1) {
    INFO(target.name << " " << build.compiler << " " << build.options);
    const std::vector<Kernel> all = kernels_for(target, target.vector_bytes / 4);
    std::vector<Kernel> kernels;
    for (size_t i = first % each; i < all.size(); i += each) kernels.push_back(all[i]);
    std::vector<TileProgram> programs;
    for (const Kernel &k : kernels) programs.push_back(k.program);
    const Loaded library(programs, target, build);
    for (const Kernel &k : kernels) {
        INFO(k.program.name);
        const Arrays expected = run_interpreter(k.program, k.shape, k.inputs, {});
        CHECK(differ_in_bits(library.run(k.program, k.shape, k.inputs, {}, Layout{}), expected) == "");
    }
}

}  // namespace

TEST_CASE("formats: a tile program of codes computes what casts mean") {
    for (const Kernel &k : kernels_for(target_named("avx2"), 8)) {
        INFO(k.program.name);
        CHECK(differ_in_bits(run_interpreter(k.program, k.shape, k.inputs, {}), run_reference(k.algorithm, k.shape, k.inputs, {})) == "");
    }
}

// A call that is emitted once gets its parameters outside of loops.
TEST_CASE("formats: a callee's parameter is a number that was rounded") {
    Builder g("scaled");
    const Dim N = g.dim("N");
    const Tile in = g.input("x", {N});
    const Algorithm scaled = g.output("y", in * g.parameter("p", DType::f32)).build();
    Builder f("caller");
    const Dim M = f.dim("M");
    const Tile x = f.input("x", {M}), p = f.parameter("p", DType::f32);
    const Tile rounded = cast(DType::f32, cast(DType::f8e4m3fn, p * 1.03, Rounding::up));
    const Algorithm a = f.output("y", f.call("part", scaled, {x}, {{"p", rounded}})[0]).build();
    Knobs once;
    once.call = "once";
    const Target target = targets().back();
    const TileProgram program = lowered("caller", a, {{"part", once}}, target);
    REQUIRE(program.programs.size() == 1);
    const Extents shape = {{"M", 5}};
    const Arrays inputs = make_inputs(a, shape, 1);
    const Parameters parameters = make_parameters(a, 1);  // 1.25, and rounded up 1.375
    const Arrays expected = run_reference(a, shape, inputs, parameters);
    CHECK(expected.at("y").get(0).real == static_cast<float>(inputs.at("x").get(0).real * 1.375));
    CHECK(differ_in_bits(run_interpreter(program, shape, inputs, parameters), expected) == "");
    CHECK(differ_in_bits(Loaded({program}, target).run(program, shape, inputs, parameters, Layout{}), expected) == "");
}

TEST_CASE("formats: code gives the tile program's bits") {
    // All on the best target that runs here; on each of the others the suite takes another share.
    size_t first = 0;
    for (const Target &target : targets()) check(target, {}, first++, target.name == targets().back().name ? 1 : every(4));
}

TEST_CASE("formats: C gives the tile program's bits") {
    size_t first = 0;
    for (const Build &build : c_builds("-O2")) check(targets().back(), build, first++, every(2));
}

TEST_CASE("formats: code gives the tile program's bits: arm64", "[.][arm64]") {
    if (const Target target = target_named("arm64"); can_emulate(target)) check(target, {}, 0, every(2));
}

TEST_CASE("formats: code gives the tile program's bits: wasm32", "[.][wasm32]") {
    if (const Target target = target_named("wasm32"); can_emulate(target)) check(target);
}

TEST_CASE("formats: code gives the tile program's bits: opencl", "[.][gpu]") {
    if (has_opencl()) check(target_named("opencl"), {}, 0, every(2));
}

}  // namespace tessera::test_formats
