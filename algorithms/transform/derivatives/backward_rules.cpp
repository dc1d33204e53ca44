// Reverse mode through calls of algorithms with a rule: the algorithm runs as it is, or what the rule says in its place, and behind it what
// the rule says of cotangents.
#include <algorithm>

#include "algorithms/transform/derivatives/backward.h"

namespace tessera::differentiation {

void Backward::add_primal(const Call &given) { return given.callee->rule ? add_by_rule(given) : add_rounds(given); }

void Backward::add_by_rule(const Call &given) {
    RuleCall call{given, given, rule_activity(given, request_.active), {}};
    if (call.active.by.empty() || call.active.of.empty()) return p_.add_as_it_is(given);
    call.part = backward_part(given.callee);
    call.primal = primal_call(p_, given, call.part);
    p_.add_as_it_is(call.primal);
    linear_.emplace_back(std::move(call));
}

void Backward::transpose(const RuleCall &call) {
    const Call &given = call.given;
    const auto is_given = [&](const std::string &y) { return given_.count(name_of_result(given, y)) > 0; };
    if (std::none_of(call.active.of.begin(), call.active.of.end(), is_given)) return;
    Call back = part_call(p_, given, call.primal, call.part, ".grad");
    for (const auto &[y, input] : call.part.given) {
        const Tensor result = p_.tensor(name_of_result(given, y));
        Tensor cotangent = stored_cotangent(result);
        if (const DType type = derivative_type(result.dtype); cotangent.dtype != type) {
            const Stage cast{
                p_.fresh(cotangent.name + "." + name_of(type)), cotangent.dims, Map(p_.kept(type, own_element(cotangent))), {}, {}};
            cotangent = results_of(p_.add(cast))[0];
        }
        back.tensors[input] = View(cotangent.name);
    }
    p_.add_as_it_is(back);
    for (const Source &s : call.active.by) give(given, back, s, call.part.gives.at(s.name));
}

}  // namespace tessera::differentiation
