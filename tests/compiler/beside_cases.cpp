// Stages beside others: in all of their loops, or in one.
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "tests/compiler/cases.h"

namespace tessera::test {

namespace {

class BesideCases {
public:
    explicit BesideCases(int64_t lanes) : L(lanes) { in_all_loops(), in_one_loop(); }
    std::vector<Case> all;

private:
    int64_t L;

    Case &add(const std::string &name, const Algorithm &algorithm, const std::vector<Extents> &shapes) {
        return all.emplace_back(Case{name, algorithm, {}, shapes});
    }
    static Place at(const std::string &stage, const std::string &loop) { return {Place::Kind::at, stage, loop}; }
    static Place beside(const std::string &stage, const std::string &loop = "") { return {Place::Kind::beside, stage, loop}; }
    // Lists of extents for the same dims: {{"M", "N"}, {1, 2}, {3, 4}}.
    static std::vector<Extents> shapes(const std::vector<std::string> &dims, const std::vector<std::vector<int64_t>> &values) {
        std::vector<Extents> result;
        for (auto &v : values) {
            Extents &e = result.emplace_back();
            for (size_t i = 0; i < dims.size(); i++) e[dims[i]] = v[i];
        }
        return result;
    }
    void in_all_loops();
    void in_one_loop();
};

void BesideCases::in_all_loops() {
    const Numerics f32;
    const auto n = shapes({"N"}, {{0}, {1}, {L - 1}, {L}, {2 * L + 1}, {7 * L + 3}, {131}});
    Case &adam = add("adamw_joined", library::adamw(f32, {{"narrow", 0}}), n);
    for (const char *stage : {"first", "second", "update_m", "update_v"}) adam.stages[stage].place = beside("update_w");
    adam.stages["update_w"].micro = {{"N", 2 * L}}, adam.stages["update_w"].vector = {{"N", L}};
    adam.stages["update_w"].block = {{"N", 4 * L}}, adam.stages["update_w"].loops = {"block.N", "micro.N"};
    adam.stages["update_w"].parallel = {"block.N"};
    Case &points = add("adamw_joined_by_points", library::adamw(f32, {{"narrow", 0}}), n);
    for (const char *stage : {"second", "update_w", "update_m", "update_v"}) points.stages[stage].place = beside("first");
    add("adamw_apart", library::adamw(f32, {{"narrow", 0}}), n);
    const auto mn = shapes({"M", "N"}, {{0, 3}, {3, 0}, {1, 1}, {2, L - 1}, {3, 2 * L}, {5, 3 * L + 2}});
    {
        Builder f("moments", f32);
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N}), z = f.input("z", {M, N});
        const Tile total = sum(x, {N}).named("total"), most = max(x * z, {N}).named("most");  // (M)
        const Tile squares = dot(x, x, {N}).named("squares");                                 // (M)
        const Algorithm a = f.output("y", total * most * squares).build();
        Case &c = add("folds_joined", a, mn);
        c.stages["most"].place = c.stages["squares"].place = beside("total");
        c.stages["total"].place = at("y", "M");
        Case &rows = add("folds_joined_rows", a, mn);
        rows.stages["total"].place = rows.stages["squares"].place = beside("most");
        rows.stages["most"].micro = {{"M", 2}}, rows.stages["most"].parallel = {"micro.M"};
    }
    {
        Builder f("scans", f32);
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N});
        const Tile sums = f.scan(sum_monoid(DType::f32), x, N).named("sums"), most = f.scan(max_monoid(DType::f32), x, N).named("most");
        Case &c = add("scans_joined", f.output("y", sums * most).build(), mn);
        c.stages["most"].place = beside("sums");
    }
    {
        // A tile of T is called t2, as what Halide shares might be.
        Builder f("before", f32);
        const Dim M = f.dim("M"), T = f.dim("T");
        const Tile x = f.input("x", {M, T});
        const Tile h = f.scan(sum_monoid(DType::f32), x, T, false).named("h");
        add("names_like_halides", f.output("y", h * x).build(), shapes({"M", "T"}, {{0, 3}, {3, 0}, {1, 1}, {3, 7}, {4, 2 * L + 1}}));
    }
    {
        Builder f("maps", f32);
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N});
        const Tile a = (x * x + x).named("a"), b = (a * x).named("b"), c = (b + a).named("c");  // (M, N)
        const Tile rows = sum(a * b, {N}).named("rows");                                        // (M)
        Case &both = add("maps_joined", f.output("y", c * rows).output("b2", b + a).build(), mn);
        both.stages["b"].place = beside("a"), both.stages["c"].place = beside("b");
        both.stages["a"].micro = {{"M", 2}, {"N", 2 * L}}, both.stages["a"].vector = {{"N", L}};
    }
}

void BesideCases::in_one_loop() {
    const auto mn = shapes({"M", "N"}, {{0, 3}, {3, 0}, {1, 1}, {2, L - 1}, {3, 2 * L}, {5, 3 * L + 2}, {11, 4 * L}});
    {
        Builder f("residual_norm");
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N}), r = f.input("r", {M, N});
        const Tile total = (x + r).named("total");                               // (M, N)
        const Tile scale = (1.0 / (sum(abs(total), {N}) + 1.0)).named("scale");  // (M)
        const Algorithm a = f.output("y", total * scale).output("t", total).build();
        for (const char *loop : {"M", "block.M"}) {
            Case &c = add(std::string("residual_norm_in_") + (loop[1] ? "blocks" : "rows"), a, mn);
            c.stages["t"].place = beside("y", loop), c.stages["total"].place = Place{Place::Kind::inlined, "", ""};
            c.stages["scale"].place = at("y", loop), c.stages["t"].vector = c.stages["y"].vector = {{"N", L}};
            c.stages["y"].parallel = {loop};
            if (loop[1]) c.stages["y"].block = {{"M", 3}}, c.stages["y"].micro = {{"M", 2}, {"N", L}};
        }
    }
    {
        // The total is an output that the loop itself reads, and what is placed there.
        Builder f("kept_total");
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N}), r = f.input("r", {M, N});
        const Tile total = (x + r).named("total"), most = max(total, {N}).named("most");  // (M, N), (M)
        Algorithm a = f.output("y", exp(total - most)).build();
        a.outputs.push_back("total");
        Case &c = add("kept_total", a, mn);
        c.stages["total"].place = beside("y", "M"), c.stages["most"].place = at("y", "M");
        c.stages["total"].vector = c.stages["y"].vector = {{"N", L}}, c.stages["y"].parallel = {"M"};
        Case &wide = add("kept_total_tiles", a, mn);
        wide.stages["total"].place = beside("y", "micro.M"), wide.stages["most"].place = at("y", "micro.M");
        wide.stages["y"].micro = {{"M", 4}}, wide.stages["y"].loops = {"micro.M", "N"};
    }
    {
        // What is folded over the host's rows goes on from its result in each of them.
        Builder f("norm_backward");
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile dy = f.input("dy", {M, N}), x = f.input("x", {M, N}), gamma = f.input("gamma", {N});
        const Tile dgamma = sum(dy * x, {M}).named("dgamma"), dbeta = max(dy, {M}).named("dbeta");  // (N)
        Algorithm a = f.output("dx", dy * gamma).build();
        a.outputs.push_back("dgamma"), a.outputs.push_back("dbeta");
        Case &c = add("norm_backward", a, mn);
        c.stages["dgamma"].place = c.stages["dbeta"].place = beside("dx", "M");
        c.stages["dgamma"].vector = c.stages["dx"].vector = {{"N", L}};
        Case &blocks = add("norm_backward_blocks", a, mn);
        blocks.stages["dgamma"].place = blocks.stages["dbeta"].place = beside("dx", "block.M");
        blocks.stages["dx"].block = {{"M", 4}}, blocks.stages["dx"].loops = {"block.M", "M"};
        blocks.stages["dgamma"].vector = {{"N", L}}, blocks.stages["dgamma"].micro = {{"N", 2 * L}};
    }
    {
        // A product has a reader of its own, and is appended to a state in its loop.
        Builder f("append");
        const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
        const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N}), cache = f.state("cache", {M, N});
        const Tile p = dot(x, w, {K}).named("p");  // (M, N)
        f.update("append", cache, {f.index(M), f.index(N)}, p + cache);
        const Algorithm a = f.output("y", p * 2.0).build();
        Case &c = add("append", a, shapes({"M", "N", "K"}, {{0, 3, 2}, {3, 0, 2}, {2, 3, 0}, {1, 1, 1}, {7, 2 * L + 1, 5}, {9, 3 * L, 4}}));
        c.stages["p"].micro = {{"M", 4}, {"N", L}}, c.stages["p"].vector = {{"N", L}}, c.stages["p"].parallel = {"micro.M"};
        c.stages["p"].loops = {"micro.M", "micro.N"};
        c.stages["append"].place = c.stages["y"].place = beside("p", "micro.N");
        c.stages["append"].vector = c.stages["y"].vector = {{"N", L}};
        Case &blocks = add("append_blocks", a, c.shapes);
        blocks.stages["p"].block = {{"N", 2 * L}}, blocks.stages["p"].micro = {{"M", 2}, {"N", L}}, blocks.stages["p"].vector = {{"N", L}};
        blocks.stages["p"].loops = {"block.N", "micro.M", "micro.N"};
        blocks.stages["append"].place = beside("p", "block.N"), blocks.stages["y"].place = beside("p", "micro.M");
    }
    {
        // A stage that comes after the fold in whose loop it is, and one of equal dims.
        Builder f("shares");
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N});
        const Tile total = sum(x, {N}).named("total"), share = (x * total).named("share");  // (M), (M, N)
        Algorithm a = f.output("y", share + 1.0).build();
        a.outputs.push_back("total"), a.outputs.push_back("share");
        Case &c = add("shares", a, mn);
        c.stages["share"].place = beside("total", "M"), c.stages["y"].place = beside("total", "M");
        c.stages["share"].vector = {{"N", L}}, c.stages["total"].parallel = {"M"};
        Case &rows = add("shares_tiles", a, mn);
        rows.stages["share"].place = beside("total", "micro.M"), rows.stages["total"].micro = {{"M", 4}};
        rows.stages["share"].micro = {{"M", 2}, {"N", L}}, rows.stages["share"].vector = {{"N", L}};
    }
}

}  // namespace

std::vector<Case> beside_cases(int64_t lanes) { return BesideCases(lanes).all; }

}  // namespace tessera::test
