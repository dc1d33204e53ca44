#include "compiler/rewrite/rests.h"

#include <algorithm>

#include "algorithms/index/own_point.h"
#include "algorithms/index/prove.h"

namespace tessera {

static Expr at_parent(const Rows &rows, const std::string &parent, const Expr &index) { return substitute(rows.first, {{parent, index}}); }

// The parent of the only rows that the stage keeps, if there are none between those of one segment and the next: then the offsets have an
// element behind the last parent's. Otherwise "".
static std::string parent_without_gaps(const Algorithm &algorithm, const Stage &stage) {
    if (stage.rows.size() != 1) return "";
    const Rows &rows = stage.rows[0];
    const std::set<std::string> parents = variables_in(rows.first);
    const Expr &size = algorithm.dim(rows.dim).size;
    if (parents.size() != 1 || !size.defined()) return "";
    const std::string &parent = *parents.begin();
    const Expr rest = simplify(at_parent(rows, parent, variable(parent) + 1) - rows.first - size, Bounds());
    return rest.is_constant(0) ? parent : "";
}

static std::string before(const Stage &stage) { return stage.name + "." + stage.rows[0].dim + ".before"; }
static std::string after(const Stage &stage) { return stage.name + "." + stage.rows[0].dim + ".after"; }

Algorithm with_dims_of_rests(Algorithm algorithm) {
    std::vector<Dim> dims;
    for (const Stage &stage : algorithm.stages()) {
        const std::string parent = parent_without_gaps(algorithm, stage);
        if (parent.empty()) continue;
        const Rows &rows = stage.rows[0];
        dims.push_back(derived_dim(before(stage), at_parent(rows, parent, Expr(0))));
        dims.push_back(derived_dim(after(stage), extent(rows.flat) - at_parent(rows, parent, extent(parent))));
    }
    algorithm.dims.insert(algorithm.dims.end(), dims.begin(), dims.end());
    return algorithm;
}

static bool reads_whole(const Algorithm &algorithm, const Stage &reader, const Stage &maker, const std::string &tensor) {
    bool found = false;
    for (const Expr &e : expressions_of(reader))
        walk(e, [&](const Expr &n) {
            if (n.kind() != ExprKind::load || n->name != tensor) return;
            found |= own_point(algorithm, maker, {n->args.begin(), n->args.end() - (n->guarded ? 2 : 0)}).empty();
        });
    return found;
}

// Whether somebody reads elements of it by the flat axis: a caller, a callee, the size of a dim, another stage.
static bool is_read_whole(const Algorithm &algorithm, const Stage &stage, const std::string &tensor) {
    if (std::find(algorithm.outputs.begin(), algorithm.outputs.end(), tensor) != algorithm.outputs.end()) return true;
    for (const Call &call : algorithm.calls())
        for (const auto &[own, view] : call.tensors)
            if (view.tensor == tensor) return true;
    bool found = false;
    for (const Dim &d : algorithm.dims)
        if (d.size.defined()) walk(d.size, [&](const Expr &n) { found |= n.kind() == ExprKind::load && n->name == tensor; });
    for (const Stage &reader : algorithm.stages()) found |= reads_whole(algorithm, reader, stage, tensor);
    return found;
}

std::vector<Stage> rests_of(const Algorithm &algorithm, const Stage &stage) {
    std::vector<Stage> rests;
    const std::string parent = parent_without_gaps(algorithm, stage);
    for (const Tensor &t : results_of(stage)) {
        if (!is_read_whole(algorithm, stage, t.name)) continue;
        const Stage all{t.name + ".rest", t.dims, Map(constant(t.dtype, 0)), {t.name}};
        if (parent.empty()) {
            rests.push_back(all);
            continue;
        }
        const Rows &rows = stage.rows[0];
        for (const auto &[dim, first] :
             {std::pair(before(stage), Expr(0)), std::pair(after(stage), at_parent(rows, parent, extent(parent)))}) {
            Stage part = all;
            *std::find(part.dims.begin(), part.dims.end(), rows.flat) = dim;
            part.rows = {{dim, rows.flat, first}};
            rests.push_back(std::move(part));
        }
    }
    return rests;
}

}  // namespace tessera
