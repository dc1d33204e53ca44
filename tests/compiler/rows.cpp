// Nests over rows of segments, whatever the offsets hold: nothing is read or written outside, and every bit is that of the definition.
#include <catch2/catch.hpp>

#include <random>

#include "tests/compiler/hostile.h"

namespace tessera::test_rows {

using namespace tessera::test;

static Arrays hostile_inputs(const Algorithm &a, const Extents &shape, uint32_t seed) {
    Arrays inputs = make_inputs(a, shape, seed);
    std::mt19937 random(seed + 1);
    for (auto &[name, array] : inputs) {
        if (array.dtype != DType::i64) continue;
        const int64_t most = shape.at(name == "queries" ? "S" : "T");
        for (int64_t i = 0; i < array.size(); i++) {
            const int64_t kinds[] = {static_cast<int64_t>(random() % static_cast<unsigned>(most + 1)),
                                     static_cast<int64_t>(random() % static_cast<unsigned>(most + 1)),
                                     -1,
                                     most,
                                     most + 1,
                                     INT64_MIN,
                                     INT64_MAX,
                                     int64_t{1} << 32,
                                     INT32_MIN};
            array.set(i, Scalar::of_integer(DType::i64, kinds[random() % 9]));
        }
    }
    return inputs;
}

// What keeps the order of folds, on the same shapes again and again: each draws other offsets.
static std::vector<Case> cases(int64_t lanes) {
    std::vector<Case> all = rows_cases(lanes);
    std::erase_if(all, [](const Case &c) { return !keeps_order(c.algorithm, c.stages); });
    for (Case &c : all) {
        const std::vector<Extents> once = c.shapes;
        for (int i = 0; i < 2; i++) c.shapes.insert(c.shapes.end(), once.begin(), once.end());
    }
    return all;
}

static std::vector<Layout> layouts(uint32_t number) {
    const int gap = static_cast<int>(number % 3);
    return {{true, 0, 0, 1}, {false, gap, gap, 2}, {true, gap, 1, 7}};
}

TEST_CASE("rows of segments: hostile offsets, machine code") {
    for (const Target &target : targets()) check_hostile(cases(target.vector_bytes / 4), target, {}, hostile_inputs, layouts);
}

TEST_CASE("rows of segments: hostile offsets, C") {
    const Target target = targets().back();
    check_hostile(cases(target.vector_bytes / 4), target, {"gcc", "-O1"}, hostile_inputs, layouts);
}

TEST_CASE("rows of segments: what schedules cannot ask") {
    auto refused = [](const std::string &name, const std::string &words, const auto &change) {
        for (Case &c : rows_cases(8)) {
            if (c.name != name) continue;
            change(c.stages);
            CHECK_THROWS_WITH(lowered(c, target_named("avx2")), Catch::Contains(words));
        }
    };
    refused("shares_plain", "error[schedule.place]: share: ", [](KnobsByStage &k) { k["share"].place = Place{Place::Kind::at, "z", "T"}; });
    refused("shares_plain", "error[schedule.ragged]: y: the size of dim 'R' varies with outer indices", [](KnobsByStage &k) {
        k["y"].block = {{"B", 2}};
    });
    refused("sums_plain", "it keeps rows of segments, whose scans are not cut", [](KnobsByStage &k) {
        k["y"].split = {{"R", {Split::How::chunks, 4}}};
    });
}

}  // namespace tessera::test_rows
