#include "algorithms/transform/derivatives/rule_call.h"

#include <algorithm>

#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/derivatives/rounds.h"
#include "algorithms/verify/verify_rule.h"

namespace tessera::differentiation {

// The transpose of a part in these inputs, which are not read any more.
static std::shared_ptr<const Algorithm> transposed(const Algorithm &part, const std::set<std::string> &of, const std::string &suffix) {
    std::vector<std::string> linear_in;
    for (const std::string &name : of) linear_in.push_back(name + suffix);
    Algorithm made = transpose(part, linear_in);
    std::erase_if(made.tensors, [&](const Tensor &t) { return std::count(linear_in.begin(), linear_in.end(), t.name) > 0; });
    return std::make_shared<const Algorithm>(std::move(made));
}

static std::map<std::string, std::string> named(const std::set<std::string> &of, const std::string &suffix) {
    std::map<std::string, std::string> names;
    for (const std::string &name : of) names[name] = name + suffix;
    return names;
}

static std::shared_ptr<const Algorithm> primal_of_backward(const std::shared_ptr<const Algorithm> &of) {
    return of->rule->forward ? of->rule->forward : of;
}

RulePart jvp_part(const std::shared_ptr<const Algorithm> &of) {
    const DerivativeRule &rule = *of->rule;
    const RuleReach reach = reach_of(*of);
    if (rule.jvp) return {rule.jvp, of, named(reach.by, ".tangent"), named(reach.of, ".tangent")};
    return {transposed(*rule.backward, reach.of, ".grad"), primal_of_backward(of), named(reach.by, ".grad.grad"),
            named(reach.of, ".grad.grad")};
}

RulePart backward_part(const std::shared_ptr<const Algorithm> &of) {
    const DerivativeRule &rule = *of->rule;
    const RuleReach reach = reach_of(*of);
    if (rule.backward) return {rule.backward, primal_of_backward(of), named(reach.of, ".grad"), named(reach.by, ".grad")};
    return {transposed(*rule.jvp, reach.by, ".tangent"), of, named(reach.of, ".tangent.grad"), named(reach.by, ".tangent.grad")};
}

Call primal_call(Program &program, const Call &given, const RulePart &part) {
    Call call = given;
    if (part.primal == given.callee) return call;
    call.callee = part.primal;
    const auto has_parameter = [&](const std::string &name) {
        const auto is = [&](const Parameter &p) { return p.name == name; };
        return std::any_of(part.primal->parameters.begin(), part.primal->parameters.end(), is);
    };
    std::erase_if(call.tensors, [&](const auto &t) { return !part.primal->find_tensor(t.first); });
    std::erase_if(call.parameters, [&](const auto &p) { return !has_parameter(p.first); });
    const std::vector<std::string> &outputs = given.callee->outputs;
    for (const std::string &output : part.primal->outputs)
        if (std::count(outputs.begin(), outputs.end(), output) == 0) call.results[output] = program.fresh(given.scope + "." + output);
    bind_dims(program, call);
    return call;
}

Call part_call(Program &program, const Call &given, const Call &primal, const RulePart &part, const std::string &suffix) {
    Call call;
    call.scope = program.fresh(given.scope + suffix);
    call.callee = part.algorithm;
    call.span = given.span;
    std::set<std::string> seen;  // a part may go over two dims that the algorithm has apart
    for (const Dim &d : part.algorithm->dims) {
        const auto bound = given.dims.find(d.name);
        if (bound == given.dims.end()) continue;
        call.dims[d.name] = seen.insert(bound->second).second ? bound->second : program.dim_like(bound->second, {});
    }
    std::set<std::string> later;
    for (const auto &[name, input] : part.given) later.insert(input);
    for (const Tensor &t : part.algorithm->tensors) {
        if (t.role == Role::constant || later.count(t.name)) continue;
        const auto taken = given.tensors.find(t.name);
        call.tensors[t.name] = taken != given.tensors.end() ? taken->second : View(name_of_result(primal, t.name));
    }
    for (const Parameter &p : part.algorithm->parameters) call.parameters[p.name] = given.parameters.at(p.name);
    for (const auto &[name, output] : part.gives) call.results[output] = program.fresh(given.scope + "." + name + suffix);
    bind_dims(program, call);
    return call;
}

}  // namespace tessera::differentiation

namespace tessera {

Algorithm with_rule(Algorithm f, DerivativeRule rule) {
    f.rule = std::make_shared<const DerivativeRule>(std::move(rule));
    verify_rule(f);
    return f;
}

}  // namespace tessera
