// Recurrences (algorithms/build/recurrent.h), over tiles that a function takes as arguments.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "algorithms/build/recurrent.h"
#include "python/core/tiles.h"
#include "support/text/error.h"

namespace tessera::python {

namespace {

using Names = std::vector<std::string>;

RecurrentOptions options_of(const std::string &gates, bool backward, const Names &activations, double clip) {
    RecurrentOptions o;
    o.order = chosen<GateOrder>("recurrent.option", "order of gates", gate_order_names, gates);
    o.backward = backward, o.clip = clip;
    for (const std::string &name : activations)
        o.activations.push_back(chosen<Activation>("recurrent.option", "activation", activation_names, name));
    return o;
}

}  // namespace

void declare_recurrences(nb::module_ &m) {
    m.def(
        "lstm",
        [](const Tile &x, const Tile &w, const Tile &r, const Tile &h, const Tile &c, const std::string &along, const Tile &bias,
           const Tile &recurrent_bias, const Tile &peepholes, const std::string &gates, bool backward, const Names &activations,
           double clip, bool couples) {
            RecurrentOptions o = options_of(gates, backward, activations, clip);
            o.couples = couples;
            const RecurrentStates made = lstm(x, {w, r, bias, recurrent_bias, peepholes}, h, c, dim_of(x, along), o);
            return std::tuple(made.y, made.h, made.c);
        },
        nb::arg("x"), nb::arg("w"), nb::arg("r"), nb::arg("h"), nb::arg("c"), nb::arg("along"), nb::kw_only(), nb::arg("bias") = nb::none(),
        nb::arg("recurrent_bias") = nb::none(), nb::arg("peepholes") = nb::none(), nb::arg("gates") = "onnx", nb::arg("backward") = false,
        nb::arg("activations") = Names{}, nb::arg("clip") = 0.0, nb::arg("couples") = false,
        "y (T, N, H) and the last h and c of an LSTM on x (T, N, I): w (I, G), r (K, G), biases (G), h and c (N, H), G = 4 H. `gates` is "
        "the "
        "order of G: 'onnx' or 'pytorch'. A sequence in pieces, each with the states that the one before it left, gives the same bits.",
        nb::call_guard<CallingLine>());
    m.def(
        "gru",
        [](const Tile &x, const Tile &w, const Tile &r, const Tile &h, const std::string &along, const Tile &bias,
           const Tile &recurrent_bias, const std::string &gates, bool backward, const Names &activations, double clip, bool resets_after) {
            RecurrentOptions o = options_of(gates, backward, activations, clip);
            o.resets_after = resets_after;
            const RecurrentStates made = gru(x, {w, r, bias, recurrent_bias, {}}, h, dim_of(x, along), o);
            return std::tuple(made.y, made.h);
        },
        nb::arg("x"), nb::arg("w"), nb::arg("r"), nb::arg("h"), nb::arg("along"), nb::kw_only(), nb::arg("bias") = nb::none(),
        nb::arg("recurrent_bias") = nb::none(), nb::arg("gates") = "onnx", nb::arg("backward") = false, nb::arg("activations") = Names{},
        nb::arg("clip") = 0.0, nb::arg("resets_after") = true, "The same of a gated recurrent unit, G = 3 H: y and the last h.",
        nb::call_guard<CallingLine>());
    m.def(
        "rnn",
        [](const Tile &x, const Tile &w, const Tile &r, const Tile &h, const std::string &along, const Tile &bias,
           const Tile &recurrent_bias, bool backward, const Names &activations, double clip) {
            const RecurrentStates made =
                rnn(x, {w, r, bias, recurrent_bias, {}}, h, dim_of(x, along), options_of("onnx", backward, activations, clip));
            return std::tuple(made.y, made.h);
        },
        nb::arg("x"), nb::arg("w"), nb::arg("r"), nb::arg("h"), nb::arg("along"), nb::kw_only(), nb::arg("bias") = nb::none(),
        nb::arg("recurrent_bias") = nb::none(), nb::arg("backward") = false, nb::arg("activations") = Names{}, nb::arg("clip") = 0.0,
        "The same of h = tanh(x w + h r + biases), G = H: y and the last h.", nb::call_guard<CallingLine>());
    m.def(
        "linear_recurrence",
        [](const Tile &a, const Tile &b, const Tile &h, const std::string &along) {
            const RecurrentStates made = linear_recurrence(a, b, h, dim_of(h, along));
            return std::tuple(made.y, made.h);
        },
        nb::arg("a"), nb::arg("b"), nb::arg("h"), nb::arg("along"),
        "y (T, N, H) and the last h of h = a h + b, with matrices a (T, N, H, K), b (T, N, H), h (N, H); T or N may be missing in a or b.",
        nb::call_guard<CallingLine>());
    m.def(
        "causal_conv1d",
        [](const Tile &x, const Tile &w, const Tile &history, const std::string &along, const std::string &taps, const Names &channels,
           int64_t dilation) {
            Builder &b = x.builder();
            const CausalConvolution made =
                causal_conv1d(x, w, history, b.dim_named(along), b.dim_named(taps), dims_of(b, channels), dilation);
            return std::tuple(made.y, made.history);
        },
        nb::arg("x"), nb::arg("w"), nb::arg("history"), nb::arg("along"), nb::arg("taps"), nb::arg("channels"), nb::arg("dilation") = 1,
        "y (N, L, O) of x (N, L, C), w (R, C, O) behind history (N, J, C), J = (R - 1) dilation, summed over taps and channels; and the "
        "history of what follows x.",
        nb::call_guard<CallingLine>());
}

}  // namespace tessera::python
