#include "algorithms/index/own_point.h"

#include "algorithms/index/prove.h"

namespace tessera {

// The expression with the sizes of derived dims in place of their extents, where each has a point.
static Expr with_sizes(const Algorithm &algorithm, const Expr &e) {
    return replace_extents(e, [&](const Expr &n) -> Expr {
        const Dim *d = algorithm.find_dim(n->name);
        return d && d->size.defined() ? with_sizes(algorithm, d->size) : Expr();
    });
}

// Outer dims first: sizes use their indices.
static void add_index(const Algorithm &algorithm, const std::string &name, Bounds &facts) {
    if (!algorithm.find_dim(name) || facts.find(name)) return;
    const Expr size = with_sizes(algorithm, extent(name));
    for (const std::string &outer : variables_in(size)) add_index(algorithm, outer, facts);
    facts.set(name, Expr(0), size - 1);
}

// Whether it is a row of the segment, wherever the indices are those of points.
static bool is_within(const Algorithm &algorithm, const Expr &row, const std::string &dim) {
    if (row.kind() == ExprKind::variable && row->name == dim) return true;
    Bounds facts(algorithm.dims, algorithm.parameters);
    for (const Ascending &tensor : ascending_results(algorithm)) facts.set_ascending(tensor);
    for (const std::string &name : variables_in(row)) add_index(algorithm, name, facts);
    return prove(Expr(0) <= row, facts) && prove(row < with_sizes(algorithm, extent(dim)), facts);
}

std::vector<Expr> own_point(const Algorithm &algorithm, const Stage &stage, const std::vector<Expr> &index) {
    if (stage.rows.empty()) return index;
    const std::optional<std::vector<Expr>> point = point_of(stage, index);
    if (!point) return {};
    const std::set<std::string> parents = parents_of(stage);
    for (size_t i = 0; i < stage.dims.size(); i++) {
        const std::string &d = stage.dims[i];
        const Expr &e = (*point)[i];
        if (parents.count(d) && (e.kind() != ExprKind::variable || e->name != d)) return {};
        if (rows_of(stage, d) && !is_within(algorithm, e, d)) return {};
    }
    return *point;
}

}  // namespace tessera
