#include "compiler/lower/body/map_body.h"

#include "compiler/lower/context/built.h"
#include "compiler/lower/place/storage.h"

namespace tessera {

namespace {

// What becomes of one value of a Map.
struct Destination {
    const Write *to = nullptr;  // a state
    std::optional<Tensor> result;
    Buffer kept;  // where the value of a point is until all of its values are there

    bool is_used_alone() const { return !to && !result; }
};

std::vector<Destination> destinations_of(const Lowering &lowering, const Stage &stage) {
    const std::vector<std::string> names = names_of_results(stage);
    const auto &map = std::get<Map>(stage.body);
    std::vector<Destination> destinations(map.values.size());
    for (size_t i = 0; i < destinations.size(); i++) {
        if (map.values[i].to) destinations[i].to = &*map.values[i].to;
        for (const Tensor &t : lowering.results(stage))
            if (t.name == names[i]) destinations[i].result = t;
    }
    return destinations;
}

bool is_guarded(const Cursor &at, const Scope &scope, const Destination &destination) {
    return destination.to ? any_padded(at.pieces) : store_is_guarded(scope, *destination.result);
}

struct Element {
    std::string buffer;
    std::vector<Expr> index;
};

// The expression at a point, with the values of the point that it uses as they are kept.
Expr evaluate_with(const std::vector<Destination> &values, const Lowering &lowering, const Cursor &at, const Scope &inside, const Expr &e,
                   const Point &point) {
    return rewrite(evaluate(lowering, at, inside, e, point), [&](const Expr &n) -> Expr {
        if (n.kind() != ExprKind::left) return {};
        return load(values[static_cast<size_t>(n->number)].kept.name, n.type(), tile_index(at, inside, nullptr, point));
    });
}

Element element_of(const std::vector<Destination> &values, const Lowering &lowering, const Cursor &at, const Scope &inside,
                   const Destination &destination, const Point &point) {
    if (!destination.to)
        return {inside.at(destination.result->name).buffer.name, result_index(lowering, at.stage(), inside, *destination.result, point)};
    const Stored &where = inside.at(destination.to->state);
    std::vector<Expr> index;
    for (const Expr &e : destination.to->index) index.push_back(evaluate_with(values, lowering, at, inside, e, point));
    return {where.buffer.name, locate(where, index, inside.facts)};
}

TileBody store(const std::vector<Destination> &values, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names,
               const Destination &destination, const auto &value_at) {
    return over_tile(lowering, at, scope, names, {}, is_guarded(at, scope, destination),
                     [&](const Point &point, const Expr &lane, const Scope &inside) {
                         const Expr value = value_at(inside, point);
                         const Element element = element_of(values, lowering, at, inside, destination, point);
                         const bool is_copy = value.kind() == ExprKind::load && !destination.to && destination.kept.name.empty();
                         if (is_copy) return tile_node(Copy{element.buffer, element.index, value, lane});
                         return tile_node(Compute{element.buffer, element.index, value, lane});
                     });
}

// The value, and 0 past limits where a reader wants it.
Expr with_zeros(const Cursor &at, const Scope &inside, const Point &point, const Expr &value) {
    if (value.kind() == ExprKind::load && (!value->guarded || equal(value->args.back(), constant(value.type(), 0))))
        return value;  // located so already
    Expr all = value;
    for (const auto &[dim, piece] : at.pieces) {
        if (!piece.padded || !piece.zeros) continue;
        const Expr &position = piece.size.is_constant(1) ? piece.lo : point.at.at(dim);
        all = select(simplify(position < piece.limit, inside.facts), all, constant(all.type(), 0));
    }
    return all;
}

}  // namespace

// All values of the tile's points are there before the first of them is stored, for later ones may read what earlier ones write.
static TileBody several_values(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names,
                               std::vector<Destination> destinations) {
    const auto &map = std::get<Map>(at.stage().body);
    std::vector<Buffer> buffers;
    TileBody body;
    for (size_t i = 0; i < destinations.size(); i++) {
        const Expr &value = map.values[i].value;
        if (value.kind() == ExprKind::left) {
            destinations[i].kept = destinations[static_cast<size_t>(value->number)].kept;
            continue;
        }
        destinations[i].kept = value_buffer(lowering, at, scope, ".value" + std::to_string(i), value.type(), names);
        buffers.push_back(destinations[i].kept);
        append(body, over_tile(lowering, at, scope, names, {}, false, [&](const Point &point, const Expr &, const Scope &inside) {
                   const Expr whole = evaluate_with(destinations, lowering, at, inside, value, point);
                   return tile_node(Compute{destinations[i].kept.name, tile_index(at, inside, nullptr, point), whole, Expr()});
               }));
    }
    for (const Destination &destination : destinations)
        if (!destination.is_used_alone())
            append(body, store(destinations, lowering, at, scope, names, destination, [&](const Scope &inside, const Point &point) {
                       return load(destination.kept.name, destination.kept.dtype, tile_index(at, inside, nullptr, point));
                   }));
    return in_allocs(buffers, std::move(body));
}

TileBody map_body(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::vector<Value> &values = std::get<Map>(at.stage().body).values;
    const std::vector<Destination> destinations = destinations_of(lowering, at.stage());
    if (values.size() > 1) return several_values(lowering, at, scope, names, destinations);
    return store(destinations, lowering, at, scope, names, destinations[0], [&](const Scope &inside, const Point &point) {
        return with_zeros(at, inside, point, evaluate(lowering, at, inside, values[0].value, point));
    });
}

}  // namespace tessera
