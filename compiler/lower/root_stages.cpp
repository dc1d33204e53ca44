#include "compiler/lower/root_stages.h"

#include <set>

#include "compiler/lower/body/scatter_body.h"
#include "compiler/lower/context/build.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/stage_nest.h"
#include "compiler/lower/place/storage.h"
#include "support/text/error.h"

namespace tessera {

static Built loops_or_scatter(const Lowering &lowering, const Stage &stage, const Scope &scope, Names &names) {
    if (auto *reduce = std::get_if<Reduce>(&stage.body); reduce && !reduce->at.empty()) return scatter_body(lowering, stage, scope, names);
    Pieces pieces;
    for (const std::string &d : stage.dims) {
        Piece p = whole(lowering, scope, d, pieces);
        if (p.size.defined()) pieces[d] = p;
    }
    const StageNest nest = root_nest(lowering, stage, pieces);
    Cursor first;
    first.nest = &nest, first.pieces = std::move(pieces);
    return build(lowering, first, scope, names);
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
        parts.push_back({nullptr, buffers, run_call(callee, std::move(lowered), lowering, scope, program)});
    }
    void add_stage(const Stage &stage) {
        std::vector<Buffer> buffers;
        for (const Tensor &t : lowering.stored_results(stage))
            if (!outputs.count(t.name)) store(t, store_root(lowering, scope, stage, t), buffers);
        Built nest = loops_or_scatter(lowering, stage, scope, names);
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
    size_t call = 0;
    auto add_call = [&] {
        const Callee &callee = kept.callees[call];
        roots.add_call(callee, a.calls[call], lower_callee(callee), program);
        call++;
    };
    for (const Stage &stage : a.stages) {
        while (call < kept.callees.size() && runs_before(kept, call, stage.name)) add_call();
        if (is_at_root(lowering.knobs(stage.name))) {
            roots.add_stage(stage);
            continue;
        }
        for (const Tensor &t : lowering.results(stage))
            if (roots.outputs.count(t.name)) throw UserError("schedule.place", stage.name + ": an output must be placed at root.");
    }
    while (call < kept.callees.size()) add_call();
    return {std::move(roots.parts), roots.names.made(), roots.has_border_version};
}

}  // namespace tessera
