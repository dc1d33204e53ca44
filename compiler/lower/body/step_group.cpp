// A group of the innermost folded elements at a time, as an instruction family takes them.
#include "compiler/lower/body/fold_step.h"
#include "compiler/lower/context/extents.h"

namespace tessera {

TileBody group_step(const Instruction &family, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::string &dim = at.nest->loops.back().dim;
    const std::vector<Expr> pair = *operands_for(family, std::get<Reduce>(at.stage().body));
    const Buffer &to = at.accumulator(0);
    const Expr &limit = at.fold.group_limit;
    return over_tile(lowering, at, scope, names, {}, false, [&](const Point &point, const Expr &, const Scope &inside) {
        std::vector<Expr> operands, index = tile_index(at, inside, nullptr, point);
        for (int i = 0; i < family.shape.k; i++) {
            Point element = point;
            Expr folded = at.pieces.at(dim).lo + Expr(i);
            element.at[dim] = simplify(limit.defined() ? min(folded, limit - 1) : folded, inside.facts);
            for (const Expr &operand : pair) {
                Expr value = evaluate(lowering, at, inside, operand, element);
                if (limit.defined()) value = select(simplify(folded < limit, inside.facts), value, constant(value.type(), 0));
                operands.push_back(value);
            }
        }
        return tile_node(Compute{to.name, index, apply(family, load(to.name, to.dtype, index), operands), Expr()});
    });
}

}  // namespace tessera
