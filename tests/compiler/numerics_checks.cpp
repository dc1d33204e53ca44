#include "compiler/interpret/numerics_checks.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "support/text/error.h"

using namespace tessera;

namespace {

Algorithm scores(const NumericsCheck &check, std::optional<int64_t> width = 64, bool has_ranges = true) {
    Builder f("attend");
    const Dim S = f.dim("S"), T = f.dim("T"), D = width ? f.dim("D", *width) : f.dim("D");
    const Tile q = f.input("q", {S, D}), k = f.input("k", {T, D});
    if (has_ranges) f.state_range("q", -1, 1).state_range("k", -2, 1);
    f.output("scores", dot(q, k, {D}) * 0.125).verify_numerics("scores", check);
    return f.build();
}

// y = (x + z) - x, of which rounding leaves little where z is small.
Algorithm cancelling(double loss) {
    Builder f("cancelling");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), z = f.input("z", {N});
    const Tile sum = (x + z).named("sum");
    f.state_range("x", 1000, 1001).state_range("z", 0, 1).output("y", sum - 1000.0).verify_numerics("y", {true, {}, loss});
    return f.build();
}

std::string refused(const Algorithm &a) {
    try {
        check_numerics(a);
    } catch (const UserError &e) { return e.words(); }
    return "";
}

}  // namespace

TEST_CASE("a stage keeps to what is asked of its numbers, or is refused in words") {
    CHECK(refused(scores({true, {{-17, 17}}, 1e3})) == "");
    CHECK(refused(scores({})) == "");
    CHECK_THAT(refused(scores({true, {{-15, 15}}, {}})),
               Catch::StartsWith("error[numerics.unbounded]: attend.scores: expected values in -15 ..= 15; it may lie in -16.0") &&
                   Catch::EndsWith(". State narrower ranges of inputs, or ask for less."));
    CHECK_THAT(refused(scores({true, {}, 0.5})),
               Catch::StartsWith("error[numerics.loss]: attend.scores: expected to lose at most 0.5 units in the last place of its largest "
                                 "value; rounding and cancellation may take "));
    CHECK_THAT(refused(scores({true, {}, {}}, 64, false)),
               Catch::StartsWith("error[numerics.unstable]: attend.scores: expected that nothing overflows or is no number; stage '"));
    CHECK_THAT(refused(scores({false, {{-1e30, 1e30}}, {}}, 64, false)), Catch::StartsWith("error[numerics.unbounded]"));
    // Nothing is known about a fold of any length.
    CHECK_THAT(refused(scores({true, {{-17, 17}}, {}}, std::nullopt)),
               Catch::EndsWith("give D a maximum or a fixed extent, or ask for less."));
}

TEST_CASE("what cancellation loses is in the loss") {
    CHECK(refused(cancelling(4096)) == "");
    CHECK_THAT(refused(cancelling(4)), Catch::StartsWith("error[numerics.loss]: cancelling.y: expected to lose at most 4 units"));
}

TEST_CASE("other stages may do as they like") {
    Builder f("two");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), wild = f.input("wild", {N});
    f.state_range("x", -1, 1).output("square", wild * wild).output("y", x * 2.0).verify_numerics("y", {true, {{-2.001, 2.001}}, 1});
    CHECK(refused(f.build()) == "");
}

TEST_CASE("checks are in text and JSON, and in no hash") {
    const Algorithm a = scores({true, {{-17, 17}}, 64}), plain = scores({true, {}, {}}, 64, false);
    CHECK_THAT(to_text(a), Catch::Contains("  range k: -2 ..= 1\n") &&
                               Catch::Contains("  check scores: stable, in -17 ..= 17, loses at most 64 ulp\n"));
    const Algorithm again = algorithm_from_json(to_json(a));
    CHECK(again.checks == a.checks);
    CHECK(again.stated_ranges == a.stated_ranges);
    CHECK(semantic_hash(a) == semantic_hash(plain));
}

TEST_CASE("what a check is of, and what it asks, makes sense") {
    const auto words = [](const std::string &stage, const NumericsCheck &check, const std::string &input = "x") {
        Builder f("wrong");
        const Tile x = f.input("x", {f.dim("N")});
        f.state_range(input, -1, 1).output("y", cast(DType::i32, x)).output("z", x + x).verify_numerics(stage, check);
        try {
            f.build();
        } catch (const UserError &e) { return std::string(e.words()); }
        return std::string();
    };
    CHECK(words("z", {}).empty());
    CHECK_THAT(words("w", {}), Catch::Contains("error[algorithm.numerics]: wrong.w: its numerics are to be checked, and it is no stage."));
    CHECK_THAT(words("y", {}), Catch::Contains("it is of i32; expected floats."));
    CHECK_THAT(words("z", {true, {{2, 1}}, {}}), Catch::Contains("its bounds have a lower end above the upper one."));
    CHECK_THAT(words("z", {true, {}, -1}), Catch::Contains("its loss is to be at most a negative number."));
    CHECK_THAT(words("z", {}, "q"), Catch::Contains("a range is stated of it, and it is no input or state."));
}
