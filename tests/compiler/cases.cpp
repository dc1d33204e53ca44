#include "tests/compiler/cases.h"

#include <filesystem>

#include "algorithms/build/convolution.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/text/print.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "schedules/knobs/written_out.h"
#include "support/text/error.h"

namespace tessera::test {

using How = Split::How;

static Place at(const std::string &stage, const std::string &loop) { return {Place::Kind::at, stage, loop}; }

class Cases {
public:
    explicit Cases(int64_t lanes) : L(lanes) {
        products();
        normalizations();
        attentions();
        folds();
        positions();
        constants();
        calls();
        convolutions();
        transforms();
        for (Case &c : scan_cases(L, false)) all.push_back(std::move(c));
        for (Case &c : narrow_cases(L)) all.push_back(std::move(c));
        for (Case &c : stream_cases(L)) all.push_back(std::move(c));
        for (Case &c : beside_cases(L)) all.push_back(std::move(c));
        for (Case &c : scatter_cases(L)) all.push_back(std::move(c));
        for (Case &c : rows_cases(L)) all.push_back(std::move(c));
        for (Case &c : repeat_cases(L)) all.push_back(std::move(c));
        for (Case &c : low_bit_cases(L)) all.push_back(std::move(c));
    }
    std::vector<Case> all;

private:
    int64_t L;

    Case &add(const std::string &name, const Algorithm &algorithm, const std::vector<Extents> &shapes) {
        all.push_back({name, algorithm, {}, shapes});
        return all.back();
    }

    // Lists of extents for the same dims: {{"M", "N"}, {1, 2}, {3, 4}}.
    static std::vector<Extents> shapes(const std::vector<std::string> &dims, const std::vector<std::vector<int64_t>> &values) {
        std::vector<Extents> result;
        for (auto &v : values) {
            Extents e;
            for (size_t i = 0; i < dims.size(); i++) e[dims[i]] = v[i];
            result.push_back(e);
        }
        return result;
    }

    void products() {
        Numerics f32, bf16 = numerics_named("bf16"), f16 = numerics_named("f16");
        auto mnk = shapes(
            {"M", "N", "K"},
            {{0, 5, 3}, {3, 0, 2}, {2, 3, 0}, {1, 1, 1}, {7, 2 * L + 1, 5}, {5, 3 * L - 1, 17}, {13, 31, 33}, {9, 2 * L, 1}, {4, 50, 16}});
        add("matmul_plain", library::matmul(f32), mnk);
        Knobs tile;
        tile.micro = {{"M", 4}, {"N", 2 * L}}, tile.vector = {{"N", L}};
        add("matmul_tile", library::matmul(f32), mnk).stages["y"] = tile;
        Case &rounded_twice = add("matmul_mul_add", library::matmul(f32), mnk);
        rounded_twice.stages["y"] = tile;
        rounded_twice.stages["y"].instruction = "mul_add";
        add("matmul_bf16", library::matmul(bf16), mnk).stages["y.acc"] = tile;
        add("matmul_f16", library::matmul(f16), mnk);
        add("matmul_tf32", library::matmul(numerics_named("tf32")), mnk);
        // Weights as codes, subnormal numbers as zeros, other rounding.
        auto mnk16 = shapes({"M", "N", "K"}, {{0, 3, 16}, {3, 0, 32}, {2, 3, 0}, {1, 1, 16}, {5, 2 * L + 1, 48}});
        for (const char *policy : {"inference", "nvfp4"})
            add(std::string("linear_") + policy, library::linear(numerics_named(policy)), mnk16);
        Numerics own = bf16;
        own.name = "own", own.denormals = Denormals::flushed, own.rounding = Rounding::up, own.weights = WeightFormat::i8;
        add("linear_own_policy", library::linear(own), mnk).stages["inner"] = tile;
        Knobs packed = tile;
        packed.block = {{"N", 4 * L}}, packed.loops = {"block.N", "micro.N", "micro.M"};
        packed.pack["w"] = {"micro.N", {{"N", 2 * L, false}, {"K", 0, false}, {"N", 2 * L, true}}};
        add("matmul_packed", library::matmul(f32), mnk).stages["y"] = packed;
        Knobs ahead = packed;
        ahead.prefetch = {{"x", {"y", "micro.M", 1}}, {"y", {"", "", 0}}};
        Knobs panels;
        panels.place = at("y", "micro.N"), panels.prefetch = {{"w", {"y", "block.N", 2}}};
        Case &prefetched = add("matmul_prefetched", library::matmul(f32), mnk);
        prefetched.stages["y"] = ahead, prefetched.stages["y.w.packed"] = panels;
        Knobs wide = tile;
        wide.pack["w"] = {"root", {{"N", 17 * L + 3, false}, {"K", 0, false}, {"N", 17 * L + 3, true}}};
        add("matmul_wide_panels", library::matmul(f32),
            shapes({"M", "N", "K"}, {{2, 3, 0}, {5, 2 * L + 1, 3}, {9, 17 * L + 3, 2}, {3, 40 * L, 5}}))
            .stages["y"] = wide;
        Knobs sliced = tile;
        sliced.block = {{"M", 8}, {"N", 4 * L}}, sliced.k = {{"K", 8}};
        sliced.parallel = {"block.M", "block.N"};
        add("matmul_sliced", library::matmul(f32), mnk).stages["y"] = sliced;
        Knobs unrolled = sliced;
        unrolled.unroll = {{"K", 3}};
        add("matmul_unrolled", library::matmul(f32), mnk).stages["y"] = unrolled;
        Knobs rest = tile;
        rest.tail = {{"N", Tail::loop}, {"M", Tail::loop}};
        add("matmul_tail_loop", library::matmul(f32), mnk).stages["y"] = rest;
        Case &gelu = add("linear_gelu_placed", library::linear_gelu(f32), mnk);
        gelu.stages["y"] = tile, gelu.stages["acc"] = tile;
        gelu.stages["y"].block = {{"M", 8}}, gelu.stages["y"].parallel = {"block.M"};
        gelu.stages["acc"].place = at("y", "micro");
        add("linear_plain", library::linear(f32), mnk).stages["acc"] = tile;
        auto mk = shapes({"M", "K"}, {{0, 3}, {3, 0}, {1, 1}, {7, 15}, {5, 2 * L + 1}, {3, 67}, {17, 4 * L}});
        // Tiles that do not start at multiples of the vectors inside them.
        Case &apart = add("linear_tiles_apart", library::linear(f32), mnk);
        apart.stages["acc"].levels = {{"tile", {{"N", L + 2}}}}, apart.stages["acc"].vector = {{"N", L}};
        Case &none_divides = add("matmul_tiles_that_divide_nothing", library::matmul(f32), mnk);
        Knobs &strips = none_divides.stages["y"];
        strips.block = {{"M", 5}, {"N", 2 * L + 3}}, strips.levels = {{"tile", {{"N", L + 3}}}}, strips.micro = {{"M", 2}};
        strips.loops = {"block.N", "block.M", "tile.N", "micro.M"}, strips.parallel = {"block"};
        strips.vector = {{"N", L}}, strips.tail = {{"M", Tail::loop}, {"N", Tail::loop}};
        Case &lanes = add("gemv_lanes", library::gemv(f32), mk);
        lanes.stages["y"].split["K"] = {How::lanes, 2 * L};
        lanes.stages["y.partial"].micro = {{"K.i", 2 * L}}, lanes.stages["y.partial"].vector = {{"K.i", L}};
        lanes.stages["y.partial"].place = at("y", "M");
        // The last vectors of the last tile lie past the lanes, where all of theirs read one element.
        Case &beyond = add("gemv_lanes_beyond", library::gemv(f32), mk);
        beyond.stages["y"].split["K"] = {How::lanes, 8 * L};
        beyond.stages["y.partial"].micro = {{"K.i", 3 * L}}, beyond.stages["y.partial"].vector = {{"K.i", L}};
        beyond.stages["y.partial"].place = at("y", "M");
        Case &threads = add("gemv_threads", library::gemv(f32), mk);
        threads.stages["y"].split["K"] = {How::threads, 16};
        Case &chunks = add("gemv_chunks", library::gemv(f32), mk);
        chunks.stages["y"].split["K"] = {How::chunks, 7};
    }

    void normalizations() {
        Numerics f32;
        auto mn = shapes({"M", "N"}, {{0, 3}, {3, 0}, {1, 1}, {2, L - 1}, {3, L + 1}, {7, 2 * L}, {5, 37}, {2, 131}});
        add("softmax_plain", library::softmax(f32), mn);
        Case &softmax = add("softmax_rows", library::softmax(f32), mn);
        for (std::string s : {"max", "sum"}) {
            softmax.stages[s].split["N"] = {How::lanes, 2 * L}, softmax.stages[s].place = at("y", "M");
            Knobs &part = softmax.stages[s + ".partial"];
            part.micro = {{"N.i", 2 * L}}, part.vector = {{"N.i", L}}, part.place = at("y", "M");
        }
        softmax.stages["exp"].place = at("y", "M"), softmax.stages["exp"].vector = {{"N", L}};
        softmax.stages["y"].vector = {{"N", L}}, softmax.stages["y"].parallel = {"M"};
        // Pieces of two sizes, and of lanes; each stage calls its own N.o and N.i.
        Case &sizes = add("softmax_two_splits", library::softmax(f32), mn);
        sizes.stages["max"].split["N"] = {How::chunks, 2 * L + 3}, sizes.stages["max"].place = at("y", "M");
        sizes.stages["max.partial"].place = at("max", "N.o"), sizes.stages["max.partial"].unroll = {{"N.i", 4}};
        sizes.stages["sum"].split = {{"N", {How::lanes, 2 * L}}, {"N.i", {How::lanes, L}}}, sizes.stages["sum"].place = at("y", "M");
        sizes.stages["sum.partial"].vector = {{"N.i", L}}, sizes.stages["sum.partial"].place = at("y", "M");
        sizes.stages["sum.partial2"].vector = {{"N.i.i", L}}, sizes.stages["sum.partial2"].place = at("y", "M");
        sizes.stages["exp"].place = at("y", "M"), sizes.stages["y"].vector = {{"N", L}}, sizes.stages["y"].parallel = {"M"};
        // Lanes of a fixed dim that they do not divide: what is over belongs to some lanes only.
        Builder fixed_columns("softmax_fixed_columns", f32);
        Dim rows = fixed_columns.dim("M"), columns = fixed_columns.dim("N", 4 * L + 3);
        Case &lanes = add("softmax_fixed_lanes",
                          fixed_columns.output("y", tessera::softmax(fixed_columns.input("x", {rows, columns}), columns)).build(),
                          shapes({"M"}, {{0}, {1}, {3}}));
        lanes.stages["max"].split["N"] = {How::lanes, L}, lanes.stages["sum"].split["N"] = {How::lanes, 2 * L};
        // A producer's register tile is larger than what its consumer needs, and so reads past what lies inside it.
        Case &larger = add("softmax_larger_tile", library::softmax(f32), mn);
        larger.stages["y"].micro = {{"M", 13}, {"N", 5}}, larger.stages["sum"].micro = {{"M", 8}};
        larger.stages["sum"].place = at("y", "micro"), larger.stages["exp"].place = at("y", "micro.M");
        add("layernorm_plain", library::layernorm(f32), mn).stages["y"].vector = {{"N", L}};
        Case &layernorm = add("layernorm_lanes", library::layernorm(f32), mn);
        layernorm.stages["welford"].split["N"] = {How::lanes, L};
        layernorm.stages["welford.partial"].vector = {{"N.i", L}}, layernorm.stages["y"].vector = {{"N", L}};
        Case &residual = add("residual_layernorm_chunks", library::residual_layernorm(f32), mn);
        residual.stages["welford"].split["N"] = {How::chunks, 8}, residual.stages["total"].place = Place{Place::Kind::inlined, "", ""};
        Case &rmsnorm = add("rmsnorm_placed", library::rmsnorm(f32), mn);
        rmsnorm.stages["squares"].place = at("y", "M"), rmsnorm.stages["scale"].place = at("y", "M");
        rmsnorm.stages["y"].vector = {{"N", L}}, rmsnorm.stages["y"].parallel = {"M"};
        add("feed_forward_plain", library::feed_forward(f32), shapes({"M", "D", "F"}, {{1, 1, 1}, {3, 5, 7}, {2, L + 1, 2 * L - 1}}))
            .stages["up.acc"]
            .vector = {{"F", L}};
    }

    void attentions() {
        Numerics f32;
        auto hstde = shapes({"H", "S", "T", "D", "E"}, {{0, 1, 1, 1, 1},
                                                        {1, 1, 1, 1, 1},
                                                        {2, 0, 3, 2, 2},
                                                        {1, 5, 7, 3, 2},
                                                        {2, 13, 9, 4, L + 1},
                                                        {1, 17, 33, 8, L - 1},
                                                        {1, 5, 9, 0, 3}});
        add("attention_plain", library::attention(f32), hstde);
        for (bool causal : {false, true}) {
            Case &c = add(causal ? "attention_causal_online" : "attention_online",
                          causal ? library::attention_causal(f32) : library::attention(f32), hstde);
            std::string s = "online_softmax";
            int64_t rows = L, keys = 8;
            c.stages[s].split["T"] = {How::online, keys};
            c.stages["o"].block = {{"S", rows}}, c.stages["o"].vector = {{"E", L}}, c.stages["o"].parallel = {"H"};
            auto place = [&](const std::string &stage, const std::string &in, const std::string &loop) {
                c.stages[stage].place = at(in, loop);
            };
            place(s, "o", "block.S"), place("scaled", "o", "block.S");
            c.stages["scaled"].vector = {{"S", L}}, c.stages["scaled"].layout = {{"D"}, {"S"}};
            place("scores", s, "T.o");
            c.stages["scores"].micro = {{"S", rows}, {"T", 4}}, c.stages["scores"].vector = {{"S", L}},
            c.stages["scores"].layout = {{"T"}, {"S"}};
            for (std::string p : {"m", "p", "l", "acc"}) {
                place(s + ".chunk." + p, s, "T.o");
                if (p != "acc") c.stages[s + ".chunk." + p].micro = {{"S", rows}}, c.stages[s + ".chunk." + p].vector = {{"S", L}};
            }
            c.stages[s + ".chunk.p"].layout = {{"T.i"}, {"S"}};
            c.stages[s + ".chunk.acc"].micro = {{"S", 4}, {"E", 2 * L}}, c.stages[s + ".chunk.acc"].vector = {{"E", L}};
        }
        Case &passes = add("attention_passes", library::attention(f32), hstde);
        passes.stages["online_softmax"].split["T"] = {How::passes, 0};
        // Without keys' dims every score is the sum of nothing, whatever loops over those dims came before.
        Case &slices = add("attention_slices", library::attention(f32), hstde);
        slices.stages["scaled"].levels = {{"tile", {{"D", 16}}}}, slices.stages["scores"].k = {{"D", 3}};
        Case &empty = add("attention_without_dims", bind_extents(library::attention(f32), {{"D", 0}}),
                          shapes({"H", "S", "T", "E"}, {{1, 5, 7, 3}, {2, 9, 0, 1}}));
        empty.stages["scores"].k = {{"D", 3}}, empty.stages["scores"].micro = {{"T", 4}},
        empty.stages["scaled"].place = at("scores", "k.D");
    }

    // Tables in the kernel: read by row, by a computed position, as a scalar, in 2-byte and 1-byte types, and one inside a callee.
    // Folds that carry a position beside a value, in i64 outputs.
    void positions() {
        Builder f("max_plus");
        const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
        const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N});
        const std::vector<Tile> best = f.fold(argmax_monoid(DType::f32), {x + w, cast(DType::i64, f.index(K))}, {"K"});
        const Algorithm product = f.output("y", best[0]).output("at", best[1]).build();
        const auto mnk = shapes({"M", "N", "K"}, {{0, 3, 2}, {3, 0, 2}, {2, 3, 0}, {1, 1, 1}, {3, 2 * L + 1, 9}, {5, L - 1, 17}});
        add("positions_plain", product, mnk);
        Knobs tile;
        tile.micro = {{"M", 2}, {"N", 2 * L}}, tile.vector = {{"N", L}};
        add("positions_tile", product, mnk).stages["argmax"] = tile;
        tile.k = {{"K", 4}};
        add("positions_slices", product, mnk).stages["argmax"] = tile;
        Case &lanes = add("positions_lanes", product, mnk);
        lanes.stages["argmax"].split["K"] = {How::lanes, L};
        lanes.stages["argmax.partial"].vector = {{"K.i", L}};
        add("positions_chunks", product, mnk).stages["argmax"].split["K"] = {How::chunks, 8};
        Builder g("running_argmax");
        const Dim R = g.dim("M"), T = g.dim("N");
        const Tile z = g.input("z", {R, T});
        const std::vector<Tile> running = g.scan_parts(argmax_monoid(DType::f32), {z, cast(DType::i64, g.index(T))}, T);
        add("positions_scan", g.output("y", running[0]).output("at", running[1]).build(),
            shapes({"M", "N"}, {{0, 3}, {3, 0}, {1, 1}, {7, 9}, {2, L + 1}, {L + 1, 17}}));
    }

    void constants() {
        auto series = [](int64_t n, double first, double step) {
            std::vector<double> values;
            for (int64_t i = 0; i < n; i++) values.push_back(first + step * static_cast<double>(i));
            return values;
        };
        Builder g("windowed");
        Dim R = g.dim("R"), C = g.dim("C", 21);
        Tile v = g.input("v", {R, C});
        Algorithm windowed = g.output("y", v * g.constant("window", {C}, series(21, 0.1, 0.37))).build();

        Builder f("tables");
        Dim M = f.dim("M"), N = f.dim("N", 21), T = f.dim("T", 5), K = f.dim("K", 4);
        Tile x = f.input("x", {M, N});
        Tile window = f.call("window", windowed, {x})[0];  // (M, N)
        Tile row = f.constant("row", {N}, series(21, -3.0e-3, 1.7), DType::bf16);
        Tile basis = f.constant("basis", {K, N}, series(84, 1.0, -0.013));
        Tile order = f.constant("order", {T}, {3, 0, 4, 1, 2}, DType::i32);
        Tile odd = f.constant(
            "odd", {N},
            [] {
                std::vector<double> bits(21);
                for (size_t i = 1; i < 21; i += 2) bits[i] = 1;
                return bits;
            }(),
            DType::boolean);
        Tile scale = f.constant("scale", {}, {0.5});
        Expr position = bounded(cast(DType::index, load("order", DType::i32, {variable("M") % Expr(5)})), Expr(0), Expr(5));
        Tile gathered = f.constant("values", {T}, {1, 10, 100, 1000, 10000}).at({{"T", position}}, {"M"});  // (M)
        Tile weights = f.input("weights", {M, K});
        Tile mixed = dot(weights, basis).named("mixed");      // (M, N)
        Tile kept = select(odd, window + row, window - row);  // (M, N)
        Algorithm tables = f.output("z", kept * scale + gathered + mixed).build();
        Knobs tile;
        tile.micro = {{"M", 3}, {"N", 2 * L}}, tile.vector = {{"N", L}};
        auto m = shapes({"M"}, {{0}, {1}, {2}, {3}, {7}, {19}});
        add("constants_plain", tables, m);
        Case &c = add("constants_tile", tables, m);
        c.stages["z"] = c.stages["mixed"] = tile;
        c.stages["z"].parallel = {"micro.M"};
        c.stages["mixed"].place = at("z", "micro");
        c.stages["mixed"].pack["basis"] = {"root", {{"N", 2 * L, false}, {"K", 0, false}, {"N", 2 * L, true}}};
        c.stages["window.y"].place = at("z", "micro"), c.stages["window.y"].vector = {{"N", L}};
    }

    // Calls that are emitted once: on arguments, on each other's results, on a constant, with a state, with a parameter, nested.
    void calls() {
        Numerics f32;
        Knobs tile;
        tile.micro = {{"M", 4}, {"F", 2 * L}}, tile.vector = {{"F", L}},
        tile.pack["w_up"] = {"micro.F", {{"F", 2 * L, false}, {"D", 0, false}, {"F", 2 * L, true}}};
        tile.loops = {"micro.F", "micro.M"};
        Case &layer = add("feed_forward_once", library::feed_forward(f32),
                          shapes({"M", "D", "F"}, {{0, 2, 2}, {1, 1, 1}, {3, 5, 7}, {6, L + 1, 2 * L - 1}, {9, 4 * L, 3}}));
        for (std::string scope : {"up", "down", "norm"}) layer.stages[scope].call = "once";
        layer.stages["up.acc"] = tile, layer.stages["up.acc"].place = at("up.y", "block.M");
        layer.stages["up.y"].block = {{"M", 8}}, layer.stages["up.y"].parallel = {"block.M"}, layer.stages["up.y"].vector = {{"F", L}};
        layer.stages["norm.welford"].split["D"] = {How::chunks, 8};
        layer.stages["norm.welford.partial"].place = at("norm.welford", "M");

        Builder g("scaled_product");
        Dim A = g.dim("A"), B = g.dim("B"), C = g.dim("C");
        Tile u = g.input("u", {A, B}), v = g.input("v", {B, C}), bias = g.input("bias", {C});
        Tile factor = g.parameter("factor", DType::f32);
        Algorithm scaled = g.output("p", relu(dot(u, v).named("product") * factor + bias)).build();  // (A, C)

        Builder h("doubled");
        Dim P = h.dim("P"), Q = h.dim("Q"), R = h.dim("R");
        Tile first = h.call("inner", scaled, {h.input("s", {P, Q}), h.input("t", {Q, R}), h.input("zeros", {R})},
                            {{"factor", h.scalar(DType::f32, 0.25)}})[0];  // (P, R)
        Algorithm doubled = h.output("q", first + first).build();

        Builder k("accumulate");
        Dim X = k.dim("X"), Y = k.dim("Y");
        Tile total = k.state("total", {X, Y});
        k.update("add", total, {k.index(X), k.index(Y)}, total + k.input("more", {X, Y}));
        Algorithm accumulate = k.build();

        Builder f("layers");
        Dim M = f.dim("M"), N = f.dim("N", 2 * L + 1), O = f.dim("O", 2 * L + 1), W = f.dim("W");
        Tile x = f.input("x", {M, N}), to = f.input("to", {N, O}), back = f.input("back", {O, N}), out = f.input("out", {N, W}),
             w = f.input("w", {W});
        Tile scale = f.parameter("scale", DType::f32), seen = f.state("seen", {M, N}), sums = f.state("sums", {M, W});
        Tile table = f.constant("table", {O}, std::vector<double>(static_cast<size_t>(2 * L + 1), 0.5)), row = f.input("row", {N});
        Tile a = f.call("a", scaled, {x, to, table}, {{"factor", scale}})[0];                 // (M, O)
        Tile b = f.call("b", scaled, {a, back, row}, {{"factor", scale + 1.0}})[0];           // (M, N)
        Tile c = f.call("c", doubled, {(b - x).named("step"), to, table})[0];                 // (M, O)
        Tile d = f.call("d", scaled, {b, out, w}, {{"factor", f.scalar(DType::f32, 2)}})[0];  // (M, W)
        f.call("e", accumulate, {seen, b});
        f.call("f", accumulate, {sums, d});
        Algorithm layers = f.output("y", sum(c, O) + d).build();
        auto mw = shapes({"M", "W"}, {{0, 3}, {3, 0}, {1, 1}, {5, 3}, {7, 2 * L + 1}});
        add("layers_inline", layers, mw);
        Case &once = add("layers_once", layers, mw);
        for (std::string scope : {"a", "b", "c", "c.inner", "d", "e", "f"}) once.stages[scope].call = "once";

        // Stages that read a state before, between and after calls that write it.
        Builder p("state_between_calls");
        Dim I = p.dim("I"), J = p.dim("J");
        Tile state = p.state("state", {I, J}), first_seen = (state + 0.0).named("before");
        p.call("one", accumulate, {state, p.input("x", {I, J})});
        Tile between = (state * 2.0).named("between");
        p.call("two", accumulate, {state, between});
        Algorithm turns = p.output("y", state - first_seen).output("z", between + first_seen).build();
        auto ij = shapes({"I", "J"}, {{0, 3}, {1, 1}, {3, 2 * L + 1}});
        add("state_between_calls_inline", turns, ij);
        Case &turns_once = add("state_between_calls", turns, ij);
        turns_once.stages["one"].call = turns_once.stages["two"].call = "once";
        auto product = [&](const std::string &scope, const std::string &rows, const std::string &columns, const std::string &weights) {
            Knobs &p = once.stages[scope + ".p"], &acc = once.stages[scope + ".product"];
            p.block = {{rows, 4}}, p.vector = {{columns, L}}, p.parallel = {"block." + rows};
            acc.place = at(scope + ".p", "block." + rows), acc.micro = {{rows, 2}, {columns, 2 * L}}, acc.vector = {{columns, L}};
            acc.pack[weights] = {"root", {}};
        };
        product("a", "M", "O", "to"), product("b", "M", "N", "back"), product("c.inner", "M", "O", "to"), product("d", "M", "W", "out");
        Case &some = add("layers_partly_once", layers, mw);
        some.stages["c.inner"].call = some.stages["b"].call = "once";
    }

    void convolutions() {
        Numerics f32;
        Options plain{{"stride", 1}, {"padding", 0}, {"dilation", 1}}, same{{"stride", 1}, {"padding", 1}, {"dilation", 1}};
        Options strided{{"stride", 2}, {"padding", 3}, {"dilation", 1}}, dilated{{"stride", 1}, {"padding", 2}, {"dilation", 2}};
        auto images = shapes({"N", "H", "W", "C", "R", "S", "O"}, {{0, 3, 3, 2, 1, 1, 2},
                                                                   {1, 0, 4, 2, 1, 2, 3},
                                                                   {1, 1, 1, 1, 1, 1, 1},
                                                                   {1, 2, 2, 1, 3, 3, 2},
                                                                   {2, 5, 9, 0, 2, 3, L},
                                                                   {1, 7, 8, 3, 3, 3, L + 1},
                                                                   {2, 9, 17, 5, 3, 2, 2 * L - 1}});
        auto direct = [&](const std::string &name, const Algorithm &a, const std::string &padded_at) {
            Case &c = add(name, a, images);
            c.stages["y"].block = {{"P", 3}}, c.stages["y"].micro = {{"Q", 4}, {"O", 2 * L}}, c.stages["y"].vector = {{"O", L}};
            c.stages["y"].loops = {"N", "block.P", "micro.O", "P", "micro.Q", "R", "S", "C"}, c.stages["y"].parallel = {"N", "block.P"};
            if (padded_at == "inline") c.stages["padded"].place = Place{Place::Kind::inlined, "", ""};
            else c.stages["padded"].place = at("y", padded_at), c.stages["padded"].vector = {{"C", L}};
        };
        direct("conv2d_plain_block", library::conv2d_nhwc(f32, plain), "block.P");
        direct("conv2d_same_block", library::conv2d_nhwc(f32, same), "block.P");
        direct("conv2d_same_tile", library::conv2d_nhwc(f32, same), "micro.Q");
        direct("conv2d_same_inline", library::conv2d_nhwc(f32, same), "inline");
        direct("conv2d_strided_block", library::conv2d_nhwc(f32, strided), "block.P");
        direct("conv2d_dilated_tile", library::conv2d_nhwc(f32, dilated), "P");
        add("conv2d_nchw_root", library::conv2d_nchw(f32, strided), images).stages["acc"].vector = {{"O", L}};
        Case &fused = add("conv2d_bias_relu", library::conv2d_bias_relu_nhwc(f32, same), images);
        fused.stages["y"].block = {{"P", 2}, {"Q", 4}}, fused.stages["y"].vector = {{"O", L}};
        fused.stages["acc"].place = at("y", "block"), fused.stages["acc"].micro = {{"Q", 4}, {"O", L}},
        fused.stages["acc"].vector = {{"O", L}};
        fused.stages["padded"].place = at("y", "block");
        Case &along =
            add("conv1d_tile", library::conv1d(f32, dilated),
                shapes({"N", "L", "C", "R", "O"}, {{1, 0, 1, 1, 1}, {1, 1, 2, 3, 3}, {2, 9, 3, 3, L + 1}, {1, 30, 4, 5, 2 * L - 1}}));
        along.stages["y"].micro = {{"P", 4}, {"O", L}}, along.stages["y"].vector = {{"O", L}},
        along.stages["padded"].place = at("y", "micro.P");
        auto channels =
            shapes({"N", "H", "W", "C", "R", "S"},
                   {{0, 3, 3, 2, 1, 1}, {1, 1, 1, 1, 1, 1}, {2, 5, 9, L, 2, 3}, {1, 7, 8, L + 1, 3, 3}, {1, 9, 13, 2 * L - 1, 3, 3}});
        Case &depth = add("depthwise_conv2d_block", library::depthwise_conv2d_nhwc(f32, same), channels);
        depth.stages["y"].block = {{"P", 3}, {"C", 2 * L}}, depth.stages["y"].micro = {{"Q", 3}, {"C", L}},
        depth.stages["y"].vector = {{"C", L}};
        depth.stages["padded"].place = at("y", "block.C"), depth.stages["padded"].vector = {{"C", L}};
        add("grouped_conv2d_plain", library::grouped_conv2d_nhwc(f32, same),
            shapes({"N", "H", "W", "G", "C", "R", "S", "O"}, {{1, 3, 4, 2, 3, 3, 2, 5}, {2, 1, 1, 3, 1, 1, 1, 2}}))
            .stages["y"]
            .vector = {{"O", 4}};
        auto pools = shapes({"N", "H", "W", "C"}, {{0, 3, 3, 2}, {1, 1, 1, 1}, {1, 2, 3, L}, {2, 7, 8, L + 1}, {1, 12, 9, 2 * L - 1}});
        Options pool{{"stride", 2}, {"padding", 1}, {"dilation", 1}, {"size", 3}};
        Case &most = add("max_pool2d_tile", library::max_pool2d_nhwc(f32, pool), pools);
        most.stages["y"].micro = {{"Q", 2}, {"C", L}}, most.stages["y"].vector = {{"C", L}}, most.stages["padded"].place = at("y", "P");
        add("average_pool2d_inline", library::average_pool2d_nhwc(f32, pool), pools).stages["padded"].place =
            Place{Place::Kind::inlined, "", ""};

        // A producer under a window computes the region that the window needs: relu of a 1x1 convolution under a 3x3 one.
        for (const char *loop : {"block.P", "P", "micro.Q"}) {
            Builder f(std::string("halo_") + (loop == std::string("block.P") ? "block" : loop == std::string("P") ? "row" : "tile"), f32);
            Dim N = f.dim("N"), H = f.dim("H"), W = f.dim("W"), C = f.dim("C"), O = f.dim("O"), D = f.dim("D", 3);
            Dim R = f.dim("R", 3), S = f.dim("S", 3);
            Tile x = f.input("x", {N, H, W, C}), w1 = f.input("w1", {C, D}), w = f.input("w", {R, S, D, O});
            Tile inner = relu(dot(x, w1).named("inner")).named("mid");  // (N, H, W, D)
            Case &c =
                add(f.algorithm().name, f.output("y", conv2d(inner, w, H, W, R, S, {D}, window_of(same))).build(),
                    shapes({"N", "H", "W", "C", "O"}, {{1, 1, 1, 1, 1}, {1, 5, 9, 4, L}, {2, 7, 6, 3, L + 1}, {1, 10, 13, 2, 2 * L - 1}}));
            c.stages["y"].block = {{"P", 4}}, c.stages["y"].micro = {{"Q", 4}, {"O", L}}, c.stages["y"].vector = {{"O", L}};
            c.stages["y"].loops = {"N", "block.P", "P", "micro.Q", "micro.O"};
            for (const char *stage : {"padded", "mid", "inner"}) c.stages[stage].place = at("y", loop);
        }
    }

    // Passes that are written out, with lanes along what is contiguous: first the points, whose results are interleaved, then what
    // was transformed before, then pairs.
    void transforms() {
        auto transform = [&](const std::string &name, Algorithm (*make)(const Numerics &, const Options &), int64_t points,
                             bool inlined = false) {
            Case &c = add(name + std::to_string(points) + (inlined ? "_inlined" : ""), make({}, {{"points", points}}),
                          shapes({"B"}, {{0}, {1}, {3}}));
            for (const Stage &stage : c.algorithm.stages()) {
                Knobs &k = c.stages[stage.name];
                if (stage.name == "y") k.vector = {{stage.dims.back(), 2 * L}}, k.parallel = {"B"};
                else k.place = at("y", "B"), k.micro["fft.c"] = 2;
                if (stage.name == "fft.last" && inlined) {
                    k = Knobs{}, k.place = Place{Place::Kind::inlined, "", ""};
                    continue;
                }
                for (const std::string &d : stage.dims) {
                    if (d.starts_with("fft.k")) k.micro[d] = 16;
                    if (d.starts_with(stage.name == "fft.first" ? "fft.p" : "fft.q") || d.starts_with("fft.h")) k.vector[d] = L;
                }
            }
        };
        for (int64_t points : {1, 2, 3, 5, 6, 8, 12, 15, 16, 30, 60, 64}) transform("fft", library::fft, points);
        for (int64_t points : {2, 15, 64, 120}) transform("rfft", library::rfft, points), transform("irfft", library::irfft, points);
        transform("ifft", library::ifft, 48);
        for (int64_t points : {5, 15, 60, 128})
            transform("fft", library::fft, points, true), transform("irfft", library::irfft, 2 * points, true);
        add("fft_plain", library::fft({}, {{"points", 24}}), shapes({"B"}, {{0}, {1}, {5}}));
    }

    void folds() {
        Numerics f32;
        auto mn = shapes({"M", "N"}, {{0, 3}, {3, 0}, {1, 1}, {7, 9}, {2, L + 1}, {33, 2 * L - 1}, {16, 40}});
        add("column_sum_vector", library::column_sum(f32), mn).stages["y"].vector = {{"N", L}};
        Case &slices = add("column_sum_slices", library::column_sum(f32), mn);
        slices.stages["y"].k = {{"M", 1}};
        Case &threads = add("column_sum_threads", library::column_sum(f32), mn);
        threads.stages["y"].split["M"] = {How::threads, 8}, threads.stages["y"].vector = {{"N", L}};
        add("cumulative_sum_plain", library::cumulative_sum(f32), mn);
        Case &scan = add("cumulative_sum_chunks", library::cumulative_sum(f32), mn);
        scan.stages["y"].split["N"] = {How::chunks, 8};
        Builder share("running_share", f32);
        Dim M = share.dim("M"), N = share.dim("N");
        Tile x = share.input("x", {M, N}), total = sum(x, N).named("total");
        Case &both = add("running_share_two_splits", share.output("y", share.scan(sum_monoid(DType::f32), x, N) / total).build(), mn);
        both.stages["total"].split["N"] = {How::threads, 16}, both.stages["total.partial"].parallel = {"M", "N.o"};
        both.stages[both.algorithm.stages()[1].name].split["N"] = {How::chunks, 8};
        add("reverse_cumulative_sum_plain", library::reverse_cumulative_sum(f32), mn);
        Case &reverse = add("reverse_cumulative_sum_chunks", library::reverse_cumulative_sum(f32), mn);
        reverse.stages["y"].split["N"] = {How::chunks, 8};
        add("segmented_cumulative_sum_plain", library::segmented_cumulative_sum(f32), mn);
        Case &anew = add("segmented_cumulative_sum_chunks", library::segmented_cumulative_sum(f32), mn);
        anew.stages["y"].split["N"] = {How::threads, 4}, anew.stages["y.local"].vector = {{"M", L}}, anew.stages["y"].vector = {{"N", L}};
        for (bool inclusive : {false, true})
            for (auto direction : {ScanDirection::forward, ScanDirection::backward}) {
                std::string name = std::string("scan_anew_") + (inclusive ? "inclusive_" : "exclusive_") + name_of(direction);
                for (bool chunks : {false, true}) {
                    Builder f(name + (chunks ? "_chunks" : "_rows"), f32);
                    Dim M = f.dim("M"), N = f.dim("N");
                    Tile x = f.input("x", {M, N}), z = f.input("z", {M, N});
                    Algorithm a =
                        f.output("y", f.scan(max_monoid(DType::f32), x, M, inclusive, direction, z < f.scalar(DType::f32, 0))).build();
                    Case &c = add(a.name, a, mn);
                    if (chunks) c.stages["y"].split["M"] = {How::chunks, 4};
                    c.stages[chunks ? "y.local" : "y"].micro = {{"N", 2 * L}};
                    c.stages[chunks ? "y.local" : "y"].vector = {{"N", L}};
                }
            }
        // All of a dim is there for each tile of its reader, whose points to spare find nothing past its end.
        for (const char *order : {"half", "third"}) {
            Builder f(std::string("whole_dim_") + order, f32);
            Dim M = f.dim("M"), N = f.dim("N");
            Tile z = f.input("z", {M, N});
            Tile all = relu(z).named("all");
            Expr m = variable("M"), row = order == std::string("half") ? extent("M") - 1 - m / Expr(2) : m / Expr(3);
            Tile near = (f.tile(load(all.value()->name, DType::f32, {row, variable("N")}), {M, N}) * z).named("near");  // (M, N)
            Case &c = add(f.algorithm().name, f.output("y", near + z).build(), mn);
            c.stages["y"].micro = {{"M", 8}, {"N", L}}, c.stages["y"].vector = {{"N", L}};
            c.stages["near"].block = {{"M", 2}}, c.stages["near"].place = at("y", "micro");
            c.stages["all"].place = at("near", "block");
        }
        auto btn = shapes({"B", "T", "N"}, {{0, 1, 3}, {1, 1, 1}, {3, 9, 2}, {5, 11, L + 1}, {4, 2, 2 * L - 1}, {6, 12, 40}});
        Case &segments = add("segmented_sum_vector", library::segmented_sum(f32), btn);
        segments.stages["y"].vector = {{"N", L}}, segments.stages["y"].parallel = {"B"};
        add("segmented_sum_plain", library::segmented_sum(f32), btn);
        auto n = shapes({"N"}, {{0}, {1}, {L + 1}, {4 * L + 3}});
        add("random_uniform_vector", library::random_uniform(f32), n).stages["y"].vector = {{"N", L}};
        add("random_normal_vector", library::random_normal(f32), n).stages["y"].vector = {{"N", L}};
        Case &dropped = add("dropout_tiles", library::dropout(f32), mn);
        dropped.stages["y"].micro = {{"N", 2 * L}}, dropped.stages["y"].vector = {{"N", L}}, dropped.stages["y"].parallel = {"M"};
        Case &ring = add("ring_append_vector", library::ring_append(f32),
                         shapes({"B", "W", "T", "D"}, {{0, 1, 1, 1}, {1, 1, 1, 1}, {2, 3, 5, L + 1}, {3, 7, 2, 2 * L - 1}, {2, 5, 5, 33}}));
        ring.stages["append"].vector = {{"D", L}}, ring.stages["append"].parallel = {"B"};
    }
};

std::vector<Case> library_cases(int64_t lanes) { return Cases(lanes).all; }

KnobsByStage for_gpu(KnobsByStage stages) {
    for (auto &[stage, knobs] : stages) {
        knobs.parallel.clear(), knobs.loops.clear(), knobs.directives.clear(), knobs.levels.clear(), knobs.stream.reset();
        auto outside = [](std::string &loop) {
            if (loop.starts_with("micro")) loop = "block";
        };
        if (knobs.place) outside(knobs.place->loop);
        for (auto &[operand, pack] : knobs.pack) outside(pack.at);
    }
    return stages;
}

std::vector<Case> gpu_cases() {
    std::vector<Case> all = Cases(4).all;
    for (Case &c : all) c.name += "_threads", c.stages = for_gpu(c.stages);
    // Transforms are below, under the schedules that ship: each kernel is long.
    std::erase_if(all, [](const Case &c) { return c.name.find("fft") != std::string::npos && !c.name.starts_with("fft_plain"); });
    // Schedules of CPUs that a GPU cannot follow have places at micro, which is no loop there.
    const size_t before = all.size();
    std::erase_if(all, [](const Case &c) {
        try {
            lowered(c, target_named("opencl"));
            return false;
        } catch (const UserError &) { return true; }
    });
    require(all.size() * 4 >= before * 3, "most schedules of CPUs fit a GPU");
    Numerics f32;
    auto add = [&](const std::string &name, const Algorithm &algorithm, std::vector<std::string> dims,
                   const std::vector<std::vector<int64_t>> &values) -> Case & {
        all.push_back({name, algorithm, {}, {}});
        for (auto &v : values) {
            Extents e;
            for (size_t i = 0; i < dims.size(); i++) e[dims[i]] = v[i];
            all.back().shapes.push_back(e);
        }
        return all.back();
    };
    std::vector<std::vector<int64_t>> mnk = {{0, 5, 3},  {3, 0, 2},    {2, 3, 0},    {1, 1, 1},
                                             {7, 17, 5}, {33, 31, 17}, {65, 66, 33}, {64, 64, 16}};
    Knobs tile;
    tile.block = {{"M", 16}, {"N", 32}}, tile.micro = {{"M", 4}, {"N", 4}}, tile.vector = {{"N", 4}};
    add("matmul_blocks", library::matmul(f32), {"M", "N", "K"}, mnk).stages["y"] = tile;
    Knobs staged = tile;
    staged.k = {{"K", 8}};
    staged.pack["x"] = {"k", {{"K", 0, false}, {"M", 0, false}}}, staged.pack["w"] = {"k", {}};
    add("matmul_staged", library::matmul(f32), {"M", "N", "K"}, mnk).stages["y"] = staged;
    // Some of a block's threads have no part of the tile, and there are loops with barriers around what the others compute.
    for (const char *operands : {"", "x", "w", "xw"}) {
        Builder f(std::string("matmul_idle_") + operands, f32);
        Tile product = dot(f.input("x", {f.dim("M", 24), f.dim("K", 16)}), f.input("w", {f.dim("K", 16), f.dim("N", 32)}));
        Case &c = add(f.algorithm().name, f.output("y", product).build(), {}, {{}});
        c.stages["y"].block = {{"M", 32}, {"N", 32}}, c.stages["y"].micro = {{"M", 4}, {"N", 4}}, c.stages["y"].k = {{"K", 8}};
        for (const char *operand = operands; *operand; operand++) c.stages["y"].pack[std::string(1, *operand)] = {"k", {}};
    }
    // A block of one thread, whose barriers would come after loops inside a loop.
    Case &alone = add("softmax_alone", library::softmax(f32), {"M", "N"}, {{1, 1}, {2, 9}, {3, 17}});
    alone.stages["sum"].place = at("y", "block"), alone.stages["sum"].split["N"] = {How::threads, 8};
    alone.stages["y"].block = {{"N", 4}}, alone.stages["y"].vector = {{"N", 4}}, alone.stages["y"].pack["exp"] = {"M", {}};

    // Those that ship.
    Library schedules;
    schedules.add_folder(std::filesystem::path(TESSERA_SOURCE_DIR) / "schedules/library");
    auto shipped = [&](const std::string &name, const Algorithm &algorithm, const std::vector<std::string> &dims,
                       const std::vector<std::vector<int64_t>> &values) -> Case & {
        Case &c = add(name + "_shipped", algorithm, dims, values);
        c.stages = written_out(resolve(schedules.find(name + "/opencl"), schedules), algorithm).stages;
        return c;
    };
    auto transform = [&](const std::string &name, Algorithm (*make)(const Numerics &, const Options &), std::vector<int64_t> lengths) {
        for (int64_t points : lengths) shipped(name, make(f32, {{"points", points}}), {"B"}, {{0}, {3}}).name += std::to_string(points);
    };
    // The longest has its passes in the workspace, the others in shared memory.
    transform("fft", library::fft, {1, 30, 64, 8192}), transform("ifft", library::ifft, {48});
    transform("rfft", library::rfft, {15, 120}), transform("irfft", library::irfft, {15, 128});
    std::vector<std::vector<int64_t>> large = {{0, 5, 3}, {2, 3, 0}, {1, 1, 1}, {63, 65, 17}, {67, 130, 33}},
                                      rows = {{0, 3}, {3, 0}, {1, 1}, {2, 255}, {3, 257}, {2, 601}};
    shipped("matmul", library::matmul(f32), {"M", "N", "K"}, large);
    shipped("linear", library::linear(f32), {"M", "N", "K"}, large);
    shipped("linear_gelu", library::linear_gelu(f32), {"M", "N", "K"}, large);
    shipped("gemv", library::gemv(f32), {"M", "K"}, rows);
    shipped("softmax", library::softmax(f32), {"M", "N"}, rows);
    shipped("layernorm", library::layernorm(f32), {"M", "N"}, rows);
    shipped("residual_layernorm", library::residual_layernorm(f32), {"M", "N"}, rows);
    shipped("rmsnorm", library::rmsnorm(f32), {"M", "N"}, rows);
    shipped("column_sum", library::column_sum(f32), {"M", "N"}, rows);
    shipped("cumulative_sum", library::cumulative_sum(f32), {"M", "N"}, {{0, 3}, {3, 0}, {1, 1}, {65, 7}, {131, 3}});
    shipped("segmented_sum", library::segmented_sum(f32), {"B", "T", "N"}, {{0, 1, 3}, {1, 1, 1}, {3, 9, 65}, {4, 2, 131}});
    shipped("ring_append", library::ring_append(f32), {"B", "W", "T", "D"}, {{0, 1, 1, 1}, {1, 1, 1, 1}, {2, 3, 5, 65}, {3, 7, 2, 131}});
    std::vector<std::vector<int64_t>> heads = {{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {2, 0, 3, 2, 2}, {1, 31, 33, 5, 9}, {2, 33, 65, 8, 33}};
    shipped("attention", library::attention(f32), {"H", "S", "T", "D", "E"}, heads);
    shipped("attention_causal", library::attention_causal(f32), {"H", "S", "T", "D", "E"}, heads);
    const Options same{{"stride", 1}, {"padding", 1}, {"dilation", 1}}, strided{{"stride", 2}, {"padding", 3}, {"dilation", 1}};
    const Options pool{{"stride", 2}, {"padding", 1}, {"dilation", 1}, {"size", 3}};
    const std::vector<std::string> channels = {"N", "H", "W", "C", "R", "S"};
    const std::vector<std::vector<int64_t>> images = {
        {0, 3, 3, 2, 1, 1}, {1, 1, 1, 1, 1, 1}, {2, 5, 9, 0, 2, 3}, {1, 7, 8, 3, 3, 3}, {2, 6, 34, 17, 3, 2}};
    std::vector<std::vector<int64_t>> filters = images;
    for (size_t i = 0; i < filters.size(); i++) filters[i].push_back(std::vector<int64_t>{2, 1, 3, 66, 65}[i]);
    std::vector<std::string> all_dims = channels;
    all_dims.push_back("O");
    shipped("conv2d_nhwc", library::conv2d_nhwc(f32, same), all_dims, filters);
    shipped("conv2d_bias_relu_nhwc", library::conv2d_bias_relu_nhwc(f32, strided), all_dims, filters);
    shipped("depthwise_conv2d_nhwc", library::depthwise_conv2d_nhwc(f32, same), channels, images);
    const std::vector<std::vector<int64_t>> pools = {{0, 3, 3, 2}, {1, 1, 1, 1}, {2, 5, 9, 5}, {1, 8, 35, 67}};
    shipped("max_pool2d_nhwc", library::max_pool2d_nhwc(f32, pool), {"N", "H", "W", "C"}, pools);
    shipped("average_pool2d_nhwc", library::average_pool2d_nhwc(f32, pool), {"N", "H", "W", "C"}, pools);
    return all;
}

}  // namespace tessera::test
