#include "algorithms/import/onnx/callees.h"

#include <nlohmann/json.hpp>

#include "algorithms/import/onnx/inward.h"
#include "algorithms/text/json.h"

namespace tessera::onnx {

// After the operators of its first nodes: "conv_add_relu".
static std::string name_of(const Part &part) {
    constexpr size_t long_enough = 24;
    std::string name;
    for (const Node *n : part.nodes) {
        if (name.size() > long_enough) break;
        if (!name.empty()) name += '_';
        for (char c : n->op) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return name;
}

std::optional<Value> Callees::call(const Part &part, Space &space, const Model &model, const std::map<std::string, Value> &values) {
    std::optional<Callee> callee = callee_of(part, space, model, values);
    if (!callee) return std::nullopt;
    nlohmann::json text = to_json(*callee->algorithm);
    text.erase("name");
    std::shared_ptr<const Algorithm> &shared = by_text_[text.dump()];
    if (!shared) {
        Algorithm named = *callee->algorithm;
        const std::string base = name_of(part);
        named.name = base;
        for (int i = 2; names_.count(named.name); i++) named.name = base + "_" + std::to_string(i);
        names_.insert(named.name);
        shared = std::make_shared<const Algorithm>(std::move(named));
    }
    Binding bind(space, *shared, callee->meaning);
    // Weights come last, so that they are declared over the dims that data have.
    std::vector<Tile> arguments(callee->tensors.size());
    for (size_t i = 0; i < callee->tensors.size(); i++)
        if (!callee->inputs[i].empty()) arguments[i] = bind.argument(values.at(callee->inputs[i]).tile, callee->tensors[i]);
    size_t next_weight = 0;
    for (size_t i = 0; i < callee->tensors.size(); i++)
        if (callee->inputs[i].empty()) arguments[i] = bind.weight(callee->weights.at(next_weight++), callee->tensors[i]);
    std::map<std::string, Tile> parameters;
    for (const auto &[name, number] : callee->parameters) parameters[name] = space.f.scalar(DType::f32, number);
    const Tile result = space.f.call(space.fresh(part.nodes.back()->outputs[0]), *shared, arguments, parameters)[0];
    Value value = bind.result(callee->result, result);
    value.name = part.nodes.back()->outputs[0];
    return value;
}

}  // namespace tessera::onnx
