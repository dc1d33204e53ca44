#include "algorithms/import/onnx/outline.h"

#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/inward.h"
#include "algorithms/import/onnx/products_of_codes.h"
#include "support/text/error.h"

namespace tessera::onnx {

namespace {

constexpr size_t most_nodes_of_part = 16;

bool is_element_wise(const Node &node) {
    const Operator *op = find_operator(node.domain, node.op);
    return op && (op->is_element_wise || node.op == "BatchNormalization");
}

// Scales of codes are numbers too.
bool takes_numbers(const Node &node) { return is_element_wise(node) || node.domain == codes_domain; }

bool same_extents(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr &x, const Expr &y) { return equal(x, y); });
}

class Maker {
public:
    Maker(const Part &part, const Space &caller, const Model &model, const std::map<std::string, Value> &values, const Symbols &symbols)
        : part_(part), model_(model), values_(values), space_("part", Numerics{}, true), inward_(space_, caller, symbols, false) {}

    std::optional<Callee> make() {
        std::map<std::string, Value> inner;
        Callee callee;
        for (const Node *node : part_.nodes)
            for (const std::string &name : node->inputs) {
                if (name.empty() || inner.count(name) || made_.count(name)) continue;
                const auto it = values_.find(name);
                if (it == values_.end()) {
                    made_.insert(node->outputs.begin(), node->outputs.end());
                    continue;
                }
                std::optional<Value> value = takes_numbers(*node) ? number(it->second, name, callee) : std::nullopt;
                if (!value) {
                    const std::string tensor = it->second.is_constant() ? "" : space_.fresh("x");
                    value = inward_.input(it->second, tensor);
                    if (!value) return std::nullopt;
                    value->name = name;
                    if (!tensor.empty()) tensors_[tensor] = name;
                }
                inner[name] = *value;
            }
        for (const Node *node : part_.nodes) {
            std::vector<Value> inputs;
            for (const std::string &name : node->inputs) {
                inputs.emplace_back();
                if (name.empty()) continue;
                const auto it = inner.find(name);
                if (it == inner.end()) return std::nullopt;
                inputs.back() = it->second, inputs.back().name = name;
            }
            Context c(space_, *node, inputs, model_.opset(node->domain), model_, nullptr);
            const Builder::Scope scope = space_.f.scope(c.stage_name());
            std::vector<Value> results = find_operator(node->domain, node->op)->handler(c);
            for (size_t i = 0; i < results.size() && i < node->outputs.size(); i++) inner[node->outputs[i]] = results[i];
        }
        callee.result = inner.at(part_.nodes.back()->outputs[0]);
        if (callee.result.is_constant() || callee.result.is_known()) return std::nullopt;
        const Tile tile = callee.result.tile;
        space_.f.output("y", Tile(&space_.f, space_.resolved(tile.value()), tile.dims()), callee.result.dtype);
        Algorithm algorithm = space_.f.build();
        // What only a constant has whose numbers went into others.
        std::set<std::string> used;
        for (const Tensor &t : algorithm.tensors) used.insert(t.dims.begin(), t.dims.end());
        std::erase_if(algorithm.dims, [&](const Dim &d) { return d.kind == DimKind::symbolic && !used.count(d.name); });
        for (const Tensor &t : algorithm.tensors)
            if (t.role == Role::input) {
                callee.tensors.push_back(t.name);
                const auto from = tensors_.find(t.name);
                callee.inputs.push_back(from == tensors_.end() ? "" : from->second);
            }
        callee.algorithm = std::make_shared<const Algorithm>(std::move(algorithm));
        callee.weights = std::move(space_.weights);
        callee.meaning = space_.meaning;
        return callee;
    }

private:
    const Part &part_;
    const Model &model_;
    const std::map<std::string, Value> &values_;
    Space space_;
    Inward inward_;
    std::set<std::string> made_;
    std::map<std::string, std::string> tensors_;  // the callee's input -> the graph's name

    // Numbers that are no integers are arguments, so that layers that differ in them are one callee. Integers belong to a formula, as the 6
    // of a clip does.
    std::optional<Value> number(const Value &from, const std::string &name, Callee &callee) {
        if (!from.is_constant() || from.constant->size() != 1 || from.dtype != DType::f32) return std::nullopt;
        const double value = from.constant->values()[0];
        if (value == std::floor(value)) return std::nullopt;
        const std::string parameter = space_.fresh("number");
        callee.parameters[parameter] = value;
        Value made = from;
        made.constant = nullptr, made.name = name;
        made.tile = space_.f.parameter(parameter, DType::f32);
        return made;
    }
};

}  // namespace

std::vector<Part> parts_of(const Graph &graph, const std::map<const Node *, NodeFacts> &facts) {
    std::map<std::string, std::vector<size_t>> readers;  // of a value
    std::set<std::string> outside;
    for (const ValueInfo &o : graph.outputs) outside.insert(o.name);
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        for (const std::string &name : graph.nodes[i].inputs) readers[name].push_back(i);
        for (const auto &[attribute, a] : graph.nodes[i].attributes)  // what an inner graph reads is used outside
            if (a.graph)
                for (const Node &n : a.graph->nodes) outside.insert(n.inputs.begin(), n.inputs.end());
    }
    std::vector<Part> parts;
    std::set<size_t> taken;
    for (size_t anchor = 0; anchor < graph.nodes.size(); anchor++) {
        const Node &first = graph.nodes[anchor];
        const auto fact = facts.find(&first);
        if (fact == facts.end() || !fact->second.folds || taken.count(anchor) || !find_operator(first.domain, first.op)) continue;
        bool one_output = true;
        for (size_t i = 1; i < first.outputs.size(); i++)
            one_output &= first.outputs[i].empty() || (readers[first.outputs[i]].empty() && !outside.count(first.outputs[i]));
        if (!one_output || first.outputs.empty()) continue;
        std::vector<size_t> members = {anchor}, best = members;
        const std::vector<Expr> extents = fact->second.extents.at(0);
        std::set<size_t> next;  // nodes that read what is made, in the order of the graph
        const auto add_readers = [&](const std::string &value) {
            if (const auto of = readers.find(value); of != readers.end()) next.insert(of->second.begin(), of->second.end());
        };
        add_readers(first.outputs[0]);
        while (!next.empty() && members.size() < most_nodes_of_part) {
            const size_t i = *next.begin();
            next.erase(next.begin());
            const Node &node = graph.nodes[i];
            if (i <= anchor || taken.count(i) || node.outputs.size() != 1 || !is_element_wise(node)) continue;
            const auto own = facts.find(&node);
            if (own == facts.end() || !own->second.is_plain || !same_extents(own->second.extents.at(0), extents)) continue;
            members.push_back(i);
            add_readers(node.outputs[0]);
            // Whether only the last one's result is used outside.
            size_t exits = 0;
            for (size_t m : members) {
                const std::string &value = graph.nodes[m].outputs[0];
                const auto &uses = readers[value];
                exits += outside.count(value) || uses.empty() || std::any_of(uses.begin(), uses.end(), [&](size_t u) {
                             return std::find(members.begin(), members.end(), u) == members.end();
                         });
            }
            if (exits == 1) best = members;
        }
        Part part;
        for (size_t m : best) part.nodes.push_back(&graph.nodes[m]), taken.insert(m);
        parts.push_back(std::move(part));
    }
    return parts;
}

std::optional<Callee> callee_of(const Part &part, const Space &caller, const Model &model, const std::map<std::string, Value> &values) {
    try {
        return with_symbols([&](const Symbols &symbols) { return Maker(part, caller, model, values, symbols).make(); })
            .value_or(std::nullopt);
    } catch (const UserError &) { return std::nullopt; }
}

}  // namespace tessera::onnx
