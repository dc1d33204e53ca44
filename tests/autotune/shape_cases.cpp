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

// Up to six, no two equal.
static std::vector<Extents> drawn_shapes(RandomNumbers &random) {
    std::vector<Extents> shapes;
    for (int i = 0; i < 6; i++) {
        const Extents one = {{"M", random.below(40)}, {"N", 1 + random.below(3000)}};
        if (std::find(shapes.begin(), shapes.end(), one) == shapes.end()) shapes.push_back(one);
    }
    return shapes;
}

TEST_CASE("each shape has a case of its own, in any order") {
    RandomNumbers random(3);
    for (int round = 0; round < 50; round++) {
        const std::vector<Extents> shapes = drawn_shapes(random);
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

static std::string text_of(const ShapeBox &box) {
    std::string text;
    for (const Condition &when : conditions_of(box)) text += to_string(when) + "; ";
    return text;
}

TEST_CASE("a box is as far as the reach, or to the geometric mean of two shapes") {
    const auto boxes = shape_boxes({{{"M", 1}, {"N", 64}}, {{"M", 1}, {"N", 100}}, {{"M", 512}, {"N", 100}}}, 2);
    REQUIRE(boxes.size() == 3);
    CHECK(text_of(boxes[0]) == "M <= 2; N >= 32; N <= 80; ");
    CHECK(text_of(boxes[1]) == "M <= 2; N >= 81; N <= 200; ");
    CHECK(text_of(boxes[2]) == "M >= 256; M <= 1024; N >= 50; N <= 200; ");
    CHECK(text_of(shape_boxes({{{"M", 7}}}, 1)[0]) == "M == 7; ");
}

TEST_CASE("probes are odd or multiples of vectors at the ends of a box, one dim after the other, and not the shape itself") {
    using Shapes = std::vector<Extents>;
    const ShapeBox box{{{"M", 30}, {"N", 50}}, {{"M", 128}, {"N", 200}}};
    const Extents shape = {{"M", 64}, {"N", 100}};
    CHECK(probes_of(box, shape, 0) == Shapes{{{"M", 31}, {"N", 100}},
                                             {{"M", 32}, {"N", 100}},
                                             {{"M", 127}, {"N", 100}},
                                             {{"M", 128}, {"N", 100}},
                                             {{"M", 64}, {"N", 51}},
                                             {{"M", 64}, {"N", 64}},
                                             {{"M", 64}, {"N", 199}},
                                             {{"M", 64}, {"N", 192}},
                                             {{"M", 31}, {"N", 51}},
                                             {{"M", 32}, {"N", 64}},
                                             {{"M", 127}, {"N", 199}},
                                             {{"M", 128}, {"N", 192}}});
    CHECK(probes_of({{{"M", 1}}, {{"M", 2}}}, {{"M", 1}}, 0) == Shapes{{{"M", 2}}});
    CHECK(probes_of({{{"M", 4}}, {{"M", 4}}}, {{"M", 4}}, 3) == Shapes{});
    CHECK(probes_of({{{"M", 4}}, {{"M", 9}}}, {{"M", 7}}, 0) == Shapes{{{"M", 5}}, {{"M", 9}}});
    for (const Extents &probe : probes_of(box, shape, 9)) {
        INFO(probe.at("M") << " x " << probe.at("N"));
        CHECK((30 <= probe.at("M") && probe.at("M") <= 128 && 50 <= probe.at("N") && probe.at("N") <= 200));
    }
}

TEST_CASE("a box shrinks on the side where something is slow, and ends at its shape") {
    const Extents shape = {{"M", 64}, {"N", 100}};
    ShapeBox box{{{"M", 32}, {"N", 50}}, {{"M", 128}, {"N", 200}}};
    box = shrunk(box, shape, {{"M", 64}, {"N", 51}});
    CHECK(box == ShapeBox{{{"M", 32}, {"N", 71}}, {{"M", 128}, {"N", 200}}});
    box = shrunk(box, shape, {{"M", 127}, {"N", 77}});
    CHECK(box == ShapeBox{{{"M", 32}, {"N", 85}}, {{"M", 90}, {"N", 200}}});
    for (int i = 0; i < 4; i++)
        for (const Extents &end : {box.low, box.high}) box = shrunk(box, shape, end);
    CHECK(box == ShapeBox{shape, shape});
}

TEST_CASE("each shape is in its own box and in no other") {
    RandomNumbers random(5);
    for (int round = 0; round < 50; round++) {
        const std::vector<Extents> shapes = drawn_shapes(random);
        const std::vector<ShapeBox> boxes = shape_boxes(shapes, 2);
        for (size_t i = 0; i < shapes.size(); i++)
            for (size_t j = 0; j < shapes.size(); j++) {
                bool inside = true;
                for (const auto &[dim, extent] : shapes[j]) inside &= boxes[i].low.at(dim) <= extent && extent <= boxes[i].high.at(dim);
                CHECK(inside == (i == j));
            }
    }
}

}  // namespace tessera::test_shape_cases
