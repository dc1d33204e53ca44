#include "schedules/check/check_effect.h"

#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_check_effect {

using test::check_words;

namespace {

void fits(const std::string &stage, const StageKnobs &knobs, const Algorithm &algorithm = test::sample_algorithm()) {
    check_stages(resolve(Schedule("s").stage(stage, knobs), Library()), -1, algorithm);
}

void refused(const std::string &stage, const StageKnobs &knobs, const std::string &words,
             const Algorithm &algorithm = test::sample_algorithm()) {
    check_words([&] { fits(stage, knobs, algorithm); }, {words});
}

const StageKnobs none;

}  // namespace

TEST_CASE("lanes where nothing runs in lanes: the words") {
    refused("acc", none.vector({{"K", 8}}),
            "error[schedule.no-effect]: schedule 's' at /stages/acc/vector/K: linear.acc folds over 'K' one element after the other, and "
            "lanes along it would change nothing. "
            "Delete it (null), or split the fold: \"split\": {\"K\": {\"how\": \"lanes\", \"size\": 8}}.");
    refused("p", none.vector({{"N", 8}}),
            "at /stages/p/vector/N: linear.p scans along 'N' in order, and lanes along it would change nothing. Delete it (null), or split "
            "the scan.");
    refused("acc", none.micro({{"N", 12}}).vector({{"N", 8}}),
            "error[schedule.lanes]: schedule 's' at /stages/acc/vector/N: linear.acc: its register tile has 12 of N, which are not whole "
            "vectors of 8 lanes. Make micro a multiple of vector.");
    CHECK_NOTHROW(fits("acc", none.micro({{"N", 16}}).vector({{"N", 8}})));
}

TEST_CASE("unroll where no loop goes point by point: the words") {
    refused("acc", none.micro({{"M", 4}}).unroll({{"M", 2}}),
            "error[schedule.no-effect]: schedule 's' at /stages/acc/unroll/M: linear.acc has no loop over 'M' point by point: micro cuts "
            "the dim, and is unrolled itself, and unroll would "
            "change nothing. Delete it (null).");
    refused("acc", none.vector({{"N", 8}}).unroll({{"N", 2}}),
            "linear.acc runs over 'N' in vectors and not point by point, and unroll would change nothing. Delete it (null), or state "
            "micro, which is unrolled.");
    CHECK_NOTHROW(fits("acc", none.micro({{"M", 4}}).unroll({{"K", 4}, {"N", 2}})));
    CHECK_NOTHROW(fits("acc", none.micro({{"M", 4}}).loops({"micro.M", "M"}).unroll({{"M", 2}})));
    CHECK_NOTHROW(fits("p", none.unroll({{"N", 4}})));
}

TEST_CASE("a tail where no last step is a part of one: the words") {
    const std::string words =
        "' whose last step may be a part of one: only register tiles (micro) and lanes (vector) along a dim that is not folded are such. "
        "Delete it (null), or state one of them.";
    refused("acc", none.tail("M", Tail::mask),
            "error[schedule.no-effect]: schedule 's' at /stages/acc/tail/M: linear.acc has no loop over 'M" + words);
    refused("acc", none.k({{"K", 8}}).tail("K", Tail::loop), "linear.acc has no loop over 'K" + words);
    refused("p", none.tail("N", Tail::loop), "linear.p has no loop over 'N" + words);
    CHECK_NOTHROW(fits("acc", none.micro({{"M", 4}}).vector({{"N", 8}}).tail("M", Tail::loop).tail("N", Tail::loop)));
}

TEST_CASE("a narrow tail of a tile that is one row or one vector: the words") {
    refused("acc", none.vector({{"N", 8}}).tail("N", Tail::narrow),
            "error[schedule.no-effect]: schedule 's' at /stages/acc/tail/N: linear.acc has no register tile of several rows or vectors "
            "along 'N', and narrow would compute what mask does. Delete it (null), or state a larger micro.");
    refused("acc", none.micro({{"N", 8}}).vector({{"N", 8}}).tail("N", Tail::narrow), "has no register tile of several rows or vectors");
    CHECK_NOTHROW(fits("acc", none.micro({{"M", 2}, {"N", 16}}).vector({{"N", 8}}).tail("M", Tail::narrow).tail("N", Tail::narrow)));
}

TEST_CASE("a layout of what the caller lays out: the words") {
    refused("p", none.layout({"N", "M"}),
            "error[schedule.no-effect]: schedule 's' at /stages/p/layout: linear.p computes the output 'p', which its caller lays out, and "
            "a layout would change nothing. Delete it (null).");
    Algorithm a = test::sample_algorithm();
    a.tensors.push_back({"cache", DType::f32, {"M", "N"}, Role::state, {}});
    a.stages()[1].body = Map({"cache", {variable("M"), variable("N")}}, constant(DType::f32, 0));
    refused("y", none.layout({"N", "M"}),
            "linear.y writes the state 'cache', which its caller lays out, and a layout would change nothing.", a);
}

TEST_CASE("knobs of stages without loops of their own: the words") {
    refused("acc", place("inline").block({{"M", 4}}),
            "error[schedule.no-effect]: schedule 's' at /stages/acc/block: linear.acc is inlined, so it has no loops and no storage of its "
            "own, and 'block' would change nothing. Delete it (null).");
    refused("acc", place("inline").layout({"N", "M"}), "at /stages/acc/layout: linear.acc is inlined");
    Algorithm a = test::sample_algorithm();
    std::get<Reduce>(a.stages()[0].body).at = {variable("K"), variable("K")};
    refused("acc", none.parallel({"M"}),
            "at /stages/acc/parallel: linear.acc computes the position along 'M', and 'M' has no loop but over parts of the result that "
            "iterations own (block). Delete it (null).",
            a);
    refused("acc", none.micro({{"N", 4}}), "at /stages/acc/micro/N: linear.acc computes the position along 'N'", a);
    CHECK_NOTHROW(fits("acc", none.block({{"M", 4}}).vector({{"N", 4}}).parallel({"block.M"}), a));
    refused("acc", place("y.M"),
            "error[schedule.place]: schedule 's' at /stages/acc/place: linear.acc folds to a computed destination, which may be anywhere "
            "in its result. Place it at root.",
            a);
    CHECK_NOTHROW(fits("acc", none.layout({"N", "M"}).pack("w", "root"), a));
}

}  // namespace tessera::test_check_effect
