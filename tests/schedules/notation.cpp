#include "schedules/knobs/notation.h"

#include <catch2/catch.hpp>
#include <set>

namespace tessera::test_notation {

TEST_CASE("a place is root, inline, or a loop of a stage that the schedule knows") {
    CHECK(parse_place("root", {}) == Place{});
    CHECK(parse_place("inline", {}) == Place{Place::Kind::inlined, "", ""});
    CHECK(parse_place("y.micro", {"y"}) == Place{Place::Kind::at, "y", "micro"});
    CHECK(parse_place("y.partial.K.o", {"y"}) == Place{Place::Kind::at, "y", "partial.K.o"});
    CHECK(parse_place("y.partial.K.o", {"y", "y.partial"}) == Place{Place::Kind::at, "y.partial", "K.o"});
    CHECK(parse_place("y.block.k", {"y"}) == Place{Place::Kind::at, "y", "block.k"});
}

TEST_CASE("a place at a stage that the schedule does not know is cut at its last level, or its last dim") {
    CHECK(parse_place("y.micro", {}) == Place{Place::Kind::at, "y", "micro"});
    CHECK(parse_place("y.block.N", {}) == Place{Place::Kind::at, "y", "block.N"});
    CHECK(parse_place("y.block.K.o", {}) == Place{Place::Kind::at, "y", "block.K.o"});
    CHECK(parse_place("y.block.k", {}) == Place{Place::Kind::at, "y", "block.k"});
    CHECK(parse_place("net.block.acc.micro", {}) == Place{Place::Kind::at, "net.block.acc", "micro"});
    CHECK(parse_place("attn.scores.N", {}) == Place{Place::Kind::at, "attn.scores", "N"});
    CHECK(parse_place("y.partial.K.o", {}) == Place{Place::Kind::at, "y.partial", "K.o"});
    CHECK(parse_place("y.o", {}) == Place{Place::Kind::at, "y", "o"});
}

TEST_CASE("what has not the form of a place is none") {
    for (const char *text : {"", "y", ".", "y.", ".y", "y..micro", "y micro", "y.<b>", "y.micro "}) CHECK_FALSE(parse_place(text, {}));
}

TEST_CASE("a loop's name is a dim as it is, else a level before the first dot") {
    auto parts = [](const std::string &text) {
        const LoopName loop = parse_loop(text, [](const std::string &d) { return d == "K" || d == "K.o" || d == "k.i"; });
        CHECK(loop.text() == text);
        return std::pair(loop.level, loop.dim);
    };
    using Parts = std::pair<std::string, std::string>;
    CHECK(parts("K") == Parts{"", "K"});
    CHECK(parts("K.o") == Parts{"", "K.o"});
    CHECK(parts("k.i") == Parts{"", "k.i"});
    CHECK(parts("k.K.o") == Parts{"k", "K.o"});
    CHECK(parts("micro.K") == Parts{"micro", "K"});
    CHECK(parts("block") == Parts{"block", ""});
}

TEST_CASE("places, axes and conditions print as they are read") {
    for (const char *text : {"root", "inline", "y.micro", "y.block.N"}) CHECK(to_string(*parse_place(text, {})) == text);
    for (const char *text : {"N", "K.o", "N/48", "N%48", "K.i%65536", "K.i%32/2"}) CHECK(to_string(*parse_axis(text)) == text);
    for (const char *text : {"M <= 16", "M > -1", "N % 16 == 0", "K.o != 3", "avx512_bf16"})
        CHECK(to_string(*parse_condition(text)) == text);
}

TEST_CASE("an axis is a dim, its quotient, its remainder or a quotient of that") {
    CHECK(parse_axis("N/48") == LayoutAxis{"N", 48, false});
    CHECK(parse_axis("N%48") == LayoutAxis{"N", 48, true});
    CHECK(parse_axis("K.o") == LayoutAxis{"K.o", 0, false});
    CHECK(parse_axis("K%32/2") == LayoutAxis{"K", 2, false, 32});
    for (const char *text : {"", "/48", "N/", "N/0", "N/-1", "N/2147483648", "N/4.5", "N/48/2", "N*2", "N /4", "N%32/0", "N%32/32",
                             "N%32/3", "N%/2", "N%32%2", "N/32%2", "%32/2"})
        CHECK_FALSE(parse_axis(text));
}

// "K/32", "K%32/2", "K%2" of 3 to 130 points.
TEST_CASE("digits that hold each index once do") {
    const auto axes = [](const std::vector<std::string> &texts) {
        std::vector<LayoutAxis> all;
        for (const std::string &text : texts) all.push_back(*parse_axis(text));
        return all;
    };
    for (const std::vector<std::string> &texts : std::vector<std::vector<std::string>>{
             {"K"}, {"K/7", "K%7"}, {"K%2", "K/2"}, {"K/32", "K%32/2", "K%2"}, {"K%4/2", "K%32/4", "K%2", "K/32"}}) {
        REQUIRE(hold_each_index_once(axes(texts)));
        std::set<std::vector<int64_t>> seen;
        for (int64_t i = 0; i < 130; i++) {
            std::vector<int64_t> digits;
            int64_t sum = 0;
            for (const LayoutAxis &axis : axes(texts)) {
                const int64_t left = axis.within ? i % axis.within : i;
                digits.push_back(axis.factor == 0 ? left : axis.remainder ? left % axis.factor : left / axis.factor);
                sum += digits.back() * axis.step();
                if (axis.positions()) CHECK(digits.back() < axis.positions());
            }
            CHECK(sum == i);
            CHECK(seen.insert(digits).second);
        }
    }
    for (const std::vector<std::string> &texts : std::vector<std::vector<std::string>>{
             {}, {"K/7"}, {"K%7"}, {"K", "K"}, {"K/32", "K%32/2"}, {"K/32", "K%32/2", "K%4"}, {"K/8", "K%8", "K%8"}})
        CHECK_FALSE(hold_each_index_once(axes(texts)));
}

TEST_CASE("a condition compares an extent or its remainder, or names a feature") {
    CHECK(parse_condition("M<=16") == Condition{"M", "", 0, "<=", 16});
    CHECK(parse_condition(" N % 16 == 0 ") == Condition{"N", "", 16, "==", 0});
    CHECK(parse_condition("avx512f") == Condition{"", "avx512f", 0, "", 0});
    for (const char *text : {"", "M <=", "<= 16", "M = 16", "M ! 16", "M <= 16 && N > 2", "M % 0 == 0", "N % == 0", "M <= 1e3",
                             "M <= 99999999999999999999", "M N"})
        CHECK_FALSE(parse_condition(text));
}

TEST_CASE("a schedule's name is a path of plain words") {
    for (const char *name : {"a", "linear_gelu/f32/znver5/512x3072x768", "a.b/c-d+e"}) CHECK(is_schedule_name(name));
    for (const char *name :
         {"", "/", "/etc/passwd", "..", "../a", "a/../b", "a/./b", "a//b", "a/", "a b", "<b>", "a\\b", "a;b", "$(a)", "ä"})
        CHECK_FALSE(is_schedule_name(name));
    CHECK_FALSE(is_schedule_name(std::string("a\0b", 3)));
    CHECK_FALSE(is_schedule_name(std::string(201, 'a')));
}

}  // namespace tessera::test_notation
