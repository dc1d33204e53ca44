#include "autotune/search/shape_cases.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera::test_shape_cases {

static std::string text_of(const std::vector<Extents> &shapes, const std::vector<int> &schedules) {
    std::string text;
    for (const ShapeCase &c : shape_cases(shapes, [&](size_t a, size_t b) { return schedules[a] == schedules[b]; })) {
        for (const Condition &when : c.when) text += to_string(when) + " ";
        text += "-> " + std::to_string(c.shape) + "; ";
    }
    return text;
}

TEST_CASE("extents go to the shape that is near them") {
    CHECK(text_of({{{"M", 64}}}, {0}) == "-> 0; ");
    CHECK(text_of({{{"M", 64}}, {{"M", 1}}}, {0, 1}) == "M <= 8 -> 1; -> 0; ");
    CHECK(text_of({{{"M", 1}}, {{"M", 16}}, {{"M", 1024}}}, {0, 1, 2}) == "M <= 4 -> 0; M <= 128 -> 1; -> 2; ");
    CHECK(text_of({{{"M", 0}}, {{"M", 1}}}, {0, 1}) == "M <= 0 -> 0; -> 1; ");
    CHECK(text_of({{{"M", 7}}, {{"M", 8}}}, {0, 1}) == "M <= 7 -> 0; -> 1; ");
}

TEST_CASE("several dims are cut where shapes are furthest apart") {
    const std::vector<Extents> shapes = {{{"M", 1}, {"N", 64}}, {{"M", 64}, {"N", 64}}, {{"M", 64}, {"N", 4096}}, {{"M", 1}, {"N", 4096}}};
    CHECK(text_of(shapes, {0, 1, 2, 3}) == "M <= 8 N <= 512 -> 0; M <= 8 -> 3; N <= 512 -> 1; -> 2; ");
}

TEST_CASE("neighbours with one schedule are one case") {
    const std::vector<Extents> shapes = {{{"M", 1}}, {{"M", 16}}, {{"M", 256}}};
    CHECK(text_of(shapes, {0, 0, 0}) == "-> 2; ");
    CHECK(text_of(shapes, {0, 0, 1}) == "M <= 64 -> 1; -> 2; ");
    CHECK(text_of(shapes, {0, 1, 1}) == "M <= 4 -> 0; -> 2; ");
    CHECK(text_of(shapes, {0, 1, 0}) == "M <= 4 -> 0; M <= 64 -> 1; -> 2; ");
}

TEST_CASE("each shape has a case of its own, in any order") {
    RandomNumbers random(3);
    for (int round = 0; round < 50; round++) {
        std::vector<Extents> shapes;
        for (int i = 0; i < 6; i++) {
            const Extents one = {{"M", random.below(40)}, {"N", 1 + random.below(3000)}};
            if (std::find(shapes.begin(), shapes.end(), one) == shapes.end()) shapes.push_back(one);
        }
        const auto cases = shape_cases(shapes, [](size_t, size_t) { return false; });
        REQUIRE(cases.size() == shapes.size());
        CHECK(cases.back().when.empty());
        for (size_t i = 0; i < shapes.size(); i++) {
            const auto taken = std::find_if(cases.begin(), cases.end(), [&](const ShapeCase &c) {
                return std::all_of(c.when.begin(), c.when.end(), [&](const Condition &w) { return shapes[i].at(w.dim) <= w.bound; });
            });
            CHECK(taken->shape == i);
        }
    }
}

}  // namespace tessera::test_shape_cases
