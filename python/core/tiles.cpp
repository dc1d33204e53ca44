#include "python/core/tiles.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "algorithms/build/ragged.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/rule_laws.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/as_a_call.h"
#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/elementwise.h"
#include "algorithms/transform/vmap/vmap.h"
#include "python/core/extents.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera::python {

namespace {

std::unordered_map<const Builder *, std::weak_ptr<Builder>> &builders() {
    static std::unordered_map<const Builder *, std::weak_ptr<Builder>> all;
    return all;
}

// The functions of a builder take tiles of it alone. C++ relies on its caller there, Python's users need the words.
void check_same(const Builder &builder, const std::vector<Tile> &tiles) {
    for (const Tile &tile : tiles)
        if (static_cast<bool>(tile) && &tile.builder() != &builder)
            refuse("python.builder",
                   "the tile " + tile.describe() + " belongs to another function that is being declared; pass it as an argument");
}

template <typename Apply>
void binary(nb::class_<TileHandle> &c, const char *name, const char *reflected, Apply apply) {
    c.def(
        name,
        [apply](const Tile &a, const Tile &b) {
            if (!static_cast<bool>(b)) throw nb::next_overload();
            check_same(a.builder(), {b});
            return apply(a, b);
        },
        nb::is_operator(), nb::call_guard<CallingLine>());
    c.def(
        name, [apply](const Tile &a, double b) { return apply(a, b); }, nb::is_operator(), nb::call_guard<CallingLine>());
    if (reflected != nullptr)
        c.def(
            reflected, [apply](const Tile &a, double b) { return apply(b, a); }, nb::is_operator(), nb::call_guard<CallingLine>());
}

// A position where a tensor is read: an expression, or a tile's value.
using Position = std::variant<Expr, Tile, int64_t>;
Expr expression_of(const Position &position) {
    if (const Expr *e = std::get_if<Expr>(&position)) return *e;
    if (const int64_t *number = std::get_if<int64_t>(&position)) return *number;
    return std::get<Tile>(position).value();
}

std::optional<DType> dtype_of(const std::optional<Type> &type) { return type ? std::optional(type->dtype) : std::nullopt; }

ScanDirection direction_of(bool backward) { return backward ? ScanDirection::backward : ScanDirection::forward; }

class ScopeGuard {
public:
    ScopeGuard(std::shared_ptr<Builder> builder, std::string prefix) : builder_(std::move(builder)), prefix_(std::move(prefix)) {}
    void enter() { scope_.emplace(*builder_, prefix_); }
    void leave() { scope_.reset(); }

private:
    std::shared_ptr<Builder> builder_;
    std::string prefix_;
    std::optional<Builder::Scope> scope_;
};

class SuspendGuard {
public:
    SuspendGuard(std::shared_ptr<Builder> builder, std::vector<Effect> effects)
        : builder_(std::move(builder)), effects_(std::move(effects)) {}
    void enter() { suspended_.emplace(*builder_, effects_); }
    void leave() { suspended_.reset(); }

private:
    std::shared_ptr<Builder> builder_;
    std::vector<Effect> effects_;
    std::optional<Builder::Suspended> suspended_;
};

Effect effect_named(const std::string &name) {
    std::vector<std::string> names;
    for (const Effect effect : all_effects) {
        if (name == name_of(effect)) return effect;
        names.push_back(name_of(effect));
    }
    refuse("effects.unknown", "there is no effect '" + name + "'; there are " + join(names) + "." + did_you_mean(name, names));
}

nb::list roles_of(const Algorithm &algorithm) {
    nb::list all;
    for (const Tensor &t : algorithm.tensors)
        if (t.role != Role::constant) all.append(nb::make_tuple(t.name, t.role == Role::state ? "state" : "input", Type{t.dtype}, t.dims));
    return all;
}

using Names = std::vector<std::string>;

// Each "<stages>", "<stages>=save", "<stages>=recompute" or "<call>=<rounds of a group>". UserError derivative.residuals.
Residuals residuals_of(const Names &words) {
    Residuals residuals;
    for (const std::string &word : words) {
        const size_t at = word.find('=');
        const std::string name = word.substr(0, at), choice = at == std::string::npos ? "save" : word.substr(at + 1);
        const bool is_number = !choice.empty() && choice.size() < 10 && choice.find_first_not_of("0123456789") == std::string::npos;
        if (is_number) residuals.groups[name] = std::stoll(choice);
        else if (choice == "save" || choice == "recompute") residuals.choices.push_back({name, choice == "save"});
        else
            throw UserError(
                "derivative.residuals",
                "saved: expected stages, <stages>=save, <stages>=recompute or <call>=<rounds of a group>, got '" + printable(word) + "'.");
    }
    return residuals;
}

template <typename Made>
auto by_of(Made (*transform)(const Algorithm &, const By &)) {
    return [transform](const Algorithm &a, const Names &by, const Names &of, const Names &saved) {
        return transform(a, {by, of, residuals_of(saved)});
    };
}

std::pair<Algorithm, Algorithm> both_parts(const Algorithm &a, const By &by) {
    ForwardBackward parts = forward_backward(a, by);
    return {std::move(parts.forward), std::move(parts.backward)};
}

void declare_algorithm(nb::module_ &m) {
    nb::class_<Dim>(m, "Dim", "A named dim with constraints: Dim.symbolic('M', min=1, max=4096, multiple_of=8), Dim.fixed('K', 64).")
        .def_static(
            "fixed", [](const std::string &name, int64_t extent) { return fixed_dim(name, extent); }, nb::arg("name"), nb::arg("extent"))
        .def_static(
            "symbolic",
            [](const std::string &name, int64_t min, std::optional<int64_t> max, int64_t multiple_of, const std::string &equals) {
                Dim dim = symbolic_dim(name);
                dim.min = min, dim.multiple_of = multiple_of, dim.equals = equals;
                if (max) dim.max = *max;
                return dim;
            },
            nb::arg("name"), nb::arg("min") = 0, nb::arg("max") = nb::none(), nb::arg("multiple_of") = 1, nb::arg("equals") = "")
        .def_static(
            "derived", [](const std::string &name, const Expr &size) { return derived_dim(name, size); }, nb::arg("name"), nb::arg("size"))
        .def_ro("name", &Dim::name)
        .def_prop_ro("extent", [](const Dim &d) { return d.kind == DimKind::fixed ? std::optional(d.value) : std::nullopt; })
        .def("__repr__", [](const Dim &d) { return "<dim " + d.name + ">"; });

    nb::class_<Algorithm>(m, "Algorithm", "What is computed: stages over named dims, without a word about how.")
        .def_static(
            "from_json", [](const std::string &text) { return algorithm_from_json(parse_json(text, "the text")); }, nb::arg("text"))
        .def(
            "json", [](const Algorithm &a) { return to_json(a).dump(); }, "The document that every command takes in place of a name.")
        .def("text", [](const Algorithm &a) { return to_text(a); })
        .def("check_elementwise", &check_elementwise)
        .def(
            "jvp",
            [](const Algorithm &a, const Names &by, const Names &of) {
                return jvp(a, {by, of});
            },
            nb::arg("by") = Names(), nb::arg("of") = Names(),
            "How outputs change with x.tangent of each input that is named; nothing named: all floats.")
        .def("vjp", by_of(&vjp), nb::arg("by") = Names(), nb::arg("of") = Names(), nb::arg("saved") = Names(),
             "x.grad of each input that is named, from y.grad of outputs.")
        .def("forward_backward", by_of(&both_parts), nb::arg("by") = Names(), nb::arg("of") = Names(), nb::arg("saved") = Names(),
             "Outputs and what the backward part reads; and x.grad of each input that is named, from that and y.grad.")
        .def("grad", by_of(&grad), nb::arg("by") = Names(), nb::arg("of") = Names(), nb::arg("saved") = Names(),
             "x.grad of the one output without dims.")
        .def("value_and_grad", by_of(&value_and_grad), nb::arg("by") = Names(), nb::arg("of") = Names(), nb::arg("saved") = Names(),
             "All outputs, then x.grad of the one without dims.")
        .def(
            "transposed", [](const Algorithm &a, const Names &linear_in) { return transpose(a, linear_in); },
            nb::arg("linear_in") = Names(), "The adjoint of what is linear in these inputs.")
        .def(
            "vmap", [](const Algorithm &a, const Dim &over, const Names &mapped) { return vmap(a, over, mapped); }, nb::arg("over"),
            nb::arg("mapped") = Names(), "For many arguments at once: `over` in front of what is mapped, and of outputs.")
        .def("renamed", &as_a_call, nb::arg("names"), "The same with other names of inputs, states and outputs.")
        .def(
            "with_rule",
            [](const Algorithm &a, const Algorithm *jvp, const Algorithm *backward, const Algorithm *forward, bool differs) {
                const auto part = [](const Algorithm *of) { return of ? std::make_shared<const Algorithm>(*of) : nullptr; };
                Algorithm made = with_rule(a, {part(jvp), part(backward), part(forward), differs});
                check_rule_laws(made);
                return made;
            },
            nb::arg("jvp").none(), nb::arg("backward").none(), nb::arg("forward").none(), nb::arg("differs"),
            "With a derivative of its author's, which differences check.")
        .def("checkpoint", &checkpoint, nb::arg("scope"), nb::arg("every"), "With the rounds of a call in groups of `every`.")
        .def(
            "elementwise_over_rows",
            [](const Algorithm &a, const std::vector<std::string> &repeated) {
                return elementwise_over_rows(a, {repeated.begin(), repeated.end()});
            },
            nb::arg("repeated"), "An element-wise algorithm over rows and columns; inputs in `repeated` have one element for each row.")
        .def_ro("name", &Algorithm::name)
        .def_prop_ro("semantic_hash", [](const Algorithm &a) { return semantic_hash(a); })
        .def_prop_ro("surface_hash", [](const Algorithm &a) { return surface_hash(a); })
        .def_prop_ro("dims", [](const Algorithm &a) { return a.dims; })
        .def(
            "extent",
            [](const Algorithm &a, const std::string &name, const nb::dict &told) {
                const Dim *dim = a.find_dim(name);
                if (dim == nullptr) refuse("shape.unknown-dim", a.name + ": there is no dim '" + name + "'");
                return extent_of<nb::object>(a, *dim, [&](const Dim &other) -> std::optional<nb::object> {
                    if (!told.contains(other.name.c_str())) return std::nullopt;
                    return nb::object(told[other.name.c_str()]);
                });
            },
            nb::arg("dim"), nb::arg("told"), nb::sig("def extent(self, dim: str, told: dict[str, Any]) -> Any"),
            "A dim's extent from those of others, numbers or what a framework that traces has for them; None where these do not tell it.")
        .def_prop_ro("tensors", &roles_of, nb::sig("def tensors(self) -> list[tuple[str, str, DType, list[str]]]"),
                     "(name, 'input' or 'state', dtype, dims) of each, in the order of the kernel's arguments")
        .def_prop_ro(
            "outputs",
            [](const Algorithm &a) {
                nb::list all;
                for (const std::string &name : a.outputs) {
                    const Tensor *tensor = nullptr;
                    std::vector<Tensor> results;
                    for (const Step &step : a.steps) {
                        const std::vector<Tensor> made = std::visit([](const auto &s) { return results_of(s); }, step);
                        for (const Tensor &t : made)
                            if (t.name == name) results = {t}, tensor = results.data();
                    }
                    if (tensor != nullptr) all.append(nb::make_tuple(name, Type{tensor->dtype}, tensor->dims));
                }
                return all;
            },
            nb::sig("def outputs(self) -> list[tuple[str, DType, list[str]]]"))
        .def_prop_ro(
            "parameters",
            [](const Algorithm &a) {
                nb::list all;
                for (const Parameter &p : a.parameters) all.append(nb::make_tuple(p.name, Type{p.dtype}));
                return all;
            },
            nb::sig("def parameters(self) -> list[tuple[str, DType]]"))
        .def_prop_ro(
            "stages",
            [](const Algorithm &a) {
                nb::list all;
                for (const Stage &s : a.stages()) all.append(nb::make_tuple(s.name, s.dims, folded_dims(s)));
                return all;
            },
            nb::sig("def stages(self) -> list[tuple[str, list[str], list[str]]]"), "(name, dims, dims that it folds over) of each")
        .def_prop_ro(
            "spans",
            [](const Algorithm &a) {
                nb::dict all;
                for (const Stage &s : a.stages())
                    if (s.span) all[s.name.c_str()] = nb::make_tuple(s.span.file, s.span.line);
                return all;
            },
            nb::sig("def spans(self) -> dict[str, tuple[str, int]]"),
            "{stage: (file, line)} of the declarations; an algorithm that was read from a file has none.")
        .def_prop_ro("effects",
                     [](const Algorithm &a) {
                         std::vector<std::string> names;
                         for (const Effect e : effects_of(a)) names.push_back(name_of(e));
                         return names;
                     })
        .def("__repr__", [](const Algorithm &a) { return "<algorithm " + a.name + ">"; });
}

void declare_tile(nb::module_ &m) {
    nb::class_<TileHandle> c(m, "Tile", "An expression over named dims. Operators combine tiles dim by dim, by name.");
    c.def_prop_ro(
         "dims", [](const Tile &t) { return t.dims(); }, "Names, outermost first.")
        .def_prop_ro("dtype", [](const Tile &t) { return Type{t.dtype()}; })
        .def_prop_ro(
            "value", [](const Tile &t) { return t.value(); }, "The expression of one point.")
        .def(
            "named", [](const Tile &t, const std::string &name) { return t.named(name); }, nb::arg("name"),
            "The same tile as a stage of that name, which a schedule can address.", nb::call_guard<CallingLine>())
        .def(
            "at",
            [](const Tile &t, const std::map<std::string, Position> &index, std::optional<std::vector<std::string>> dims) {
                std::map<std::string, Expr> at;
                for (const auto &[dim, position] : index) at[dim] = expression_of(position);
                return t.at(at, dims ? *dims : t.dims());
            },
            nb::arg("index"), nb::arg("dims") = nb::none(),
            "The tile read at another index: {dim: position}; `dims` are those of the result.", nb::call_guard<CallingLine>())
        .def(
            "cast", [](const Tile &t, Type type, bool saturate) { return cast(type.dtype, t, Rounding::nearest_even, saturate); },
            nb::arg("dtype"), nb::arg("saturate") = false, nb::call_guard<CallingLine>())
        .def(
            "__neg__", [](const Tile &t) { return -t; }, nb::is_operator(), nb::call_guard<CallingLine>())
        .def(
            "__invert__", [](const Tile &t) { return !t; }, nb::is_operator(), nb::call_guard<CallingLine>())
        .def(
            "__abs__", [](const Tile &t) { return abs(t); }, nb::is_operator(), nb::call_guard<CallingLine>())
        .def(
            "__pow__", [](const Tile &t, int n) { return pow(t, n); }, nb::is_operator(), nb::call_guard<CallingLine>())
        .def(
            "__pow__", [](const Tile &t, double y) { return pow(t, y); }, nb::is_operator(), nb::call_guard<CallingLine>())
        .def(
            "__pow__", [](const Tile &t, const Tile &y) { return pow(t, y); }, nb::is_operator(), nb::call_guard<CallingLine>())
        .def(
            "__repr__", [](const Tile &t) { return "<tile " + t.describe() + " " + name_of(t.dtype()) + ">"; },
            nb::call_guard<CallingLine>())
        .def(
            "__bool__",
            [](const Tile &t) -> bool {
                refuse("python.truth", "the tile " + t.describe() +
                                           " has no truth while it is declared: it stands for many values; "
                                           "write tile.select(condition, a, b) in place of 'if'");
            },
            nb::call_guard<CallingLine>());
    c.attr("__hash__") = nb::none();
    c.attr("__array_ufunc__") = nb::none();  // NumPy must leave its operators to tiles
    binary(c, "__add__", "__radd__", [](const auto &a, const auto &b) { return a + b; });
    binary(c, "__sub__", "__rsub__", [](const auto &a, const auto &b) { return a - b; });
    binary(c, "__mul__", "__rmul__", [](const auto &a, const auto &b) { return a * b; });
    binary(c, "__truediv__", "__rtruediv__", [](const auto &a, const auto &b) { return a / b; });
    binary(c, "__floordiv__", "__rfloordiv__", [](const auto &a, const auto &b) {
        const Tile quotient = a / b;
        return is_float(quotient.dtype()) ? floor(quotient) : quotient;
    });
    binary(c, "__mod__", "__rmod__", [](const auto &a, const auto &b) { return a % b; });
    binary(c, "__lt__", nullptr, [](const auto &a, const auto &b) { return a < b; });
    binary(c, "__le__", nullptr, [](const auto &a, const auto &b) { return a <= b; });
    binary(c, "__gt__", nullptr, [](const auto &a, const auto &b) { return a > b; });
    binary(c, "__ge__", nullptr, [](const auto &a, const auto &b) { return a >= b; });
    binary(c, "__eq__", nullptr, [](const auto &a, const auto &b) { return a == b; });
    binary(c, "__ne__", nullptr, [](const auto &a, const auto &b) { return a != b; });
    binary(c, "__and__", "__rand__", [](const auto &a, const auto &b) { return a && b; });
    binary(c, "__or__", "__ror__", [](const auto &a, const auto &b) { return a || b; });
    binary(c, "__xor__", "__rxor__", [](const auto &a, const auto &b) { return a ^ b; });
    binary(c, "__lshift__", "__rlshift__", [](const auto &a, const auto &b) { return a << b; });
    binary(c, "__rshift__", "__rrshift__", [](const auto &a, const auto &b) { return a >> b; });
}

void declare_builder(nb::module_ &m) {
    nb::class_<ScopeGuard>(m, "Scope")
        .def("__enter__", &ScopeGuard::enter, nb::call_guard<CallingLine>())
        .def(
            "__exit__", [](ScopeGuard &g, nb::args) { g.leave(); }, nb::sig("def __exit__(self, *args: object) -> None"),
            nb::call_guard<CallingLine>());
    nb::class_<SuspendGuard>(m, "Suspended")
        .def("__enter__", &SuspendGuard::enter, nb::call_guard<CallingLine>())
        .def(
            "__exit__", [](SuspendGuard &g, nb::args) { g.leave(); }, nb::sig("def __exit__(self, *args: object) -> None"),
            nb::call_guard<CallingLine>());
    using Ends = std::optional<double>;
    nb::class_<Builder>(m, "Builder", "Declares dims, tensors and outputs. tessera.jit makes one for each function.")
        .def(nb::new_(&make_builder), nb::arg("name"), nb::arg("numerics") = Numerics(), nb::call_guard<CallingLine>())
        .def_prop_ro("numerics", [](const Builder &b) { return b.numerics(); })
        .def(
            "dim",
            [](Builder &b, const std::string &name, std::optional<int64_t> extent) { return extent ? b.dim(name, *extent) : b.dim(name); },
            nb::arg("name"), nb::arg("extent") = nb::none(), nb::call_guard<CallingLine>())
        .def(
            "dim", [](Builder &b, const Dim &dim) { return b.dim(dim); }, nb::arg("dim"), nb::call_guard<CallingLine>())
        .def(
            "dim_named", [](const Builder &b, const std::string &name) { return b.dim_named(name); }, nb::arg("name"),
            nb::call_guard<CallingLine>())
        .def(
            "ragged_rows",
            [](Builder &b, const std::string &name, const std::string &offsets, Type type, const std::string &parent,
               const std::string &flat) {
                RaggedRows rows = ragged_rows(name, offsets, type.dtype, parent, flat);
                b.dim(rows.dim);
                return rows.row;
            },
            nb::arg("name"), nb::arg("offsets"), nb::arg("dtype"), nb::arg("parent"), nb::arg("flat"),
            "Declares the dim `name`, the rows of a segment; gives the position in `flat` of a row of it.", nb::call_guard<CallingLine>())
        .def(
            "input",
            [](Builder &b, const std::string &n, const std::vector<std::string> &d, std::optional<Type> t) {
                return b.input(n, dims_of(b, d), dtype_of(t));
            },
            nb::arg("name"), nb::arg("dims"), nb::arg("dtype") = nb::none(), nb::call_guard<CallingLine>())
        .def(
            "state",
            [](Builder &b, const std::string &n, const std::vector<std::string> &d, std::optional<Type> t) {
                return b.state(n, dims_of(b, d), dtype_of(t));
            },
            nb::arg("name"), nb::arg("dims"), nb::arg("dtype") = nb::none(), nb::call_guard<CallingLine>())
        .def(
            "parameter",
            [](Builder &b, const std::string &name, Type type, Ends least, Ends most, bool open_least, bool open_most) {
                if (!least && !most) return b.parameter(name, type.dtype);
                LowerEnd low = least ? LowerEnd(*least) : LowerEnd();
                UpperEnd high = most ? UpperEnd(*most) : UpperEnd();
                if (least && !is_float(type.dtype)) low = LowerEnd(static_cast<int64_t>(*least));
                if (most && !is_float(type.dtype)) high = UpperEnd(static_cast<int64_t>(*most));
                return b.parameter(name, type.dtype, open_least ? above(low) : low, open_most ? below(high) : high);
            },
            nb::arg("name"), nb::arg("dtype"), nb::arg("least") = nb::none(), nb::arg("most") = nb::none(), nb::arg("above") = false,
            nb::arg("below") = false, nb::call_guard<CallingLine>())
        .def(
            "constant",
            [](Builder &b, const std::string &n, const std::vector<std::string> &d, const std::vector<double> &values,
               std::optional<Type> t) { return b.constant(n, dims_of(b, d), values, dtype_of(t)); },
            nb::arg("name"), nb::arg("dims"), nb::arg("values"), nb::arg("dtype") = nb::none(), nb::call_guard<CallingLine>())
        .def(
            "index", [](Builder &b, const std::string &dim) { return b.index(b.dim_named(dim)); }, nb::arg("dim"),
            nb::call_guard<CallingLine>())
        .def(
            "scalar", [](Builder &b, Type t, double value) { return b.scalar(t.dtype, value); }, nb::arg("dtype"), nb::arg("value"),
            nb::call_guard<CallingLine>())
        .def(
            "tile", [](Builder &b, const Expr &value, const std::vector<std::string> &dims) { return b.tile(value, dims_of(b, dims)); },
            nb::arg("value"), nb::arg("dims"), nb::call_guard<CallingLine>())
        .def(
            "fold",
            [](Builder &b, const Monoid &monoid, const std::vector<Tile> &inputs, const std::vector<std::string> &over, const Tile &where) {
                check_same(b, inputs), check_same(b, {where});
                return b.fold(monoid, inputs, over, where);
            },
            nb::arg("monoid"), nb::arg("inputs"), nb::arg("over"), nb::arg("where") = nb::none(), nb::call_guard<CallingLine>())
        .def(
            "scan",
            [](Builder &b, const Monoid &monoid, const std::vector<Tile> &inputs, const std::string &along, bool inclusive, bool backward,
               const Tile &segments) {
                check_same(b, inputs), check_same(b, {segments});
                return b.scan_parts(monoid, inputs, b.dim_named(along), inclusive, direction_of(backward), segments);
            },
            nb::arg("monoid"), nb::arg("inputs"), nb::arg("along"), nb::arg("inclusive") = true, nb::arg("backward") = false,
            nb::arg("segments") = nb::none(), nb::call_guard<CallingLine>())
        .def(
            "scatter",
            [](Builder &b, const Monoid &monoid, const std::vector<Tile> &inputs, const std::vector<Tile> &at,
               const std::vector<std::string> &dims) {
                check_same(b, inputs), check_same(b, at);
                return b.scatter_parts(monoid, inputs, at, dims_of(b, dims));
            },
            nb::arg("monoid"), nb::arg("inputs"), nb::arg("at"), nb::arg("dims"), nb::call_guard<CallingLine>())
        .def(
            "update",
            [](Builder &b, const std::string &name, const Tile &state, const std::vector<Tile> &index, const Tile &value) {
                check_same(b, index), check_same(b, {state, value});
                b.update(name, state, index, value);
            },
            nb::arg("name"), nb::arg("state"), nb::arg("index"), nb::arg("value"), nb::call_guard<CallingLine>())
        .def(
            "output_in_place", [](Builder &b, const Tile &donated, const Tile &value) { b.output_in_place(donated, value); },
            nb::arg("donated"), nb::arg("value"), nb::call_guard<CallingLine>())
        .def(
            "call",
            [](Builder &b, const std::string &scope, const Algorithm &callee, const std::vector<Tile> &arguments,
               const std::map<std::string, Tile> &parameters) {
                check_same(b, arguments);
                return b.call(scope, callee, arguments, parameters);
            },
            nb::arg("scope"), nb::arg("callee"), nb::arg("arguments"), nb::arg("parameters") = std::map<std::string, Tile>(),
            nb::call_guard<CallingLine>())
        .def(
            "repeat",
            [](Builder &b, const std::string &scope, const Algorithm &callee, const std::string &dim, const std::vector<Tile> &arguments,
               const std::map<std::string, std::string> &carried, const std::vector<std::string> &stacked, const std::string &until,
               const std::map<std::string, Tile> &parameters) {
                check_same(b, arguments);
                Repeat rounds;
                rounds.dim = dim, rounds.carried = carried, rounds.until = until;
                rounds.stacked.insert(stacked.begin(), stacked.end());
                return b.repeat(scope, callee, rounds, arguments, parameters);
            },
            nb::arg("scope"), nb::arg("callee"), nb::arg("dim"), nb::arg("arguments"),
            nb::arg("carried") = std::map<std::string, std::string>(), nb::arg("stacked") = std::vector<std::string>(),
            nb::arg("until") = "", nb::arg("parameters") = std::map<std::string, Tile>(), nb::call_guard<CallingLine>())
        .def(
            "output",
            [](Builder &b, const std::string &name, const Tile &t, std::optional<Type> type) {
                check_same(b, {t});
                b.output(name, t, dtype_of(type));
            },
            nb::arg("name"), nb::arg("tile"), nb::arg("dtype") = nb::none(), nb::call_guard<CallingLine>())
        .def(
            "large", [](Builder &b, const std::string &name) { b.large(name); }, nb::arg("name"), nb::call_guard<CallingLine>())
        .def(
            "verify_numerics",
            [](Builder &b, const std::string &stage, bool stable, std::optional<std::pair<double, double>> bounded,
               std::optional<double> loss) {
                b.verify_numerics(stage, {stable, bounded, loss});
            },
            nb::arg("stage"), nb::arg("stable") = true, nb::arg("bounded") = nb::none(), nb::arg("loss") = nb::none(),
            nb::call_guard<CallingLine>())
        .def(
            "state_range", [](Builder &b, const std::string &input, double low, double high) { b.state_range(input, low, high); },
            nb::arg("input"), nb::arg("lowest"), nb::arg("highest"), nb::call_guard<CallingLine>())
        .def(
            "build", [](const Builder &b) { return b.build(); }, nb::call_guard<CallingLine>())
        .def(
            "scope", [](std::shared_ptr<Builder> b, const std::string &prefix) { return new ScopeGuard(std::move(b), prefix); },
            nb::arg("prefix"), nb::call_guard<CallingLine>())
        .def(
            "suspend",
            [](std::shared_ptr<Builder> b, const std::vector<std::string> &names) {
                std::vector<Effect> effects;
                for (const std::string &name : names) effects.push_back(effect_named(name));
                return new SuspendGuard(std::move(b), effects);
            },
            nb::arg("effects"), nb::call_guard<CallingLine>());
    m.def(
        "builder_of", [](const Tile &tile) { return handle_of(tile).owner; }, nb::arg("tile"), nb::call_guard<CallingLine>());
}

}  // namespace

std::shared_ptr<Builder> make_builder(const std::string &name, const Numerics &numerics) {
    std::shared_ptr<Builder> made(new Builder(name, numerics), [](Builder *b) {
        builders().erase(b);
        delete b;
    });
    builders()[made.get()] = made;
    return made;
}

TileHandle handle_of(const Tile &tile) {
    const auto found = builders().find(&tile.builder());
    require(found != builders().end(), "a tile without a builder");
    return {tile, found->second.lock()};
}

std::vector<Dim> dims_of(Builder &builder, const std::vector<std::string> &names) {
    std::vector<Dim> dims;
    for (const std::string &name : names) dims.push_back(builder.dim_named(name));
    return dims;
}

void declare_tiles(nb::module_ &m) {
    declare_algorithm(m);
    declare_tile(m);
    declare_builder(m);
}

}  // namespace tessera::python
