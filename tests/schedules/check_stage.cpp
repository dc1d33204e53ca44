#include "schedules/check/check_stage.h"

#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_check_stage {

using test::check_words;

namespace {

void fits(const std::string &stage, const StageKnobs &knobs, const Schedule &rest = Schedule("s")) {
    check_stages(resolve(rest.stage(stage, knobs), Library()), -1, test::sample_algorithm());
}

void refused(const std::string &stage, const StageKnobs &knobs, const std::vector<std::string> &parts,
             const Schedule &rest = Schedule("s")) {
    check_words([&] { fits(stage, knobs, rest); }, parts);
}

const StageKnobs none;

}  // namespace

TEST_CASE("knobs whose every address resolves") {
    CHECK_NOTHROW(fits("acc",
                       block({{"M", 96}, {"N", 384}})
                           .k({{"K", 768}})
                           .micro({{"M", 8}, {"N", 48}})
                           .vector({{"N", 16}})
                           .unroll({{"K", 4}})
                           .tail("M", Tail::mask)
                           .parallel({"block.N"})
                           .pack("w", "block", {"N/48", "K", "N%48"})
                           .pack("x", "k.K")
                           .layout({"N/16", "M", "N%16"})
                           .place("y.micro")
                           .prefetch("w", "acc.k.K")
                           .prefetch("acc"),
                       Schedule("s").stage("y", none.micro({{"M", 4}}))));
    CHECK_NOTHROW(fits("acc", block({{"N", 8}}).level("inner", {{"M", 4}}).k({{"K", 4}}).loops({"block.N", "k.K", "inner.M", "K"})));
    CHECK_NOTHROW(fits("acc", place("y.N")));
    CHECK_NOTHROW(fits("acc", place("inline")));
}

TEST_CASE("a pack makes a stage that can be scheduled, and sees through inlined stages") {
    const Schedule packs = Schedule("s").stage("acc", block({{"N", 8}}).pack("w", "block"));
    CHECK_NOTHROW(fits("acc.w.packed", place("acc.block").block({{"K", 4}}), packs));
    refused("acc.w.packed", block({{"M", 4}}),
            {"schedule 's' at /stages/acc.w.packed/block/M: linear.acc.w.packed has no dim 'M'; its dims are K, N."}, packs);
    refused("acc.x.packed", block({{"M", 4}}), {"error[schedule.unknown-stage]"}, packs);
    refused("y", none.pack("x", "root"),
            {"error[schedule.unknown-operand]: schedule 's' at /stages/y/pack/x: linear.y has no operand 'x'; its operands are acc, b."});
    CHECK_NOTHROW(fits("y", none.pack("x", "root"), Schedule("s").stage("acc", place("inline"))));
}

TEST_CASE("what a stage prefetches: the words") {
    refused("y", none.prefetch("w"),
            {"error[schedule.unknown-operand]: schedule 's' at /stages/y/prefetch/w: linear.y neither loads 'w' nor do its dims index such "
             "a tensor; it can prefetch acc, b, y"});
    refused(
        "acc", none.prefetch("w", "y.block.M"),
        {"error[schedule.unknown-loop]: schedule 's' at /stages/acc/prefetch/w/loop: linear.y has no loop 'block.M'; its loops are M, N."});
    refused("acc", none.prefetch("w", "z.M"),
            {"error[schedule.unknown-stage]: schedule 's' at /stages/acc/prefetch/w/loop: linear has no stage 'z'"});
}

TEST_CASE("a stage that is not there: the words") {
    refused("ac", block({{"M", 4}}),
            {"error[schedule.unknown-stage]: schedule 's' at /stages/ac: linear has no stage 'ac'; its stages are acc, y, p. Did you mean "
             "'acc'?"});
    refused("old", none.block({{"M", 4}}).split("K", Split::How::passes), {"The split into passes took its place: schedule the passes."});
    refused("acc", place("z.micro"),
            {"error[schedule.unknown-stage]: schedule 's' at /stages/acc/place: linear has no stage 'z'; its stages are acc, y, p."});
}

TEST_CASE("a dim that is not there, in every knob that names one: the words") {
    const std::string words = "linear.acc has no dim 'H'; its dims are M, N, K. Did you mean 'M'?";
    const Extents h = {{"H", 4}};
    refused("acc", block(h), {"error[schedule.unknown-dim]: schedule 's' at /stages/acc/block/H: " + words});
    refused("acc", none.k(h), {"at /stages/acc/k/H: " + words});
    refused("acc", none.micro(h), {"at /stages/acc/micro/H: " + words});
    refused("acc", none.level("inner", h), {"at /stages/acc/levels/inner/H: " + words});
    refused("acc", none.vector(h), {"at /stages/acc/vector/H: " + words});
    refused("acc", none.unroll(h), {"at /stages/acc/unroll/H: " + words});
    refused("acc", none.tail("H", Tail::loop), {"at /stages/acc/tail/H: " + words});
    refused("acc", none.layout({"M", "H"}), {"at /stages/acc/layout/1: 'acc' has no dim 'H'; its dims are M, N."});
    refused("acc", none.pack("w", "root", {"M", "K"}), {"at /stages/acc/pack/w/layout/0: 'w' has no dim 'M'; its dims are K, N."});
}

TEST_CASE("lanes along two dims of a stage: the words") {
    refused("acc", none.vector({{"M", 4}, {"N", 16}}),
            {"error[schedule.lanes]: schedule 's' at /stages/acc/vector: expected lanes along one dim of linear.acc; got M, N. Delete the "
             "others with null."});
}

TEST_CASE("an operand that is not there: the words") {
    refused("acc", none.pack("b", "root"),
            {"error[schedule.unknown-operand]: schedule 's' at /stages/acc/pack/b: linear.acc has no operand 'b'; its operands are x, w."});
}

TEST_CASE("a loop that is not there, in every knob that names one: the words") {
    const StageKnobs blocked = block({{"N", 8}});
    const std::string words =
        "linear.acc has no loop 'block.M'; its loops are block.N, M, N, K. A tile makes a loop: state one, or name another. Did you mean "
        "'block.N'?";
    refused("acc", blocked.loops({"block.N", "block.M"}), {"error[schedule.unknown-loop]: schedule 's' at /stages/acc/loops/1: " + words});
    refused("acc", blocked.parallel({"block.M"}), {"at /stages/acc/parallel/0: " + words});
    refused("acc", blocked.directive({"d", "", "parallel", "block.M", 0}), {"at /stages/acc/directives/0/loop: " + words});
    refused("acc", blocked.pack("w", "block.M"), {"at /stages/acc/pack/w/at: " + words});
    refused("acc", blocked.pack("w", "k"), {"at /stages/acc/pack/w/at: linear.acc has no loop 'k'"});
    refused("acc", place("y.micro"),
            {"error[schedule.unknown-loop]: schedule 's' at /stages/acc/place: linear.y has no loop 'micro'; its loops are M, N."});
    refused("acc", place("y.block.N"), {"linear.y has no loop 'block.N'"}, Schedule("s").stage("y", block({{"M", 4}})));
}

TEST_CASE("a place at itself or before itself: the words") {
    refused("acc", place("acc.N"),
            {"error[schedule.place]: schedule 's' at /stages/acc/place: linear.acc is placed at a loop of 'acc', which does not come after "
             "it. Place it at a stage that loads it."});
    refused("y", place("acc.N"), {"linear.y is placed at a loop of 'acc', which does not come after it."});
}

TEST_CASE("tiles that no loop would run over: the words") {
    refused("acc", block({{"N", 8}, {"M", 4}}).loops({"block.N"}),
            {"error[schedule.loops]: schedule 's' at /stages/acc/loops: the tile 'block.M' is in no loop; the loops are block.N. Add it to "
             "them, or delete the tile."});
    refused("acc", block({{"N", 8}}).loops({"block.N", "K", "block.N"}),
            {"error[schedule.repeated]: schedule 's' at /stages/acc/loops/2: 'block.N' is listed twice. Remove one of them."});
    refused("acc", block({{"K", 8}}),
            {"at /stages/acc/block/K: linear.acc reduces over 'K', and unless 'loops' lists 'block.K', block runs over the other dims "
             "only. Use k, or list the loops."});
    refused("acc", none.k({{"M", 8}}),
            {"at /stages/acc/k/M: linear.acc does not reduce over 'M', and unless 'loops' lists 'k.M', k runs over reduced dims only. Use "
             "block, or list the loops."});
    CHECK_NOTHROW(fits("acc", block({{"K", 8}}).loops({"block.K"})));
    refused("p", block({{"N", 8}}),
            {"error[schedule.loops]: schedule 's' at /stages/p/block/N: linear.p scans along 'N' in order, so it cannot be tiled. Split it "
             "instead."});
}

TEST_CASE("a layout that loses or repeats elements: the words") {
    for (const std::vector<std::string> &layout : {std::vector<std::string>{"N"},
                                                   {"M", "N", "N"},
                                                   {"M", "N/16"},
                                                   {"M", "N%16"},
                                                   {"M", "N/16", "N%8"},
                                                   {"M", "N/16", "N/16"},
                                                   {"M", "N", "N%16"},
                                                   {"M", "N/32", "N%32/2"},
                                                   {"M", "N/32", "N%16/2", "N%2"},
                                                   {"M", "N/32", "N%32/2", "N%4"},
                                                   {"M", "N/32", "N%32/2", "N%32/2", "N%2"}})
        refused("acc", none.layout(layout),
                {"error[schedule.layout]: schedule 's' at /stages/acc/layout: the layout does not hold each element of 'acc' once: dim '"});
    refused("acc", none.pack("w", "root", {"N/16", "K"}),
            {"at /stages/acc/pack/w/layout: the layout does not hold each element of 'w' once: dim 'N' must stand there whole (\"N\"), "
             "in two parts of one factor (\"N/16\", \"N%16\") or in more digits (\"N/32\", \"N%32/2\", \"N%2\"). Its dims are K, N."});
    CHECK_NOTHROW(fits("acc", none.layout({"M/8", "N/32", "N%32/2", "M%8", "N%2"})));
    CHECK_NOTHROW(fits("acc", none.layout({"N%3", "M", "N%12/3", "N/12"})));
}

TEST_CASE("a register tile of more than 4096 elements: the words") {
    CHECK_NOTHROW(fits("acc", none.micro({{"M", 64}, {"N", 64}})));
    refused("acc", none.micro({{"M", 64}, {"N", 65}}),
            {"error[schedule.register-tile]: schedule 's' at /stages/acc/micro: linear.acc unrolls 64 of M * 65 of N; expected at most "
             "4096 elements in all. Make micro or unroll smaller."});
    refused("acc", none.micro({{"M", 64}, {"N", 32}}).unroll({{"K", 4}}), {"linear.acc unrolls 4 of K * 64 of M * 32 of N"});
    refused("acc", none.micro({{"M", 65536}, {"N", 65536}}), {"error[schedule.register-tile]"});
}

}  // namespace tessera::test_check_stage
