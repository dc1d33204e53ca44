#include "generators/kernel/prepare.h"

#include <set>

#include <nlohmann/json.hpp>

#include "algorithms/library/library.h"
#include "generators/kernel/artifact_task.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"
#include "tests/generators/harness.h"
#include "tests/support/thorough.h"
#include "tests/support/words.h"

namespace tessera::test_prepare {

using namespace tessera::test;

static KernelOptions matmul(const std::string &schedule = "none") {
    KernelOptions options;
    options.algorithm = "matmul", options.schedule = schedule, options.target = "x86-64";
    return options;
}

TEST_CASE("a fixed dim and the target decide conditions ahead of time") {
    Registry registry = sample_registry();
    registry.add_schedule([] {
        return Schedule("matmul/variants")
            .stage("y", block({{"M", 16}}))
            .variant({"avx512_bf16"}, "y", block({{"M", 2}}))
            .variant({"M <= 4", "N % 8 == 0"}, "y", block({{"M", 4}}))
            .variant({"N == 24", "K != 3"}, "y", block({{"M", 8}}));
    });
    auto conditions = [&](const std::vector<std::string> &shape) {
        KernelOptions options = matmul("matmul/variants");
        options.shape = shape;
        std::string text;
        for (const KernelVariant &v : prepare(registry, options).compiled.kernel.variants) text += condition_text(v.when) + "; ";
        return text;
    };
    CHECK(conditions({}) == "M <= 4 and N % 8 == 0; N == 24 and K != 3; otherwise; ");
    CHECK(conditions({"N=24"}) == "M <= 4; K != 3; otherwise; ");
    CHECK(conditions({"N=24", "K=5"}) == "M <= 4; otherwise; ");
    CHECK(conditions({"N=25"}) == "otherwise; ");
    CHECK(conditions({"M=5", "N=8"}) == "otherwise; ");
}

TEST_CASE("the variant that runs is the first whose conditions hold") {
    Registry registry = sample_registry();
    registry.add_schedule([] {
        return Schedule("matmul/small").variant({"M <= 4"}, "y", block({{"M", 4}})).variant({"M > 100"}, "y", block({{"M", 64}}));
    });
    const PreparedKernel p = prepare(registry, matmul("matmul/small"));
    REQUIRE(p.compiled.kernel.variants.size() == 3);
    for (const auto &[m, variant] : {std::pair{4, 0}, {5, 2}, {100, 2}, {101, 1}})
        CHECK(&variant_for(p.compiled.kernel, {{"M", m}, {"N", 1}, {"K", 1}}) == &p.compiled.kernel.variants[static_cast<size_t>(variant)]);
}

TEST_CASE("the steps' errors") {
    const Registry registry = sample_registry();
    auto refuse = [&](KernelOptions options, const std::vector<std::string> &parts, const std::string &name = "") {
        check_words([&] { prepare(registry, options, name); }, parts);
    };
    KernelOptions options = matmul();
    options.numerics = "f31";
    refuse(options, {"error[numerics.unknown]", "f31"});
    options = matmul(), options.shape = {"Q=3"};
    refuse(options, {"error[shape.unknown-dim]: matmul: there is no dim 'Q' to give an extent; the symbolic dims are M, N, K."});
    options = matmul(), options.target = "avx5122";
    refuse(options, {"error[target.unknown]", "avx5122", "Did you mean 'avx512'?"});
    refuse(matmul("matmul/nowhere"), {"error[schedule.missing]: there is no schedule 'matmul/nowhere'"});
    refuse(matmul("nowhere.json"), {"error[schedule.file]", "nowhere.json"});
    refuse(matmul(), {"error[emit.name]", "got 'mat-mul'"}, "mat-mul");
    options = matmul(), options.schedule_dirs = {"/nowhere"};
    refuse(options, {"error[schedule.folder]: schedule folder '/nowhere'"});
}

TEST_CASE("a schedule is checked against its algorithm and target before it is lowered") {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/stage").stage("z", block({{"M", 4}})); });
    registry.add_schedule([] { return Schedule("matmul/dim").stage("y", block({{"H", 4}})); });
    registry.add_schedule([] { return Schedule("matmul/feature").require({"avx512f"}); });
    registry.add_schedule([] { return Schedule("matmul/layernorm").for_algorithm("layernorm"); });
    auto refuse = [&](const std::string &schedule, const std::string &part) {
        check_words([&] { prepare(registry, matmul(schedule)); }, {part});
    };
    refuse("matmul/stage", "error[schedule.unknown-stage]");
    refuse("matmul/dim", "error[schedule.unknown-dim]");
    refuse("matmul/feature", "error[schedule.requires]");
    refuse("matmul/layernorm", "error[schedule.algorithm]");
}

TEST_CASE("every index of every schedule that ships is proved") {
    const nlohmann::json list = nlohmann::json::parse(stock_generator("list --json").out);
    std::string commands;
    size_t count = 0;
    for (const auto &algorithm : list.at("algorithms"))
        for (const std::string schedule : algorithm.at("schedules")) {
            std::vector<std::string> options = {""};
            const std::string stated = algorithm.at("options").dump();
            if (stated.find("\"name\":\"padding\"") != std::string::npos)
                options = {"", " --option padding=1", " --option stride=2 padding=2 dilation=2"};
            if (stated.find("\"name\":\"points\"") != std::string::npos) options = {"", " --option points=1500"};
            const std::string name = algorithm.at("name");
            std::string target = target_in(schedule);
            if (target.empty())  // tuned: <algorithm>/<numerics>/<target>/<shape>
                target = std::filesystem::path(schedule).parent_path().filename().string();
            std::string numerics = "f32";
            for (const std::string &policy : numerics_names())
                if (schedule.find("/" + policy + "/") != std::string::npos) numerics = policy;
            INFO(schedule);
            REQUIRE(!target.empty());
            for (const std::string &option : options) {
                commands += "'" TESSERA_GENERATOR "' show " + name + " --schedule " + schedule + " --target " + target;
                // Quiet, since a pattern for stages that another option brings is idle without it.
                commands += " --numerics " + numerics + option + " --quiet --what tiles 2>&1 > /dev/null || exit 1; ";
                count++;
            }
        }
    CHECK(count > 70);
    const Outcome outcome = shell(commands);
    CHECK(outcome.code == 0);
    CHECK(outcome.out == "");
}

TEST_CASE("every algorithm has a default schedule that it accepts, in every policy and on every x86 target") {
    const nlohmann::json list = nlohmann::json::parse(stock_generator("list --json").out);
    std::string commands;
    // Few are derived, as most would be on x86-64, and those without a schedule everywhere: that takes seconds, or minutes.
    const std::set<std::string> on_any = {"matmul", "column_sum", "cumulative_sum"};
    // What is derived for these with elements of two bytes takes the longest; the suite takes one in four.
    const std::set<std::string> costly = {"conv2d_nhwc", "depthwise_conv2d_nhwc", "gemv", "matmul", "column_sum"};
    size_t number = 0;
    for (const auto &algorithm : list.at("algorithms")) {
        if (algorithm.at("schedules").empty()) continue;
        for (const char *numerics : {"f32", "f64", "bf16", "f16"})
            for (const std::string &target : std::vector<std::string>{"x86-64", "avx2", "avx512"}) {
                const std::string name = algorithm.at("name");
                if (target == "x86-64" && !on_any.count(name)) continue;
                const bool of_two_bytes = numerics == std::string("bf16") || numerics == std::string("f16");
                if (of_two_bytes && costly.count(name) && number++ % every(4) != 0) continue;
                const std::string what = name + " --numerics " + numerics + " --target " + target;
                commands +=
                    "'" TESSERA_GENERATOR "' show " + what + " --quiet --what tiles 2>&1 > /dev/null || { echo '" + what + "'; exit 1; }; ";
            }
    }
    const Outcome outcome = shell(commands);
    CHECK(outcome.code == 0);
    CHECK(outcome.out == "");
}

TEST_CASE("what lowering refuses is said with the schedule's name and the field's place") {
    Registry registry = sample_registry();
    const Schedule base = Schedule("matmul/base").stage("y", block({{"M", 4}}));
    registry.add_schedule([=] { return base; });
    registry.add_schedule([] { return Schedule("matmul/gpu").extends("matmul/base").stage("y", StageKnobs().warps(4)); });
    registry.add_schedule([=] { return base.named("matmul/inner").stage("y", StageKnobs().loops({"block.M", "N", "K"}).parallel({"N"})); });
    registry.add_schedule([=] {
        return base.named("matmul/variant").variant({"M <= 9"}, "y", StageKnobs().loops({"block.M", "N", "K"}).parallel({"N"}));
    });
    auto refuse = [&](const std::string &schedule, const std::string &part) {
        check_words([&] { prepare(registry, matmul(schedule)); }, {part});
    };
    refuse("matmul/gpu", "error[schedule.cpu]: schedule 'matmul/gpu' (extends matmul/base) at /stages/y: y: ");
    refuse("matmul/inner", "error[schedule.parallel]: schedule 'matmul/inner' at /stages/y/parallel: y: the loops N ");
    refuse("matmul/variant", "error[schedule.parallel]: schedule 'matmul/variant' at /variants/0/stages/y/parallel: y: the loops N ");
}

TEST_CASE("operands packed ahead of time have kernels of their own, and all variants take them alike") {
    Registry registry = sample_registry();
    const Schedule panels = Schedule("matmul/panels").stage("y", block({{"N", 8}}).pack("w", "prepack", {"N/8", "K", "N%8"}));
    registry.add_schedule([=] { return panels; });
    registry.add_schedule([=] { return panels.named("matmul/rows").variant({"M <= 4"}, "y", block({{"M", 2}})); });
    registry.add_schedule([=] {
        return panels.named("matmul/other").variant({"M <= 4"}, "y", StageKnobs().pack("w", "prepack", {"N", "K"}));
    });
    registry.add_schedule([=] {
        return panels.named("matmul/loop").variant({"M <= 4"}, "y", StageKnobs().pack("w", "block.N", {"K", "N"}));
    });
    registry.add_schedule([=] { return panels.named("matmul/knobs").stage("y.w.packed", StageKnobs().vector({{"N", 4}})); });
    const PreparedKernel one = prepare(registry, matmul("matmul/panels"), "gemm");
    REQUIRE(one.compiled.packings.size() == 1);
    CHECK(one.compiled.packings[0].name == "gemm_pack_w");
    CHECK(one.compiled.kernels().size() == 2);
    CHECK(prepare(registry, matmul("none")).compiled.packings.empty());
    const PreparedKernel two = prepare(registry, matmul("matmul/rows"));
    CHECK(two.compiled.kernel.variants.size() == 2);
    CHECK(two.compiled.packings.size() == 1);
    auto refuse = [&](const std::string &schedule, const std::string &part) {
        check_words([&] { prepare(registry, matmul(schedule)); }, {part});
    };
    refuse(
        "matmul/other",
        "error[schedule.prepack]: matmul/other: every variant must take the same operands packed ahead of time, in one layout; where M <= "
        "4 it takes "
        "w[K, N] packed as N, K, otherwise w[K, N] packed as N/8, K, N%8. State one pack in all of them, or delete the variants (null).");
    refuse("matmul/loop", "where M <= 4 it takes nothing, otherwise w[K, N] packed as N/8, K, N%8.");
    refuse("matmul/knobs", "error[schedule.unknown-stage]");
    refuse("matmul/knobs", "What is packed ahead of time has a schedule of its own: delete this one with null.");
}

}  // namespace tessera::test_prepare
