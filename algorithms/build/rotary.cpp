#include "algorithms/build/rotary.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "support/text/error.h"

namespace tessera {

Tile rotary(const Tile &x, const Dim &along, const Tile &cosine, const Tile &sine, const Dim &pairs, bool interleaved, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    auto wants = [](const Tile &tile, const Dim &d) {
        if (std::find(tile.dims().begin(), tile.dims().end(), d.name) == tile.dims().end())
            throw UserError("rotary.dims", "rotary: " + tile.describe() + " has no dim '" + d.name + "'.");
    };
    wants(x, along), wants(cosine, pairs), wants(sine, pairs);
    Builder &f = x.builder();
    const Expr d = variable(along.name), size = extent(along.name), count = extent(pairs.name);
    const Expr is_turned = d < count * Expr(2);
    const Expr is_first = interleaved ? d % Expr(2) == Expr(0) : d < count;
    const Expr pair = interleaved ? d / Expr(2) : select(is_first, d, d - count);
    // Where an index would leave the tile, the element is one that stays.
    auto read = [&](const Tile &tile, const Dim &dim, const Expr &index) {
        const Expr inside = Expr(0) <= index && index < extent(dim.name);
        std::vector<std::string> dims = tile.dims();
        std::replace(dims.begin(), dims.end(), dim.name, along.name);
        return Tile(&f, read_where(tile.at({{dim.name, index}}, dims).value(), inside), dims);
    };
    const Expr step = interleaved ? Expr(1) : count;
    const Tile first(&f, is_first, {along.name}), turned(&f, is_turned, {along.name});
    const Tile other = select(first, -read(x, along, d + step), read(x, along, d - step));
    const Tile y = x * read(cosine, pairs, pair) + other * read(sine, pairs, pair);
    const bool all = along.kind == DimKind::fixed && pairs.kind == DimKind::fixed && along.value == 2 * pairs.value;
    const Tile made = all ? y : select(turned, y, x);
    return broadcast(made, [&] {
        std::vector<Dim> dims;
        for (const std::string &name : x.dims()) dims.push_back(f.dim_named(name));
        for (const std::string &name : made.dims())
            if (std::find(x.dims().begin(), x.dims().end(), name) == x.dims().end()) dims.push_back(f.dim_named(name));
        return dims;
    }());
}

}  // namespace tessera
