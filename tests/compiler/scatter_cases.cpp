// Folds to computed destinations: in every way to go over their ordinary dims, over parts of the result, and by private copies.
#include "algorithms/build/tile_functions.h"
#include "tests/compiler/cases.h"

namespace tessera::test {

namespace {

// The largest value at each position, where it is first, and how many there are. Its parts read one another.
Monoid peak() {
    const Expr value = left(0, DType::f32), where = left(1, DType::i32), count = left(2, DType::i32);
    const Expr x = input(0, DType::f32), i = input(1, DType::i32), one = constant(DType::i32, 1);
    Monoid m;
    m.name = "peak", m.commutative = false;
    m.parts = {{"value", constant(DType::f32, -1e30)->value, {}},
               {"where", constant(DType::i32, -1)->value, {}},
               {"count", constant(DType::i32, 0)->value, {}}};
    m.inputs = {DType::f32, DType::i32};
    m.lift = {x, i, one};
    auto merged = [&](const Expr &v, const Expr &at, const Expr &more) {
        return std::vector<Expr>{select(v > value, v, value), select(v > value, at, where), count + more};
    };
    m.combine = merged(right(0, DType::f32), right(1, DType::i32), right(2, DType::i32));
    m.step = merged(x, i, one);
    return m;
}

}  // namespace

std::vector<Case> scatter_cases(int64_t L) {
    using How = Split::How;
    std::vector<Case> all;
    auto add = [&](const std::string &name, const Algorithm &a, const std::vector<Extents> &shapes) -> Case & {
        return all.emplace_back(Case{name, a, {}, shapes});
    };
    const Monoid sums = sum_monoid(DType::f32);

    std::vector<Extents> tvd;
    for (const auto &[t, v, d] : std::vector<std::array<int64_t, 3>>{
             {0, 3, 2}, {3, 0, 2}, {5, 3, 0}, {1, 1, 1}, {17, 5, L - 1}, {40, 6, 2 * L}, {33, 3, 3 * L + 2}, {64, 9, 4 * L}})
        tvd.push_back({{"T", t}, {"V", v}, {"D", d}});
    Builder f("lookup_gradient");
    {
        const Dim T = f.dim("T"), V = f.dim("V"), D = f.dim("D");
        const Tile ids = f.input("ids", {T}, DType::i32), g = f.input("g", {T, D});
        f.output("y", f.scatter(sums, g, {ids, f.index(D)}, {V, D}));
    }
    const Algorithm lookup = f.build();
    add("lookup_gradient", lookup, tvd);
    Case &rows = add("lookup_gradient_rows", lookup, tvd);
    rows.stages["y"].vector = {{"D", L}};
    Case &tiles = add("lookup_gradient_tiles", lookup, tvd);
    tiles.stages["y"].block = {{"D", 4 * L}}, tiles.stages["y"].micro = {{"D", 2 * L}}, tiles.stages["y"].vector = {{"D", L}};
    tiles.stages["y"].loops = {"block.D", "T", "micro.D"}, tiles.stages["y"].parallel = {"block.D"};
    Case &owned = add("lookup_gradient_owned", lookup, tvd);
    owned.stages["y"].block = {{"V", 2}}, owned.stages["y"].parallel = {"block.V"}, owned.stages["y"].vector = {{"D", L}};
    Case &copies = add("lookup_gradient_copies", lookup, tvd);
    copies.stages["y"].split = {{"T", {How::chunks, 16}}};
    copies.stages["y"].vector = {{"D", L}};
    copies.stages["y.partial"].vector = {{"D", L}}, copies.stages["y.partial"].parallel = {"T.o"};

    std::vector<Extents> tv;
    for (const auto &[t, v] : std::vector<std::array<int64_t, 2>>{{0, 3}, {3, 0}, {1, 1}, {29, 4}, {64, 7}, {100, 2 * L + 1}})
        tv.push_back({{"T", t}, {"V", v}});
    Builder h("histogram");
    {
        const Dim T = h.dim("T"), V = h.dim("V");
        const Tile ids = h.input("ids", {T}, DType::i32);
        h.output("y", h.scatter(sum_monoid(DType::i32), h.tile(constant(DType::i32, 1), {T}), {ids}, {V}));
    }
    const Algorithm histogram = h.build();
    add("histogram", histogram, tv);
    Case &chunks = add("histogram_chunks", histogram, tv);
    chunks.stages["y"].split = {{"T", {How::chunks, 8}}}, chunks.stages["y.partial"].parallel = {"T.o"};
    Case &lanes = add("histogram_lanes", histogram, tv);
    lanes.stages["y"].split = {{"T", {How::lanes, 4}}}, lanes.stages["y.partial"].micro = {{"T.i", 4}};
    lanes.stages["y"].vector = {{"V", L}};
    Case &parts = add("histogram_owned", histogram, tv);
    parts.stages["y"].block = {{"V", 3}}, parts.stages["y"].parallel = {"block.V"};

    Builder p("peaks");
    {
        const Dim T = p.dim("T"), V = p.dim("V"), D = p.dim("D");
        const Tile ids = p.input("ids", {T, D}, DType::i32), x = p.input("x", {T, D});
        const Tile where = p.tile(cast(DType::i32, variable("T")), {T, D});
        const std::vector<Tile> found = p.scatter_parts(peak(), {x, where}, {ids, p.index(D)}, {V, D});
        p.output("value", found[0]).output("first", found[1]).output("count", found[2]);
    }
    const Algorithm peaks = p.build();
    const std::string stage = peaks.stages()[0].name;
    add("peaks", peaks, tvd);
    Case &side = add("peaks_side_by_side", peaks, tvd);
    side.stages[stage].micro = {{"D", 3}};
    Case &some = add("peaks_copies", peaks, tvd);
    some.stages[stage].split = {{"T", {How::chunks, 8}}}, some.stages[stage + ".partial"].parallel = {"T.o"};
    return all;
}

}  // namespace tessera::test
