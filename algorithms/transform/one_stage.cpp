#include "algorithms/transform/one_stage.h"

#include <set>

#include "algorithms/index/ascending.h"

namespace tessera {

Algorithm one_stage(const Algorithm &algorithm, const Stage &stage) {
    std::set<std::string> read;
    const auto add_read = [&](const Expr &e) {
        if (e.defined())
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load) read.insert(n->name);
            });
    };
    for (const Expr &e : expressions_of(stage)) add_read(e);
    for (const Dim &d : algorithm.dims) add_read(d.size);
    Algorithm made = algorithm;
    made.name = algorithm.name + "." + stage.name;
    made.steps.clear(), made.tensors.clear(), made.checks.clear(), made.outputs.clear();
    for (const Tensor &t : results_of(stage)) made.outputs.push_back(t.name);
    // Offsets that ascend are made here too: that they do is known from how they are made.
    for (const Ascending &offsets : ascending_results(algorithm)) {
        if (!read.erase(offsets.tensor)) continue;
        const Stage &maker = *defining_stage(algorithm, offsets.tensor);
        for (const Expr &e : expressions_of(maker)) add_read(e);
        if (maker.name != stage.name) made.steps.emplace_back(maker);
    }
    made.steps.emplace_back(stage);
    const auto add = [&](const std::vector<Tensor> &tensors) {
        for (const Tensor &t : tensors)
            if (read.count(t.name)) made.tensors.push_back(t);
    };
    add(algorithm.tensors);
    for (const Step &step : algorithm.steps) add(std::visit([](const auto &s) { return results_of(s); }, step));
    return made;
}

}  // namespace tessera
