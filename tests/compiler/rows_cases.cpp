// Ragged dims as axes: nests over segments and their rows, tiled along rows, placed in each other, split, packed.
#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "tests/compiler/cases.h"

namespace tessera::test {

namespace {

Dim rows_of_input(Builder &f, const std::string &flat, const std::string &rows, const std::string &offsets) {
    Dim O = symbolic_dim("O");
    O.min = 1, O = f.dim(O);
    const Dim B = f.dim(derived_dim("B", extent("O") - 1)), T = f.dim(flat);
    return f.rows(rows, f.segments(f.input(offsets, {O}, DType::i64), B, T));
}

Algorithm grouped(bool with_bias) {
    Builder f(with_bias ? "grouped_bias" : "grouped");
    const Dim R = rows_of_input(f, "T", "R", "offsets"), T = f.dim("T"), K = f.dim("K"), N = f.dim("N");
    const Tile x = f.input("x", {T, K}), w = f.input("w", {f.dim_named("B"), K, N});
    const Tile acc = dot(x.rows(R), w, {K}).named("acc");                                                          // (B, R, N)
    if (!with_bias) return f.output("acc", flat(acc)).build();                                                     // (T, N)
    return f.output("y", relu(acc + f.input("bias", {f.dim_named("B"), N})) * f.input("g", {T}).rows(R)).build();  // (T, N)
}

Algorithm attention(bool causal) {
    Builder f(causal ? "lengths_causal" : "lengths");
    const Dim Q = rows_of_input(f, "S", "Q", "queries"), R = rows_of_input(f, "T", "R", "keys");
    const Dim B = f.dim_named("B"), S = f.dim("S"), T = f.dim("T"), H = f.dim("H"), D = f.dim("D"), E = f.dim("E");
    const Tile q = f.input("q", {S, H, D}), k = f.input("k", {T, H, D}), v = f.input("v", {T, H, E});
    const Tile scores = dot(q.rows(Q), k.rows(R), {D}).named("scores");  // (B, Q, H, R)
    const Tile sees = causal ? f.tile(variable("R") - extent("R") <= variable("Q") - extent("Q"), {B, Q, R}) : Tile();
    return f.output("o", flat(online_softmax(scores, v.rows(R), R, E, sees))).build();  // (S, H, E)
}

Algorithm shares() {
    Builder f("shares");
    const Dim R = rows_of_input(f, "T", "R", "offsets"), T = f.dim("T"), N = f.dim("N");
    const Tile x = f.input("x", {T, N});
    const Tile y = softmax(x.rows(R), R);                                           // (B, R, N)
    return f.output("y", flat(y)).output("z", flat(y.named("share")) + x).build();  // (T, N)
}

Algorithm sums() {
    Builder f("sums");
    const Dim R = rows_of_input(f, "T", "R", "offsets"), T = f.dim("T"), N = f.dim("N");
    return f.output("y", flat(f.scan(sum_monoid(DType::f32), f.input("x", {T, N}).rows(R), R))).build();  // (T, N)
}

}  // namespace

std::vector<Case> rows_cases(int64_t L) {
    std::vector<Case> all;
    auto add = [&](const std::string &name, const Algorithm &a, const std::vector<Extents> &shapes) -> Case & {
        return all.emplace_back(Case{name, a, {}, shapes});
    };
    auto place = [](const std::string &stage, const std::string &loop) { return Place{Place::Kind::at, stage, loop}; };
    std::vector<Extents> btkn, bthde, btn;
    for (const auto &[b, t, k, n] : std::vector<std::array<int64_t, 4>>{
             {0, 3, 2, 3}, {2, 0, 1, 2}, {1, 1, 1, 1}, {2, 11, 3, L + 1}, {4, 9, 5, 2 * L}, {3, 40, 2, 3 * L - 1}, {7, 5, 4, L}})
        btkn.push_back({{"O", b + 1}, {"T", t}, {"K", k}, {"N", n}}), btn.push_back({{"O", b + 1}, {"T", t}, {"N", n}});
    for (const auto &[b, s, t, d, e] : std::vector<std::array<int64_t, 5>>{
             {0, 2, 2, 1, 2}, {1, 1, 1, 1, 1}, {2, 7, 9, 3, L}, {3, 11, 30, 2, L + 3}, {4, 5, 3, 4, 2}, {2, 0, 5, 1, 1}, {2, 9, 0, 2, 3}})
        bthde.push_back({{"O", b + 1}, {"S", s}, {"T", t}, {"H", 2}, {"D", d}, {"E", e}});

    add("grouped_plain", grouped(false), btkn);
    Case &lanes = add("grouped_lanes", grouped(false), btkn);
    lanes.stages["acc"].vector = {{"N", L}}, lanes.stages["acc"].parallel = {"B"};
    Case &tiles = add("grouped_tiles", grouped(false), btkn);
    tiles.stages["acc"].micro = {{"R", 4}, {"N", 2 * L}}, tiles.stages["acc"].vector = {{"N", L}}, tiles.stages["acc"].parallel = {"B"};
    Case &blocks = add("grouped_blocks", grouped(false), btkn);
    blocks.stages["acc"].block = {{"R", 6}, {"N", 4 * L}}, blocks.stages["acc"].micro = {{"R", 3}, {"N", L}};
    blocks.stages["acc"].vector = {{"N", L}}, blocks.stages["acc"].loops = {"B", "block.N", "block.R", "micro.R", "micro.N", "K"};
    blocks.stages["acc"].parallel = {"B"};
    Case &packed = add("grouped_packed", grouped(false), btkn);
    packed.stages["acc"].micro = {{"R", 4}, {"N", L}}, packed.stages["acc"].vector = {{"N", L}};
    packed.stages["acc"].loops = {"B", "micro.N", "micro.R", "K"}, packed.stages["acc"].parallel = {"B"};
    packed.stages["acc"].pack["w"] = {"micro.N", {{"B", 0, false}, {"K", 0, false}, {"N", 0, false}}};
    Case &chunks = add("grouped_chunks", grouped(false), btkn);
    chunks.stages["acc"].split = {{"K", {Split::How::chunks, 2}}};

    add("grouped_bias_plain", grouped(true), btkn);
    Case &placed = add("grouped_bias_placed", grouped(true), btkn);
    placed.stages["y"].micro = {{"R", 4}, {"N", 2 * L}}, placed.stages["y"].vector = {{"N", L}}, placed.stages["y"].parallel = {"B"};
    placed.stages["acc"].micro = {{"R", 4}, {"N", 2 * L}}, placed.stages["acc"].vector = {{"N", L}};
    placed.stages["acc"].place = place("y", "micro");
    Case &other = add("grouped_bias_other_tiles", grouped(true), btkn);  // which do not divide those that they are placed in
    other.stages["y"].micro = {{"R", 4}, {"N", 2 * L}}, other.stages["y"].vector = {{"N", L}}, other.stages["y"].parallel = {"B"};
    other.stages["acc"].micro = {{"R", 3}, {"N", L}}, other.stages["acc"].vector = {{"N", L}};
    other.stages["acc"].place = place("y", "micro");
    Case &in_rows = add("grouped_bias_in_rows", grouped(true), btkn);
    in_rows.stages["y"].vector = {{"N", L}}, in_rows.stages["acc"].vector = {{"N", L}}, in_rows.stages["acc"].place = place("y", "R");

    for (const bool causal : {false, true}) {
        const std::string name = causal ? "lengths_causal" : "lengths";
        add(name + "_plain", attention(causal), bthde);
        const auto lanes_of = [&](Case &c) {
            for (const char *stage : {"o", "online_softmax"}) c.stages[stage].vector = {{"E", L}}, c.stages[stage].parallel = {"B"};
        };
        Case &parallel = add(name + "_parallel", attention(causal), bthde);
        lanes_of(parallel), parallel.stages["scores"].parallel = {"B"};
        Case &near = add(name + "_placed", attention(causal), bthde);
        lanes_of(near), near.stages["scores"].place = place("online_softmax", "Q");
        Case &nested = add(name + "_nested", attention(causal), bthde);
        lanes_of(nested), nested.stages["online_softmax"].parallel.clear();
        nested.stages["online_softmax"].place = place("o", "Q"), nested.stages["scores"].place = place("online_softmax", "H");
        if (causal) continue;  // pieces that the condition ends: what data says of them twice cannot be proved
        Case &parts = add(name + "_parts", attention(causal), bthde);
        lanes_of(parts), parts.stages["scores"].split = {{"D", {Split::How::chunks, 2}}};
        parts.stages["scores"].micro = {{"H", 2}, {"R", 4}}, parts.stages["scores"].place = place("online_softmax", "Q");
        parts.stages["scores.partial"].micro = {{"R", 3}}, parts.stages["scores.partial"].place = place("scores", "micro");
        Case &online = add(name + "_online", attention(causal), bthde);
        lanes_of(online), online.stages["online_softmax"].split = {{"R", {Split::How::online, 3}}};
        for (const char *part : {"m", "p", "l", "acc"})
            online.stages[std::string("online_softmax.chunk.") + part].place = place("online_softmax", "R.o");
        online.stages["online_softmax.chunk.acc"].vector = {{"E", L}};
        online.stages["scores"].place = place("online_softmax", "R.o");
    }

    add("shares_plain", shares(), btn);
    Case &shared = add("shares_lanes", shares(), btn);
    for (const Stage &stage : shared.algorithm.stages())
        if (std::count(stage.dims.begin(), stage.dims.end(), "N")) shared.stages[stage.name].vector = {{"N", L}};
    for (const char *stage : {"y", "share"}) shared.stages[stage].parallel = {"B"};

    add("sums_plain", sums(), btn);
    Case &scanned = add("sums_lanes", sums(), btn);
    scanned.stages["y"].vector = {{"N", L}};
    return all;
}

}  // namespace tessera::test
