#include "compiler/lower/root_stages.h"

#include <algorithm>
#include <set>

#include "algorithms/ir/rows.h"
#include "compiler/lower/context/build.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/stage_nest.h"
#include "compiler/lower/place/beside.h"
#include "compiler/lower/place/storage.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

static Pieces whole_pieces(const Lowering &lowering, const Stage &stage, const Scope &scope) {
    Pieces pieces;
    for (const std::string &d : stage.dims) {
        Piece p = whole(lowering, scope, d, pieces);
        if (p.size.defined()) pieces[d] = p;
    }
    return pieces;
}

static Built build_nest(const Lowering &lowering, const StageNest &nest, Pieces pieces, const Scope &scope, Names &names) {
    Cursor first;
    first.nest = &nest, first.pieces = std::move(pieces);
    return build(lowering, first, scope, names);
}

// What a scatter begins with is filled in by vectors where it has some, and in parallel where its steps run so.
static Knobs knobs_of_begin(const Knobs &stated, const Stage &begin) {
    Knobs k;
    for (const auto &[dim, lanes] : stated.vector)
        if (is_spatial(begin, dim)) k.vector[dim] = lanes;
    auto first = std::find_if(begin.dims.begin(), begin.dims.end(), [&](const std::string &d) { return !k.vector.count(d); });
    if (!stated.parallel.empty() && first != begin.dims.end()) k.parallel = {*first};
    return k;
}

// What writes 0 to elements of its results that no point of the stage has.
static Built rests(const Lowering &lowering, const Stage &stage, const Scope &scope, Names &names) {
    Built built;
    const auto found = lowering.rests.find(&stage);
    if (found == lowering.rests.end()) return built;
    for (const auto &rest : found->second) {
        const Pieces all = whole_pieces(lowering, *rest, scope);
        const Knobs stated = knobs_of_begin(lowering.knobs(stage.name), *rest);
        built += build_nest(lowering, root_nest(lowering, *rest, stated, all), all, scope, names);
    }
    return built;
}

// What an in-place fold begins with.
static Built begin(const Lowering &lowering, const InPlaceFold &fold, const Scope &scope, Names &names) {
    const Pieces all = whole_pieces(lowering, fold.begin, scope);
    const Knobs stated = knobs_of_begin(lowering.knobs(fold.step.name), fold.begin);
    return build_nest(lowering, root_nest(lowering, fold.begin, stated, all), all, scope, names);
}

static Built loops_at_root(const Lowering &lowering, const Stage &stage, const Scope &scope, Names &names) {
    const Stage &own = scatters(stage) ? lowering.in_place.at(&stage)->step : stage;
    const Pieces pieces = whole_pieces(lowering, own, scope);
    const StageNest nest = root_nest(lowering, own, pieces);
    Built built = rests(lowering, stage, scope, names);
    if (scatters(stage)) built += begin(lowering, *lowering.in_place.at(&stage), scope, names);
    const std::vector<Owned> beside = owned_in(lowering, nest);
    check_order_beside(lowering, nest, beside);
    for (const Owned &owned : beside) built += rests(lowering, *owned.stage, scope, names);
    for (const Owned &owned : beside)
        if (owned.accumulates) built += begin(lowering, *lowering.in_place.at(owned.stage), scope, names);
    return built += build_nest(lowering, nest, pieces, scope, names);
}

static bool is_at_root(const Knobs &k) { return !k.place || k.place->kind == Place::Kind::root; }

namespace {

// What has been built so far.
struct Roots {
    const Lowering &lowering;
    const std::set<std::string> outputs;
    Scope scope;
    Names names;
    std::vector<RootPart> parts = {};
    bool has_border_version = false;

    // Storage for a result, unless it is an argument.
    void store(const Tensor &result, Stored stored, std::vector<Buffer> &buffers) {
        buffers.push_back(stored.buffer);
        scope.store(result.name, std::move(stored));
    }
    void add_call(const Callee &callee, const Call &call, TileProgram lowered, TileProgram &program) {
        std::vector<Buffer> buffers;
        for (const Tensor &t : results_of(call))
            if (!outputs.count(t.name)) store(t, stored_result(lowering, scope, t), buffers);
        parts.push_back({nullptr, buffers, run_call(callee, std::move(lowered), lowering, scope, names, program)});
    }
    void add_stage(const Stage &stage) {
        std::vector<Buffer> buffers;
        for (const Tensor &t : lowering.stored_results(stage))
            if (!outputs.count(t.name)) store(t, store_root(lowering, scope, stage, t), buffers);
        if (auto beside = lowering.beside.find(stage.name); beside != lowering.beside.end())
            for (const Stage *other : beside->second)
                for (const Tensor &t : lowering.stored_results(*other)) {
                    if (outputs.count(t.name)) continue;
                    Stored stored = store_root(lowering, scope, *other, t);
                    stored.exact = true;  // it is computed in the host's tiles, and may be laid out for its own
                    store(t, std::move(stored), buffers);
                }
        Built nest = loops_at_root(lowering, stage, scope, names);
        has_border_version |= nest.has_border_version;
        parts.push_back({&stage, buffers, std::move(nest.body)});
    }
};

}  // namespace

TileBody RootStages::whole_body() const {
    TileBody body;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        TileBody both = part->body;
        append(both, std::move(body));
        body = in_allocs(part->buffers, std::move(both));
    }
    return body;
}

RootStages build_roots(const Lowering &lowering, const KeptCalls &kept, const Scope &scope, const LowerCallee &lower_callee,
                       TileProgram &program) {
    const Algorithm &a = lowering.algorithm;
    Roots roots{lowering, {a.outputs.begin(), a.outputs.end()}, scope, Names(a)};
    auto add_call = [&](const Call &call) {
        const Callee &callee = kept.callees.at(call.scope);
        roots.add_call(callee, call, lower_callee(callee), program);
    };
    auto add_stage = [&](const Stage &stage) {
        const Knobs &k = lowering.knobs(stage.name);
        if (is_at_root(k)) return roots.add_stage(stage);
        if (k.place->kind == Place::Kind::beside) return;  // with its host
        for (const Tensor &t : lowering.results(stage))
            if (roots.outputs.count(t.name))
                throw UserError("schedule.place", stage.name + ": an output must be placed at root, or beside another stage.");
        if (begins_rows(a, stage))
            throw UserError("schedule.place", stage.name + ": it is placed in a loop of '" + k.place->stage +
                                                  "', and says where rows of segments begin, which is read outside of that loop too. "
                                                  "Place it at root.");
    };
    for (const Step &step : a.steps) std::visit(Overloaded{add_stage, add_call}, step);
    return {std::move(roots.parts), roots.names.made(), roots.has_border_version};
}

}  // namespace tessera
