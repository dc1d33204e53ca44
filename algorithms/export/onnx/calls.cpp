// The part of function.h that calls the functions of callees, once or in a Scan or Loop.
#include <algorithm>

#include "algorithms/export/onnx/function.h"
#include "algorithms/import/onnx/exported.h"
#include "support/text/error.h"

namespace tessera::onnx {

static std::vector<std::string> axes_of(const Tensor &tensor) {
    std::vector<std::string> axes;
    for (size_t i = 0; i < tensor.dims.size(); i++) axes.push_back(axis(i)->name);
    return axes;
}

// What the callee's tensor is: a view of the caller's, read at each index of its own axes.
Term FunctionMaker::argument(const Tensor &of_callee, const Call &call, Place &around) {
    const View &view = call.tensors.at(of_callee.name);
    const auto from = tensors_.find(view.tensor);
    if (from == tensors_.end()) throw Refused{};
    const std::vector<std::string> axes = axes_of(of_callee);
    if (view.index.empty()) return {from->second.name, from->second.dtype, axes};
    for (size_t i = 0; i < axes.size(); i++) same_as_[axes[i]] = call.dims.at(of_callee.dims[i]);
    order_ = axes;
    Place at{around.body, around.variables};  // what was known of other axes is not true of these
    return spread(load(from->second, view.index, {}, {}, at), axes, at.body);
}

std::vector<std::string> FunctionMaker::run(const Call &call, const MadeFunction &how, const std::map<std::string, std::string> &given,
                                            Place &at) {
    std::vector<std::string> inputs;
    size_t states = 0;
    for (const Tensor &t : call.callee->tensors) {
        if (t.role == Role::constant) continue;
        states += t.role == Role::state;
        inputs.push_back(given.at(t.name));
    }
    for (const Parameter &p : call.callee->parameters)
        inputs.push_back(converted(value(call.parameters.at(p.name), at), held_type(p.dtype), at.body).name);
    for (const std::string &dim : how.extents) inputs.push_back(extent_of(call.dims.at(dim)).name);
    return at.body.several(how.name, inputs, {}, call.callee->outputs.size() + states, exported_domain);
}

void FunctionMaker::keep_state(const Tensor &of_callee, const Call &call, const std::string &after, Place &at) {
    const View &view = call.tensors.at(of_callee.name);
    Stored &state = tensors_.at(view.tensor);
    if (view.index.empty()) {
        state.name = after;
        return;
    }
    const std::vector<std::string> axes = axes_of(of_callee);
    for (size_t i = 0; i < axes.size(); i++) same_as_[axes[i]] = call.dims.at(of_callee.dims[i]);
    order_ = axes;
    Place inside{at.body, at.variables};
    state = written(state, view.index, {after, state.dtype, axes}, axes, inside);
}

void FunctionMaker::call_step(const Call &call) {
    const MadeFunction how = functions_.of(*call.callee, scope_ + call.scope + ".");
    Place at{top_};
    std::map<std::string, std::string> given;
    for (const Tensor &t : call.callee->tensors)
        if (t.role != Role::constant) given[t.name] = argument(t, call, at).name;
    const std::vector<std::string> made = run(call, how, given, at);
    size_t next = 0;
    for (const Tensor &t : results_of(call)) {
        const Term held = converted({made.at(next++), t.dtype, t.dims}, held_type(t.dtype), top_);
        tensors_[t.name] = {held.name, held.dtype, t.dims};
    }
    for (const Tensor &t : call.callee->tensors)
        if (t.role == Role::state) keep_state(t, call, made.at(next++), at);
}

void FunctionMaker::repeat_step(const Call &call) {
    const MadeFunction how = functions_.of(*call.callee, scope_ + call.scope + ".");
    const Repeat &repeat = *call.repeat;
    const std::vector<std::string> &outputs = call.callee->outputs;
    const std::vector<Tensor> results = results_of(call);
    Body inner(top_.parts, names_, &top_);
    inner.topic = top_.topic + "_round";
    Graph graph;
    graph.name = top_.topic + "_rounds";
    const std::string round = names_.fresh(inner.topic + "_number"), goes_on = names_.fresh(inner.topic + "_goes_on");
    // A Scan over the numbers of rounds; one that may stop early is a Loop, which has the condition in front.
    const bool stops = !repeat.until.empty();
    if (stops) graph.inputs = {inner_value(round, DType::i64, 0), inner_value(goes_on, DType::boolean, 0)};

    // What goes from round to round: carried inputs, whole states, and outputs of which the last round's stays.
    std::vector<std::string> initial;
    auto carry = [&](const Term &first, const std::string &what) {
        initial.push_back(first.name);
        graph.inputs.push_back(inner_value(names_.fresh(inner.topic + "_" + identifier(what)), first.dtype, first.axes.size()));
        return graph.inputs.back().name;
    };
    std::map<std::string, std::string> given;
    Place before{top_};
    before.variables[repeat.dim] = number(DType::i64, 0, top_);
    std::vector<std::string> carried;  // the outputs that the first loop variables become
    std::map<std::string, size_t> variable_of;
    for (const Tensor &t : call.callee->tensors) {
        const auto it = repeat.carried.find(t.name);
        if (it == repeat.carried.end()) continue;
        given[t.name] = carry(argument(t, call, before), t.name);
        variable_of.emplace(it->second, carried.size());
        carried.push_back(it->second);
    }
    for (size_t i = 0; i < outputs.size(); i++) {
        if (repeat.stacked.count(outputs[i]) || variable_of.count(outputs[i])) continue;
        const Tensor &t = results[i];
        order_ = t.dims;
        const Term zero = spread(number(held_type(t.dtype), 0, top_), t.dims, top_);
        carry(zero, outputs[i]);
        variable_of[outputs[i]] = carried.size();
        carried.push_back(outputs[i]);
    }
    std::vector<std::string> states;
    for (const Tensor &t : call.callee->tensors)
        if (const auto it = call.tensors.find(t.name); t.role == Role::state && it != call.tensors.end())
            if (std::find(states.begin(), states.end(), it->second.tensor) == states.end()) states.push_back(it->second.tensor);
    const std::map<std::string, Stored> outside = tensors_;
    for (const std::string &state : states) {
        const Stored &s = outside.at(state);
        tensors_.at(state).name = carry({s.name, s.dtype, s.dims}, state);
    }

    Place at{inner};
    at.variables[repeat.dim] = {round, DType::i64, {}};
    for (const Tensor &t : call.callee->tensors)
        if (t.role != Role::constant && !given.count(t.name)) given[t.name] = argument(t, call, at).name;
    const std::vector<std::string> made = run(call, how, given, at);
    size_t next = outputs.size();
    for (const Tensor &t : call.callee->tensors)
        if (t.role == Role::state) keep_state(t, call, made.at(next++), at);
    auto result = [&](const Term &of) {
        const std::string name = names_.fresh(inner.topic + "_result");
        Node identity;
        identity.op = "Identity", identity.inputs = {of.name}, identity.outputs = {name};
        inner.nodes.push_back(identity);
        graph.outputs.push_back(inner_value(name, of.dtype, of.axes.size()));
    };
    auto made_of = [&](const std::string &output) {
        const size_t i = static_cast<size_t>(std::find(outputs.begin(), outputs.end(), output) - outputs.begin());
        std::vector<std::string> dims = results.at(i).dims;
        if (repeat.stacked.count(output)) dims.erase(dims.begin());
        return converted({made.at(i), results.at(i).dtype, dims}, held_type(results.at(i).dtype), inner);
    };
    if (stops) result({inner.one("Not", {made_of(repeat.until).name}), DType::boolean, {}});
    for (const std::string &output : carried) result(made_of(output));
    for (const std::string &state : states) result({tensors_.at(state).name, tensors_.at(state).dtype, tensors_.at(state).dims});
    for (const std::string &output : outputs)
        if (repeat.stacked.count(output)) result(made_of(output));
    graph.nodes = std::move(inner.nodes);
    tensors_ = outside;

    if (!stops) graph.inputs.push_back(inner_value(round, DType::i64, 0));
    std::vector<std::string> inputs = initial;
    if (stops) inputs.insert(inputs.begin(), {extent_of(repeat.dim).name, top_.number(Scalar::of_integer(DType::boolean, 1))});
    else inputs.push_back(range(repeat.dim, top_).name);
    std::vector<Attribute> about = {graph_attribute("body", std::move(graph))};
    if (!stops) about.push_back(integer_attribute("num_scan_inputs", 1));
    const std::vector<std::string> all =
        top_.several(stops ? "Loop" : "Scan", inputs, attributes(about), initial.size() + repeat.stacked.size());
    for (size_t i = 0; i < states.size(); i++) tensors_.at(states[i]).name = all.at(carried.size() + i);
    size_t stack = initial.size();
    for (size_t i = 0; i < outputs.size(); i++) {
        const std::string name = repeat.stacked.count(outputs[i]) ? all.at(stack++) : all.at(variable_of.at(outputs[i]));
        tensors_[results[i].name] = {name, held_type(results[i].dtype), results[i].dims};
    }
}

}  // namespace tessera::onnx
