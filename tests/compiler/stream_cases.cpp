// Results that go past the caches: rows, tiles and blocks of maps and folds, in loops of every kind.
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "tests/compiler/cases.h"

namespace tessera::test {

std::vector<Case> stream_cases(int64_t L) {
    std::vector<Case> all;
    auto add = [&](const std::string &name, const Algorithm &algorithm, const std::vector<Extents> &shapes) -> Case & {
        return all.emplace_back(Case{name, algorithm, {}, shapes});
    };
    auto at = [](const std::string &loop) { return Place{Place::Kind::at, "y", loop}; };
    const std::vector<Extents> rows = {{{"M", 0}, {"N", 5}},         {{"M", 3}, {"N", 0}},  {{"M", 1}, {"N", 1}},
                                       {{"M", 5}, {"N", 2 * L + 1}}, {{"M", 4}, {"N", 64}}, {{"M", 3}, {"N", 1003}}};
    Case &softmax = add("softmax_streamed", library::softmax({}), rows);
    for (const char *stage : {"max", "exp", "sum"}) softmax.stages[stage].place = at("M"), softmax.stages[stage].vector = {{"N", L}};
    softmax.stages["y"].vector = {{"N", L}}, softmax.stages["y"].parallel = {"M"}, softmax.stages["y"].stream = "M";
    // In blocks whose rows are parts of the argument's, and in the tiles that a fold is computed in.
    const std::vector<Extents> shapes = {{{"M", 0}, {"N", 5}, {"K", 3}},
                                         {{"M", 1}, {"N", 1}, {"K", 1}},
                                         {{"M", 7}, {"N", 6 * L + 1}, {"K", 5}},
                                         {{"M", 9}, {"N", 4 * L}, {"K", 0}}};
    Knobs tiles;
    tiles.micro = {{"M", 2}, {"N", 2 * L}}, tiles.vector = {{"N", L}}, tiles.block = {{"M", 4}, {"N", 4 * L}};
    for (const char *loop : {"block.M", "block.N", "micro.M", "micro.N"}) {
        Case &c = add(std::string("matmul_streamed_") + (loop[0] == 'b' ? "block_" : "micro_") + loop[6], library::matmul({}), shapes);
        c.stages["y"] = tiles, c.stages["y"].stream = loop;
    }
    Case &parallel = add("matmul_streamed_in_parallel", library::matmul({}), shapes);
    parallel.stages["y"] = tiles, parallel.stages["y"].parallel = {"block.M", "block.N"}, parallel.stages["y"].stream = "block.N";
    Case &narrow = add("matmul_streamed_narrow", library::matmul({}), shapes);
    narrow.stages["y"] = tiles, narrow.stages["y"].stream = "micro.N";
    narrow.stages["y"].tail = {{"M", Tail::narrow}, {"N", Tail::narrow}};
    // Elements of two bytes, point by point, and what a later stage at root reads again.
    Numerics halves;
    halves.storage = DType::bf16;
    Case &points = add("silu_streamed", library::silu(halves), {{{"M", 3}, {"N", 77}}, {{"M", 2}, {"N", 0}}, {{"M", 1}, {"N", 130}}});
    points.stages["y"].stream = "M";
    Builder f("read_again");
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    const Tile y = x * x;
    Case &again = add("read_again_streamed", f.output("y", y).output("z", y + x).build(), rows);
    again.stages["y"].stream = "M", again.stages["z"].parallel = {"M"};
    return all;
}

}  // namespace tessera::test
