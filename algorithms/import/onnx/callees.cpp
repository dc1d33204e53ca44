#include "algorithms/import/onnx/callees.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
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

// The tile with other dims, one for each of its own.
static Tile renamed(Space &space, const Tile &tile, const std::vector<std::string> &dims) {
    std::map<std::string, Expr> index;
    for (size_t d = 0; d < dims.size(); d++) index[tile.dims().at(d)] = variable(dims[d]);
    return Tile(&space.f, substitute(tile.value(), index), dims);
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
    // Dims of the callee are bound to canonical ones of their extents, each to its own.
    std::map<std::string, std::string> bound;
    std::set<std::string> taken;
    auto extent_in_caller = [&](const Dim &d) {
        if (d.kind == DimKind::fixed) return Expr(d.value);
        if (d.kind == DimKind::derived) return callee->meaning.in_caller(d.size);
        return callee->meaning.extents.at(d.name);
    };
    auto bind = [&](const std::string &dim) {
        auto [it, fresh] = bound.emplace(dim, "");
        if (fresh) {
            it->second = space.dim(extent_in_caller(shared->dim(dim)), taken).name;
            taken.insert(it->second);
        }
        return it->second;
    };
    // Weights come last, so that they are declared over the dims that data have.
    std::vector<Tile> arguments(callee->tensors.size());
    for (size_t i = 0; i < callee->tensors.size(); i++) {
        if (callee->inputs[i].empty()) continue;
        const Tile given = values.at(callee->inputs[i]).tile;
        const Tile tile(&space.f, space.resolved(given.value()), given.dims());
        std::vector<std::string> dims;
        for (const std::string &d : shared->find_tensor(callee->tensors[i])->dims) dims.push_back(bind(d));
        arguments[i] = renamed(space, tile, dims);
    }
    size_t next_weight = 0;
    for (size_t i = 0; i < callee->tensors.size(); i++) {
        if (!callee->inputs[i].empty()) continue;
        const Weight &w = callee->weights.at(next_weight++);
        Value value = w.value;
        for (size_t a = 0; a < value.axes.size(); a++) value.axes[a] = {Expr(value.constant->extents[a]), ""};
        std::vector<Dim> dims;
        std::vector<std::string> names;
        for (const std::string &d : shared->find_tensor(callee->tensors[i])->dims) {
            names.push_back(bind(d));
            dims.push_back(space.f.dim_named(names.back()));
        }
        arguments[i] = renamed(space, space.weight(value, w.order, dims), names);
    }
    std::map<std::string, Tile> parameters;
    for (const auto &[name, number] : callee->parameters) parameters[name] = space.f.scalar(DType::f32, number);
    const Tile result = space.f.call(space.fresh(part.nodes.back()->outputs[0]), *shared, arguments, parameters)[0];
    Value value = callee->result;
    value.name = part.nodes.back()->outputs[0];
    std::vector<std::string> own = value.tile.dims(), dims = result.dims();
    std::set<std::string> used;
    for (Axis &a : value.axes) {
        a.extent = space.simplified(callee->meaning.in_caller(a.extent));
        if (a.dim.empty()) continue;
        const size_t at = static_cast<size_t>(std::find(own.begin(), own.end(), a.dim) - own.begin());
        a.dim = space.dim(a.extent, used).name;
        used.insert(a.dim);
        dims.at(at) = a.dim;
    }
    value.tile = renamed(space, result, dims);
    return value;
}

}  // namespace tessera::onnx
