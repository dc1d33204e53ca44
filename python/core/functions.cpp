// The tile functions, by the names that they have in C++. Those that take a dim take its name here.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "algorithms/build/indexing.h"
#include "algorithms/build/quantized.h"
#include "algorithms/build/random.h"
#include "algorithms/build/selection.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/build/weights.h"
#include "python/core/tiles.h"

namespace tessera::python {

namespace {

using Names = std::vector<std::string>;

void declare_elementwise(nb::module_ &m) {
    struct Unary {
        const char *name;
        Tile (*apply)(const Tile &);
    };
    for (const Unary &u : {Unary{"abs", [](const Tile &x) { return abs(x); }},
                           Unary{"floor", [](const Tile &x) { return floor(x); }},
                           Unary{"ceil", [](const Tile &x) { return ceil(x); }},
                           Unary{"round", [](const Tile &x) { return round(x); }},
                           Unary{"trunc", [](const Tile &x) { return trunc(x); }},
                           Unary{"exp", [](const Tile &x) { return exp(x); }},
                           Unary{"exp_nonpositive", [](const Tile &x) { return exp_nonpositive(x); }},
                           Unary{"expm1", [](const Tile &x) { return expm1(x); }},
                           Unary{"log", [](const Tile &x) { return log(x); }},
                           Unary{"log1p", [](const Tile &x) { return log1p(x); }},
                           Unary{"sin", [](const Tile &x) { return sin(x); }},
                           Unary{"cos", [](const Tile &x) { return cos(x); }},
                           Unary{"atan", [](const Tile &x) { return atan(x); }},
                           Unary{"erf", [](const Tile &x) { return erf(x); }},
                           Unary{"erfc", [](const Tile &x) { return erfc(x); }},
                           Unary{"tanh", [](const Tile &x) { return tanh(x); }},
                           Unary{"sigmoid", [](const Tile &x) { return sigmoid(x); }},
                           Unary{"sqrt", [](const Tile &x) { return sqrt(x); }},
                           Unary{"rsqrt", [](const Tile &x) { return rsqrt(x); }},
                           Unary{"relu", [](const Tile &x) { return relu(x); }},
                           Unary{"softplus", [](const Tile &x) { return softplus(x); }},
                           Unary{"gelu", [](const Tile &x) { return gelu(x); }},
                           Unary{"gelu_tanh", [](const Tile &x) { return gelu_tanh(x); }},
                           Unary{"silu", [](const Tile &x) { return silu(x); }},
                           Unary{"stop_gradient", [](const Tile &x) { return stop_gradient(x); }},
                           Unary{"transpose", [](const Tile &x) { return transpose(x); }},
                           Unary{"order_key", [](const Tile &x) { return order_key(x); }},
                           Unary{"from_order_key", [](const Tile &x) { return from_order_key(x); }}})
        m.def(u.name, u.apply, nb::arg("x"), nb::call_guard<CallingLine>());
    m.def(
        "straight_through", [](const Tile &x, const Tile &by) { return straight_through(x, by); }, nb::arg("x"), nb::arg("by"),
        nb::call_guard<CallingLine>());
    m.def(
        "atan2", [](const Tile &y, const Tile &x) { return atan2(y, x); }, nb::arg("y"), nb::arg("x"), nb::call_guard<CallingLine>());
    m.def(
        "fmod", [](const Tile &x, const Tile &y) { return fmod(x, y); }, nb::arg("x"), nb::arg("y"),
        "The rest of a division, with the sign of x; x % y has that of y.", nb::call_guard<CallingLine>());
    m.def(
        "fma", [](const Tile &a, const Tile &b, const Tile &c) { return fma(a, b, c); }, nb::arg("a"), nb::arg("b"), nb::arg("c"),
        nb::call_guard<CallingLine>());
    m.def(
        "select", [](const Tile &c, const Tile &a, const Tile &b) { return select(c, a, b); }, nb::arg("condition"), nb::arg("a"),
        nb::arg("b"), nb::call_guard<CallingLine>());
    m.def(
        "select", [](const Tile &c, const Tile &a, double b) { return select(c, a, a.builder().scalar(a.dtype(), b)); },
        nb::arg("condition"), nb::arg("a"), nb::arg("b"), nb::call_guard<CallingLine>());
    m.def(
        "select", [](const Tile &c, double a, const Tile &b) { return select(c, b.builder().scalar(b.dtype(), a), b); },
        nb::arg("condition"), nb::arg("a"), nb::arg("b"), nb::call_guard<CallingLine>());
    m.def(
        "minimum", [](const Tile &a, const Tile &b) { return min(a, b); }, nb::arg("a"), nb::arg("b"), nb::call_guard<CallingLine>());
    m.def(
        "minimum", [](const Tile &a, double b) { return min(a, b); }, nb::arg("a"), nb::arg("b"), nb::call_guard<CallingLine>());
    m.def(
        "maximum", [](const Tile &a, const Tile &b) { return max(a, b); }, nb::arg("a"), nb::arg("b"), nb::call_guard<CallingLine>());
    m.def(
        "maximum", [](const Tile &a, double b) { return max(a, b); }, nb::arg("a"), nb::arg("b"), nb::call_guard<CallingLine>());
    m.def(
        "bitcast", [](Type t, const Tile &x) { return bitcast(t.dtype, x); }, nb::arg("dtype"), nb::arg("x"),
        nb::call_guard<CallingLine>());
    m.def(
        "bounded", [](const Tile &position, const Expr &lo, const Expr &hi) { return bounded(position, lo, hi); }, nb::arg("position"),
        nb::arg("lo"), nb::arg("hi"), "Integers as positions lo ..= hi - 1, at which a tensor may be read.", nb::call_guard<CallingLine>());
}

void declare_folds(nb::module_ &m) {
    struct Fold {
        const char *name;
        Tile (*apply)(const Tile &, const Dim &);
    };
    for (const Fold &f : {Fold{"sum", [](const Tile &x, const Dim &over) { return sum(x, over); }},
                          Fold{"product", [](const Tile &x, const Dim &over) { return product(x, over); }},
                          Fold{"max", [](const Tile &x, const Dim &over) { return max(x, over); }},
                          Fold{"min", [](const Tile &x, const Dim &over) { return min(x, over); }},
                          Fold{"mean", [](const Tile &x, const Dim &over) { return mean(x, over); }},
                          Fold{"softmax", [](const Tile &x, const Dim &over) { return softmax(x, over); }},
                          Fold{"logsumexp", [](const Tile &x, const Dim &over) { return logsumexp(x, over); }}})
        m.def(
            f.name, [apply = f.apply](const Tile &x, const std::string &over) { return apply(x, dim_of(x, over)); }, nb::arg("x"),
            nb::arg("over"), nb::call_guard<CallingLine>());
    m.def(
        "dot",
        [](const Tile &a, const Tile &b, const std::optional<Names> &over) {
            return over ? dot(a, b, dims_of(a.builder(), *over)) : dot(a, b);
        },
        nb::arg("a"), nb::arg("b"), nb::arg("over") = nb::none(),
        "Sum of products over `over`, or over every dim that a and b share and is a's last.", nb::call_guard<CallingLine>());
    m.def(
        "online_softmax",
        [](const Tile &scores, const Tile &values, const std::string &over, const std::optional<std::string> &value, const Tile &where) {
            return online_softmax(scores, values, dim_of(scores, over), dim_of(values, value ? *value : values.dims().back()), where);
        },
        nb::arg("scores"), nb::arg("values"), nb::arg("over"), nb::arg("value") = nb::none(), nb::arg("where") = nb::none(),
        "The sum over `over` of softmax(scores) * values, folded online; `value` is the values' own dim, their last by default. Rows for "
        "which `where` holds nowhere give 0.",
        nb::call_guard<CallingLine>());
    m.def(
        "mask_causal", [](const Tile &s, const std::string &q, const std::string &k) { return mask_causal(s, dim_of(s, q), dim_of(s, k)); },
        nb::arg("scores"), nb::arg("query"), nb::arg("key"), nb::call_guard<CallingLine>());
    m.def(
        "normalized",
        [](const Tile &x, const Names &over, double epsilon) {
            return normalized(x, dims_of(x.builder(), over), x.builder().scalar(x.dtype(), epsilon));
        },
        nb::arg("x"), nb::arg("over"), nb::arg("epsilon") = 1e-5, nb::call_guard<CallingLine>());
    m.def(
        "layernorm",
        [](const Tile &x, const Tile &gamma, const Tile &beta, const std::string &over, double epsilon) {
            return layernorm(x, gamma, beta, dim_of(x, over), epsilon);
        },
        nb::arg("x"), nb::arg("gamma"), nb::arg("beta"), nb::arg("over"), nb::arg("epsilon") = 1e-5, nb::call_guard<CallingLine>());
    m.def(
        "rmsnorm",
        [](const Tile &x, const Tile &gamma, const std::string &over, double epsilon) {
            return rmsnorm(x, gamma, dim_of(x, over), epsilon);
        },
        nb::arg("x"), nb::arg("gamma"), nb::arg("over"), nb::arg("epsilon") = 1e-5, nb::call_guard<CallingLine>());
    m.def(
        "broadcast", [](const Tile &x, const Names &dims) { return broadcast(x, dims_of(x.builder(), dims)); }, nb::arg("x"),
        nb::arg("dims"), nb::call_guard<CallingLine>());
    m.def(
        "rename",
        [](const Tile &x, const std::string &from, const std::string &to) { return rename(x, dim_of(x, from), x.builder().dim(to)); },
        nb::arg("x"), nb::arg("from_"), nb::arg("to"), nb::call_guard<CallingLine>());
    m.def(
        "stack",
        [](const std::vector<Tile> &tiles, const std::string &along) {
            if (tiles.empty()) refuse("shape.stack", "stack: expected at least one tile, got none");
            return stack(tiles, dim_of(tiles[0], along));
        },
        nb::arg("tiles"), nb::arg("along"), nb::call_guard<CallingLine>());
}

nb::list ranked(const std::vector<Ranked> &all) {
    nb::list result;
    for (const Ranked &r : all) result.append(nb::make_tuple(r.key, r.at));
    return result;
}

void declare_selection(nb::module_ &m) {
    m.def(
        "largest", [](const Tile &x, const std::string &over, int count) { return ranked(largest(x, dim_of(x, over), count)); },
        nb::arg("x"), nb::arg("over"), nb::arg("count"),
        nb::sig("def largest(x: tessera._core.Tile, over: str, count: int) -> list[tuple[tessera._core.Tile, tessera._core.Tile]]"),
        "(key, position) of the largest elements, from the largest down; from_order_key gives the float of a key.",
        nb::call_guard<CallingLine>());
    m.def(
        "smallest", [](const Tile &x, const std::string &over, int count) { return ranked(smallest(x, dim_of(x, over), count)); },
        nb::arg("x"), nb::arg("over"), nb::arg("count"),
        nb::sig("def smallest(x: tessera._core.Tile, over: str, count: int) -> list[tuple[tessera._core.Tile, tessera._core.Tile]]"),
        "(key, position) of the smallest elements, from the smallest up.", nb::call_guard<CallingLine>());
    m.def(
        "sorted",
        [](const Tile &x, const std::string &over, bool downwards) {
            const Ranked r = sorted(x, dim_of(x, over), downwards ? Order::downwards : Order::upwards);
            return nb::make_tuple(r.key, r.at);
        },
        nb::arg("x"), nb::arg("over"), nb::arg("downwards") = false,
        nb::sig("def sorted(x: tessera._core.Tile, over: str, downwards: bool = False) -> tuple[tessera._core.Tile, tessera._core.Tile]"),
        nb::call_guard<CallingLine>());
}

void declare_indexing(nb::module_ &m) {
    m.def(
        "from_end", [](const Tile &position, const std::string &in) { return from_end(position, position.builder().dim_named(in)); },
        nb::arg("position"), nb::arg("dim"), "Positions that may count from the end, -1 being the last, as positions from the beginning.",
        nb::call_guard<CallingLine>());
    m.def(
        "gather",
        [](const Tile &x, const std::map<std::string, Tile> &at) {
            std::vector<Position> positions;
            for (const std::string &d : x.dims())  // in the order of x's dims
                if (const auto it = at.find(d); it != at.end()) positions.push_back({dim_of(x, d), it->second});
            for (const auto &[d, tile] : at)
                if (std::find(x.dims().begin(), x.dims().end(), d) == x.dims().end()) positions.push_back({dim_of(x, d), tile});
            return gather(x, positions);
        },
        nb::arg("x"), nb::arg("at"),
        "x read along each of these dims at the positions beside it: gather(x, {\"V\": ids}). Positions outside become the nearest inside.",
        nb::call_guard<CallingLine>());
    m.def(
        "one_hot",
        [](const Tile &id, const std::string &classes, double on, double off, std::optional<Type> dtype) {
            Builder &b = id.builder();
            const DType type = dtype ? dtype->dtype : DType::f32;
            return one_hot(id, b.dim_named(classes), b.scalar(type, on), b.scalar(type, off));
        },
        nb::arg("id"), nb::arg("classes"), nb::arg("on") = 1.0, nb::arg("off") = 0.0, nb::arg("dtype") = nb::none(),
        "`on` where the class is the id, `off` elsewhere, as f32 unless a type is given; the dim `classes` comes last.",
        nb::call_guard<CallingLine>());
    m.def(
        "scatter_into",
        [](const Tile &x, const Monoid &monoid, const Tile &updates, const std::vector<Tile> &at) {
            return scatter_into(x, monoid, updates, at);
        },
        nb::arg("x"), nb::arg("monoid"), nb::arg("updates"), nb::arg("at"), nb::call_guard<CallingLine>());
    m.def(
        "replace_at", [](const Tile &x, const Tile &updates, const std::vector<Tile> &at) { return replace_at(x, updates, at); },
        nb::arg("x"), nb::arg("updates"), nb::arg("at"),
        "x with the updates in its place, each at the position that `at` gives for each of x's dims; positions outside are dropped, and "
        "the "
        "last of several stays.",
        nb::call_guard<CallingLine>());
    m.def(
        "einsum",
        [](const std::vector<Tile> &operands, const Names &result) {
            if (operands.empty()) refuse("shape.einsum", "einsum: expected at least one operand, got none");
            return einsum(operands, dims_of(operands[0].builder(), result));
        },
        nb::arg("operands"), nb::arg("result"), "The sum over all dims that `result` lacks of the product of the operands.",
        nb::call_guard<CallingLine>());
}

void declare_random(nb::module_ &m) {
    nb::class_<RandomStream>(m, "RandomStream",
                             "What numbers are drawn from: a seed and a step, i64 tiles without dims, and the draw's number.")
        .def(nb::new_([](const Tile &seed, const Tile &step, uint32_t number) {
                 return RandomStream{seed, step, number};
             }),
             nb::arg("seed"), nb::arg("step"), nb::arg("number") = 0, nb::call_guard<CallingLine>());
    m.def(
        "uniform",
        [](const RandomStream &s, const Names &dims) {
            Builder &b = s.seed.builder();
            return uniform(b, s, dims_of(b, dims));
        },
        nb::arg("stream"), nb::arg("dims"), nb::call_guard<CallingLine>());
    m.def(
        "normal",
        [](const RandomStream &s, const Names &dims) {
            Builder &b = s.seed.builder();
            return normal(b, s, dims_of(b, dims));
        },
        nb::arg("stream"), nb::arg("dims"), nb::call_guard<CallingLine>());
    m.def(
        "bernoulli",
        [](const RandomStream &s, const Names &dims, const Tile &p) {
            Builder &b = s.seed.builder();
            return bernoulli(b, s, dims_of(b, dims), p);
        },
        nb::arg("stream"), nb::arg("dims"), nb::arg("p"), nb::call_guard<CallingLine>());
    m.def(
        "dropout", [](const Tile &x, const RandomStream &s, const Tile &p) { return dropout(x.builder(), x, s, p); }, nb::arg("x"),
        nb::arg("stream"), nb::arg("p"), nb::call_guard<CallingLine>());
}

void declare_weights(nb::module_ &m) {
    nb::class_<Weights>(m, "Weights", "Weights of products, as the numerics policy keeps them.").def_ro("tensors", &Weights::tensors);
    m.def(
        "weights",
        [](Builder &b, const std::string &name, const Names &outer, const std::string &k, const std::string &n) {
            return weights(b, name, dims_of(b, outer), b.dim_named(k), b.dim_named(n));
        },
        nb::arg("builder"), nb::arg("name"), nb::arg("outer"), nb::arg("k"), nb::arg("n"), nb::call_guard<CallingLine>());
    m.def(
        "multiply",
        [](const Tile &x, const Weights &w, const std::string &name, const std::string &prefix) { return multiply(x, w, name, prefix); },
        nb::arg("x"), nb::arg("weights"), nb::arg("name") = "", nb::arg("prefix") = "", nb::call_guard<CallingLine>());
    nb::class_<Quantized>(m, "Quantized", "Codes with scales, and perhaps zero points, that neighbours share.")
        .def_prop_ro("codes", [](const Quantized &q) { return q.codes; })
        .def_prop_ro("scales", [](const Quantized &q) { return q.scales; })
        .def_prop_ro("zeros", [](const Quantized &q) { return q.zeros; });
    m.def(
        "quantized",
        [](Builder &b, const std::string &name, const Names &dims, Type codes, Type scales, int64_t group, std::optional<Type> zeros) {
            Quantization how{codes.dtype, scales.dtype, group, {}};
            if (zeros) how.zeros = zeros->dtype;
            return quantized(b, name, dims_of(b, dims), how);
        },
        nb::arg("builder"), nb::arg("name"), nb::arg("dims"), nb::arg("codes"), nb::arg("scales"), nb::arg("group") = 0,
        nb::arg("zeros") = nb::none(), nb::call_guard<CallingLine>());
    m.def(
        "quantize_dynamic",
        [](const Tile &x, const std::string &name, const Names &over) { return quantize_dynamic(x, name, dims_of(x.builder(), over)); },
        nb::arg("x"), nb::arg("name"), nb::arg("over"),
        "u8 codes of x with the scale and zero point of its least and largest elements over these dims.", nb::call_guard<CallingLine>());
    m.def(
        "dequantize", [](const Quantized &q) { return dequantize(q); }, nb::arg("quantized"), nb::call_guard<CallingLine>());
}

}  // namespace

void declare_functions(nb::module_ &m) {
    declare_elementwise(m);
    declare_folds(m);
    declare_selection(m);
    declare_indexing(m);
    declare_random(m);
    declare_weights(m);
}

}  // namespace tessera::python
