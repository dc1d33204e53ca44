#include "compiler/lower/body/scatter_body.h"

#include <functional>

#include "compiler/lower/body/point_values.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/mapping.h"
#include "compiler/lower/context/loop.h"
#include "support/text/error.h"

namespace tessera {

using AtElement = std::function<TileBody(const Cursor &at, const Point &point, const Scope &inside)>;

// Serial loops over all points of the dims from `next` on.
static TileBody over_elements(const Lowering &lowering, const Cursor &at, const Point &point, const Scope &scope, Names &names,
                              const std::vector<std::string> &dims, size_t next, const AtElement &make) {
    if (next == dims.size()) return make(at, point, scope);
    const std::string &d = dims[next];
    const Piece p = whole(lowering, scope, d, at.pieces);
    if (!p.size.defined()) throw UserError("schedule.ragged", at.stage().name + ": dim '" + d + "' is ragged in a dim that comes later.");
    const std::string v = loop_variable(lowering, {"", d}, names);
    Scope inside = scope;
    inside.facts.set(v, Expr(0), p.size - 1);
    Cursor at_index = at;
    at_index.pieces[d] = {variable(v), Expr(1), Expr(1), false, {}, 0};
    Point element = point;
    element.at[d] = variable(v);
    return in_loop(v, p.size, LoopKind::serial, over_elements(lowering, at_index, element, inside, names, dims, next + 1, make));
}

TileBody scatter_body(const Lowering &lowering, const Stage &stage, const Scope &scope, Names &names) {
    const auto &reduce = std::get<Reduce>(stage.body);
    const Monoid &m = reduce.monoid;
    if (m.parts.size() != 1 || !m.parts[0].dims.empty())
        throw UserError("schedule.scatter", stage.name + ": a fold with a computed destination has one part; '" + m.name + "' has " +
                                                std::to_string(m.parts.size()) + ".");
    StageNest nest;
    nest.stage = nest.root = &stage;
    Cursor first;
    first.nest = &nest;
    const Tensor &result = lowering.results(stage)[0];
    auto begin = [&](const Cursor &, const Point &point, const Scope &inside) -> TileBody {
        const Expr identity = constant(m.parts[0].identity);
        return {tile_node(Compute{inside.at(result.name).buffer.name, result_index(inside, result, point), identity, Expr()})};
    };
    auto step = [&](const Cursor &at, const Point &point, const Scope &inside) -> TileBody {
        Expr is_inside = constant_int(DType::boolean, 1);
        if (reduce.where.defined()) is_inside = evaluate(lowering, at, inside, reduce.where, point);
        std::vector<Expr> position;
        for (size_t i = 0; i < stage.dims.size(); i++) {
            position.push_back(evaluate(lowering, at, inside, reduce.at[i], point));
            is_inside = is_inside && Expr(0) <= position.back() && position.back() < extent_of(lowering, inside, stage.dims[i]);
        }
        const Stored &where = inside.at(result.name);
        const std::vector<Expr> index = locate(where, position, inside.facts);
        const Expr value = rewrite(m.step[0], [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::input) return evaluate(lowering, at, inside, reduce.inputs[n->number], point);
            return n.kind() == ExprKind::left ? load(where.buffer.name, result.dtype, index) : Expr();
        });
        return in_guard(simplify(is_inside, inside.facts), {tile_node(Compute{where.buffer.name, index, value, Expr()})});
    };
    TileBody body = over_elements(lowering, first, {}, scope, names, stage.dims, 0, begin);
    append(body, over_elements(lowering, first, {}, scope, names, reduce.dims, 0, step));
    return lowering.mapping->by_one_thread(std::move(body), names);
}

}  // namespace tessera
