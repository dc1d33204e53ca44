#include "compiler/lower/body/point_values.h"

#include "compiler/lower/context/extents.h"
#include "compiler/lower/place/storage.h"
#include "support/text/error.h"

namespace tessera {

namespace {

void add_condition(Expr &all, const Expr &more) { all = all.defined() ? all && more : more; }

// What becomes of loads at one point.
struct PointLoads {
    const Lowering &lowering;
    const Cursor &at;
    const Scope &scope;
    const Point &point;
    std::map<std::string, Expr> indices;  // dim -> index, of the point and of the loops around it
    bool padded;

    Expr located(const Expr &load) const;
    const Piece *padded_piece(const std::string &dim) const;
    // Where the tile runs past its limit: a guard on the load, or an index that is still inside.
    void stay_inside(const Stored &where, const std::vector<Expr> &index, Expr &guard, std::map<std::string, Expr> &safe) const;
    bool is_in_bounds(const std::vector<Expr> &index, const Stored &where) const;
};

const Piece *PointLoads::padded_piece(const std::string &dim) const {
    auto p = point.padded.find(dim);
    if (p != point.padded.end()) return p->second.padded ? &p->second : nullptr;
    p = at.pieces.find(dim);
    return p != at.pieces.end() && p->second.padded ? &p->second : nullptr;
}

// Whether the index is the dim's own, or a row of a segment, whose next row is beside it.
static bool goes_along(const Expr &index, const std::string &dim) {
    if (index.kind() == ExprKind::variable) return index->name == dim;
    if (!index.is_operation(Op::add) || !has_load(index)) return false;
    const Expr &first = index->args[0], &row = index->args[1];
    return row.kind() == ExprKind::variable && row->name == dim && !uses_variable(first, dim);
}

void PointLoads::stay_inside(const Stored &where, const std::vector<Expr> &index, Expr &guard, std::map<std::string, Expr> &safe) const {
    std::set<std::string> used;
    for (const Expr &i : index) used.merge(variables_in(i));
    std::optional<bool> room;
    for (const std::string &d : used) {
        const Piece *p = padded_piece(d);
        if (!p) continue;
        // What was stored inside the padded tile has its points to spare.
        bool has_spare = where.depth >= p->since;
        for (size_t i = 0; i < index.size() && has_spare; i++) has_spare = !where.whole.count(where.dims[i]) || !uses_variable(index[i], d);
        if (has_spare) continue;
        if (p->zeros) {
            add_condition(guard, simplify(indices.at(d) < p->limit, scope.facts));
            continue;
        }
        // A buffer of ours that has room for the whole tile is read as it is: what lies past the limit ends in points that
        // nobody stores.
        if (!room) room = has_room(lowering, scope, where, index, indices);
        if (*room) return;
        // Past the limit there is nothing to read. Lanes of a contiguous read are masked; anything else reads the last element instead.
        bool contiguous = d == point.vector_dim && goes_along(index.back(), d);
        for (size_t i = 0; i + 1 < index.size(); i++) contiguous &= !uses_variable(index[i], d);
        if (contiguous) add_condition(guard, simplify(indices.at(d) < p->limit, scope.facts));
        else safe[d] = min(indices.at(d), p->limit - 1);
    }
}

// Whether the indices are inside the tensor wherever the stage's dims are, whatever the fold's condition says.
bool PointLoads::is_in_bounds(const std::vector<Expr> &index, const Stored &where) const {
    const Algorithm &algorithm = lowering.algorithm;
    const std::set<std::string> used = variables_in(at.fold.where);
    Scope range = scope;
    for (const std::string &d : used)
        if (algorithm.find_dim(d)) range.facts.set(d, Expr(0), extent_of(lowering, scope, d) - 1);
    for (size_t i = 0; i < index.size(); i++) {
        bool concerned = false;
        for (const std::string &name : variables_in(index[i])) {
            concerned |= used.count(name) > 0;
            if (algorithm.find_dim(name)) range.facts.set(name, Expr(0), extent_of(lowering, scope, name) - 1);
        }
        if (!concerned) continue;
        Expr e = resolve(lowering, scope, index[i]);
        if (!prove(e >= Expr(0), range.facts) || !prove(e < extent_of(lowering, scope, where.dims[i]), range.facts)) return false;
    }
    return true;
}

Expr PointLoads::located(const Expr &n) const {
    const Stored *where = scope.find(n->name);
    if (!where)
        throw UserError("schedule.place",
                        at.stage().name + ": it loads '" + n->name +
                            "', which is computed inside another stage's "
                            "loops and is not there any more; place the producer at root or at a loop around all its consumers.");
    const auto rank = index_of(n).size();
    const std::vector<Expr> index = index_along(*where, index_of(n));
    Expr guard;
    std::map<std::string, Expr> safe = indices;
    if (padded) stay_inside(*where, index, guard, safe);
    if (n->guarded) add_condition(guard, resolve_at(lowering, scope, n->args[rank], safe));  // at the point that is read
    if (at.fold.where.defined() && !is_in_bounds(index, *where)) add_condition(guard, resolve_at(lowering, scope, at.fold.where, indices));
    const std::vector<Expr> axes = locate_at(lowering, scope, *where, index, safe);
    if (!guard.defined()) return load(where->buffer.name, n.type(), axes);
    const Expr fill = n->guarded ? resolve_at(lowering, scope, n->args[rank + 1], indices) : constant(n.type(), 0);
    return load_or(where->buffer.name, n.type(), axes, guard, fill);
}

}  // namespace

Expr evaluate(const Lowering &lowering, const Cursor &at, const Scope &inside, const Expr &e, const Point &point) {
    PointLoads loads{lowering, at, inside, point, point.at, any_padded(point.padded) || any_padded(at.pieces)};
    for (auto &[dim, piece] : at.pieces)
        if (piece.size.is_constant(1)) loads.indices.emplace(dim, piece.lo);
    // First the loads, inside out, while their indices still speak of dims; loop variables never have a dim's name.
    const Expr located = replace_loads(e, [&](const Expr &n) { return loads.located(n); });
    return resolve_at(lowering, inside, located, loads.indices);
}

std::vector<Expr> result_index(const Lowering &lowering, const Stage &stage, const Scope &inside, const Tensor &result,
                               const Point &point) {
    const Stored &where = inside.at(result.name);
    std::vector<Expr> index;
    for (const std::string &d : result.dims) index.push_back(point.at.at(d));
    if (stage.rows.empty() || where.by_points) return locate(where, index, inside.facts);
    for (Expr &e : index = element_of(stage, index))
        e = replace_loads(resolve(lowering, inside, e), [&](const Expr &n) {  // of where rows begin
            const Stored &offsets = inside.at(n->name);
            return load(offsets.buffer.name, n.type(), locate(offsets, index_along(offsets, n->args), inside.facts));
        });
    return locate(where, index, inside.facts);
}

}  // namespace tessera
