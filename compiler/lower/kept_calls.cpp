#include "compiler/lower/kept_calls.h"

#include <algorithm>
#include <functional>

#include "algorithms/transform/inline_calls.h"
#include "compiler/lower/rounds.h"
#include "support/text/error.h"

namespace tessera {

KeptCalls keep_calls(const Algorithm &algorithm, KnobsByStage &stages) {
    KeptCalls kept;
    kept.algorithm = inline_calls(algorithm, emitted_once(algorithm, stages));
    kept.callees = take_callees(kept.algorithm, stages);
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

TileBody run_call(const Callee &callee, TileProgram lowered, const Lowering &lowering, const Scope &scope, Names &names,
                  TileProgram &program) {
    const std::string name = add_program(program, lowered);
    return rounds_of(callee, name, lowered, lowering, scope, names);
}

}  // namespace tessera
