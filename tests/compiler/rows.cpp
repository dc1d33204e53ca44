// Nests over rows of segments, whatever the offsets hold: nothing is read or written outside, and every bit is that of the definition.
#include <catch2/catch.hpp>

#include <algorithm>
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

// The elements first ..= end - 1 along an axis.
static Array slice(const Array &from, size_t axis, int64_t first, int64_t end) {
    std::vector<int64_t> extents = from.extents;
    const int64_t all = extents[axis];
    int64_t inner = 1;
    for (size_t i = axis + 1; i < extents.size(); i++) inner *= extents[i];
    extents[axis] = end - first;
    Array to(from.dtype, extents);
    for (int64_t i = 0; i < to.size(); i++) {
        const int64_t row = i / inner, outer = row / std::max<int64_t>(1, end - first), at = row % std::max<int64_t>(1, end - first);
        to.set(i, from.get((outer * all + first + at) * inner + i % inner));
    }
    return to;
}

// What the segment has of tensors: rows of the flat dims, and its own point of B.
static Array of_segment(Array all, const std::vector<std::string> &dims, int64_t segment, const Arrays &offsets) {
    for (size_t i = 0; i < dims.size(); i++) {
        if (dims[i] == "B") all = slice(all, i, segment, segment + 1);
        const std::string list = dims[i] == "S" ? "queries" : dims[i] == "T" && offsets.count("keys") ? "keys" : "offsets";
        if (dims[i] != "S" && dims[i] != "T") continue;
        all = slice(all, i, offsets.at(list).get(segment).integer, offsets.at(list).get(segment + 1).integer);
    }
    return all;
}

TEST_CASE("rows of segments: in a batch each segment has the bits that it has alone") {
    const Target target = targets().back();
    const std::vector<Case> all = rows_cases(target.vector_bytes / 4);
    std::vector<TileProgram> programs;
    for (const Case &c : all) programs.push_back(lowered(c, target));
    const Loaded code(programs, target);
    for (size_t i = 0; i < all.size(); i++)
        for (const Extents &shape : all[i].shapes) {
            INFO(all[i].name << " " << Catch::Detail::stringify(shape));
            const Algorithm &a = all[i].algorithm;
            const Arrays inputs = make_inputs(a, shape, 5);
            Arrays offsets;  // as they are made
            for (const auto &[name, array] : inputs) {
                if (array.dtype != DType::i64) continue;
                Array made = array;
                for (int64_t o = 0, most = 0; o < made.size(); o++) {
                    most = std::max(most, std::clamp<int64_t>(made.get(o).integer, 0, shape.at(name == "queries" ? "S" : "T")));
                    made.set(o, Scalar::of_integer(DType::i64, most));
                }
                offsets.emplace(name, made);
            }
            const Arrays batch = code.run(programs[i], shape, inputs, {}, {true, 0, 0, 7});
            for (int64_t b = 0; b + 1 < shape.at("O"); b++) {
                Extents alone = shape;
                Arrays own, expected;
                alone["O"] = 2;
                for (const Tensor &t : a.tensors) {
                    own.emplace(t.name, of_segment(inputs.at(t.name), t.dims, b, offsets));
                    if (t.dtype != DType::i64) continue;
                    const int64_t rows = offsets.at(t.name).get(b + 1).integer - offsets.at(t.name).get(b).integer;
                    own[t.name] = Array(DType::i64, {2}, {0, static_cast<double>(rows)});
                    alone[t.name == "queries" ? "S" : "T"] = rows;
                }
                for (const Stage &s : a.stages())
                    for (const Tensor &t : results_of(s))
                        if (batch.count(t.name)) expected.emplace(t.name, of_segment(batch.at(t.name), t.dims, b, offsets));
                CHECK(differ_in_bits(code.run(programs[i], alone, own, {}, {true, 0, 0, 1}), expected) == "");
            }
        }
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
    refused("grouped_plain",
            "error[schedule.place]: offsets.made: it is placed in a loop of 'acc', and says where rows of segments begin, which is read "
            "outside of that loop too. Place it at root.",
            [](KnobsByStage &k) {
                k["offsets.made"].place = Place{Place::Kind::at, "acc", "B"};
            });
    refused("shares_plain", "error[schedule.ragged]: y: the size of dim 'R' varies with outer indices", [](KnobsByStage &k) {
        k["y"].block = {{"B", 2}};
    });
    refused("sums_plain", "it keeps rows of segments, whose scans are not cut", [](KnobsByStage &k) {
        k["y"].split = {{"R", {Split::How::chunks, 4}}};
    });
}

}  // namespace tessera::test_rows
