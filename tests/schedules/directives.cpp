#include "schedules/knobs/directives.h"

#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "tests/schedules/samples.h"
#include "tests/support/words.h"

namespace tessera::test_directives {

using test::check_words;

static Knobs expanded(const std::vector<Directive> &directives) {
    Knobs k;
    k.directives = directives;
    auto is_dim = [](const std::string &d) { return d == "M" || d == "K.i"; };
    return with_directives(k, is_dim, [](size_t number, const std::string &id, const std::string &why) {
        throw UserError(id, std::to_string(number) + ": " + why);
    });
}

TEST_CASE("directives become knobs, those of split dims too") {
    const Knobs k = expanded({{"a", "", "unroll", "K.i", 4}, {"b", "", "vectorize", "M", 8}, {"c", "", "parallel", "block.M", 0}});
    CHECK(k.unroll == Extents{{"K.i", 4}});
    CHECK(k.vector == Extents{{"M", 8}});
    CHECK(k.parallel == std::vector<std::string>{"block.M"});
    CHECK(k.directives.empty());
}

TEST_CASE("directives on loops over tiles: the words") {
    check_words(
        [] {
            expanded({{"a", "", "parallel", "M", 0}, {"u", "", "unroll", "k.K.i", 4}});
        },
        {"error[schedule.directive]: 1: directive 'u' (unroll) names 'k.K.i', a loop over tiles, and only a loop point by point can be "
         "unrolled; name a dim ('K.i'), or delete it "
         "with {\"id\": \"u\", \"op\": null}."});
    check_words(
        [] {
            expanded({{"v", "", "vectorize", "block", 4}});
        },
        {"directive 'v' (vectorize) names 'block', a loop over tiles, and only a loop point by point can be vectorized; name a dim, or "
         "delete it"});
    check_words(
        [] {
            expanded({{"v", "", "vectorize", "M", 0}});
        },
        {"error[schedule.factor]: 0: directive 'v' (vectorize) has no factor; say by how much, as in \"factor\": 8."});
}

TEST_CASE("what a directive says is checked as the knob would be") {
    auto checked = [](const Directive &d) {
        check_stages(resolve(Schedule("s").stage("acc", StageKnobs().k({{"K", 8}}).directive(d)), Library()), -1, test::sample_algorithm());
    };
    check_words(
        [&] {
            checked({"u", "", "unroll", "k.K", 4});
        },
        {"schedule 's' at /stages/acc/directives/0: linear.acc: directive 'u' (unroll) names 'k.K'"});
    check_words(
        [&] {
            checked({"v", "", "vectorize", "K", 4});
        },
        {"error[schedule.no-effect]: schedule 's' at /stages/acc/vector/K: linear.acc folds over 'K'"});
    CHECK_NOTHROW(checked({"u", "", "unroll", "K", 4}));
}

}  // namespace tessera::test_directives
