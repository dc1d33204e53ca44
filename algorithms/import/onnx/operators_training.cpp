// Steps of optimizers, ai.onnx.preview.training: element by element, for any number of tensors with one rate and one count of steps.
#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

using Update = std::vector<Tile> (*)(Context &, const std::vector<Tile> &);

// Inputs are the rate, the step's number, then so many tensors of each kind: parameters, gradients, states. Outputs are the parameters
// and the states after the step. An update has the tiles rate, step, parameter, gradient, states….
template <Update update>
std::vector<Value> optimizer(Context &c) {
    const size_t states = c.node.op == "Adam" ? 2 : 1, kinds = 2 + states;
    if (c.inputs() < 2 + kinds || (c.inputs() - 2) % kinds)
        c.refuse("it has " + std::to_string(c.inputs()) + " inputs; expected 2 and a multiple of " + std::to_string(kinds) + ".",
                 "Check the exporter.", "onnx.input");
    const size_t count = (c.inputs() - 2) / kinds;
    std::vector<Value> results(count * (1 + states));
    for (size_t i = 0; i < count; i++) {
        std::vector<Value> values = {c.in(0), c.in(1)};
        for (size_t k = 0; k < kinds; k++) values.push_back(c.in(2 + k * count + i));
        std::vector<Axis> axes;
        std::vector<Tile> tiles = c.broadcast(values, axes);
        const DType type = tiles[2].dtype();
        for (Tile &t : tiles) t = cast(type, t);
        const std::vector<Tile> made = update(c, tiles);
        for (size_t k = 0; k < made.size(); k++) results[k * count + i] = c.result(Context::ordered(made[k], tiles), axes, values[2].dtype);
    }
    return results;
}

// The gradient with that of norm_coefficient / 2 |x|^2.
Tile regularized(Context &c, const Tile &x, const Tile &gradient) {
    const double norm = c.node.real("norm_coefficient", 0);
    return norm == 0 ? gradient : gradient + x * norm;
}

std::vector<Tile> momentum(Context &c, const std::vector<Tile> &t) {
    const Tile &rate = t[0], &step = t[1], &x = t[2], &before = t[4];
    const double alpha = c.node.real("alpha", 0), beta = c.node.real("beta", 1);
    const Tile g = regularized(c, x, t[3]);
    const Tile factor = select(step > 0.0, c.f.scalar(x.dtype(), beta), c.f.scalar(x.dtype(), 1));
    const Tile v = before * alpha + factor * g;
    const bool nesterov = c.node.text("mode", "standard") == "nesterov";
    return {x - rate * (nesterov ? g + v * alpha : v), v};
}

std::vector<Tile> adagrad(Context &c, const std::vector<Tile> &t) {
    const Tile &x = t[2];
    const Tile rate = t[0] / (1.0 + t[1] * c.node.real("decay_factor", 0));
    const Tile g = regularized(c, x, t[3]);
    const Tile h = t[4] + g * g;
    return {x - rate * g / (sqrt(h) + c.node.real("epsilon", 0)), h};
}

std::vector<Tile> adam(Context &c, const std::vector<Tile> &t) {
    const Tile &step = t[1], &x = t[2];
    const double alpha = c.node.real("alpha", 0.9), beta = c.node.real("beta", 0.999), epsilon = c.node.real("epsilon", 0);
    const Tile g = regularized(c, x, t[3]);
    const Tile v = t[4] * alpha + g * (1 - alpha), h = t[5] * beta + g * g * (1 - beta);
    // The means of the first steps are too near to 0, by 1 - factor^step.
    auto power = [&](double factor) { return pow(c.f.scalar(x.dtype(), factor), step); };
    const Tile rate = select(step > 0.0, t[0] * sqrt(1.0 - power(beta)) / (1.0 - power(alpha)), t[0]);
    const Tile next = x - rate * (v / (sqrt(h) + epsilon));
    const double after = c.node.real("norm_coefficient_post", 0);
    return {after == 0 ? next : next * (1 - after), v, h};
}

}  // namespace

std::vector<Operator> training_operators() {
    const char *domain = "ai.onnx.preview.training";
    return {
        {"Momentum", optimizer<momentum>, domain},
        {"Adagrad", optimizer<adagrad>, domain},
        {"Adam", optimizer<adam>, domain},
    };
}

}  // namespace tessera::onnx
