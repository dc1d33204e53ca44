#include "compiler/lower/context/extents.h"

#include "support/text/error.h"

namespace tessera {

static Expr written_out(const Lowering &lowering, const Scope &scope, const Expr &e) {
    return replace_extents(e, [&](const Expr &n) {
        const Dim &d = lowering.algorithm.dim(n->name);
        return d.kind == DimKind::symbolic && d.equals.empty() ? Expr() : extent_of(lowering, scope, n->name);
    });
}

Expr extent_of(const Lowering &lowering, const Scope &scope, const std::string &dim) {
    const Dim &d = lowering.algorithm.dim(dim);
    if (d.kind == DimKind::fixed) return Expr(d.value);
    if (!d.equals.empty()) return extent_of(lowering, scope, d.equals);
    if (d.kind == DimKind::symbolic) return extent(dim);
    return resolve(lowering, scope, d.size);
}

bool is_data(const Expr &e) {
    bool found = false;
    walk(e, [&](const Expr &n) { found |= n.kind() == ExprKind::load || n.kind() == ExprKind::parameter; });
    return found;
}

Expr extent_limit(const Lowering &lowering, const Scope &scope, const std::string &dim) {
    const Expr size = extent_of(lowering, scope, dim);
    if (!is_data(size)) return size;
    const Expr declared = lowering.algorithm.dim(dim).size;  // as counted_dim makes it
    if (!declared.is_operation(Op::max) || !declared->args[0].is_operation(Op::min)) return {};
    const Expr limit = resolve(lowering, scope, max(declared->args[0]->args[1], Expr(0)));
    return is_data(limit) ? Expr() : limit;
}

Expr resolve(const Lowering &lowering, const Scope &scope, const Expr &e) { return simplify(written_out(lowering, scope, e), scope.facts); }

// Extents first: that of a ragged dim is an expression of outer dims.
Expr resolve_at(const Lowering &lowering, const Scope &scope, const Expr &e, const std::map<std::string, Expr> &at) {
    return simplify(substitute(written_out(lowering, scope, e), at), scope.facts);
}

std::vector<Expr> locate_at(const Lowering &lowering, const Scope &scope, const Stored &where, std::vector<Expr> index,
                            const std::map<std::string, Expr> &at) {
    for (Expr &i : index) i = resolve_at(lowering, scope, i, at);
    return locate(where, index, scope.facts);
}

Piece whole(const Lowering &lowering, const Scope &scope, const std::string &dim, const Pieces &outer) {
    Expr size = extent_of(lowering, scope, dim);
    Piece p{Expr(0), size, size, false, {}, 0};
    std::set<std::string> used = variables_in(size);
    if (used.empty()) return p;
    std::map<std::string, Expr> point;
    Bounds range = scope.facts;
    std::set<std::string> free;
    for (const std::string &name : used) {
        if (!lowering.algorithm.find_dim(name)) continue;
        auto it = outer.find(name);
        if (it != outer.end() && it->second.size.is_constant(1)) point[name] = it->second.lo;
        else p.size = Expr();
        range.set(name, Expr(0), extent_of(lowering, scope, name) - 1);
        free.insert(name);
    }
    p.max_size = upper_bound(size, range, free);
    if (p.max_size.defined() && !variables_in(p.max_size).empty()) p.max_size = Expr();
    if (p.max_size.defined() && has_load(p.max_size)) p.max_size = Expr();
    if (!p.size.defined()) return p;
    const Expr located = replace_loads(substitute(size, point), [&](const Expr &n) -> Expr {
        const Stored *where = scope.find(n->name);
        return where ? load(where->buffer.name, n.type(), locate(*where, index_along(*where, n->args), scope.facts)) : Expr();
    });
    p.size = simplify(located, scope.facts);
    return p;
}

Piece whole_at_loop(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim, const Pieces &outer) {
    Piece p = whole(lowering, scope, dim, outer);
    if (!p.size.defined())
        throw UserError("schedule.ragged", stage.name + ": the size of dim '" + dim + "' varies with outer indices (" +
                                               brief(extent_of(lowering, scope, dim)) +
                                               "), so their loops must go point by point outside it; do not tile or vectorise those dims.");
    return p;
}

}  // namespace tessera
