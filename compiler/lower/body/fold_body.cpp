#include "compiler/lower/body/fold_body.h"

#include "compiler/lower/body/fold_step.h"
#include "compiler/lower/body/fragment_body.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/place/storage.h"

namespace tessera {

Accumulators accumulators_of(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const size_t parts = monoid_of(at.stage()).parts.size();
    Accumulators made;
    if (auto *fragments = std::get_if<FragmentStep>(&at.nest->step)) {
        made.of_parts = made.all = fragment_accumulators(*fragments, at, names);
        return made;
    }
    made.of_parts.resize(2 * parts);
    for (size_t p : lowering.facts(at.stage()).live.stepped)
        made.all.push_back(made.of_parts[p] = part_buffer(lowering, at, scope, p, ".acc", names));
    for (size_t p : lowering.facts(at.stage()).order.together)
        made.all.push_back(made.of_parts[parts + p] = part_buffer(lowering, at, scope, p, ".next", names));
    return made;
}

// What accumulators begin with: what these tensors hold, one for each part; without them the identities.
static TileBody begin_from(const std::vector<Tensor> &held, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::vector<Part> &parts = monoid_of(at.stage()).parts;
    TileBody body;
    for (size_t p : lowering.facts(at.stage()).live.stepped) {
        const bool guarded = !held.empty() && store_is_guarded(scope, held[p]);
        append(
            body,
            over_tile(lowering, at, scope, names, parts[p].dims, guarded, [&](const Point &point, const Expr &lane, const Scope &inside) {
                Expr value = constant(parts[p].identity);
                if (!held.empty())
                    value = load_or(inside.at(held[p].name).buffer.name, held[p].dtype,
                                    result_index(lowering, at.stage(), inside, held[p], point),
                                    lane.defined() ? lane : constant_int(DType::boolean, 1), value);
                return tile_node(Compute{at.accumulator(p).name, tile_index(at, inside, &parts[p], point), value, Expr()});
            }));
    }
    return body;
}

TileBody begin_parts(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    if (auto *fragments = std::get_if<FragmentStep>(&at.nest->step)) return begin_fragments(*fragments, lowering, at, scope, names);
    if (at.fold.resumes) return begin_from(lowering.results(at.stage()), lowering, at, scope, names);
    if (at.fold.earlier.empty()) return begin_from({}, lowering, at, scope, names);
    Expr is_first = constant_int(DType::boolean, 1);
    for (const Expr &v : at.fold.earlier) is_first = is_first && v == Expr(0);
    TileBody identities = begin_from({}, lowering, at, scope, names);
    TileBody results = begin_from(lowering.results(at.stage()), lowering, at, scope, names);
    return in_guard(is_first, std::move(identities), std::move(results));
}

// What of a part is stored in a tensor, at every point of the tile.
using PartValue = std::function<Expr(size_t part, const Scope &inside, const Point &point)>;

static TileBody store_part(size_t part, const Tensor &to, const PartValue &value, const Lowering &lowering, const Cursor &at,
                           const Scope &scope, Names &names) {
    return over_tile(lowering, at, scope, names, monoid_of(at.stage()).parts[part].dims, store_is_guarded(scope, to),
                     [&](const Point &point, const Expr &lane, const Scope &inside) {
                         return tile_node(Compute{inside.at(to.name).buffer.name, result_index(lowering, at.stage(), inside, to, point),
                                                  value(part, inside, point), lane});
                     });
}

static PartValue accumulated(const Cursor &at) {
    return [&at](size_t part, const Scope &inside, const Point &point) {
        const Part &p = monoid_of(at.stage()).parts[part];
        return load(at.accumulator(part).name, p.identity.type, tile_index(at, inside, &p, point));
    };
}

TileBody write_parts(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    if (auto *fragments = std::get_if<FragmentStep>(&at.nest->step)) return write_fragments(*fragments, lowering, at, scope, names);
    const std::vector<Tensor> &results = lowering.results(at.stage());
    TileBody body;
    for (size_t p = 0; p < results.size(); p++)
        if (lowering.facts(at.stage()).live.stored[p]) append(body, store_part(p, results[p], accumulated(at), lowering, at, scope, names));
    return body;
}

static std::vector<Tensor> carries_of(const Lowering &lowering, const Stage &stage) {
    std::vector<Tensor> carries;
    for (const Tensor &result : lowering.results(stage)) carries.push_back(carried(result));
    return carries;
}

TileBody begin_carries(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::vector<Tensor> carries = carries_of(lowering, at.stage());
    auto identity = [&](size_t part, const Scope &, const Point &) { return constant(monoid_of(at.stage()).parts[part].identity); };
    TileBody body;
    for (size_t p : lowering.facts(at.stage()).live.stepped) append(body, store_part(p, carries[p], identity, lowering, at, scope, names));
    return body;
}

TileBody take_carries(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    return begin_from(carries_of(lowering, at.stage()), lowering, at, scope, names);
}

TileBody leave_carries(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::vector<Tensor> &results = lowering.results(at.stage()), carries = carries_of(lowering, at.stage());
    TileBody body;
    for (size_t p : lowering.facts(at.stage()).live.stepped) {
        const Stored *result = scope.find(results[p].name);
        if (result && result->buffer.name == scope.at(carries[p].name).buffer.name) continue;  // written there already
        append(body, store_part(p, carries[p], accumulated(at), lowering, at, scope, names));
    }
    return body;
}

// The identity in the place of what a scan has folded, where an element begins a segment.
static TileBody begin_segment(const Expr &begins, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::vector<Part> &parts = monoid_of(at.stage()).parts;
    TileBody body;
    for (size_t p : lowering.facts(at.stage()).live.stepped)
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
