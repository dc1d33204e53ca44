// Functions of functions, each of which uses its argument several times: as trees they would be too large to compile.
#include <catch2/catch.hpp>

#include <functional>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "tests/compiler/harness.h"

namespace tessera::test_sharing {

using namespace tessera::test;

// y = x under `f` so many times, in one statement.
static Case repeated(const std::string &name, int times, int64_t lanes, DType type, const std::function<Tile(const Tile &)> &f) {
    Builder b(name);
    Case c;
    Tile t = b.input("x", {b.dim("M"), b.dim("N")}, type);
    for (int i = 0; i < times; i++) {
        const std::string stage = "s" + std::to_string(i);
        t = f(t).named(stage);
        c.stages[stage].place = Place{Place::Kind::inlined, "", ""};
    }
    c.name = name;
    c.algorithm = b.output("y", select(t < t, t, t)).build();
    c.stages["y"].vector = {{"N", lanes}};
    c.shapes = {{{"M", 2}, {"N", 0}}, {{"M", 3}, {"N", 2 * lanes + 3}}};
    return c;
}

TEST_CASE("what an expression uses often is computed once, and compiles in no time") {
    for (const Target &target : targets()) {
        const int64_t lanes = target.vector_bytes / 4;
        const std::vector<Case> cases = {
            repeated("gelus", 6, lanes, DType::f32, [](const Tile &t) { return gelu(t); }),
            repeated("roundings", 24, lanes, DType::f32, [](const Tile &t) { return cast(DType::f32, cast(DType::bf16, t)) * 1.25; }),
            repeated("quotients", 4, lanes, DType::i32, [](const Tile &t) { return (t + t) / (t * t); }),
            repeated("gathers", 3, lanes, DType::i32,
                     [](const Tile &t) {
                         const Expr v = t.value(), at = cast(DType::index, v);
                         const Expr inside = Expr(0) <= at && Expr(0) < extent("N"), place = bounded(at, 0, extent("N"));
                         return t.builder().tile(load_or("x", DType::i32, {Expr(0), place}, inside, v - constant_int(DType::i32, 1)),
                                                 {t.builder().dim("M"), t.builder().dim("N")});
                     }),
        };
        std::vector<TileProgram> programs;
        for (const Case &c : cases) programs.push_back(lowered(c, target));
        const Loaded code(programs, target);
        for (size_t i = 0; i < cases.size(); i++)
            for (const Extents &shape : cases[i].shapes) {
                INFO(target.name << " " << cases[i].name);
                const Arrays inputs = make_inputs(cases[i].algorithm, shape, 3, true);
                CHECK(differ_in_bits(code.run(programs[i], shape, inputs, {}, {}), run_interpreter(programs[i], shape, inputs, {})) == "");
            }
    }
}

}  // namespace tessera::test_sharing
