// Graphs that repeat: Loop and Scan. The body becomes an algorithm that is called once for each round (Builder::repeat); a body that is
// none, such as one that slices at the number of its round, is imported once for each of a few rounds.
#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/inward.h"
#include "algorithms/import/onnx/operators.h"
#include "support/text/error.h"

namespace tessera::onnx {

namespace {

constexpr int64_t most_unrolled = 64;           // rounds
constexpr int64_t most_rounds = 2'000'000'000;  // of a loop that its condition ends

// What a body takes and gives. Its inputs are those of `before`, the states, and the elements; its outputs those of `flags`, the states,
// and what is stacked.
struct Rounds {
    const Graph *body = nullptr;
    Expr trips;
    bool is_loop = false;  // the number of the round and a condition come first, and the condition comes first out
    std::vector<Value> states;
    struct Elements {
        Value value;
        size_t axis = 0;
        bool backward = false;
    };
    std::vector<Elements> elements;

    size_t inputs_before() const { return is_loop ? 2 : 0; }
    size_t outputs_before() const { return is_loop ? 1 : 0; }
};

// The states after the last round, and what is stacked, the round's axis in front.
struct Repeated {
    std::vector<Value> states, stacked;
};

std::vector<Expr> indices(const std::vector<Axis> &axes) {
    std::vector<Expr> index;
    for (const Axis &a : axes) index.push_back(at(a));
    return index;
}

// The value with a dim for each axis, in ONNX's order.
Value spread_in_order(Context &c, const Value &value, std::vector<Axis> axes = {}) {
    Tile t;
    if (axes.empty()) t = c.spread(value, axes);
    else t = c.read(value, indices(axes), axes);
    std::vector<std::string> dims;
    for (const Axis &a : axes) dims.push_back(a.dim);
    Value made;
    made.dtype = value.dtype, made.axes = axes, made.name = value.name;
    made.tile = Tile(&c.f, c.space.resolved(t.value()), dims);
    return made;
}

void names_read(const Graph &graph, std::set<std::string> known, std::set<std::string> &read) {
    for (const ValueInfo &i : graph.inputs) known.insert(i.name);
    for (const auto &[name, tensor] : graph.initializers) known.insert(name);
    for (const Node &n : graph.nodes) {
        for (const std::string &i : n.inputs)
            if (!i.empty() && !known.count(i)) read.insert(i);
        for (const auto &[name, a] : n.attributes)
            if (a.graph) names_read(*a.graph, known, read);
        known.insert(n.outputs.begin(), n.outputs.end());
    }
    for (const ValueInfo &o : graph.outputs)
        if (!known.count(o.name)) read.insert(o.name);
}

// The element of a round, along the round's dim in front.
Value element_of(Context &c, const Rounds::Elements &e, const Axis &T) {
    std::vector<Axis> axes = {T};
    std::vector<Expr> index;
    for (size_t i = 0; i < e.value.axes.size(); i++) {
        if (i == e.axis) {
            index.push_back(e.backward ? T.extent - 1 - at(T) : at(T));
            continue;
        }
        axes.push_back(c.new_axis(e.value.axes[i].extent, axes));
        index.push_back(at(axes.back()));
    }
    const Tile t = c.read(e.value, index, axes);
    std::vector<std::string> dims;
    for (const Axis &a : axes) dims.push_back(a.dim);
    Value made;
    made.dtype = e.value.dtype;
    made.axes.assign(axes.begin() + 1, axes.end());
    made.tile = Tile(&c.f, c.space.resolved(t.value()), dims);
    return made;
}

bool is_true(const Value &condition) {
    return condition.is_constant() && condition.constant->size() == 1 && condition.constant->values()[0] != 0;
}

Repeated repeated(Context &c, const Rounds &r, const std::string &name) {
    const Axis T = c.new_axis(r.trips, {});
    std::vector<Value> states, elements;
    for (const Value &s : r.states) states.push_back(spread_in_order(c, s));
    for (const Rounds::Elements &e : r.elements) elements.push_back(element_of(c, e, T));
    std::set<std::string> read;
    names_read(*r.body, {}, read);
    struct Made {
        std::unique_ptr<Space> space;
        Algorithm algorithm;
        std::map<std::string, Tile> arguments;  // by the callee's inputs
        std::map<std::string, size_t> leading;
        std::vector<Value> states, stacked;
        Repeat rounds;
        bool counts = false;
    };
    auto make = [&](const Symbols &symbols) {
        Made made;
        made.space = std::make_unique<Space>(name, Numerics{});
        Space &own = *made.space;
        Inward inward(own, c.space, symbols, true);
        std::map<std::string, Value> names;
        auto take = [&](const Value &value, const std::string &wanted, const std::string &inner, bool has_rounds) {
            const std::string tensor = value.is_constant() ? "" : own.fresh(wanted);
            Value given = value;
            if (has_rounds) given.tile = Tile(&c.f, value.tile.value(), {value.tile.dims().begin() + 1, value.tile.dims().end()});
            const std::optional<Value> input = inward.input(given, tensor);
            if (!input) c.refuse("its body reads '" + inner + "', which follows from extents.", "Fix the dims (--shape).");
            names[inner] = *input, names[inner].name = inner;
            if (!tensor.empty()) made.arguments[tensor] = value.tile, made.leading[tensor] = has_rounds;
            return tensor;
        };
        const std::vector<ValueInfo> &inputs = r.body->inputs;
        if (r.is_loop) {
            Value count, condition = c.constant(Array(DType::boolean, {}, {1}));
            count.dtype = DType::i64;
            made.counts = read.count(inputs[0].name) || std::any_of(r.body->nodes.begin(), r.body->nodes.end(), [&](const Node &n) {
                              return std::count(n.inputs.begin(), n.inputs.end(), inputs[0].name) != 0 ||
                                     std::any_of(n.attributes.begin(), n.attributes.end(), [](const auto &a) { return a.second.graph; });
                          });
            if (made.counts) count.tile = cast(DType::i64, own.f.parameter(own.fresh("round"), DType::i32));
            else count.tile = own.f.scalar(DType::i64, 0);
            names[inputs[0].name] = count, names[inputs[1].name] = condition;
        }
        std::vector<std::string> tensors;
        for (size_t i = 0; i < states.size(); i++) tensors.push_back(take(states[i], "state", inputs[r.inputs_before() + i].name, false));
        for (size_t i = 0; i < elements.size(); i++) take(elements[i], "element", inputs[r.inputs_before() + states.size() + i].name, true);
        for (const std::string &outer : read) {
            const Value *v = c.runner->find(outer);
            if (!v || names.count(outer)) continue;
            if (v->is_constant() || v->is_known()) take(*v, outer, outer, false);
            else take(spread_in_order(c, *v), outer, outer, false);
        }
        const std::map<std::string, Value> given = names;
        const std::vector<Value> results = c.runner->run_in(own, *r.body, names);
        const Node none;
        Context inner(own, none, {}, 0, c.model, nullptr);
        if (r.is_loop && !is_true(results[0])) {
            if (results[0].is_constant() || results[0].is_known())
                c.refuse("its condition is false after one round.", "Export the model without the loop.");
            std::vector<Axis> axes;
            const Tile go = inner.spread(results[0], axes);
            std::map<std::string, Expr> zero;
            for (const std::string &d : go.dims()) zero[d] = Expr(0);
            made.rounds.until = own.fresh("stop");
            own.f.output(made.rounds.until, Tile(&own.f, !substitute(own.resolved(go.value()), zero), {}), DType::boolean);
        }
        for (size_t i = 0; i < states.size(); i++) {
            const Value &before = given.at(inputs[r.inputs_before() + i].name), &after = results[r.outputs_before() + i];
            bool same = before.axes.size() == after.axes.size() && before.dtype == after.dtype;
            for (size_t a = 0; a < before.axes.size() && same; a++) same = own.same(before.axes[a].extent, after.axes[a].extent);
            if (!same)
                c.refuse("its state '" + inputs[r.inputs_before() + i].name + "' changes its shape or type from round to round.",
                         "Export the model with states of one shape.");
            const Value in_order = spread_in_order(inner, after, before.axes);
            const std::string output = own.fresh("next");
            own.f.output(output, in_order.tile, after.dtype);
            made.rounds.carried[tensors[i]] = output;
            made.states.push_back(in_order);
        }
        if (r.is_loop && is_true(results[0]) && r.trips.is_constant(most_rounds))
            c.refuse(
                "it never ends: it has no trip count below " + std::to_string(most_rounds) + ", and its condition is true in every round.",
                "Give it a trip count, or a condition that becomes false.", "onnx.loop");
        for (size_t i = r.outputs_before() + states.size(); i < results.size(); i++) {
            const Value in_order = spread_in_order(inner, results[i]);
            const std::string output = own.fresh("each");
            own.f.output(output, in_order.tile, results[i].dtype);
            made.rounds.stacked.insert(output);
            made.stacked.push_back(in_order);
        }
        made.algorithm = own.f.build();
        std::set<std::string> used;
        for (const Tensor &t : made.algorithm.tensors) used.insert(t.dims.begin(), t.dims.end());
        std::erase_if(made.algorithm.dims, [&](const Dim &d) { return d.kind == DimKind::symbolic && !used.count(d.name); });
        return made;
    };
    std::optional<Made> made = with_symbols(make);
    if (!made) c.refuse("its body is no algorithm of its own.", "Fix the dims (--shape).");
    if (!made->rounds.until.empty() && !made->stacked.empty())
        c.refuse("it stacks values until a condition of data ends it, so their number is data.",
                 "Export it with a fixed number of rounds.");
    made->rounds.dim = T.dim;
    Binding bind(c.space, made->algorithm, made->space->meaning, {T.dim});
    std::vector<Tile> arguments;
    size_t next_weight = 0;
    for (const Tensor &t : made->algorithm.tensors) {
        if (t.role != Role::input) continue;
        const auto given = made->arguments.find(t.name);
        if (given == made->arguments.end()) arguments.push_back(bind.weight(made->space->weights.at(next_weight++), t.name));
        else arguments.push_back(bind.argument(given->second, t.name, made->leading.at(t.name)));
    }
    std::map<std::string, Tile> parameters;
    for (const Parameter &p : made->algorithm.parameters) parameters[p.name] = cast(DType::i32, c.f.index(c.dim(T)));
    const std::vector<Tile> tiles = c.f.repeat("round", made->algorithm, made->rounds, arguments, parameters);
    Repeated all;
    size_t next = made->rounds.until.empty() ? 0 : 1;
    for (const Value &s : made->states) all.states.push_back(bind.result(s, tiles.at(next++)));
    for (const Value &s : made->stacked) {
        Tile tile = tiles.at(next++);
        std::vector<std::string> dims = tile.dims();
        if (dims[0] != T.dim)
            tile = tile.at({{dims[0], at(T)}}, [&] {
                dims[0] = T.dim;
                return dims;
            }());
        Value value = bind.result(s, tile, 1);
        value.axes.insert(value.axes.begin(), T);
        all.stacked.push_back(value);
    }
    return all;
}

// Each round by itself, one after the other.
Repeated unrolled(Context &c, const Rounds &r, int64_t trips) {
    Repeated all;
    all.states = r.states;
    std::vector<std::vector<Value>> each;
    for (int64_t round = 0; round < trips; round++) {
        if ((*c.runner->rounds_left)-- < 1) c.refuse("loops within loops are written out too often.", "Export the model without them.");
        std::vector<Value> inputs;
        if (r.is_loop)
            inputs = {c.constant(Array(DType::i64, {}, {static_cast<double>(round)})), c.constant(Array(DType::boolean, {}, {1}))};
        inputs.insert(inputs.end(), all.states.begin(), all.states.end());
        for (const Rounds::Elements &e : r.elements) {
            const Axis T = c.new_axis(Expr(trips), {});
            const Value element = element_of(c, e, T);
            const std::vector<std::string> dims(element.tile.dims().begin() + 1, element.tile.dims().end());
            const Tile t(&c.f, substitute(element.tile.value(), {{T.dim, Expr(round)}}), dims);
            inputs.push_back(c.result(t, element.axes, element.dtype));
        }
        const std::vector<Value> results = c.runner->run(*r.body, inputs);
        for (size_t i = 0; i < all.states.size(); i++) all.states[i] = c.kept(results.at(r.outputs_before() + i));
        each.emplace_back();
        for (size_t i = r.outputs_before() + all.states.size(); i < results.size(); i++) each.back().push_back(c.kept(results[i]));
        if (!r.is_loop || is_true(results[0])) continue;
        if (!results[0].is_constant())
            c.refuse("its condition is data, and its body is no algorithm of its own.", "Export it with a fixed number of rounds.");
        break;
    }
    const auto count = static_cast<int64_t>(each.size());
    if (count == 0 && r.body->outputs.size() > r.outputs_before() + r.states.size())
        c.refuse("it stacks values of no round.", "Export the model without the loop.");
    for (size_t k = 0; count && k < each[0].size(); k++) {
        std::vector<Axis> axes = each[0][k].axes;
        const Value first = spread_in_order(c, each[0][k]);
        axes = first.axes;
        const Axis T = c.new_axis(Expr(count), axes);
        Expr value;
        for (int64_t i = count - 1; i >= 0; i--) {
            const Value &one = each[static_cast<size_t>(i)][k];
            bool same = one.axes.size() == axes.size();
            for (size_t a = 0; a < axes.size() && same; a++) same = c.space.same(one.axes[a].extent, axes[a].extent);
            if (!same) c.refuse("what it stacks changes its shape from round to round.", "Export it with values of one shape.");
            const Expr here = spread_in_order(c, one, axes).tile.value();
            value = value.defined() ? select(at(T) == Expr(i), here, value) : here;
        }
        std::vector<std::string> dims = {T.dim};
        for (const Axis &a : axes) dims.push_back(a.dim);
        axes.insert(axes.begin(), T);
        all.stacked.push_back(c.result(Tile(&c.f, value, dims), axes, first.dtype));
    }
    return all;
}

Repeated run(Context &c, const Rounds &r) {
    if (!c.runner) c.refuse("a graph within a callee.", "Check the exporter.");
    const size_t inputs = r.inputs_before() + r.states.size() + r.elements.size();
    if (r.body->inputs.size() != inputs || r.body->outputs.size() < r.outputs_before() + r.states.size())
        c.refuse("its body takes " + std::to_string(r.body->inputs.size()) + " inputs; expected " + std::to_string(inputs) + ".",
                 "Check the exporter.", "onnx.input");
    std::string name = r.is_loop ? "loop" : "scan";
    try {
        return repeated(c, r, c.space.fresh(name + "_body"));
    } catch (const UserError &) {
        const std::optional<int64_t> trips = c.space.number(r.trips);
        if (!trips || *trips > most_unrolled) throw;
        return unrolled(c, r, *trips);
    }
}

std::vector<Value> loop(Context &c) {
    Rounds r;
    r.is_loop = true;
    r.body = &c.node.graph("body");
    if (c.has(1)) {
        const std::vector<int64_t> go = c.numbers(1, "condition");
        if (go.size() != 1) c.refuse("its condition has several elements.", "Check the exporter.");
        if (!go[0]) r.trips = Expr(0);
    }
    if (!r.trips.defined()) {
        const std::vector<Expr> trips = c.has(0) ? c.integers(0, "trip count") : std::vector<Expr>{Expr(most_rounds)};
        if (trips.size() != 1) c.refuse("its trip count has several elements.", "Check the exporter.");
        r.trips = c.space.simplified(max(min(trips[0], Expr(most_rounds)), Expr(0)));
    }
    for (size_t i = 2; i < c.inputs(); i++) r.states.push_back(c.in(i));
    Repeated all = run(c, r);
    all.states.insert(all.states.end(), all.stacked.begin(), all.stacked.end());
    return all.states;
}

Value without_axis(Context &c, const Value &x, size_t axis) {
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    const std::string gone = axes[axis].dim;
    std::vector<std::string> dims = t.dims();
    std::erase(dims, gone);
    axes.erase(axes.begin() + static_cast<int64_t>(axis));
    return c.result(Tile(&c.f, substitute(t.value(), {{gone, Expr(0)}}), dims), axes, x.dtype);
}

std::vector<Value> scan(Context &c) {
    Rounds r;
    r.body = &c.node.graph("body");
    // Before opset 9 the first input is the lengths of sequences, and all others have a batch in front.
    const bool old = c.opset < 9;
    const size_t first = old ? 1 : 0;
    const int64_t count = c.node.integer("num_scan_inputs");
    if (count < 1 || first + static_cast<size_t>(count) > c.inputs())
        c.refuse("it scans " + std::to_string(count) + " of " + std::to_string(c.inputs()) + " inputs.", "Check the exporter.",
                 "onnx.input");
    if (old && c.has(0)) c.refuse("it has lengths of sequences.", "Export the model with opset 9 or newer.");
    const size_t states = c.inputs() - first - static_cast<size_t>(count);
    auto input = [&](size_t i) {
        const Value &x = c.in(first + i);
        if (!old) return x;
        if (x.rank() < 1 || !c.space.same(x.axes[0].extent, Expr(1)))
            c.refuse("it has a batch of more than one.", "Export the model with opset 9 or newer.");
        return without_axis(c, x, 0);
    };
    auto listed = [&](const char *attribute, size_t i) {
        const std::vector<int64_t> all = c.node.integers(attribute);
        return i < all.size() ? all[i] : 0;
    };
    for (size_t i = 0; i < states; i++) r.states.push_back(input(i));
    for (size_t i = 0; i < static_cast<size_t>(count); i++) {
        Rounds::Elements e{input(states + i)};
        e.axis = static_cast<size_t>(c.axis(listed("scan_input_axes", i), e.value.rank()));
        e.backward = listed(old ? "directions" : "scan_input_directions", i) != 0;
        const Expr extent = c.space.simplified(e.value.axes[e.axis].extent);
        if (!r.trips.defined()) r.trips = extent;
        else if (!c.space.same(r.trips, extent))
            c.refuse("its inputs have " + brief(r.trips) + " and " + brief(extent) + " elements to scan.", Context::equal_extents,
                     "onnx.broadcast");
        r.elements.push_back(std::move(e));
    }
    Repeated all = run(c, r);
    std::vector<Value> results = all.states;
    for (size_t i = 0; i < all.stacked.size(); i++) {
        Value v = all.stacked[i];
        const Axis T = v.axes[0];
        if (listed("scan_output_directions", i) && !T.dim.empty()) v.tile = v.tile.at({{T.dim, T.extent - 1 - at(T)}}, v.tile.dims());
        const auto axis = c.axis(listed("scan_output_axes", i), v.rank());
        std::rotate(v.axes.begin(), v.axes.begin() + 1, v.axes.begin() + axis + 1);
        results.push_back(v);
    }
    if (old)
        for (Value &v : results) {
            std::vector<Axis> axes = v.axes;
            axes.insert(axes.begin(), {Expr(1), ""});
            v = c.with_axes(v, axes);
        }
    return results;
}

// An optional input of the model is one that is given.
std::vector<Value> has_element(Context &c) { return {c.constant(Array(DType::boolean, {}, {c.has(0) ? 1.0 : 0.0}))}; }

std::vector<Value> get_element(Context &c) { return {c.in(0)}; }

}  // namespace

std::vector<Operator> loop_operators() {
    return {{"Loop", loop}, {"Scan", scan}, {"OptionalHasElement", has_element}, {"OptionalGetElement", get_element}};
}

}  // namespace tessera::onnx
