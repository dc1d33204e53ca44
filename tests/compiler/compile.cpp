#include "compiler/compile/compile.h"

#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/transform/bind_extents.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/compile/variants.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "tests/support/words.h"

namespace tessera::test_compile {

using namespace tessera::test;

static ResolvedSchedule resolved(const Schedule &schedule) { return resolve(schedule, Library()); }

static Schedule panels(const std::string &name) {
    return Schedule(name).stage("y", block({{"N", 8}}).pack("w", "prepack", {"N/8", "K", "N%8"}));
}

TEST_CASE("compiling gives a kernel of each variant that may run, and lowers each once") {
    const Algorithm bound = bind_extents(library::matmul({}), {{"N", 24}});
    const ResolvedSchedule schedule = resolved(Schedule("matmul/variants")
                                                   .stage("y", block({{"M", 16}}))
                                                   .variant({"N <= 4"}, "y", block({{"M", 2}}))
                                                   .variant({"M <= 4"}, "y", block({{"M", 4}})));
    std::vector<std::string> lowered;
    const Compiled compiled = compile(bound, schedule, target_named("x86-64"), [&](const std::vector<Condition> &when) {
        lowered.push_back(condition_text(when));
        return LoweringObserver();
    });
    CHECK(lowered == std::vector<std::string>{"M <= 4", "otherwise"});
    REQUIRE(compiled.kernel.variants.size() == 2);
    CHECK(compiled.kernel.name == "matmul");
    CHECK(compiled.packings.empty());
    CHECK(compiled.notes.empty());
    CHECK(compiled.schedule.name == "matmul/variants");
    CHECK(&variant_for(compiled.kernel, {{"M", 4}}) == &compiled.kernel.variants[0]);
    CHECK(&variant_for(compiled.kernel, {{"M", 5}}) == &compiled.kernel.variants[1]);
    for (const KernelVariant &variant : compiled.kernel.variants) CHECK(is_proved(variant.program));
}

TEST_CASE("a kernel by another name has the same programs, and what packs its operands follows the name") {
    const Compiled compiled = compile(library::matmul({}), resolved(panels("matmul/panels")), target_named("avx2"));
    REQUIRE(compiled.packings.size() == 1);
    CHECK(compiled.packings[0].name == "matmul_pack_w");
    const Compiled gemm = named(compiled, "gemm");
    CHECK(gemm.kernel.name == "gemm");
    CHECK(gemm.packings[0].name == "gemm_pack_w");
    CHECK(gemm.kernels().size() == 2);
    CHECK(to_text(gemm.kernel.general()) == to_text(compiled.kernel.general()));
    CHECK(to_text(gemm.packings[0].general()) == to_text(compiled.packings[0].general()));
    check_words([&] { named(compiled, "mat-mul"); }, {"error[emit.name]", "got 'mat-mul'"});
}

TEST_CASE("whatever keeps a schedule from making a kernel is said by the one function") {
    auto refuse = [](const Schedule &schedule, const std::string &part) {
        check_words([&] { compile(library::matmul({}), resolved(schedule), target_named("x86-64")); }, {part});
    };
    refuse(Schedule("matmul/stage").stage("z", block({{"M", 4}})), "error[schedule.unknown-stage]");
    refuse(Schedule("matmul/dim").stage("y", block({{"H", 4}})), "error[schedule.unknown-dim]");
    refuse(Schedule("matmul/feature").require({"avx512f"}), "error[schedule.requires]");
    refuse(Schedule("matmul/other").for_algorithm("layernorm"), "error[schedule.algorithm]");
    refuse(panels("matmul/mixed").variant({"M <= 4"}, "y", StageKnobs().pack("w", "prepack", {"N", "K"})),
           "error[schedule.prepack]: matmul/mixed: every variant must take the same operands packed ahead of time");
    refuse(Schedule("matmul/inner").stage("y", block({{"M", 4}}).loops({"block.M", "N", "K"}).parallel({"N"})),
           "error[schedule.parallel]: schedule 'matmul/inner' at /stages/y/parallel: y: the loops N ");
}

TEST_CASE("what is unwise is a note") {
    const Schedule wide = Schedule("matmul/wide").stage("y", StageKnobs().micro({{"M", 8}, {"N", 64}}).vector({{"N", 8}}));
    const Compiled compiled = compile(library::matmul({}), resolved(wide), target_named("avx2"));
    REQUIRE(compiled.notes.size() == 1);
    CHECK(compiled.notes[0].id == "schedule.register-tile");
    CHECK_THAT(compiled.notes[0].text, Catch::Contains("y"));
}

}  // namespace tessera::test_compile
