// What expressions share. Functions of functions, each of which uses its argument several times, would be too large to compile as trees;
// and what is shared must not depend on who made an algorithm.
#include <catch2/catch.hpp>

#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/text/json.h"
#include "algorithms/transform/shared_expressions.h"
#include "support/files/output_folder.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/harness.h"
#include "tests/support/thorough.h"

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

static Algorithm read_again(const Algorithm &algorithm) { return algorithm_from_json(nlohmann::json::parse(to_json(algorithm).dump())); }

// Which nodes each expression has: of each node, operands first, what it is and which nodes before it it uses, told by addresses.
static std::vector<size_t> nodes_of(const TileProgram &program) {
    std::vector<size_t> all;
    const auto note = [&](const Expr &root) {
        std::map<const Expr::Node *, size_t> numbers;
        walk(root, [&](const Expr &e) {
            numbers.emplace(e.get(), numbers.size());
            all.push_back(e->hash);
            for (const Expr &arg : e->args) all.push_back(numbers.at(arg.get()));
        });
    };
    walk(program.body, [&](const TileNode &node) {
        for (const Expr &e : expressions_of(node)) note(e);
    });
    for (const TileProgram &inner : program.programs)
        for (size_t n : nodes_of(inner)) all.push_back(n);
    return all;
}

TEST_CASE("equal expressions are one node, and nothing else changes") {
    Builder b("twice");
    const Dim M = b.dim("M"), N = b.dim("N");
    b.input("x", {M, N});
    const auto x = [&] { return b.tile(load("x", DType::f32, {variable("M"), variable("N")}), {M, N}); };  // another node each time
    const Algorithm made = b.output("y", exp(x()) * exp(x())).build();
    const Algorithm shared = with_shared_expressions(made);
    CHECK(to_json(shared) == to_json(made));
    const Expr &product = *only_value(*shared.find_stage("y"));
    REQUIRE(product.is_operation(Op::mul));
    CHECK(product->args[0].get() == product->args[1].get());
}

// The nodes of the tile programs of all that the library has are alike, and the bytes of code for a share.
TEST_CASE("code does not depend on whether an algorithm was built or read from a file") {
    const Target target = target_named("x86-64");
    const auto code = [&](const TileProgram &program) {
        const TemporaryFolder folder;
        const std::filesystem::path archive = folder.path() / "lib.a";
        emit_library({Kernel{program.name, {{{}, program}}}}, target, {archive, {}});
        return read_file(archive);
    };
    std::set<std::string> seen;
    size_t compiled = 0, number = 0;
    for (const Case &c : library_cases(4)) {
        const bool is_first = !seen.count(c.algorithm.name);
        if (!is_first && number++ % every(8)) continue;
        INFO(c.name);
        Case again = c;
        again.algorithm = read_again(c.algorithm);
        const TileProgram built = lowered(c, target), read = lowered(again, target);
        CHECK(to_text(built) == to_text(read));
        CHECK((nodes_of(built) == nodes_of(read)));
        const bool is_norm = c.algorithm.name == "layernorm";
        if (!seen.insert(c.algorithm.name).second || (!is_norm && seen.size() % every(8))) continue;
        CHECK((code(built) == code(read)));
        compiled++;
    }
    CHECK(compiled >= 5);
}

}  // namespace tessera::test_sharing
