#include "algorithms/ir/derivative_rule.h"

#include <algorithm>

#include "support/text/error.h"

namespace tessera {

// What stands before the suffix in names that end with it.
static void add_stems(const std::vector<std::string> &names, const std::string &suffix, std::set<std::string> &stems) {
    for (const std::string &name : names)
        if (name.ends_with(suffix)) stems.insert(name.substr(0, name.size() - suffix.size()));
}

static std::vector<std::string> inputs_of(const Algorithm &a) {
    std::vector<std::string> names;
    for (const Tensor &t : a.tensors)
        if (t.role == Role::input) names.push_back(t.name);
    return names;
}

RuleReach reach_of(const Algorithm &f) {
    require(f.rule != nullptr, "an algorithm without a rule has no reach");
    RuleReach reach;
    if (f.rule->backward) {
        add_stems(f.rule->backward->outputs, ".grad", reach.by);
        add_stems(inputs_of(*f.rule->backward), ".grad", reach.of);
    } else if (f.rule->jvp) {
        add_stems(inputs_of(*f.rule->jvp), ".tangent", reach.by);
        add_stems(f.rule->jvp->outputs, ".tangent", reach.of);
    }
    // An input of the algorithm may itself be called y.grad.
    std::erase_if(reach.of, [&](const std::string &y) { return std::count(f.outputs.begin(), f.outputs.end(), y) == 0; });
    std::erase_if(reach.by, [&](const std::string &x) {
        const auto is = [&](const auto &p) { return p.name == x; };
        return !f.find_tensor(x) && std::none_of(f.parameters.begin(), f.parameters.end(), is);
    });
    return reach;
}

DType derivative_type(DType type) { return size_of(type) < 2 ? DType::f32 : type; }

}  // namespace tessera
