#include "algorithms/import/onnx/constants.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "support/text/error.h"

namespace tessera::onnx {

std::optional<std::vector<Value>> folded_node(const Operator &op, const Node &node, const std::vector<Value> &inputs, const Model &model) {
    if (std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto &a) { return a.second.graph != nullptr; })) return {};
    Space own("constants", Numerics{});
    Context c(own, node, inputs, model.opset(node.domain), model, nullptr);
    std::vector<Value> results = op.handler(c);
    std::vector<std::string> names(results.size());
    bool computes = false;
    for (size_t i = 0; i < results.size(); i++) {
        Value &r = results[i];
        if (r.is_constant() || (i < node.outputs.size() && node.outputs[i].empty())) continue;
        std::vector<Axis> axes;
        const Tile spread = c.spread(r, axes);
        std::vector<std::string> dims;
        for (const Axis &a : axes) {
            if (!a.extent.is_constant()) return {};
            dims.push_back(a.dim);
        }
        names[i] = own.fresh("result");
        own.f.output(names[i], Tile(&own.f, own.resolved(spread.value()), dims), r.dtype);
        computes = true;
    }
    if (!computes) return results;
    const Algorithm algorithm = own.f.build();
    if (algorithm.draws) return {};
    std::map<std::string, Array> tensors;
    for (Weight &w : own.weights) tensors[w.name] = std::move(w.array);
    std::map<std::string, Array> computed = evaluate(algorithm, std::move(tensors));
    for (size_t i = 0; i < results.size(); i++)
        if (!names[i].empty()) results[i] = c.constant(std::move(computed.at(names[i])));
    return results;
}

Value as_known(const Value &value) {
    // Longer ones are tables, such as of positions, of which parts are read.
    constexpr int64_t longest_shape = 64;
    if (!value.is_constant() || is_float(value.dtype) || value.constant->size() < 2 || value.constant->size() > longest_shape) return value;
    std::vector<Expr> elements;
    for (int64_t i = 0; i < value.constant->size(); i++) {
        const int64_t number = value.constant->get(i).integer;
        elements.push_back(value.dtype == DType::boolean ? constant_int(DType::boolean, number) : Expr(number));
    }
    Value made = value;
    made.constant = nullptr, made.known = std::make_shared<const std::vector<Expr>>(std::move(elements));
    return made;
}

bool become_known(Space &space, Context &c, Value &r) {
    if (is_float(r.dtype) || r.axes.size() > 8) return false;
    std::vector<int64_t> extents;
    int64_t count = 1;
    for (const Axis &a : r.axes) {
        if (!a.extent.is_constant()) return false;
        extents.push_back(a.extent->value.integer);
        if (__builtin_mul_overflow(count, extents.back(), &count) || count > most_known) return false;
    }
    std::vector<Expr> elements;
    for (int64_t at = 0; at < count; at++) {
        std::map<std::string, Expr> index;
        int64_t rest = at;
        for (size_t i = extents.size(); i-- > 0;) {
            if (!r.axes[i].dim.empty()) index[r.axes[i].dim] = Expr(rest % extents[i]);
            rest /= extents[i];
        }
        const Expr e = space.as_index(space.resolved(substitute(r.tile.value(), index)));
        if (!e.defined()) return false;
        bool has_loads = false;
        tessera::walk(e, [&](const Expr &n) { has_loads |= n.kind() == ExprKind::load || n.kind() == ExprKind::variable; });
        if (has_loads) return false;
        elements.push_back(e);
    }
    r = c.integers_value(elements, extents, r.dtype);
    return true;
}

}  // namespace tessera::onnx
