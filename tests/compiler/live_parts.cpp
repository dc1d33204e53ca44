// Folds whose condition says at which indices it can hold: the loops run there and nowhere else, and no bit of a result tells.
#include <catch2/catch.hpp>

#include <optional>

#include "algorithms/build/tile_functions.h"
#include "compiler/interpret/interpret.h"
#include "tests/compiler/harness.h"

namespace tessera::test_live_parts {

using namespace tessera::test;
using How = Split::How;

namespace {

constexpr int64_t batch = 3, queries = 4, width = 5;
enum class Seen : uint8_t { lengths, clamped, window_of_data, window, sinks, tree, from_below };
constexpr std::initializer_list<Seen> all_seen = {Seen::lengths, Seen::clamped, Seen::window_of_data, Seen::window,
                                                  Seen::sinks,   Seen::tree,    Seen::from_below};

// Attention of few queries in rows of keys. With `hidden`, the condition is beside a tensor of no trues, so that it limits nothing.
Algorithm attention_where(Seen seen, bool hidden) {
    Builder f("attend");
    const Dim B = f.dim("B"), S = f.dim("S"), T = f.dim("T"), D = f.dim("D"), E = f.dim("E");
    const Tile q = f.input("q", {B, S, D}), k = f.input("k", {B, T, D}), v = f.input("v", {B, T, E});
    const Tile key = f.index(T);
    const auto own = [&] { return f.index(S) + cast(DType::index, f.parameter("position", DType::i32, 0)); };
    const auto number = [&](const char *name) { return cast(DType::index, f.input(name, {B}, DType::i32)); };
    Tile where;
    switch (seen) {
    case Seen::lengths: where = key < number("length"); break;
    case Seen::clamped: where = key < min(max(number("length"), 0), f.tile(extent(T.name), {})); break;
    case Seen::window_of_data: where = number("begin") <= key && key < number("length"); break;
    case Seen::window: {
        const Tile at = own();
        where = at - 8.0 < key && key <= at;
        break;
    }
    case Seen::sinks: {
        const Tile at = own();
        where = (key < f.scalar(DType::index, 2) || at - 8.0 < key) && key <= at;
        break;
    }
    case Seen::from_below: where = own() <= key; break;
    case Seen::tree: {
        const Tile tree = f.input("tree", {S, f.dim("A")}, DType::boolean), before = number("length"), at = key - before;
        const Expr inside = Expr(0) <= at.value() && at.value() < extent("A");
        const Tile is_ancestor =
            f.tile(load_or("tree", DType::boolean, {variable(S.name), at.value()}, inside, constant_int(DType::boolean, 0)), {B, S, T});
        where = key < before + f.tile(extent("A"), {}) && (key < before || is_ancestor);
        break;
    }
    }
    if (hidden) where = where || f.input("never", {T}, DType::boolean);
    return f.output("o", online_softmax(dot(q, k, {D}).named("scores"), v, T, E, where)).build();  // (B, S, E)
}

// The fold as it is, in slices, and in pieces of each kind, with what its pieces need computed beside them.
// A tree's rows are not there where a register tile of queries runs past them.
std::vector<KnobsByStage> schedules(Seen seen) {
    std::vector<KnobsByStage> all(7);
    const std::string s = "online_softmax";
    for (KnobsByStage &stages : all) stages["o"].parallel = {"B"};
    all[1][s].unroll = {{"T", 4}};
    all[2][s].split["T"] = {How::chunks, 8};
    all[3][s].split["T"] = {How::threads, 8};
    all[4][s].split["T"] = {How::lanes, 4};
    all[5][s].split["T"] = {How::online, 8};
    KnobsByStage &near = all[6];
    const auto place = [&](const std::string &stage, const std::string &in, const std::string &loop) {
        near[stage].place = Place{Place::Kind::at, in, loop};
    };
    near[s].split["T"] = {How::online, 8};
    if (seen != Seen::tree) near[s].micro = near["scores"].micro = {{"S", 4}};
    if (seen == Seen::clamped) near["scores"].micro["T"] = 4;
    place(s, "o", "B"), place("scores", s, "T.o");
    for (const char *pass : {".chunk.m", ".chunk.p", ".chunk.l", ".chunk.acc"}) place(s + pass, s, "T.o");
    return all;
}

// `data`: lengths, and where windows begin.
struct Given {
    Arrays inputs;
    Parameters parameters;
};
Given given(const Algorithm &a, const Extents &extents, const std::vector<int64_t> &data, int64_t position) {
    Given g{make_inputs(a, extents, 1), make_parameters(a, 1)};
    const auto fill = [&](const char *name, int64_t shift) {
        auto found = g.inputs.find(name);
        for (int64_t b = 0; found != g.inputs.end() && b < found->second.size(); b++)
            found->second.set(b, Scalar::of_integer(DType::i32, data[static_cast<size_t>(b + shift) % data.size()]));
    };
    fill("length", 0), fill("begin", 1);
    if (auto never = g.inputs.find("never"); never != g.inputs.end())
        for (int64_t t = 0; t < never->second.size(); t++) never->second.set(t, Scalar::of_integer(DType::boolean, 0));
    if (g.parameters.count("position")) g.parameters["position"] = Scalar::of_integer(DType::i32, position);
    return g;
}

Extents extents_of(const Algorithm &a, int64_t keys) {
    Extents all = {{"B", batch}, {"S", queries}, {"A", queries}, {"T", keys}, {"D", 3}, {"E", width}};
    std::erase_if(all, [&](const auto &dim) { return !a.find_dim(dim.first); });
    return all;
}

const std::vector<std::vector<int64_t>> hostile = {{0, -1, 40}, {INT32_MAX, INT32_MIN, 7}, {1, 16, 8}, {33, 32, 31}};
const std::vector<int64_t> positions = {0, 5, 16, 40, INT32_MAX - 8};

// How many elements the interpreter computes.
int64_t work(const TileProgram &program, const Extents &extents, const Given &g) {
    int64_t elements = 0;
    InterpretOptions options;
    options.on_store = [&](const TileStore &) { elements++; };
    Arrays arrays = g.inputs;
    std::map<std::string, TensorView> views;
    for (const Argument &argument : program.arguments) {
        const std::string &name = argument.tensor.name;
        if (!arrays.count(name)) arrays[name] = Array(argument.tensor.dtype, {batch, queries, width});
        views[name] = arrays.at(name).view(name);
    }
    interpret(program, views, extents, g.parameters, options);
    return elements;
}

void check(const Target &target, const std::optional<Build> &build) {
    for (const Seen seen : all_seen) {
        const Algorithm limited = attention_where(seen, false), hidden = attention_where(seen, true);
        size_t number = 0;
        for (const KnobsByStage &stages : schedules(seen)) {
            INFO(target.name << " condition " << static_cast<int>(seen) << " schedule " << number++);
            const TileProgram program = lowered("attend", limited, stages, target), all = lowered("attend_all", hidden, stages, target);
            if (build && number > 2 && number < 6) continue;  // a compiler takes its time
            std::optional<Loaded> code;
            if (build) code.emplace(std::vector<TileProgram>{program}, target, *build);
            for (const int64_t keys : {0, 1, 33})
                for (size_t i = 0; i < positions.size(); i++) {
                    const Extents extents = extents_of(limited, keys);
                    const auto &data = hostile[i % hostile.size()];
                    const Given g = given(limited, extents, data, positions[i]), h = given(hidden, extents, data, positions[i]);
                    INFO("keys " << keys << " position " << positions[i]);
                    const Arrays got = run_interpreter(program, extents, g.inputs, g.parameters);
                    if (code) {
                        for (const Layout &layout : {Layout{}, Layout{false, 2, 1, 2}})
                            CHECK(differ_in_bits(code->run(program, extents, g.inputs, g.parameters, layout), got) == "");
                        continue;
                    }
                    CHECK(differ_in_bits(got, run_interpreter(all, extents, h.inputs, h.parameters)) == "");
                    CHECK(differ(got, run_reference(limited, extents, g.inputs, g.parameters), 1e-5) == "");
                }
        }
    }
}

}  // namespace

TEST_CASE("live_parts: what limits a fold changes no bit, whatever data says") { check(target_named("avx2"), std::nullopt); }

TEST_CASE("live_parts: code has the interpreter's bits") {
    check(target_named("x86-64"), Build{});
    check(target_named("x86-64"), c_builds("-O1").front());
}

TEST_CASE("live_parts: work goes with what lives, not with how many keys there are") {
    for (const Seen seen : {Seen::lengths, Seen::clamped, Seen::window_of_data, Seen::window, Seen::sinks, Seen::tree}) {
        const Algorithm a = attention_where(seen, false);
        const std::vector<KnobsByStage> all = schedules(seen);
        for (const size_t number : {0, 1, 6}) {
            INFO("condition " << static_cast<int>(seen) << " schedule " << number);
            const TileProgram program = lowered("attend", a, all[number], target_named("avx2"));
            const auto elements = [&](int64_t keys, const std::vector<int64_t> &data, int64_t position) {
                const Extents extents = extents_of(a, keys);
                // What is computed at root for all keys is left out, as it is there with no condition either.
                const Given g = given(a, extents, data, position);
                return work(program, extents, g) - (number == 6 ? 0 : batch * queries * keys * 5);
            };
            const std::vector<int64_t> few = {16, 24, 32};
            CHECK(elements(600, few, 32) == elements(1200, few, 32));
            if (seen == Seen::window) CHECK(elements(600, few, 32) == elements(600, few, 560));
            if (seen == Seen::lengths || seen == Seen::clamped)
                CHECK(elements(600, {48, 48, 48}, 0) - elements(600, {0, 0, 0}, 0) ==
                      2 * (elements(600, {24, 24, 24}, 0) - elements(600, {0, 0, 0}, 0)));
        }
    }
}

TEST_CASE("live_parts: a key sees the queries from its own on") {
    Builder f("sums");
    const Dim S = f.dim("S"), T = f.dim("T"), E = f.dim("E");
    const Tile weights = f.input("weights", {S, T}), g = f.input("g", {S, E});
    f.output("y", f.fold(dot_monoid(DType::f32), {weights, g}, {"S"}, f.index(T) <= f.index(S))[0]);  // (T, E)
    const Algorithm a = f.build();
    KnobsByStage stages;
    stages["y"].block = {{"T", 8}}, stages["y"].micro = {{"T", 4}, {"E", 4}}, stages["y"].k = {{"S", 16}},
    stages["y"].parallel = {"block.T"};
    for (const KnobsByStage &how : {KnobsByStage{}, stages}) {
        const TileProgram program = lowered("sums", a, how, target_named("avx2"));
        int64_t steps = 0, all = 0;
        for (const int64_t n : {0, 1, 7, 300, 320}) {
            const Extents extents = {{"S", n}, {"T", n}, {"E", 4}};
            const Arrays inputs = make_inputs(a, extents, 1);
            CHECK(differ_in_bits(run_interpreter(program, extents, inputs, {}), run_reference(a, extents, inputs, {})) == "");
            Arrays arrays = inputs;
            arrays["y"] = Array(DType::f32, {n, 4});
            std::map<std::string, TensorView> views;
            for (auto &[name, array] : arrays) views[name] = array.view(name);
            InterpretOptions options;
            steps = 0, all = n * n * 4;
            options.on_store = [&](const TileStore &) { steps++; };
            interpret(program, views, extents, {}, options);
        }
        CHECK(steps < all * 6 / 10);
        CHECK(steps > all / 2);
    }
}

}  // namespace tessera::test_live_parts
