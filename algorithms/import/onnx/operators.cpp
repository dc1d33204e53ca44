#include "algorithms/import/onnx/operators.h"

#include <map>

namespace tessera::onnx {

std::vector<Operator> all_operators() {
    std::vector<Operator> all = arithmetic_operators();
    for (Operator &o : all) o.is_element_wise = true;
    for (const auto &part : {
             shape_operators(),    indexing_operators(),  quantized_operators(), reduction_operators(),     network_operators(),
             sampling_operators(), recurrent_operators(), loss_operators(),      normalization_operators(), attention_operators(),
             state_operators(),    known_operators(),     feature_operators(),   signal_operators(),        placing_operators(),
             grid_operators(),     loop_operators(),      training_operators(),  fused_operators(),         fused_attention_operators(),
         })
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

const Operator *find_operator(const std::string &domain, const std::string &name) {
    static const std::map<std::pair<std::string, std::string>, Operator> rows = [] {
        std::map<std::pair<std::string, std::string>, Operator> by_name;
        for (const Operator &o : all_operators()) by_name[{o.domain, o.name}] = o;
        return by_name;
    }();
    const auto it = rows.find({domain, name});
    return it == rows.end() ? nullptr : &it->second;
}

}  // namespace tessera::onnx
