// Splits: which stages and dims they make, and what schedules call them.
#include "compiler/rewrite/split.h"

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "tests/compiler/cases.h"
#include "tests/support/words.h"

namespace tessera::test_split {

using namespace tessera::test;

using How = Split::How;
using Names = std::vector<std::string>;

static Knobs split(const std::string &dim, How how, int64_t size) {
    Knobs k;
    k.split[dim] = {how, size};
    return k;
}

static Names dims_of(const Algorithm &a) {
    Names names;
    for (const Dim &d : a.dims) names.push_back(d.name);
    return names;
}

TEST_CASE("stages that split a dim alike share its pieces") {
    const Algorithm a = apply_splits(library::softmax({}), {{"max", split("N", How::chunks, 8)}, {"sum", split("N", How::threads, 8)}});
    CHECK(dims_of(a) == Names{"M", "N", "N.o", "N.i"});
    CHECK(a.find_stage("max.partial")->dims == Names{"M", "N.o"});
    CHECK(a.find_stage("sum.partial")->dims == Names{"M", "N.o"});
}

TEST_CASE("pieces of another size have dims of their own, in the order of stages") {
    const Algorithm a = apply_splits(library::softmax({}), {{"max", split("N", How::chunks, 8)}, {"sum", split("N", How::chunks, 4)}});
    CHECK(dims_of(a) == Names{"M", "N", "N.o", "N.i", "N.o2", "N.i2"});
    CHECK(a.find_stage("max.partial")->dims == Names{"M", "N.o"});
    CHECK(a.find_stage("sum.partial")->dims == Names{"M", "N.o2"});
    CHECK(reduced_dims(*a.find_stage("sum.partial")) == Names{"N.i2"});
    CHECK(to_string(a.dim("N.i2").size) == "min(4, |N| - N.o2*4)");
}

TEST_CASE("lanes exist whole, so their pieces are those of chunks only where these are whole too") {
    const KnobsByStage stages = {{"max", split("N", How::chunks, 4)}, {"sum", split("N", How::lanes, 4)}};
    CHECK(dims_of(apply_splits(library::softmax({}), stages)) == Names{"M", "N", "N.o", "N.i", "N.o2", "N.i2"});
    CHECK(dims_of(apply_splits(bind_extents(library::softmax({}), {{"N", 32}}), stages)) == Names{"M", "N", "N.o", "N.i"});
}

TEST_CASE("a chain of splits goes on from a stage's own pieces") {
    Knobs sum = split("N", How::lanes, 16);
    sum.split["N.i"] = {How::lanes, 4};
    const Algorithm a = apply_splits(library::softmax({}), {{"max", split("N", How::chunks, 8)}, {"sum", sum}});
    CHECK(a.find_stage("sum.partial2")->dims == Names{"M", "N.i2.i"});
    CHECK(reduced_dims(*a.find_stage("sum")) == Names{"N.i2.i"});
}

TEST_CASE("a schedule calls the pieces of every stage by the plain names") {
    const Schedule both =
        Schedule("s").stage("max", StageKnobs().split("N", How::chunks, 8)).stage("sum", StageKnobs().split("N", How::chunks, 4));
    auto checked = [&](const std::string &stage, const StageKnobs &knobs) {
        const ResolvedSchedule s = resolve(both.stage(stage, knobs), Library());
        const Algorithm a = library::softmax({});
        check(s, a);
        check_stages(s, -1, apply_splits(a, s.stages));
        return to_text(lower(a, s.stages, target_named("avx2")));
    };
    const std::string text = checked("sum.partial", StageKnobs().loops({"M", "N.o", "N.i"}).parallel({"M", "N.o"}).unroll({{"N.i", 4}}));
    INFO(text);
    CHECK(text.find("parallel m4*n.o3 <") != std::string::npos);
    CHECK(checked("sum.partial", place("sum.N.o")).find("sum.partial.tile") != std::string::npos);
    check_words(
        [&] {
            checked("sum.partial", StageKnobs().unroll({{"N.o2", 4}}));
        },
        {"error[schedule.unknown-dim]: schedule 's' at /stages/sum.partial/unroll/N.o2: softmax.sum.partial has no dim 'N.o2'; its dims "
         "are M, N.o, N.i. Did you mean 'N.o'?"});
    check_words(
        [&] {
            checked("sum.partial", StageKnobs().loops({"M", "block.N.o"}));
        },
        {"error[schedule.unknown-loop]: schedule 's' at /stages/sum.partial/loops/1: softmax.sum.partial has no loop 'block.N.o'; its "
         "loops are M, N.o, N.i."});
    check_words(
        [&] { checked("sum.partial", place("sum.N.i")); },
        {"error[schedule.unknown-loop]: schedule 's' at /stages/sum.partial/place: softmax.sum has no loop 'N.i'; its loops are M, N.o."});
}

TEST_CASE("a split of another stage changes no address and no bit of a stage") {
    const Target target = target_named("avx2");
    KnobsByStage stages = {{"sum", split("N", How::lanes, 8)}};
    stages["sum.partial"].vector = {{"N.i", 8}};
    const Algorithm a = library::softmax({});
    const TileProgram alone = lowered("alone", a, stages, target);
    stages["max"] = split("N", How::chunks, 5);
    const TileProgram both = lowered("both", a, stages, target);
    for (const Extents &shape : std::vector<Extents>{{{"M", 3}, {"N", 1}}, {{"M", 2}, {"N", 7}}, {{"M", 4}, {"N", 41}}}) {
        const Parameters parameters = make_parameters(a, 1);
        const Arrays inputs = make_inputs(a, shape, 1);
        CHECK(differ_in_bits(run_interpreter(both, shape, inputs, parameters), run_interpreter(alone, shape, inputs, parameters)) == "");
    }
}

TEST_CASE("a reduction tree is the program of splits inside each other") {
    const Algorithm a = library::softmax({});
    const StageKnobs placed = place("y.M");
    const Schedule y = Schedule("s").stage("exp", placed).stage("y", StageKnobs().vector({{"N", 8}}).parallel({"M"}));
    Schedule tree = y, splits = y;
    for (const char *stage : {"max", "sum"}) {
        const std::string s = stage;
        tree = tree.stage(s, placed.vector({{"N", 8}}).tree("N", {32, 8, 2}));
        splits =
            splits
                .stage(s,
                       placed.unroll({{"N.i.i.i", 2}}).split("N", How::lanes, 32).split("N.i", How::lanes, 8).split("N.i.i", How::lanes, 2))
                .stage(s + ".partial", placed.micro({{"N.i", 32}}).vector({{"N.i", 8}}))
                .stage(s + ".partial2", placed.micro({{"N.i.i", 8}}).vector({{"N.i.i", 8}}).unroll({{"N.i.o", 4}}))
                .stage(s + ".partial3", placed.micro({{"N.i.i.i", 2}}).unroll({{"N.i.i.o", 4}}));
    }
    const ResolvedSchedule one = resolve(tree, Library()), other = resolve(splits, Library());
    const Target target = target_named("avx2");
    CHECK(resolved_hash(lower(a, one.stages, target)) == resolved_hash(lower(a, other.stages, target)));
    CHECK(dims_of(apply_splits(a, one.stages)) == dims_of(apply_splits(a, other.stages)));
    CHECK_NOTHROW(check_stages(one, -1, apply_splits(a, one.stages)));
    check_words([&] { check_stages(resolve(tree.stage("max.partial4", place("y.M")), Library()), -1, apply_splits(a, one.stages)); },
                {"error[schedule.unknown-stage]: schedule 's' at /stages/max.partial4: softmax has no stage 'max.partial4'"});
}

}  // namespace tessera::test_split
