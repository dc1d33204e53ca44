// Reverse mode through calls that repeat. The rounds run again as they are, and leave what their backward rounds read; then the callee's
// own backward pass repeats from the last round to the first. It carries the gradients of what is carried, adds up those of what all rounds
// see, and stacks those of what each round has for itself.
#include <algorithm>

#include "algorithms/transform/derivatives/backward.h"
#include "support/text/error.h"

namespace tessera::differentiation {

namespace {

bool is_carried(const Call &call, const std::string &input) { return call.repeat->carried.count(input) > 0; }
bool is_stacked(const Call &call, const std::string &output) { return call.repeat->stacked.count(output) > 0; }

RoundWiring wiring_of(const Call &call, const RoundActivity &active) {
    RoundWiring wiring;
    for (const std::string &y : active.of) {
        bool goes_on = false;
        for (const auto &[input, output] : call.repeat->carried)
            if (output == y) wiring.carries.push_back({input, y}), goes_on = true;
        if (is_stacked(call, y)) wiring.given.push_back(y);
        else if (!goes_on) wiring.carries.push_back({"", y});
    }
    for (const Source &s : active.by) {
        if (is_carried(call, s.name)) continue;
        if (!(s.is_parameter ? varies(call, call.parameters.at(s.name)) : varies(call, call.tensors.at(s.name))))
            wiring.added.insert(s.name);
    }
    return wiring;
}

void check_goes_back(const Algorithm &caller, const Call &call) {
    if (!call.repeat->until.empty())
        throw UserError("derivative.until",
                        caller.name + "." + call.scope + ": it stops early by '" + call.repeat->until +
                            "', so how many rounds a backward pass would have is not known",
                        "Let all rounds run, over a dim whose extent is their number (counted_dim where data tells it), or take its jvp.")
            .about(call.scope, call.span);
    if (call.callee->updates_state)
        throw UserError("derivative.write",
                        caller.name + "." + call.scope + ": its callee " + call.callee->name +
                            " updates a state, which a backward pass would find changed; expected states to be read only",
                        "Give the values as an output that is stacked, and update the state behind the call.")
            .about(call.scope, call.span);
}

// The index of the round that runs at the index of a backward one, and the other way.
Expr reversed(const std::string &dim) { return extent(dim) - 1 - variable(dim); }
View reversed(const Call &call, View view) {
    for (Expr &e : view.index) e = substitute(e, {{call.repeat->dim, reversed(call.repeat->dim)}});
    return view;
}
View at_round(const Tensor &stack, const Expr &round) {
    View view(stack.name, {round});
    for (size_t i = 1; i < stack.dims.size(); i++) view.index.push_back(axis(i - 1));
    return view;
}

}  // namespace

RoundBackward round_backward(const Request &round, const RoundWiring &wiring) {
    return Backward(round, BackwardKind::round).run_round(wiring);
}

RoundBackward Backward::run_round(const RoundWiring &wiring) {
    RoundBackward made;
    add_primal(wiring);
    const auto dims_of = [&](const std::string &output) { return result_of(request_.f, output).dims; };
    const auto type_of = [&](const std::string &output) { return arithmetic_type(result_of(request_.f, output).dtype); };
    for (const RoundWiring::Carry &c : wiring.carries) {
        const std::string name = c.input.empty() ? c.output + ".grad" : c.input + ".grad.after";
        made.carried_in.push_back(seed_by_input(c.output, dims_of(c.output), type_of(c.output), name));
    }
    for (const std::string &y : wiring.given) made.cotangents[y] = seed_by_input(y, dims_of(y), type_of(y), y + ".grad");
    const auto summed_in = [&](const Source &s) {
        return wiring.added.count(s.name) ? p_.folded_in(arithmetic_type(s.dtype)) : arithmetic_type(s.dtype);
    };
    for (const Source &s : request_.by)
        if (wiring.added.count(s.name)) made.sums[s.name] = seed_by_input(s.name, s.dims, summed_in(s), s.name + ".grad.sum");
    transpose_all();
    for (const Source &s : request_.by) {
        made.gradients[s.name] = add_output(s, summed_in(s));
        p_.made.outputs.push_back(made.gradients[s.name]);
    }
    for (const RoundWiring::Carry &c : wiring.carries) {
        if (c.input.empty()) p_.made.outputs.push_back(p_.zeros(type_of(c.output), dims_of(c.output), c.output + ".grad.before").name);
        made.carried_out.push_back(c.input.empty() ? p_.made.outputs.back() : made.gradients.at(c.input));
    }
    made.part = part_of(request_.f.steps);
    p_.drop_unneeded(false);
    p_.drop_unread_inputs({made.carried_in.begin(), made.carried_in.end()});
    made.callee = p_.finished();
    return made;
}

void Backward::add_rounds(const Call &given) {
    LinearCall call{given, round_activity(given, request_.active), {}, {}, {}};
    if (call.active.by.empty() || call.active.of.empty()) return p_.add_as_it_is(given);
    check_goes_back(request_.f, given);
    call.wiring = wiring_of(given, call.active);
    Request round = of_round(given, call.active);
    round.residuals = request_.residuals, round.prefix = request_.prefix + given.scope + ".";
    for (const Stage &stage : given.callee->stages())
        if (request_.residuals.saves(round.prefix + stage.name, true))
            for (const Tensor &t : results_of(stage)) call.wiring.saved.insert(t.name);
    call.backward = round_backward(round, call.wiring);
    ForwardPart part = call.backward.part;
    part.call = given;
    for (ForwardStage &s : part.stages)
        for (const Tensor &t : results_of(s.stage)) s.is_read |= call.backward.callee.find_tensor(t.name) != nullptr;
    within_.push_back(std::move(part));
    // Each round leaves what it is carried, which is gone behind it, and what is saved.
    Call forward = given;
    Program callee(*given.callee, given.callee->name);
    callee.made = *given.callee;
    std::vector<Step> copies;
    const auto leave = [&](const std::string &t, const std::string &output) {
        forward.repeat->stacked.insert(output);
        forward.results[output] = call.stacks[t] = p_.fresh(given.scope + "." + output);
    };
    const auto leave_copy = [&](const Tensor &t, const std::string &name, bool is_first) {
        const Stage copy{callee.fresh(name), t.dims, Map(own_element(t)), {}, {}};
        callee.made.outputs.push_back(copy.name);
        if (callee.made.large.count(t.name)) callee.made.large.insert(copy.name);
        if (is_first) copies.emplace_back(copy);
        else callee.made.steps.emplace_back(copy);
        leave(t.name, copy.name);
    };
    for (const Tensor &t : call.backward.callee.tensors) {
        if (given.callee->find_tensor(t.name)) {
            if (is_carried(given, t.name)) leave_copy(t, t.name + ".before", true);
        } else if (call.wiring.saved.count(t.name)) {
            const std::vector<std::string> &outputs = given.callee->outputs;
            const bool is_output = std::find(outputs.begin(), outputs.end(), t.name) != outputs.end();
            if (is_output && is_stacked(given, t.name)) call.stacks[t.name] = name_of_result(given, t.name);
            else if (is_output) leave_copy(t, t.name + ".after", false);
            else callee.made.outputs.push_back(t.name), leave(t.name, t.name);
        }
    }
    callee.made.steps.insert(callee.made.steps.begin(), copies.begin(), copies.end());
    forward.callee = std::make_shared<const Algorithm>(std::move(callee.made));
    p_.add_as_it_is(forward);
    linear_.emplace_back(std::move(call));
}

// The cotangent of a result as a tensor of its dims in the type of arithmetic.
Tensor Backward::stored_cotangent(const Tensor &result) {
    const DType type = arithmetic_type(result.dtype);
    const std::string name = result.name + ".grad";
    if (!given_.count(result.name)) return p_.zeros(type, result.dims, name);
    const Expr value = cotangent_of(result).value;
    if (value.kind() == ExprKind::load && !value->guarded && value.type() == type) {
        const Tensor &t = p_.tensor(value->name);
        if (t.dims == result.dims && equal(value, own_element(t))) return t;
    }
    return results_of(p_.add({p_.fresh(name), result.dims, Map(converted(type, value)), {}, {}}))[0];
}

// What the gradient of what all rounds see begins with: where they see a whole tensor, with what that was given before, in that order.
Tensor Backward::sum_before(const Call &call, const Source &s) {
    const DType type = p_.folded_in(arithmetic_type(s.dtype));
    const std::vector<std::string> dims = dims_in_caller(call, s.dims);
    const std::string name = call.scope + "." + s.name + ".grad.before";
    if (!s.is_parameter) {
        const View &view = call.tensors.at(s.name);
        const auto given = given_.find(view.tensor);
        if (view.index.empty() && given != given_.end() && !given->second.empty() && p_.tensor(view.tensor).dims == dims) {
            const Expr value = converted(type, total(std::exchange(given->second, {})));
            if (value.kind() == ExprKind::load && equal(value, own_element(p_.tensor(value->name)))) return p_.tensor(value->name);
            return results_of(p_.add({p_.fresh(name), dims, Map(value), {}, {}}))[0];
        }
    }
    return p_.zeros(type, dims, name);
}

void Backward::transpose(const LinearCall &call) {
    const Call &given = call.given;
    const RoundBackward &backward = call.backward;
    const auto result = [&](const std::string &output) { return p_.tensor(name_of_result(given, output)); };
    if (std::none_of(call.active.of.begin(), call.active.of.end(),
                     [&](const std::string &y) { return given_.count(name_of_result(given, y)) > 0; }))
        return;
    Call back;
    back.scope = p_.fresh(given.scope + ".grad");
    back.callee = std::make_shared<const Algorithm>(backward.callee);
    back.dims = given.dims, back.span = given.span;
    back.repeat = Repeat{given.repeat->dim, {}, {}, {}};
    const Expr round = reversed(given.repeat->dim);

    for (const Tensor &t : backward.callee.tensors) {
        if (t.role == Role::constant) continue;
        if (const auto stack = call.stacks.find(t.name); stack != call.stacks.end())
            back.tensors[t.name] = at_round(p_.tensor(stack->second), round);
        else if (given.callee->find_tensor(t.name)) back.tensors[t.name] = reversed(given, given.tensors.at(t.name));
    }
    for (const Parameter &p : backward.callee.parameters)
        back.parameters[p.name] = substitute(given.parameters.at(p.name), {{given.repeat->dim, round}});
    for (const auto &[y, input] : backward.cotangents)
        if (backward.callee.find_tensor(input)) back.tensors[input] = at_round(stored_cotangent(result(y)), round);

    // Behind the last round there is the gradient of what it gave. Where several inputs carry it, the last one gives it if no round runs.
    std::map<std::string, size_t> last;
    for (size_t i = 0; i < call.wiring.carries.size(); i++) last[call.wiring.carries[i].output] = i;
    for (size_t i = 0; i < call.wiring.carries.size(); i++) {
        const RoundWiring::Carry &c = call.wiring.carries[i];
        const std::string &input = backward.carried_in[i];
        Tensor y = result(c.output);
        const bool begins_with_0 = is_stacked(given, c.output) || last.at(c.output) != i;
        if (is_stacked(given, c.output)) y.dims.erase(y.dims.begin());
        back.tensors[input] =
            (begins_with_0 ? p_.zeros(arithmetic_type(y.dtype), y.dims, y.name + ".grad.after") : stored_cotangent(y)).name;
        back.repeat->carried[input] = backward.carried_out[i];
    }
    for (const Source &s : call.active.by) {
        const std::string &output = backward.gradients.at(s.name);
        back.results[output] = p_.fresh(given.scope + "." + s.name + ".grad");
        if (const auto sum = backward.sums.find(s.name); sum != backward.sums.end()) {
            back.tensors[sum->second] = sum_before(given, s).name;
            back.repeat->carried[sum->second] = output;
        } else if (!is_carried(given, s.name)) {
            back.repeat->stacked.insert(output);
        }
    }
    for (const Source &s : call.active.by) {
        if (!back.repeat->stacked.count(backward.gradients.at(s.name))) continue;
        std::set<std::string> seen = {given.repeat->dim};  // a stack has each dim once
        for (const std::string &d : s.dims)
            if (const auto bound = back.dims.find(d); bound != back.dims.end() && !seen.insert(bound->second).second)
                bound->second = p_.dim_like(bound->second, {});
    }
    bind_dims(p_, back);
    p_.add_as_it_is(back);
    for (const Source &s : call.active.by) give(given, back, s, backward.gradients.at(s.name));
}

void Backward::give(const Call &given, const Call &back, const Source &s, const std::string &output) {
    LinearResult r;
    r.result = p_.tensor(name_of_result(back, output));
    r.points = r.result.dims;
    Cotangent g{converted(arithmetic_type(r.result.dtype), own_element(r.result)), {}};
    std::vector<Expr> own = variables_of(r.points);
    if (back.repeat && back.repeat->stacked.count(output)) {
        g.value = substitute(g.value, {{given.repeat->dim, reversed(given.repeat->dim)}});
        own.erase(own.begin());
    }
    if (s.is_parameter) {
        const Expr &value = given.parameters.at(s.name);
        r.terms = terms_of(request_for(scope_, {given.scope, {}, Map(value), {}, {}}, value), false);
    } else {
        const View &view = given.tensors.at(s.name);
        if (request_.active.tensors.count(view.tensor))
            r.terms.push_back({false, {}, constant(g.value.type(), 1), view.tensor, index_in(view, own)});
    }
    for (const Term &term : r.terms) {
        const Tensor source = source_tensor(term);
        Contribution c = contributor_.of(r, term, g, source, given.scope + "." + s.name);
        const bool is_result = c.conditions.empty() && c.factors.empty() && !c.is_negative && c.stage.empty() &&
                               source.dims == r.result.dims && equal(c.core, own_element(r.result));
        if (is_result) c.stage = r.result.name;
        given_[term.source].push_back(std::move(c));
    }
}

}  // namespace tessera::differentiation
