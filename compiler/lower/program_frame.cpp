#include "compiler/lower/program_frame.h"

#include <algorithm>
#include <functional>

#include "compiler/lower/place/storage.h"
#include "support/text/error.h"

namespace tessera {

// The dims of a callee that no dim of the caller stands for, as far as arguments and constants have them.
static void add_carried_dims(TileProgram &program, const Algorithm &a) {
    std::function<void(const std::string &)> add = [&](const std::string &name) {
        if (std::any_of(program.dims.begin(), program.dims.end(), [&](const Dim &d) { return d.name == name; })) return;
        const Dim &dim = a.dim(name);
        if (!dim.equals.empty()) add(dim.equals);
        if (dim.size.defined())
            walk(dim.size, [&](const Expr &n) {
                if (n.kind() == ExprKind::extent) add(n->name);
            });
        program.dims.push_back(dim);
    };
    for (const Argument &argument : program.arguments)
        for (const std::string &d : argument.tensor.dims) add(d);
    for (const Tensor &t : program.constants)
        for (const std::string &d : t.dims) add(d);
}

TileProgram program_frame(const Algorithm &declared, const Algorithm &a, const KeptCalls &kept, const std::vector<PackedInput> &packed,
                          const Target &target) {
    TileProgram program;
    program.name = declared.name;
    program.target = target.name;
    program.features = target.features;
    program.dims = declared.dims;
    program.parameters = a.parameters;
    for (const Tensor &t : a.tensors) {
        if (kept.results.count(t.name)) continue;
        if (t.role == Role::constant) {
            program.constants.push_back(t);
            continue;
        }
        program.arguments.push_back({t, t.role == Role::state, true});
        for (const PackedInput &p : packed)
            if (p.tensor.name == t.name) program.arguments.back().packed = p.packing;
    }
    for (const std::string &name : a.outputs) {
        const Stage *stage = defining_stage(a, name);
        require(stage || kept.results.count(name), "an output has a stage or a call");
        for (const Tensor &t : stage ? results_of(*stage) : a.tensors)
            if (t.name == name) program.arguments.push_back({t, true, false});
    }
    for (Argument &argument : program.arguments) {
        argument.large = a.large.count(argument.tensor.name) > 0;
        const std::string &name = argument.packed ? argument.packed->operand.name : argument.tensor.name;
        if (const auto half = a.half_bytes.find(name); half != a.half_bytes.end()) argument.half_bytes = half->second;
    }
    program.ascending = ascending_results(kept.algorithm);
    add_carried_dims(program, a);
    return program;
}

Scope scope_of(const Lowering &lowering, const TileProgram &frame) {
    Scope scope(lowering.algorithm.dims, lowering.algorithm.parameters);
    for (const Ascending &tensor : frame.ascending) scope.facts.set_ascending(tensor);
    for (const Argument &a : frame.arguments) scope.store(a.tensor.name, stored_argument(lowering, scope, a.tensor, a.packed.has_value()));
    for (const Tensor &t : frame.constants) scope.store(t.name, stored_argument(lowering, scope, t, false));
    return scope;
}

}  // namespace tessera
