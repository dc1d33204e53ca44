#include "compiler/lower/body/map_body.h"

#include "compiler/lower/place/storage.h"

namespace tessera {

TileBody map_body(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const Tensor &result = lowering.results(at.stage())[0];
    const Expr &map = std::get<Map>(at.stage().body).value;
    return over_tile(lowering, at, scope, names, {}, store_is_guarded(scope, result),
                     [&](const Point &point, const Expr &lane, const Scope &inside) {
                         const std::string &buffer = inside.at(result.name).buffer.name;
                         const Expr value = evaluate(lowering, at, inside, map, point);
                         const std::vector<Expr> index = result_index(inside, result, point);
                         if (value.kind() == ExprKind::load) return tile_node(Copy{buffer, index, value, lane});
                         return tile_node(Compute{buffer, index, value, lane});
                     });
}

TileBody update_body(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const auto &update = std::get<Update>(at.stage().body);
    return over_tile(lowering, at, scope, names, {}, any_padded(at.pieces), [&](const Point &point, const Expr &lane, const Scope &inside) {
        const Stored &where = inside.at(update.state);
        std::vector<Expr> index;
        for (const Expr &e : update.index) index.push_back(evaluate(lowering, at, inside, e, point));
        const Expr value = evaluate(lowering, at, inside, update.value, point);
        return tile_node(Compute{where.buffer.name, locate(where, index, inside.facts), value, lane});
    });
}

}  // namespace tessera
