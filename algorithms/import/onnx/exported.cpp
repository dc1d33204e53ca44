#include "algorithms/import/onnx/exported.h"

#include <algorithm>
#include <bit>

#include <nlohmann/json.hpp>

#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/transform/bind_extents.h"
#include "algorithms/verify/verify.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera::onnx {

namespace {

constexpr size_t most_levels = 64;              // of functions that call each other
constexpr size_t most_bytes = size_t{1} << 24;  // of an algorithm's JSON

class BodyText {
public:
    explicit BodyText(const Model &model) : model_(model) {}

    std::string digest(const ModelFunction &f) {
        if (const auto it = known_.find(&f); it != known_.end()) return it->second;
        if (++levels_ > most_levels)
            throw UserError("onnx.depth", "functions of the model call each other over " + std::to_string(most_levels) + " deep.");
        std::string text = "function";
        for (const std::string &i : f.inputs) text += word(i);
        text += ";";
        for (const std::string &o : f.outputs) text += word(o);
        for (const Node &n : f.nodes) text += node(n);
        levels_--;
        return known_[&f] = sha256(text);
    }

private:
    const Model &model_;
    std::map<const ModelFunction *, std::string> known_;
    size_t levels_ = 0;

    static std::string word(const std::string &text) { return std::to_string(text.size()) + "'" + text; }

    std::string node(const Node &n) {
        std::string text = "\n" + word(n.domain) + word(n.op);
        for (const std::string &i : n.inputs) text += word(i);
        text += ";";
        for (const std::string &o : n.outputs) text += word(o);
        for (const auto &[name, a] : n.attributes) {
            text += ";" + word(name) + std::to_string(a.type) + word(a.text) + word(a.refers_to) + std::to_string(a.integer);
            text += "," + std::to_string(std::bit_cast<uint32_t>(a.real));
            for (const int64_t i : a.integers) text += "," + std::to_string(i);
            for (const float r : a.reals) text += "," + std::to_string(std::bit_cast<uint32_t>(r));
            for (const std::string &t : a.texts) text += word(t);
            if (a.tensor) {
                const Array array = elements(*a.tensor, model_);
                text += name_of(array.dtype);
                for (const int64_t e : array.extents) text += "x" + std::to_string(e);
                text += word(std::string(reinterpret_cast<const char *>(array.data.data()), array.data.size()));
            }
            if (a.graph) {
                text += "{";
                for (const ValueInfo &i : a.graph->inputs) text += word(i.name);
                for (const auto &[key, t] : a.graph->initializers) text += word(key);
                for (const ValueInfo &o : a.graph->outputs) text += word(o.name);
                for (const Node &inner : a.graph->nodes) text += node(inner);
                text += "}";
            }
        }
        if (n.domain == exported_domain)
            for (const ModelFunction &f : model_.functions)
                if (f.domain == n.domain && f.name == n.op) text += digest(f);
        return text;
    }
};

}  // namespace

std::vector<Tensor> exported_results(const Algorithm &algorithm) {
    std::vector<Tensor> made;
    for (const Step &step : algorithm.steps) {
        const std::vector<Tensor> some = std::visit([](const auto &s) { return results_of(s); }, step);
        made.insert(made.end(), some.begin(), some.end());
    }
    std::vector<Tensor> results;
    for (const std::string &o : algorithm.outputs)
        for (const Tensor &t : made)
            if (t.name == o) results.push_back(t);
    for (const Tensor &t : algorithm.tensors)
        if (t.role == Role::state) results.push_back(t);
    return results;
}

std::string body_digest(const ModelFunction &function, const Model &model) { return BodyText(model).digest(function); }

std::optional<Algorithm> exported_algorithm_of(const ModelFunction &function, const Model &model) {
    auto said = [&](const char *key) -> std::string {
        const auto it = function.metadata.find(key);
        return it == function.metadata.end() ? "" : it->second;
    };
    const std::string text = said(exported_algorithm);
    if (function.domain != exported_domain || text.empty() || text.size() > most_bytes) return std::nullopt;
    try {
        if (said(exported_body) != body_digest(function, model)) return std::nullopt;
        Algorithm algorithm = algorithm_from_json(parse_json(text, "metadata of function " + function.name));
        verify(algorithm);
        if (said(exported_hash) != semantic_hash(algorithm)) return std::nullopt;
        return algorithm;
    } catch (const UserError &) { return std::nullopt; }
}

std::optional<Imported> import_exported(const Model &model, const ImportOptions &options) {
    const Graph &g = model.graph;
    if (g.nodes.size() != 1 || !options.bind.empty() || !options.multiples.empty() || !options.until.empty()) return std::nullopt;
    const Node &node = g.nodes[0];
    auto same = [](const std::vector<std::string> &names, const std::vector<ValueInfo> &infos) {
        return std::equal(names.begin(), names.end(), infos.begin(), infos.end(),
                          [](const std::string &name, const ValueInfo &info) { return name == info.name; });
    };
    if (!same(node.inputs, g.inputs) || !same(node.outputs, g.outputs)) return std::nullopt;
    for (const ModelFunction &f : model.functions) {
        if (f.domain != node.domain || f.name != node.op) continue;
        std::optional<Algorithm> algorithm = exported_algorithm_of(f, model);
        if (!algorithm) return std::nullopt;
        Imported made;
        size_t next = 0;
        for (const Tensor &t : algorithm->tensors)
            if (t.role != Role::constant && next < node.inputs.size()) made.inputs[t.name] = node.inputs[next++];
        for (const Parameter &p : algorithm->parameters)
            if (next < node.inputs.size()) made.inputs[p.name] = node.inputs[next++];
        next = 0;
        for (const Tensor &t : exported_results(*algorithm))
            if (next < node.outputs.size()) made.outputs[t.name] = node.outputs[next++];
        made.program = options.shape.empty() ? std::move(*algorithm) : bind_extents(*algorithm, options.shape);
        for (const Dim &d : made.program.dims)
            if (d.kind == DimKind::symbolic && d.equals.empty())
                made.dims.push_back({d.name, "a dim of " + made.program.name, d.multiple_of});
        made.operators[std::string(exported_domain) + "." + f.name] = 1;
        return made;
    }
    return std::nullopt;
}

}  // namespace tessera::onnx
