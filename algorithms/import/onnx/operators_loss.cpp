// Losses of classification.
#include "algorithms/build/losses.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

ClassLoss loss_of(Context &c, const Axis &classes, DType type) {
    ClassLoss loss;
    const std::string reduction = c.node.text("reduction", "mean");
    if (reduction != "none" && reduction != "sum" && reduction != "mean")
        c.refuse("its reduction is '" + reduction + "'; expected none, sum or mean.", "Check the exporter.");
    loss.reduction = reduction == "none" ? LossReduction::none : reduction == "sum" ? LossReduction::sum : LossReduction::mean;
    if (c.node.find("ignore_index")) loss.ignored = c.node.integer("ignore_index");
    if (!c.has(2)) return loss;
    const Value &weights = c.in(2);
    if (weights.rank() != 1 || !c.space.same(weights.axes[0].extent, classes.extent))
        c.refuse("its weights are not one for each of " + brief(classes.extent) + " classes.", "Check the exporter.", "onnx.broadcast");
    loss.weights = cast(type, c.read(weights, {at(classes)}, {classes}));
    if (loss.weights.dims().empty()) loss.weights = broadcast(loss.weights, {c.dim(classes)});
    return loss;
}

// Scores (N, C, d…) and labels (N, d…): the loss, and the logarithms of softmax where they are wanted.
std::vector<Value> classification(Context &c) {
    const Value &x = c.in(0), &labels = c.in(1);
    const bool from_scores = c.node.op == "SoftmaxCrossEntropyLoss";
    if (x.rank() < 2 || labels.rank() != x.rank() - 1)
        c.refuse("its scores have " + std::to_string(x.rank()) + " axes, its labels " + std::to_string(labels.rank()) +
                     "; expected (N, C, d…) and (N, d…).",
                 "Check the exporter.");
    std::vector<Axis> axes;
    Tile scores = c.spread(x, axes);
    if (bool(x.tile) && x.tile.value().kind() != ExprKind::load) {  // which the labels' positions would compute again
        scores = Tile(&c.f, c.space.resolved(scores.value()), scores.dims()).named(c.stage_name() + ".scores");
    }
    const Dim classes = c.dim(axes[1]);
    std::vector<Axis> outer = {axes[0]};
    outer.insert(outer.end(), axes.begin() + 2, axes.end());
    std::vector<Expr> position;
    for (size_t i = 0; i < outer.size(); i++) {
        position.push_back(at(outer[i]));
        if (!c.space.same(outer[i].extent, labels.axes[i].extent))
            c.refuse("axis " + std::to_string(i) + " of its labels has " + brief(labels.axes[i].extent) + " elements, of its scores " +
                         brief(outer[i].extent) + ".",
                     Context::equal_extents, "onnx.broadcast");
    }
    const Tile label = c.read(labels, position, outer);
    const ClassLoss loss = loss_of(c, axes[1], scores.dtype());
    const std::vector<Axis> result = loss.reduction == LossReduction::none ? outer : std::vector<Axis>();
    if (!from_scores) return {c.result(negative_log_likelihood(scores, label, classes, loss), result, x.dtype)};
    if (c.node.outputs.size() < 2 || c.node.outputs[1].empty())
        return {c.result(softmax_cross_entropy(scores, label, classes, loss), result, x.dtype)};
    const Tile logarithms = Context::ordered(log_softmax(scores, classes), {scores}).named("log_softmax");
    return {c.result(negative_log_likelihood(logarithms, label, classes, loss), result, x.dtype), c.result(logarithms, axes, x.dtype)};
}

}  // namespace

std::vector<Operator> loss_operators() {
    return {
        {"SoftmaxCrossEntropyLoss", classification},
        {"NegativeLogLikelihoodLoss", classification},
    };
}

}  // namespace tessera::onnx
