#include "algorithms/evaluate/needed_boxes.h"

#include <catch2/catch.hpp>

#include "algorithms/build/convolution.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"

namespace tessera::test_needed_boxes {

namespace {

Interval range(const std::map<std::string, Box> &boxes, const std::string &stage, size_t axis) { return boxes.at(stage).at(axis); }
bool is(Interval a, int64_t lo, int64_t hi) { return a.lo == lo && a.hi == hi; }

Array numbers(std::vector<int64_t> extents) {
    Array array(DType::f32, extents);
    for (int64_t i = 0; i < array.size(); i++) array.set(i, Scalar::of_real(DType::f32, static_cast<double>((i * 37 + 11) % 101) / 50 - 1));
    return array;
}

// Every box of the output is that part of the whole, to the bit.
void check_parts(const Algorithm &algorithm, const std::map<std::string, Array> &tensors, const Extents &extents,
                 const std::vector<Box> &boxes) {
    EvaluationOptions options{Precision::policy, extents, false};
    const std::string &output = algorithm.outputs[0];
    const Array whole = evaluate(algorithm, tensors, {}, options).at(output);
    for (const Box &box : boxes) {
        options.boxes = {{output, box}};
        const Array part = evaluate(algorithm, tensors, {}, options).at(output);
        REQUIRE(part.extents.size() == box.size());
        for (size_t axis = 0; axis < box.size(); axis++) REQUIRE(part.extents[axis] == box[axis].hi - box[axis].lo + 1);
        for (int64_t i = 0; i < part.size(); i++) {
            int64_t rest = i, position = 0, stride = 1;
            for (size_t axis = box.size(); axis-- > 0;) {
                position += (box[axis].lo + rest % part.extents[axis]) * stride;
                rest /= part.extents[axis], stride *= whole.extents[axis];
            }
            REQUIRE(part.get(i) == whole.get(position));
        }
    }
}

}  // namespace

TEST_CASE("needed_boxes: what a stage reads at its own indices, elsewhere, and everywhere") {
    Builder f("f");
    const Dim M = f.dim("M", 20), N = f.dim("N", 30), K = f.dim("K", 8), T = f.dim("T", 5);
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N}), id = f.input("id", {M}, DType::i32);
    const Tile a = (x + 1.0).named("a"), b = (w * 2.0).named("b");
    const Tile y = dot(a, b).named("y");                                                 // (M, N)
    const Tile moved = y.at({{"N", variable("N") / 2 + 3}}, {"M", "N"}).named("moved");  // (M, N)
    const Tile table = (f.index(T) * f.scalar(DType::index, 2));                         // (T)
    const Tile stored = cast(DType::f32, table).named("table");
    const Tile picked = stored.at({{"T", bounded(id, 0, extent("T")).value()}}, {"M"}).named("picked");
    f.scan(sum_monoid(DType::f32), moved, N).named("sums");
    const Tile never = (x * 3.0).named("never");
    const Algorithm algorithm = f.output("z", moved + picked).output("other", never).build();
    const Extents extents = {{"M", 20}, {"N", 30}, {"K", 8}, {"T", 5}};
    const auto boxes = needed_boxes(algorithm, extents, {{"z", {{4, 5}, {10, 13}}}});
    CHECK(is(range(boxes, "z", 0), 4, 5));
    CHECK(is(range(boxes, "moved", 1), 10, 13));
    CHECK(is(range(boxes, "y", 1), 8, 9));
    CHECK(is(range(boxes, "a", 0), 4, 5));
    CHECK(is(range(boxes, "a", 1), 0, 7));
    CHECK(is(range(boxes, "b", 1), 8, 9));
    CHECK(is(range(boxes, "table", 0), 0, 4));
    CHECK(boxes.count("never") == 0);
    CHECK(boxes.count("sums") == 0);
}

TEST_CASE("needed_boxes: points that are evaluated by themselves have the bits of the whole") {
    check_parts(library::matmul({}), {{"x", numbers({7, 9})}, {"w", numbers({9, 13})}}, {{"M", 7}, {"N", 13}, {"K", 9}},
                {{{0, 6}, {0, 12}}, {{3, 4}, {5, 5}}, {{6, 6}, {12, 12}}});
    check_parts(library::softmax({}), {{"x", numbers({6, 10})}}, {{"M", 6}, {"N", 10}}, {{{2, 3}, {1, 4}}});
    check_parts(library::cumulative_sum({}), {{"x", numbers({4, 12})}}, {{"M", 4}, {"N", 12}}, {{{1, 2}, {3, 6}}});
    Builder f("convolution");
    const Dim N = f.dim("N"), H = f.dim("H"), W = f.dim("W"), C = f.dim("C"), R = f.dim("R", 3), S = f.dim("S", 3), O = f.dim("O");
    const Tile x = f.input("x", {N, H, W, C}), w = f.input("w", {R, S, C, O});
    const Algorithm conv = f.output("y", relu(conv2d(x, w, H, W, R, S, {C}, {2, 1, 1}))).build();
    check_parts(conv, {{"x", numbers({2, 9, 11, 3})}, {"w", numbers({3, 3, 3, 4})}},
                {{"N", 2}, {"H", 9}, {"W", 11}, {"C", 3}, {"O", 4}, {"R", 3}, {"S", 3}, {"HP", 11}, {"WP", 13}, {"P", 5}, {"Q", 6}},
                {{{1, 1}, {0, 1}, {4, 5}, {2, 3}}, {{0, 1}, {4, 4}, {0, 0}, {0, 3}}});
}

}  // namespace tessera::test_needed_boxes
