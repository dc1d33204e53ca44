// What a kernel gives for NaN, infinities, -0 and subnormal numbers does not depend on its schedule: of every schedule that ships and of
// those that the cost model derives, results are NaN and infinite where the algorithm's definition has them so, and near it elsewhere.
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "algorithms/build/option.h"
#include "algorithms/evaluate/reference.h"
#include "autotune/search/derive.h"
#include "compiler/interpret/interpret.h"
#include "compiler/compile/specialize.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"
#include "tests/autotune/kernels.h"
#include "tests/support/thorough.h"

namespace tessera::test_special_values {

using namespace tessera::test;

namespace {

using Arrays = std::map<std::string, Array>;
using Parameters = std::map<std::string, Scalar>;

// Those whose results are made by comparing, by exponentials or by quotients, beside those of small_kernels().
std::vector<SmallKernel> kernels() {
    namespace l = library;
    std::vector<SmallKernel> all = small_kernels();
    const Numerics f32 = numerics_named("f32");
    const Extents rows = {{"M", 5}, {"N", 37}}, heads = {{"H", 2}, {"G", 2}, {"S", 5}, {"T", 21}, {"D", 6}, {"E", 9}};
    const auto without = [](Extents e, const std::string &dim) {
        e.erase(dim);
        return e;
    };
    const Options grouped = {{"causal", 1}, {"window", 3}, {"mask", 1}};
    const std::vector<SmallKernel> more = {
        {"group_norm_nhwc", l::group_norm_nhwc(f32), {{"N", 2}, {"P", 7}, {"G", 3}, {"C", 5}}},
        {"group_norm_nchw", l::group_norm_nchw(f32), {{"N", 2}, {"P", 7}, {"G", 3}, {"C", 5}}},
        {"residual_rmsnorm", l::residual_rmsnorm(f32), rows},
        {"logsumexp", l::logsumexp(f32), rows},
        {"cross_entropy", l::cross_entropy(f32), rows},
        {"argmax", l::argmax(f32), rows},
        {"top_k", l::top_k(f32, complete_options("top_k", l::top_k_options(), {})), rows},
        {"gelu", l::gelu(f32), rows},
        {"gelu_tanh", l::gelu_tanh(f32), rows},
        {"silu", l::silu(f32), rows},
        {"attention_kept", l::attention_kept(f32), without(heads, "G")},
        {"attention_grouped", l::attention_grouped(f32, grouped), heads},
        {"attention_decode", l::attention_decode(f32), without(heads, "S")},
        {"matmul_dynamic_qint8", l::matmul_dynamic_qint8(f32), {{"M", 5}, {"N", 37}, {"K", 24}}},
        {"linear_dynamic_qint8", l::linear_dynamic_qint8(f32), {{"M", 5}, {"N", 37}, {"K", 24}}},
        {"average_pool2d_nhwc", l::average_pool2d_nhwc(f32, complete_options("pool", l::pool_options(), {})),
         {{"N", 2}, {"H", 9}, {"W", 11}, {"C", 18}}},
        {"reverse_cumulative_sum", l::reverse_cumulative_sum(f32), rows},
        {"adamw", l::adamw(f32, {{"narrow", 0}}), {{"N", 37}}}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

Extents complete(const Algorithm &a, Extents extents) {
    for (const Dim &d : a.dims) {
        if (d.kind == DimKind::fixed) extents[d.name] = d.value;
        if (d.kind == DimKind::symbolic && !d.equals.empty()) extents[d.name] = extents.at(d.equals);
    }
    for (const Dim &d : a.dims) {
        if (d.kind != DimKind::derived) continue;
        const Expr size = rewrite(d.size, [&](const Expr &e) {
            return e.kind() == ExprKind::extent && extents.count(e->name) ? Expr(extents.at(e->name)) : Expr();
        });
        if (size.is_constant()) extents[d.name] = size->value.integer;
    }
    return extents;
}

// Numbers in -1 ..< 1, and one in `each` of the special ones.
Arrays special_inputs(const Algorithm &a, const Extents &extents, uint32_t seed, uint32_t each) {
    std::mt19937 random(seed);
    const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-42};
    Arrays all;
    for (const Tensor &t : a.tensors) {
        if (t.role == Role::constant) continue;
        std::vector<int64_t> shape;
        for (const std::string &d : t.dims) shape.push_back(extents.at(d));
        Array values(t.dtype, shape);
        for (int64_t i = 0; i < values.size(); i++) {
            const double number = std::ldexp(random(), -31) - 1;
            if (is_float(t.dtype)) values.set(i, Scalar::of_real(t.dtype, random() % each == 0 ? special[random() % 5] : number));
            else values.set(i, Scalar::of_integer(t.dtype, t.dtype == DType::boolean ? random() % 2 : random() % 5));
        }
        all[t.name] = std::move(values);
    }
    return all;
}

Arrays run(const TileProgram &program, const Extents &extents, const Arrays &inputs, const Parameters &parameters) {
    Arrays all;
    std::map<std::string, TensorView> views;
    for (const Argument &argument : program.arguments) {
        const Tensor &t = argument.tensor;
        const auto given = inputs.find(t.name);
        std::vector<int64_t> shape;
        for (const std::string &d : t.dims) shape.push_back(extents.at(d));
        all[t.name] = given != inputs.end() ? given->second : Array(t.dtype, shape);
        views[t.name] = all[t.name].view(t.name);
    }
    interpret(program, views, extents, parameters);
    return all;
}

// "" where equal but for rounding.
std::string difference(const Arrays &got, const Arrays &expected) {
    for (const auto &[name, want] : expected)
        for (int64_t i = 0; i < want.size(); i++) {
            const Scalar g = got.at(name).get(i), w = want.get(i);
            const bool is_near = is_float(w.type) && std::fabs(g.real - w.real) <= 1e-4 * (1 + std::fabs(w.real));
            if (!(g == w || is_near))
                return name + " at " + std::to_string(i) + " is " + to_string(constant(g)) + ", not " + to_string(constant(w));
        }
    return "";
}

struct NamedStages {
    std::string name;
    KnobsByStage stages;
};

std::vector<NamedStages> schedules_of(const Algorithm &a, const Library &library, const Target &target, bool with_derived) {
    std::vector<NamedStages> all = {{"none", {}}};
    for (const std::string &name : library.names()) {
        if (name.rfind(a.name + "/", 0) != 0) continue;
        const ResolvedSchedule s = resolve(library.find(name), library);
        all.push_back({name, s.stages});
        for (const auto &variant : s.variants) all.push_back({name + ", a variant", variant.stages});
    }
    if (!with_derived) return all;
    const auto model = roofline_model();
    const Derivation derived = derive(a, target, expected_workloads(a), *model);
    all.push_back({"derived", derived.stages});
    for (const TunedVariant &v : derived.variants) all.push_back({"derived, a variant", v.stages});
    return all;
}

}  // namespace

TEST_CASE("special values: no schedule changes where results are NaN or infinite") {
    Library library;
    library.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    const Target target = target_named("avx512");
    size_t compared = 0, number = 0;
    for (const SmallKernel &kernel : kernels()) {
        const bool with_derived = number++ % every(24) == 0;
        const Algorithm &a = kernel.algorithm;
        const Extents extents = complete(a, kernel.extents);
        Parameters parameters;
        for (const Parameter &p : a.parameters)
            parameters[p.name] = is_float(p.dtype) ? Scalar::of_real(p.dtype, 0.5) : Scalar::of_integer(p.dtype, 2);
        std::vector<Arrays> inputs, expected;
        EvaluationOptions options;
        options.extents = kernel.extents;
        for (const uint32_t each : {11, 150, 1500})
            inputs.push_back(special_inputs(a, extents, each, each)), expected.push_back(evaluate(a, inputs.back(), parameters, options));
        for (const NamedStages &schedule : schedules_of(a, library, target, with_derived)) {
            TileProgram program;
            // One for a GPU, or for callees, or with conditions that these extents do not meet.
            try {
                program = lower_variant(a, {}, schedule.stages, target);
            } catch (const UserError &) { continue; }
            // Operands that are packed ahead of the call are other arguments than the algorithm's.
            if (std::any_of(program.arguments.begin(), program.arguments.end(), [](const Argument &g) { return g.packed.has_value(); }))
                continue;
            for (size_t i = 0; i < inputs.size(); i++) {
                INFO(kernel.name << " under " << schedule.name << ", input " << i);
                CHECK(difference(run(program, extents, inputs[i], parameters), expected[i]) == "");
                compared++;
            }
        }
    }
    CHECK(compared > 300);
}

}  // namespace tessera::test_special_values
