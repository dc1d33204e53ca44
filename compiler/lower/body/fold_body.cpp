#include "compiler/lower/body/fold_body.h"

#include "compiler/lower/body/fold_step.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/place/storage.h"

namespace tessera {

Accumulators accumulators_of(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const size_t parts = monoid_of(at.stage()).parts.size();
    Accumulators made;
    for (size_t p = 0; p < parts; p++) made.of_parts.push_back(part_buffer(lowering, at, scope, p, ".acc", names));
    made.all = made.of_parts;
    made.of_parts.resize(2 * parts);
    for (size_t p : lowering.facts(at.stage()).order.together)
        made.all.push_back(made.of_parts[parts + p] = part_buffer(lowering, at, scope, p, ".next", names));
    return made;
}

static TileBody begin_from(bool result, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::vector<Part> &parts = monoid_of(at.stage()).parts;
    const std::vector<Tensor> &results = lowering.results(at.stage());
    TileBody body;
    for (size_t p = 0; p < parts.size(); p++) {
        const bool guarded = result && store_is_guarded(scope, results[p]);
        append(
            body,
            over_tile(lowering, at, scope, names, parts[p].dims, guarded, [&](const Point &point, const Expr &lane, const Scope &inside) {
                Expr value = constant(parts[p].identity);
                if (result)
                    value = load_or(inside.at(results[p].name).buffer.name, results[p].dtype, result_index(inside, results[p], point),
                                    lane.defined() ? lane : constant_int(DType::boolean, 1), value);
                return tile_node(Compute{at.accumulator(p).name, tile_index(at, inside, &parts[p], point), value, Expr()});
            }));
    }
    return body;
}

TileBody begin_parts(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    if (at.fold.earlier.empty()) return begin_from(false, lowering, at, scope, names);
    Expr is_first = constant_int(DType::boolean, 1);
    for (const Expr &v : at.fold.earlier) is_first = is_first && v == Expr(0);
    TileBody identities = begin_from(false, lowering, at, scope, names), results = begin_from(true, lowering, at, scope, names);
    return in_guard(is_first, std::move(identities), std::move(results));
}

TileBody write_parts(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::vector<Part> &parts = monoid_of(at.stage()).parts;
    const std::vector<Tensor> &results = lowering.results(at.stage());
    TileBody body;
    for (size_t p = 0; p < parts.size(); p++)
        append(
            body,
            over_tile(
                lowering, at, scope, names, parts[p].dims, store_is_guarded(scope, results[p]),
                [&](const Point &point, const Expr &lane, const Scope &inside) {
                    Expr value = load(at.accumulator(p).name, results[p].dtype, tile_index(at, inside, &parts[p], point));
                    return tile_node(Compute{inside.at(results[p].name).buffer.name, result_index(inside, results[p], point), value, lane});
                }));
    return body;
}

// The identity in the place of what a scan has folded, where an element begins a segment.
static TileBody begin_segment(const Expr &begins, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::vector<Part> &parts = monoid_of(at.stage()).parts;
    TileBody body;
    for (size_t p = 0; p < parts.size(); p++)
        append(body,
               over_tile(lowering, at, scope, names, parts[p].dims, false, [&](const Point &point, const Expr &, const Scope &inside) {
                   const std::string &name = at.accumulator(p).name;
                   const std::vector<Expr> index = tile_index(at, inside, &parts[p], point);
                   const Expr folded = load(name, parts[p].identity.type, index);
                   const Expr is_first = evaluate(lowering, at, inside, begins, point);
                   return tile_node(Compute{name, index, select(is_first, constant(parts[p].identity), folded), Expr()});
               }));
    return body;
}

TileBody fold_body(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    auto *scan = std::get_if<Scan>(&at.stage().body);
    if (!scan) return fold_step(lowering, at, scope, names);
    TileBody body;
    if (scan->segments.defined()) body = begin_segment(scan->segments, lowering, at, scope, names);
    TileBody step = fold_step(lowering, at, scope, names), written = write_parts(lowering, at, scope, names);
    append(body, scan->inclusive ? step : written);
    append(body, scan->inclusive ? written : step);
    return body;
}

}  // namespace tessera
