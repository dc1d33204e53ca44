#include "compiler/rewrite/accesses.h"

#include <algorithm>

#include "compiler/rewrite/order.h"
#include "support/containers/alternatives.h"

namespace tessera {

Accesses::Accesses(const Step &step, const Algorithm &algorithm) : loads(tensors_read(step, algorithm)), writes(states_written(step)) {
    std::visit(Overloaded{
                   [&](const Stage &stage) {
                       for (const std::string &name : names_of_results(stage))
                           if (!name.empty()) results.insert(name);
                   },
                   [&](const Call &call) {
                       for (const Tensor &t : results_of(call)) results.insert(t.name);
                   },
               },
               step);
}

static bool meet(const std::set<std::string> &a, const std::set<std::string> &b) {
    return std::any_of(a.begin(), a.end(), [&](const std::string &name) { return b.count(name) > 0; });
}

bool Accesses::must_follow(const Accesses &earlier) const {
    return meet(loads, earlier.results) || meet(loads, earlier.writes) || meet(writes, earlier.loads) || meet(writes, earlier.writes);
}

void Accesses::merge(const Accesses &other) {
    loads.insert(other.loads.begin(), other.loads.end());
    results.insert(other.results.begin(), other.results.end());
    writes.insert(other.writes.begin(), other.writes.end());
}

bool needs_by_way_of_others(const std::vector<Accesses> &steps, size_t later, size_t earlier) {
    Accesses between;  // of those that need the earlier one
    for (size_t i = earlier + 1; i < later; i++)
        if (steps[i].must_follow(steps[earlier]) || steps[i].must_follow(between)) between.merge(steps[i]);
    return steps[later].must_follow(between);
}

}  // namespace tessera
