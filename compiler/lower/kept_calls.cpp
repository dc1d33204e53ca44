#include "compiler/lower/kept_calls.h"

#include <algorithm>
#include <functional>

#include "algorithms/expr/function.h"
#include "compiler/lower/context/extents.h"
#include "compiler/tile/arguments.h"
#include "support/text/error.h"

namespace tessera {

KeptCalls keep_calls(const Algorithm &algorithm, KnobsByStage &stages) {
    KeptCalls kept;
    kept.algorithm = inline_calls(algorithm, emitted_once(algorithm, stages));
    kept.callees = take_callees(kept.algorithm, stages);
    for (const auto &[scope, callee] : kept.callees)
        for (const auto &[stage, k] : callee.stages)
            for (const auto &[operand, pack] : k.pack)
                if (pack.is_ahead())
                    throw UserError("schedule.prepack", callee.scope + "." + stage + ": cannot pack '" + operand +
                                                            "' ahead of time: the call '" + callee.scope +
                                                            "' is emitted once, and what it takes is not its caller's argument; inline the "
                                                            "call, or pack it at a loop of the stage.");
    for (const Call &call : kept.algorithm.calls())
        for (const Tensor &t : results_of(call)) kept.algorithm.tensors.push_back(t), kept.results.insert(t.name);
    return kept;
}

static TileBody with_renamed(const TileBody &body, const std::map<std::string, std::string> &programs) {
    TileBody result;
    for (const auto &node : body) {
        TileNode n = map_bodies(*node, [&](const TileBody &inner) { return with_renamed(inner, programs); });
        if (auto *invoke = std::get_if<Invoke>(&n)) invoke->program = programs.at(invoke->program);
        result.push_back(tile_node(std::move(n)));
    }
    return result;
}

// Adds `callee` and what it invokes to `program`, unless they are there; gives its name.
static std::string add_program(TileProgram &program, TileProgram callee) {
    std::map<std::string, std::string> renamed;
    for (const TileProgram &inner : std::exchange(callee.programs, {})) renamed[inner.name] = add_program(program, inner);
    if (!renamed.empty()) callee.body = with_renamed(callee.body, renamed);
    for (const TileProgram &known : program.programs)
        if (resolved_hash(known) == resolved_hash(callee)) return known.name;
    std::string name = callee.name;
    for (int n = 2;
         std::any_of(program.programs.begin(), program.programs.end(), [&](const TileProgram &p) { return p.name == callee.name; }); n++)
        callee.name = name + std::to_string(n);
    program.programs.push_back(callee);
    return callee.name;
}

// Runs `program`, which was made of `callee`, on what the caller binds.
static Invoke invoke(const Callee &callee, const std::string &name, const TileProgram &program, const Lowering &lowering,
                     const Scope &scope) {
    Invoke node{name, {}, {}, callee.parameters};
    for (auto &[parameter, value] : node.parameters) value = expand_functions(value);
    auto refuse = [&](const std::string &what) {
        throw UserError("schedule.call", callee.scope + ": the call is emitted once, and " + what + ", or inline the call.");
    };
    for (const Argument &a : program.arguments) {
        const std::string &tensor = callee.tensors.at(a.tensor.name);
        const Stored *where = scope.find(tensor);
        if (!where || where->depth > 0) refuse("takes '" + tensor + "', which is not stored in full before it; place it at root");
        if (!where->layout.empty()) refuse("takes '" + tensor + "', which has a layout; delete the layout (null)");
        node.buffers.push_back(where->buffer.name);
    }
    for (const Dim &d : spec_dims(program)) {
        Expr e = d.kind == DimKind::fixed ? Expr(d.value) : extent_of(lowering, scope, callee.dims.at(d.name));
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::load)
                refuse("the extent of its dim '" + d.name + "' is data (" + brief(e) + "); declare it by a dim");
        });
        node.extents[d.name] = e;
    }
    return node;
}

TileBody run_call(const Callee &callee, TileProgram lowered, const Lowering &lowering, const Scope &scope, TileProgram &program) {
    const std::string name = add_program(program, lowered);
    return {tile_node(invoke(callee, name, lowered, lowering, scope))};
}

}  // namespace tessera
