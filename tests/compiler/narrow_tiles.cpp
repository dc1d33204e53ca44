// Tails that are computed in tiles of fewer rows and vectors.
#include "compiler/lower/loops/narrow_tiles.h"

#include <catch2/catch.hpp>
#include <functional>

#include "algorithms/library/library.h"
#include "compiler/check/code_size.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/cases.h"

namespace tessera::test_narrow_tiles {

using namespace tessera::test;

// The register tiles of the program as texts "rows x vectors", in the order of the text.
static std::vector<std::string> tiles(const Algorithm &algorithm, const Knobs &y) {
    std::vector<std::string> found;
    walk(lower(algorithm, {{"y", y}}, target_named("avx512")).body, [&](const TileNode &node) {
        auto *alloc = std::get_if<Alloc>(&node);
        if (!alloc || alloc->buffer.space != Space::registers) return;
        const std::vector<Expr> &e = alloc->buffer.extents;
        const int64_t rows = e.size() == 1 ? 1 : e[0]->value.integer;
        found.push_back(std::to_string(rows) + "x" + std::to_string(e.back()->value.integer / 16));
    });
    return found;
}

static Algorithm product(const Extents &fixed) { return bind_extents(library::matmul({}), fixed); }

TEST_CASE("a narrow tail has a body for each number of rows and vectors that may be left") {
    Knobs y;
    y.micro = {{"M", 4}, {"N", 48}}, y.vector = {{"N", 16}}, y.tail = {{"M", Tail::narrow}, {"N", Tail::narrow}};
    using Tiles = std::vector<std::string>;
    // What extents decide needs one body.
    CHECK(tiles(product({{"M", 8}, {"N", 96}}), y) == Tiles{"4x3"});
    CHECK(tiles(product({{"M", 8}, {"N", 100}}), y) == Tiles{"4x3", "4x1"});
    CHECK(tiles(product({{"M", 8}, {"N", 128}}), y) == Tiles{"4x3", "4x2"});
    CHECK(tiles(product({{"M", 9}, {"N", 96}}), y) == Tiles{"4x3", "1x3"});
    CHECK(tiles(product({{"M", 9}, {"N", 100}}), y) == Tiles{"4x3", "4x3", "4x1", "1x3", "1x1"});
    // A tile is cut to what there is, as with other tails.
    CHECK(tiles(product({{"M", 3}, {"N", 20}}), y) == Tiles{"3x2"});
    CHECK(tiles(product({{"N", 96}}), y) == Tiles{"4x3", "3x3", "2x3", "1x3"});
    CHECK(tiles(product({{"M", 8}}), y) == Tiles{"4x3", "4x3", "4x2", "4x1"});
    CHECK(tiles(library::matmul({}), y).size() == 1 + 4 * 3);
}

TEST_CASE("a multiple leaves fewer bodies, also where the tile stands in a larger one") {
    Algorithm a = product({{"N", 96}});
    for (Dim &dim : a.dims)
        if (dim.name == "M") dim.multiple_of = 2;
    Knobs y;
    y.micro = {{"M", 6}, {"N", 48}}, y.vector = {{"N", 16}}, y.tail = {{"M", Tail::narrow}};
    CHECK(tiles(a, y) == std::vector<std::string>{"6x3", "4x3", "2x3"});
    y.block = {{"M", 24}};
    CHECK(tiles(a, y) == std::vector<std::string>{"6x3", "4x3", "2x3"});
    // Tiles that do not begin at multiples of themselves leave any number.
    y.block = {{"M", 20}};
    CHECK(tiles(a, y) == std::vector<std::string>{"6x3", "5x3", "4x3", "3x3", "2x3", "1x3"});
}

TEST_CASE("never more bodies than are stated") {
    for (int64_t rows : {8, 13, 24}) {
        Knobs y;
        y.micro = {{"M", rows}, {"N", 48}}, y.vector = {{"N", 16}}, y.tail = {{"M", Tail::narrow}, {"N", Tail::narrow}};
        const std::vector<std::string> all = tiles(library::matmul({}), y);
        INFO(rows);
        CHECK(all.size() > max_narrow_bodies / 2);
        CHECK(all.size() <= 1 + max_narrow_bodies);
        CHECK(all[1] == std::to_string(rows) + "x3");  // the largest is always there
    }
}

TEST_CASE("a narrow tail gives the bits of a masked one") {
    for (const Case &c : narrow_cases(8)) {
        Case masked = c;
        for (auto &[stage, knobs] : masked.stages) knobs.tail.clear();
        const TileProgram narrow = lowered(c, target_named("avx2")), other = lowered(masked, target_named("avx2"));
        CHECK(resolved_hash(narrow) != resolved_hash(other));
        uint32_t seed = 0;
        for (const Extents &shape : c.shapes) {
            INFO(c.name << " " << seed);
            const Parameters parameters = make_parameters(c.algorithm, ++seed);
            const Arrays inputs = make_inputs(c.algorithm, shape, seed, seed % 3 == 0);
            CHECK(differ_in_bits(run_interpreter(narrow, shape, inputs, parameters), run_interpreter(other, shape, inputs, parameters)) ==
                  "");
        }
    }
}

}  // namespace tessera::test_narrow_tiles
