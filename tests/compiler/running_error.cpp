// Running error bounds: never below the measured error, and no further above it than stated.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/in_double.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "algorithms/transform/inline_calls.h"
#include "compiler/interpret/interpret.h"
#include "compiler/interpret/operation_error.h"
#include "compiler/interpret/running_error.h"
#include "compiler/lower/lower.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/random_case.h"

namespace tessera::test_running_error {

using namespace tessera::test;

// What a program leaves, and the bounds of it.
struct Bounded {
    Arrays values;
    RunningErrors errors;
};

static Bounded bounded(const TileProgram &program, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters) {
    Bounded b{run_interpreter(program, symbolic, inputs, parameters), {}};
    std::map<std::string, TensorView> views;
    Arrays taken = b.values;  // as the program has them
    for (const Argument &a : program.arguments)
        if (a.read) taken[a.tensor.name] = inputs.at(a.tensor.name);
    for (auto &[name, array] : taken) {
        if (is_in_half_bytes(array.dtype)) array = in_bytes(array);
        views[name] = array.view(name);
    }
    b.errors = running_errors(program, views, symbolic, parameters);
    for (const auto &[name, array] : b.values)  // no bound follows two numbers into a byte
        if (is_in_half_bytes(array.dtype)) b.errors.bounds[name].assign(static_cast<size_t>(array.size()), unknown_error);
    return b;
}

// Inputs that are hard on floats: `kind` 0 are uniform, 1 cancel in pairs, 2 are of all magnitudes, 3 are near and below the least normal.
static Arrays hard_inputs(const Algorithm &algorithm, const Extents &shape, uint32_t seed, int kind) {
    Arrays inputs = make_inputs(algorithm, shape, seed);
    std::mt19937 random(seed);
    for (auto &[name, array] : inputs) {
        if (!is_float(array.dtype)) continue;
        for (int64_t i = 0; i < array.size(); i++) {
            double v = array.get(i).real;
            if (kind == 1) v = (i % 2 ? -1 : 1) * (1 + std::ldexp(v, -10));
            if (kind == 2) v = std::ldexp(v, static_cast<int>(random() % 40) - 20);
            if (kind == 3) v = std::ldexp(v, -70 - static_cast<int>(random() % 70));
            array.set(i, Scalar::of_real(array.dtype, v));
        }
    }
    return inputs;
}

struct Tally {
    int64_t elements = 0, bounded = 0, infinite = 0;
};

// The law for one program on one set of inputs; "" where it holds. `exact` is the algorithm in f64 as a tile program, whose own bound is
// what the reference may be off.
static std::string broken_law(const Case &c, const TileProgram &named, const TileProgram &plain, const TileProgram *exact,
                              const Extents &shape, const Arrays &inputs, const Parameters &parameters, Tally &tally) {
    const Bounded got = bounded(named, shape, inputs, parameters);
    if (std::string d = differ_in_bits(got.values, run_interpreter(plain, shape, inputs, parameters)); !d.empty()) return "bits: " + d;
    const Arrays truth = evaluate(c.algorithm, inputs, parameters, EvaluationOptions{Precision::f64, complete(c.algorithm, shape)});
    const Bounded reference = exact ? bounded(*exact, shape, inputs, parameters) : Bounded{};
    for (const auto &[name, array] : got.values) {
        const std::vector<double> bounds = got.errors.bounds.at(name), values = array.values(), reals = truth.at(name).values();
        for (size_t i = 0; i < values.size(); i++) {
            const double bound = bounds[i], value = values[i], real = reals[i];
            tally.elements++;
            if (!(bound < unknown_error)) {
                tally.infinite++;
                continue;
            }
            if (!std::isfinite(value) && (value == real || (std::isnan(value) && std::isnan(real)))) continue;
            tally.bounded++;
            if (!exact) continue;
            const double own = reference.errors.bounds.at(name)[i];
            if (!(std::fabs(value - real) <= bound + own))
                return name + "[" + std::to_string(i) + "] is " + std::to_string(value) + ", exactly " + std::to_string(real) +
                       ", off by " + Catch::Detail::stringify(std::fabs(value - real)) + " beyond " + Catch::Detail::stringify(bound);
        }
    }
    return "";
}

// The algorithm in f64, as the reference evaluates it, as a tile program; nothing where a call repeats, between whose rounds the reference
// keeps what is stored in its type.
static std::optional<TileProgram> in_double_program(const Algorithm &a, const Target &target) {
    const Algorithm whole = inline_calls(a, keeps_repeats(a));
    if (whole.calls().begin() != whole.calls().end()) return {};
    return lower(in_double(whole), {}, target, {}, FunctionForm::named);
}

// At most so many of all elements have no bound.
static void check_law(const std::vector<Case> &cases, const Target &target, double unbounded) {
    Tally all;
    for (size_t i = 0; i < cases.size(); i++) {
        const Case &c = cases[i];
        const TileProgram plain = lowered(c, target), named = lower(c.algorithm, c.stages, target, {}, FunctionForm::named);
        const std::optional<TileProgram> exact = in_double_program(c.algorithm, target);
        for (size_t s = 0; s < c.shapes.size(); s++) {
            const int kind = static_cast<int>(i + s) % 4;
            const auto seed = static_cast<uint32_t>(s + 1);
            INFO(c.name << " shape " << s << " inputs " << kind);
            CHECK(broken_law(c, named, plain, exact ? &*exact : nullptr, c.shapes[s], hard_inputs(c.algorithm, c.shapes[s], seed, kind),
                             make_parameters(c.algorithm, seed), all) == "");
        }
    }
    CHECK(all.elements > 0);
    CHECK(static_cast<double>(all.infinite) <= unbounded * static_cast<double>(all.elements));
}

static Case case_of(const std::string &name, const Algorithm &a, const std::vector<Extents> &shapes, const KnobsByStage &stages = {}) {
    return {name, a, stages, shapes};
}

TEST_CASE("no error is above its running bound: every algorithm under several schedules") {
    check_law(library_cases(8), target_named("avx2"), 0.02);
}

TEST_CASE("no error is above its running bound: scans, joined and narrow tiles, folds to places, calls") {
    for (const auto &cases : {scan_cases(8, false), beside_cases(8), narrow_cases(8), repeat_cases(8), scatter_cases(8)})
        check_law(cases, target_named("avx2"), 0.1);
}

TEST_CASE("no error is above its running bound: other types, and an instruction that flushes") {
    std::vector<Case> cases;
    for (const char *name : {"f64", "bf16", "f16"}) {
        const Numerics n = numerics_named(name);
        cases.push_back(case_of("softmax", library::softmax(n), {{{"M", 3}, {"N", 37}}}));
        cases.push_back(case_of("layernorm", library::layernorm(n), {{{"M", 3}, {"N", 37}}}));
        cases.push_back(case_of("matmul", library::matmul(n), {{{"M", 3}, {"N", 5}, {"K", 70}}, {{"M", 1}, {"N", 2}, {"K", 7}}}));
    }
    Knobs k;
    k.micro = {{"M", 3}, {"N", 32}}, k.vector = {{"N", 16}}, k.instruction = "dot2";
    const std::vector<Extents> shapes(4, {{"M", 4}, {"N", 37}, {"K", 9}});  // one for each kind of inputs
    cases.push_back(case_of("dot2", library::matmul_wide(numerics_named("bf16")), shapes, {{"y", k}}));
    check_law(cases, target_named("znver4"), 0.1);
}

TEST_CASE("no error is above its running bound: random programs") {
    const Target target = target_named("avx2");
    std::mt19937 random(11);
    Tally all;
    for (int made = 0; made < 40;) {
        Case c;
        TileProgram plain, named;
        RandomCase described;
        try {
            described = random_case("random_" + std::to_string(made), random, target);
            c = build(described);
            plain = lowered(c, target), named = lower(c.algorithm, c.stages, target, {}, FunctionForm::named);
        } catch (const UserError &) { continue; }
        const std::optional<TileProgram> exact = in_double_program(c.algorithm, target);
        for (const Extents &shape : c.shapes) {
            INFO(to_cpp(described));
            const Arrays inputs = hard_inputs(c.algorithm, shape, 7, made % 4);
            CHECK(broken_law(c, named, plain, exact ? &*exact : nullptr, shape, inputs, {}, all) == "");
        }
        made++;
    }
    CHECK(all.bounded * 2 > all.elements);
}

// Not among the tests that run by themselves: TESSERA_CERTIFICATES=1000000 test_compiler "[certificates]" says so many results, of each
// algorithm under its schedules and of random programs, each with inputs of all kinds.
TEST_CASE("no error is above its running bound: as many results as are asked for", "[.][certificates]") {
    const char *asked = std::getenv("TESSERA_CERTIFICATES");
    const int64_t wanted = asked ? std::atoll(asked) : 10000;
    const Target target = target_named("avx2");
    std::vector<Case> cases = library_cases(8);
    for (const auto &more : {scan_cases(8, false), beside_cases(8), narrow_cases(8), repeat_cases(8), scatter_cases(8)})
        cases.insert(cases.end(), more.begin(), more.end());
    std::mt19937 random(101);
    Tally all;
    int64_t programs = 0;
    const auto certify = [&](const Case &c, const std::string &about) {
        const TileProgram plain = lowered(c, target), named = lower(c.algorithm, c.stages, target, {}, FunctionForm::named);
        const std::optional<TileProgram> exact = in_double_program(c.algorithm, target);
        programs++;
        for (const Extents &shape : c.shapes)
            for (int kind = 0; kind < 4; kind++) {
                const auto seed = static_cast<uint32_t>(random());
                INFO(c.name << " inputs " << kind << " seed " << seed << "\n" << about);
                CHECK(broken_law(c, named, plain, exact ? &*exact : nullptr, shape, hard_inputs(c.algorithm, shape, seed, kind),
                                 make_parameters(c.algorithm, seed), all) == "");
            }
    };
    for (const Case &c : cases) certify(c, "");
    while (all.bounded < wanted) {
        RandomCase described;
        Case c;
        try {
            described = random_case("random_" + std::to_string(programs), random, target);
            c = build(described);
            lowered(c, target);
        } catch (const UserError &) { continue; }
        certify(c, to_cpp(described));
    }
    std::printf("%lld programs, %lld results, %lld of them with a bound\n", static_cast<long long>(programs),
                static_cast<long long>(all.elements), static_cast<long long>(all.bounded));
}

// y = x[0] + x[1] + …, from the front.
static Algorithm sum_of_n() {
    Builder f("sum_of_n");
    const Dim N = f.dim("N");
    return f.output("y", sum(f.input("x", {N}), N)).build();
}

TEST_CASE("the bound of a sum is what its additions may lose, and some inputs lose that") {
    // 1 + 2^-24 rounds to 1 each time, and loses half a unit: of 8 additions after the first term, each loses 2^-24.
    const TileProgram program = lower(sum_of_n(), {}, target_named("avx2"));
    Array x(DType::f32, {9});
    for (int64_t i = 0; i < 9; i++) x.set(i, Scalar::of_real(DType::f32, i == 0 ? 1 : 0x1p-24));
    const Bounded b = bounded(program, {{"N", 9}}, {{"x", x}}, {});
    CHECK(b.values.at("y").values() == std::vector<double>{1});
    const double bound = b.errors.bounds.at("y")[0];
    CHECK(bound >= 8 * 0x1p-24);
    CHECK(bound <= 8 * 0x1p-24 * (1 + 1e-12));
    CHECK(b.errors.unknown.empty());
}

TEST_CASE("what has no bound says why") {
    Builder f("position");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N});
    const Algorithm a = f.output("p", cast(DType::i32, x * 3.7)).output("b", bitcast(DType::i32, x * 3.7)).build();
    Array in(DType::f32, {2}, {0.3, 1.0 / 3});
    const Bounded b = bounded(lower(a, {}, target_named("avx2")), {{"N", 2}}, {{"x", in}}, {});
    CHECK(b.errors.bounds.at("p") == std::vector<double>{0, 0});  // 1.11 and 1.2333 are far from where they would round otherwise
    CHECK(b.errors.bounds.at("b") == std::vector<double>(2, unknown_error));
    CHECK(b.errors.unknown == "the bits of a rounded value are used");
}

TEST_CASE("running bounds of products are near what is measured") {
    const TileProgram program = lower(library::matmul({}), {}, target_named("avx2"));
    for (const int64_t K : {64, 768, 1024}) {
        const Extents shape = {{"M", 8}, {"N", 16}, {"K", K}};
        const Arrays inputs = make_inputs(library::matmul({}), shape, 5);
        const Bounded b = bounded(program, shape, inputs, {});
        const std::vector<double> exact =
            evaluate(library::matmul({}), inputs, {}, EvaluationOptions{Precision::f64, complete(library::matmul({}), shape)})
                .at("y")
                .values();
        std::vector<double> ratios;
        double bound = 0, measured = 0;
        for (size_t i = 0; i < exact.size(); i++) {
            const double far = std::fabs(b.values.at("y").values()[i] - exact[i]), most = b.errors.bounds.at("y")[i];
            CHECK(far <= most);
            ratios.push_back(most / std::max(far, 0x1p-60));
            bound = std::max(bound, most), measured = std::max(measured, far);
        }
        std::nth_element(ratios.begin(), ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2), ratios.end());
        INFO("K " << K << " median " << ratios[ratios.size() / 2] << " largest " << bound / measured);
        CHECK(ratios[ratios.size() / 2] <= 100);
        CHECK(bound <= 30 * measured);
    }
}

}  // namespace tessera::test_running_error
