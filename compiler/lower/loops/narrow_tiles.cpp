#include "compiler/lower/loops/narrow_tiles.h"

#include <algorithm>

#include "algorithms/index/prove.h"

namespace tessera {

// What the points that are left over of a piece in its last tile are a multiple of, and how many there are where that is known (0: not).
struct LeftOver {
    int64_t multiple_of = 1, points = 0;
};

static LeftOver left_over(const Piece &piece, int64_t tile, const Bounds &facts) {
    if (!piece.cut_from.defined() || piece.cut_by % tile != 0) return {};
    const Expr points = simplify(piece.cut_from % Expr(tile), facts);
    if (points.is_constant()) return {1, points->value.integer};
    for (int64_t divisor = tile / 2; divisor > 1; divisor--)
        if (tile % divisor == 0 && simplify(piece.cut_from % Expr(divisor), facts).is_constant(0)) return {divisor, 0};
    return {};
}

// All sizes that are worth a body: whole vectors, or rows, that just cover some number of points. `may_be_full`: another dim is what makes
// the tile a partial one.
static std::vector<int64_t> all_sizes(const LeftOver &left, int64_t tile, int64_t unit, bool may_be_full) {
    std::vector<int64_t> sizes;
    for (int64_t points = 1; points <= tile; points++) {
        const bool is_full = points == tile;
        const bool is_possible = is_full ? may_be_full : left.points > 0 ? points == left.points : points % left.multiple_of == 0;
        if (is_possible) sizes.push_back((points + unit - 1) / unit * unit);
    }
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

static void leave_out_every_second(std::vector<int64_t> &sizes) {
    std::vector<int64_t> fewer;
    for (size_t i = sizes.size(); i > 0; i -= std::min<size_t>(i, 2)) fewer.insert(fewer.begin(), sizes[i - 1]);
    sizes = std::move(fewer);
}

int64_t versions_of(const std::vector<NarrowDim> &narrow) {
    if (narrow.empty()) return 1;
    int64_t bodies = 1;
    for (const NarrowDim &d : narrow) bodies *= static_cast<int64_t>(d.sizes.size());
    return bodies;
}

std::vector<NarrowDim> narrow_dims(const Cursor &at, const Scope &scope) {
    std::vector<NarrowDim> narrow;
    for (const std::string &d : at.partial) {
        const auto tail = at.nest->knobs.tail.find(d);
        if (tail == at.nest->knobs.tail.end() || tail->second != Tail::narrow || at.runs.count(d)) continue;
        const Piece &piece = at.pieces.at(d);
        const int64_t tile = piece.size->value.integer;
        narrow.push_back({d, all_sizes(left_over(piece, tile, scope.facts), tile, unit(at.nest->step, d), at.partial.size() > 1)});
    }
    while (scope.versions * versions_of(narrow) > max_narrow_bodies) {
        auto most = std::max_element(narrow.begin(), narrow.end(), [](auto &a, auto &b) { return a.sizes.size() < b.sizes.size(); });
        if (most->sizes.size() == 1) break;
        leave_out_every_second(most->sizes);
    }
    return narrow;
}

}  // namespace tessera
