#include "schedules/check/check.h"

#include "algorithms/text/hash.h"
#include "schedules/artifact/merge.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_check {

using test::check_words;

namespace {

const Schedule start("s");

void declared(const Schedule &schedule, const Algorithm &algorithm) { check(resolve(schedule, Library()), algorithm); }

// algorithm with a call of `linear` under the scope "ffn".
Algorithm caller() {
    Algorithm a = test::sample_algorithm();
    a.name = "net";
    Call call;
    call.scope = "ffn";
    call.callee = std::make_shared<const Algorithm>(test::sample_algorithm());
    for (const char *name : {"M", "N", "K"}) call.dims[name] = name;
    for (const char *name : {"x", "w", "b"}) call.tensors[name] = name;
    a.steps.insert(a.steps.begin(), call);
    return a;
}

}  // namespace

TEST_CASE("a schedule that fits the algorithm as declared") {
    const Algorithm a = test::sample_algorithm();
    CHECK_NOTHROW(declared(start, a));
    CHECK_NOTHROW(declared(start.for_algorithm("linear", surface_hash(a))
                               .require({"avx2"})
                               .stage("acc", StageKnobs().split("K", Split::How::chunks, 64))
                               .stage("p", StageKnobs().split("N", Split::How::threads, 64))
                               .variant({"M <= 16", "N % 16 == 0", "avx512_bf16"}, "acc", StageKnobs().split("K", Split::How::lanes, 16)),
                           a));
    CHECK_NOTHROW(declared(start.stage("ffn", StageKnobs().call("once")).stage("ffn.acc", StageKnobs().split("K", Split::How::chunks, 64)),
                           caller()));
}

TEST_CASE("another algorithm, or another surface: the words name both") {
    const Algorithm a = test::sample_algorithm();
    check_words([&] { declared(start.for_algorithm("gemm"), a); },
                {"error[schedule.algorithm]: schedule 's' at /algorithm/name: expected a schedule for 'linear'; it is one for 'gemm'. "
                 "Choose another schedule or algorithm."});
    check_words([&] { declared(start.for_algorithm("linear", "sha256:00"), a); },
                {"error[schedule.surface]: schedule 's' at /algorithm/surface: expected the surface " + surface_hash(a) +
                     " of 'linear'; got sha256:00: stages, tensors or dims were renamed",
                 "remove the field."});
    Algorithm renamed = a;
    renamed.stages()[1].name = "z";
    renamed.stages()[2].body = Scan{sum_monoid(DType::f32), "N", true, {load("z", DType::f32, {variable("M"), variable("N")})}};
    check_words([&] { declared(start.for_algorithm("linear", surface_hash(a)), renamed); }, {"error[schedule.surface]"});
}

TEST_CASE("splits of what is not there or cannot be split: the words") {
    const Algorithm a = test::sample_algorithm();
    const StageKnobs split = StageKnobs().split("K", Split::How::chunks, 64);
    check_words([&] { declared(start.stage("ac", split), a); }, {"error[schedule.unknown-stage]: schedule 's' at /stages/ac: linear has no "
                                                                 "stage 'ac' to split; its stages are acc, y, p. Did you mean 'acc'?"});
    check_words([&] { declared(start.stage("y", split), a); }, {"error[schedule.split]: schedule 's' at /stages/y: linear.y is no "
                                                                "reduction and no scan, so nothing can be split. Remove the knob."});
    check_words(
        [&] { declared(start.stage("acc", StageKnobs().split("M", Split::How::chunks, 4)), a); },
        {"error[schedule.unknown-dim]: schedule 's' at /stages/acc/split/M: linear.acc does not reduce over 'M'; it reduces over K."});
    check_words([&] { declared(start.stage("p", split), a); }, {"linear.p does not reduce over 'K'; it reduces over N."});
    check_words([&] { declared(start.variant({"avx2"}, "y", split), a); }, {"schedule 's' at /variants/0/stages/y:"});
}

TEST_CASE("conditions and features that are none: the words") {
    const Algorithm a = test::sample_algorithm();
    check_words(
        [&] {
            declared(start.variant({"M > 2", "H <= 16"}, "acc", StageKnobs()), a);
        },
        {"error[schedule.unknown-dim]: schedule 's' at /variants/0/when/1: linear has no dim 'H' to choose by; its dims are M, N, K. Did "
         "you mean 'M'?"});
    check_words(
        [&] { declared(start.variant({"avx512_bf61"}, "acc", StageKnobs()), a); },
        {"error[schedule.unknown-feature]: schedule 's' at /variants/0/when/0: there is no feature 'avx512_bf61'; the features are sse4_1",
         "Did you mean 'avx512_bf16'?"});
    check_words([&] { declared(start.variant({"M"}, "acc", StageKnobs()), a); },
                {"'M' is a dim, not a feature; compare it, as in \"M <= 16\"."});
    check_words(
        [&] {
            declared(start.require({"avx2", "sse9"}), a);
        },
        {"error[schedule.unknown-feature]: schedule 's' at /requires/1: there is no feature 'sse9'"});
}

TEST_CASE("a call that is not there: the words") {
    check_words(
        [] { declared(start.stage("fnn", StageKnobs().call("once")), caller()); },
        {"error[schedule.unknown-stage]: schedule 's' at /stages/fnn/call: net has no call 'fnn'; its calls are ffn. Did you mean 'ffn'?"});
}

TEST_CASE("errors show the ancestors") {
    check_words([] { declared(Schedule("c").extends(start).for_algorithm("gemm"), test::sample_algorithm()); },
                {"schedule 'c' (extends s) at /algorithm/name"});
}

TEST_CASE("a set of stages after its splits: the schedule's own, or a variant's") {
    const ResolvedSchedule s = resolve(
        start.stage("acc", StageKnobs().split("K", Split::How::chunks, 64)).variant({"M < 4"}, "acc", block({{"H", 4}})), Library());
    CHECK_NOTHROW(check_stages(s, -1, test::sample_algorithm()));
    check_words(
        [&] { check_stages(s, 0, test::sample_algorithm()); },
        {"error[schedule.unknown-dim]: schedule 's' at /variants/0/stages/acc/block/H: linear.acc has no dim 'H'; its dims are M, N, K."});
    CHECK_THROWS_AS(check_stages(s, 1, test::sample_algorithm()), InternalError);
}

TEST_CASE("what only splits or calls need no stage after the splits") {
    const ResolvedSchedule s =
        resolve(start.stage("gone", StageKnobs().split("K", Split::How::passes)).stage("ffn", StageKnobs().call("once")), Library());
    CHECK_NOTHROW(check_stages(s, -1, test::sample_algorithm()));
}

}  // namespace tessera::test_check
