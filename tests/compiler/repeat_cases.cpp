// Calls that repeat, and calls of views.
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/transform/bind_extents.h"
#include "tests/compiler/cases.h"

namespace tessera::test {

namespace {

class RepeatCases {
public:
    explicit RepeatCases(int64_t lanes) : L(lanes) { views(), layers(), heads(), stacks(), searches(), states(), batches(), recurrences(); }
    std::vector<Case> all;

private:
    int64_t L;

    Case &add(const std::string &name, const Algorithm &algorithm, const std::vector<Extents> &shapes) {
        return all.emplace_back(Case{name, algorithm, {}, shapes});
    }
    // Lists of extents for the same dims: {{"M", "N"}, {1, 2}, {3, 4}}.
    static std::vector<Extents> shapes(const std::vector<std::string> &dims, const std::vector<std::vector<int64_t>> &values) {
        std::vector<Extents> result;
        for (auto &v : values) {
            Extents &e = result.emplace_back();
            for (size_t i = 0; i < dims.size(); i++) e[dims[i]] = v[i];
        }
        return result;
    }
    static Algorithm attend();
    void views();
    void layers();
    void heads();
    void stacks();
    void searches();
    void states();
    void batches();
    void recurrences();
};

// softmax(q k') v of one head, by way of all scores.
Algorithm RepeatCases::attend() {
    Builder f("attend");
    const Dim M = f.dim("M"), S = f.dim("S"), D = f.dim("D");
    const Tile q = f.input("q", {M, D}), k = f.input("k", {S, D}), v = f.input("v", {S, D});
    const Tile scores = dot(q, k, {D}).named("scores");  // (M, S)
    const Tile weights = exp(scores - max(scores, S).named("most")).named("weights");
    return f.output("o", dot(weights, v, {S}) / sum(weights, S)).build();  // (M, D)
}

// A part of the columns, every second row, and one column, of inputs and of what is computed.
void RepeatCases::views() {
    Builder g("scaled");
    const Dim A = g.dim("A"), B = g.dim("B");
    const Tile u = g.input("u", {A, B}), by = g.input("by", {A});
    const Algorithm scaled = g.output("s", u * by).build();
    Builder f("of_views");
    const Dim M = f.dim("M"), N = f.dim("N"), H = f.dim("H", L + 1);
    const Dim W = f.dim(derived_dim("W", extent("N") + extent("H"))), R = f.dim(derived_dim("R", extent("M") * 2));
    const Tile x = f.input("x", {R, W}), row = f.input("row", {W, R});
    const Tile even = x.at({{"R", variable("M") * 2}, {"W", variable("N") + extent("H")}}, {"M", "N"});  // of rows, right of H columns
    const Tile first = row.at({{"W", Expr(0)}, {"R", variable("M")}}, {"M"});
    const Tile doubled = (x * 2.0).named("doubled");
    const Tile left = doubled.at({{"R", variable("M")}, {"W", variable("H")}}, {"M", "H"});
    const Tile a = f.call("a", scaled, {even, first})[0];  // (M, N)
    const Tile b = f.call("b", scaled, {left, first})[0];  // (M, H)
    const Algorithm of_views = f.output("y", a).output("z", b).build();
    const auto mn = shapes({"M", "N"}, {{0, 3}, {1, 1}, {2, L}, {5, 2 * L + 1}});
    add("views_inline", of_views, mn);
    Case &once = add("views_once", of_views, mn);
    for (const char *scope : {"a", "b"}) once.stages[scope].call = "once";
    once.stages["b.s"].vector = {{"H", L}}, once.stages["b.s"].parallel = {"M"};
}

// A layer's weights are a slice of a stack.
void RepeatCases::layers() {
    Builder g("layer");
    const Dim M = g.dim("M"), D = g.dim("D"), K = g.dim(derived_dim("K", extent("D")));
    const Tile x = g.input("x", {M, D}), w = g.input("w", {D, K}), b = g.input("b", {K});
    const Tile scale = g.parameter("scale", DType::f32);
    const Tile hidden = relu(dot(x, w, {D}).named("acc") * scale + b).named("hidden");  // (M, K)
    const Tile back = hidden.at({{"K", variable("D")}}, {"M", "D"});                    // K is D
    const Algorithm layer = g.output("y", x + back).output("mean", sum(hidden, K)).build();
    Builder f("layers");
    const Dim N = f.dim("N"), I = f.dim("M"), E = f.dim("D"), O = f.dim(derived_dim("K", extent("D")));
    const Tile start = (f.input("x", {I, E}) * 0.5).named("start");
    const Tile index = cast(DType::f32, f.index(N)) + 0.25;
    const std::vector<Tile> made = f.repeat("layers", layer, {"N", {{"x", "y"}}, {"mean"}},
                                            {start, f.input("w", {N, E, O}), f.input("b", {N, O})}, {{"scale", index}});
    const Algorithm layers = f.output("y", made[0]).output("means", made[1]).build();
    const std::vector<std::string> dims = {"N", "M", "D"};
    const auto nmd = shapes(dims, {{0, 2, 3}, {1, 1, 1}, {2, 3, L}, {3, 2, 5}, {4, 1, 2 * L + 1}, {7, 5, 3}});
    add("layers_repeated", layers, nmd);
    Case &tiled = add("layers_repeated_tiled", layers, nmd);
    tiled.stages["layers.acc"].vector = {{"K", L}}, tiled.stages["layers.acc"].micro = {{"K", 2 * L}, {"M", 2}};
    tiled.stages["layers.hidden"].parallel = {"M"}, tiled.stages["layers.y"].vector = {{"D", L}};
    for (const int64_t n : {1, 2, 5}) {
        Algorithm fixed = bind_extents(layers, {{"N", n}});
        add("layers_repeated_" + std::to_string(n), fixed, shapes({"M", "D"}, {{1, 1}, {3, L + 1}}));
    }
}

// Heads of a joined axis, side by side in threads, each with its own memory for scores.
void RepeatCases::heads() {
    Builder f("heads");
    const Dim H = f.dim("H"), M = f.dim("M"), D = f.dim("D");
    const Dim E = f.dim(derived_dim("E", extent("H") * extent("D") * 3)), S = f.dim(derived_dim("S", extent("M")));
    const Tile qkv = f.input("qkv", {M, E});
    auto part = [&](int64_t number, const Dim &rows) {
        const Expr column = (extent("H") * number + variable("H")) * extent("D") + variable("D");
        return qkv.at({{"M", variable(rows.name)}, {"E", column}}, {"H", rows.name, "D"});
    };
    const Tile o = f.repeat("head", attend(), {.dim = "H", .stacked = {"o"}}, {part(0, M), part(1, S), part(2, S)})[0];  // (H, M, D)
    const Algorithm heads = f.output("y", o).build();
    const auto hmd = shapes({"H", "M", "D"}, {{0, 2, 3}, {1, 1, 1}, {2, 3, L}, {3, 5, 2}, {4, 2, L + 3}});
    add("heads_in_turn", heads, hmd);
    Case &parallel = add("heads_in_parallel", heads, hmd);
    parallel.stages["head"].parallel = {"H"};
    parallel.stages["head.scores"].parallel = {"M"};
    parallel.stages["head.o"].vector = {{"D", L}};
}

// What each round leaves, read by the next where it lies; the last round's; and rounds that share nothing.
void RepeatCases::stacks() {
    Builder g("step");
    const Dim N = g.dim("N");
    const Tile h = g.input("h", {N}), x = g.input("x", {N});
    const Algorithm step = g.output("next", h * 0.5 + x).output("twice", h + h).build();
    Builder f("recurrence");
    const Dim T = f.dim("T"), U = f.dim("N");
    const Tile start = f.input("start", {U}), xs = f.input("xs", {T, U});
    const std::vector<Tile> made = f.repeat("rounds", step, {"T", {{"h", "next"}}, {"next", "twice"}}, {start, xs});
    add("recurrence", f.output("hs", made[0]).output("twices", made[1]).build(),
        shapes({"T", "N"}, {{0, 3}, {1, 1}, {2, L}, {5, 2 * L + 1}}));

    // So many rounds as data says, whose stack is folded.
    Builder c("counted_stack");
    const Tile tries = c.input("tries", {}, DType::i32);
    const Dim C = c.dim(counted_dim("C", tries.value(), Expr(5))), P = c.dim("N");
    const Tile first = c.input("start", {P});
    const Tile stack = c.repeat("rounds", step, {"C", {{"h", "next"}}, {"next", "twice"}}, {first, c.input("x", {P})})[1];
    const Tile halves = (stack * 0.5).named("halves");  // whose outermost loop data counts
    add("counted_stack", c.output("y", sum(stack, C)).output("z", sum(halves, C)).build(), shapes({"N"}, {{0}, {1}, {L}, {2 * L + 1}}));

    // Rounds that only pass on what they are given, as often as data says.
    Builder pass("pass");
    const Tile given = pass.input("given", {pass.dim("N")});
    const Algorithm passed = pass.output("same", given).build();
    Builder again("counted_again");
    const Tile times = again.input("tries", {}, DType::i32);
    const Dim rounds = again.dim(counted_dim("C", times.value(), Expr(5))), Q = again.dim("N");
    const Tile copies = again.repeat("rounds", passed, {"C", {}, {"same"}}, {again.input("x", {Q})})[0];
    const Algorithm counted = again.output("y", sum(sum(copies, Q), rounds)).build();
    add("counted_again", counted, shapes({"N"}, {{0}, {1}, {L}, {2 * L + 1}}));
    add("counted_again_split", counted, shapes({"N"}, {{0}, {L + 1}})).stages["y"].split["C"] = {Split::How::threads, 4};

    // Whoever asks how much storage a call needs has no parameters yet.
    Builder sized("counted_by_parameter");
    const Dim counts = sized.dim(counted_dim("C", cast(DType::index, sized.parameter("length", DType::i32).value()), Expr(5))),
              R = sized.dim("N");
    const Tile kept = cast(DType::f32, sized.index(counts) + sized.index(R)).named("kept");
    add("counted_by_parameter", sized.output("y", sum(kept, counts)).build(), shapes({"N"}, {{0}, {1}, {L + 1}}));

    // No argument has the dim of which another's size is made.
    Builder w("derived_twice");
    const Dim A = w.dim("N"), B = w.dim(derived_dim("B", extent("N") * 2 + 3)), D = w.dim(derived_dim("D", extent("B") * 3));
    const Tile wide = w.input("wide", {D}), right = wide.at({{"D", extent("B") + variable("N")}}, {"N"});
    add("derived_twice", w.output("y", w.call("step", step, {right, w.input("x", {A})})[0]).build(), shapes({"N"}, {{0}, {1}, {L + 1}}));

    Builder k("last_of");
    Dim at_least_one = symbolic_dim("T");
    at_least_one.min = 1;
    const Dim V = k.dim(at_least_one), W = k.dim("N");
    const std::vector<Tile> last =
        k.repeat("rounds", step, {.dim = "T", .stacked = {"twice"}}, {k.input("xs", {V, W}), k.input("ys", {V, W})});
    add("last_of", k.output("y", last[0]).output("twices", last[1]).build(), shapes({"T", "N"}, {{1, 1}, {3, L + 1}}));
}

// Rounds until data says that it is enough; how many there may be is data too.
void RepeatCases::searches() {
    Builder g("halve");
    const Dim N = g.dim("N");
    const Tile x = g.input("x", {N}), count = g.input("count", {}, DType::i32);
    const Tile half = (x * 0.5).named("half");
    const Algorithm halve =
        g.output("y", half).output("more", count + 1.0, DType::i32).output("enough", sum(abs(half), N) < 1.0, DType::boolean).build();
    Builder f("search");
    const Tile tries = f.input("tries", {}, DType::i32);
    const Dim M = f.dim("N"), T = f.dim(counted_dim("T", tries.value(), Expr(40)));
    const Tile zero = f.scalar(DType::i32, 0).named("zero");
    const std::vector<Tile> found =
        f.repeat("rounds", halve, {"T", {{"x", "y"}, {"count", "more"}}, {}, "enough"}, {f.input("x", {M}), zero});
    add("search", f.output("y", found[0]).output("count", found[1], DType::i32).build(), shapes({"N"}, {{0}, {1}, {L}, {3}, {2 * L + 1}}));
}

// One slice of a cache belongs to each round.
void RepeatCases::states() {
    Dim places = symbolic_dim("S");
    places.min = 1;
    Builder g("remember");
    const Dim N = g.dim("N"), S = g.dim(places);
    const Tile x = g.input("x", {N}), cache = g.state("cache", {S, N}), at = g.parameter("at", DType::i32);
    const Tile before = (sum(cache, S)).named("before");  // (N)
    g.update("keep", cache, {bounded(at, Expr(0), extent("S")), g.index(N)}, x + before);
    const Algorithm remember = g.output("y", x + sum(cache, S)).build();
    Builder f("caches");
    const Dim T = f.dim("T"), M = f.dim("N"), P = f.dim(places);
    const Tile all = f.state("all", {T, P, M}), at_place = f.parameter("at", DType::i32);
    const Tile y = f.repeat("rounds", remember, {"T", {{"x", "y"}}}, {f.input("x", {M}), all}, {{"at", at_place}})[0];
    add("caches", f.output("y", y).output("seen", sum(all, T)).build(),
        shapes({"T", "S", "N"}, {{0, 1, 3}, {1, 1, 1}, {2, 3, L}, {5, 2, 2 * L + 1}}));
}

// Rounds of rounds: a batch in threads, whose elements go through layers.
void RepeatCases::batches() {
    Builder g("layer");
    const Dim N = g.dim("N");
    const Tile x = g.input("x", {N}), b = g.input("b", {N});
    const Algorithm layer = g.output("y", (x * x).named("square") + b).build();
    Builder h("element");
    const Dim T = h.dim("T"), U = h.dim("N");
    const Algorithm element =
        h.output("y", h.repeat("layer", layer, {"T", {{"x", "y"}}}, {h.input("x", {U}), h.input("b", {T, U})})[0]).build();
    Builder f("batch");
    const Dim B = f.dim("B"), R = f.dim("T"), V = f.dim("N");
    const Tile y = f.repeat("element", element, {.dim = "B", .stacked = {"y"}}, {f.input("x", {B, V}), f.input("b", {R, V})})[0];
    const Algorithm batch = f.output("z", y * 2.0).build();
    const auto btn = shapes({"B", "T", "N"}, {{0, 1, 1}, {1, 0, 3}, {2, 1, L}, {3, 4, 5}, {5, 3, 2 * L + 1}});
    add("batch_in_turn", batch, btn);
    Case &parallel = add("batch_in_parallel", batch, btn);
    parallel.stages["element"].parallel = {"B"};
    parallel.stages["element.layer.y"].vector = {{"N", L}};
}

// Steps of networks, from states that are given.
void RepeatCases::recurrences() {
    const auto of = [](const std::vector<Option> &declared, const Options &given) { return complete_options("", declared, given); };
    const auto tnih = shapes({"T", "N", "I", "H"}, {{0, 2, 3, 4}, {1, 1, 1, 1}, {2, 3, L, 5}, {3, 1, 2, L + 1}, {4, 5, 3, 2 * L}});
    const Algorithm lstm = library::lstm({}, of(library::lstm_options(), {}));
    add("lstm", lstm, tnih);
    Case &tiled = add("lstm_tiled", lstm, tnih);
    tiled.stages["gates"].vector = {{"G", L}}, tiled.stages["gates"].parallel = {"T"};
    tiled.stages["step.recurrent"].vector = {{"G", L}}, tiled.stages["step.recurrent"].micro = {{"N", 2}, {"G", 2 * L}};
    tiled.stages["step.hidden"].vector = {{"H", L}};
    add("lstm_bf16", library::lstm(numerics_named("bf16"), of(library::lstm_options(), {{"direction", 1}, {"transpose_w", 1}})), tnih);
    add("gru", library::gru({}, of(library::gru_options(), {{"gates", 1}})), tnih);
    add("gru_resets_before", library::gru({}, of(library::gru_options(), {{"resets", 1}, {"bias", 0}})), tnih);
    add("rnn", library::rnn({}, of(library::rnn_options(), {{"activation", 1}, {"bias", 1}})), tnih);
    const auto tnh = shapes({"T", "N", "H"}, {{0, 2, 3}, {1, 1, 1}, {3, 2, L + 1}});
    for (const int64_t shared : {0, 1})
        add("linear_recurrence_" + std::to_string(shared), library::linear_recurrence({}, {{"shared", shared}}), tnh);
    const auto nlcr = shapes({"N", "L", "C", "R", "O"}, {{1, 0, 2, 3, 1}, {2, 1, 3, 4, 5}, {1, 7, L + 1, 1, 2}, {2, 9, 2, 2, L}});
    const Algorithm causal = library::causal_conv1d({}, of(library::causal_conv1d_options(), {{"dilation", 2}, {"bias", 1}}));
    add("causal_conv1d", causal, nlcr);
    Case &lanes = add("causal_conv1d_lanes", causal, nlcr);
    lanes.stages["acc"].vector = {{"O", L}}, lanes.stages["acc"].micro = {{"L", 3}, {"O", L}},
    lanes.stages["joined"].place = Place{Place::Kind::inlined, "", ""};
    auto ncr = shapes({"N", "L", "C", "R"}, {{1, 0, 2, 3}, {2, 1, 3, 4}, {1, 7, L + 1, 2}});
    add("causal_conv1d_depthwise", library::causal_conv1d({}, of(library::causal_conv1d_options(), {{"depthwise", 1}, {"activation", 4}})),
        ncr);
}

}  // namespace

std::vector<Case> repeat_cases(int64_t lanes) { return RepeatCases(lanes).all; }

}  // namespace tessera::test
