#include "algorithms/import/onnx/layers.h"

#include <map>
#include <set>

#include "algorithms/transform/roll/roll.h"

namespace tessera::onnx {

Imported with_layers(Imported made) {
    std::map<std::string, const Weight *> weights;
    std::set<std::string> names;
    for (const Weight &w : made.weights) weights[w.name] = &w, names.insert(w.name);
    Rolled rolled = roll_chains(made.program, names);
    std::map<std::string, Weight> stacks;
    std::set<std::string> gone;
    for (const auto &[name, members] : rolled.stacks) {
        const Array &first = weights.at(members[0])->array;
        Array all;
        all.dtype = first.dtype;
        all.extents = first.extents;
        all.extents.insert(all.extents.begin(), static_cast<int64_t>(members.size()));
        for (const std::string &m : members) {
            const std::vector<std::byte> &data = weights.at(m)->array.data;
            all.data.insert(all.data.end(), data.begin(), data.end());
        }
        stacks[members[0]] = {name, std::move(all), {}, {}};
        gone.insert(members.begin(), members.end());
    }
    made.program = std::move(rolled.algorithm);
    std::vector<Weight> kept;
    for (Weight &w : made.weights) {
        const auto stack = stacks.find(w.name);
        if (stack != stacks.end()) kept.push_back(std::move(stack->second));
        else if (!gone.count(w.name)) kept.push_back(std::move(w));
    }
    made.weights = std::move(kept);
    return made;
}

}  // namespace tessera::onnx
