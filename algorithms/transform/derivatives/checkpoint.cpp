// Rounds in groups: a call that repeats a call that repeats.
#include <algorithm>

#include "algorithms/index/affine.h"
#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/derivatives/rounds.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"

namespace tessera {

namespace differentiation {

namespace {

class Groups {
public:
    Groups(const Algorithm &f, const Call &call, int64_t every)
        : p_(f, f.name), call_(call), rounds_(f.dim(call.repeat->dim)), every_(every) {
        p_.made.outputs = f.outputs, p_.made.checks = f.checks;
        const bool is_fixed = rounds_.kind == DimKind::fixed;
        if (!is_fixed && rounds_.multiple_of % every != 0)
            refuse("the extent of '" + rounds_.name + "' is not known to be a multiple of " + std::to_string(every) +
                       ", so the last group might have fewer rounds",
                   "Declare it (multiple_of), or fix '" + rounds_.name +
                       "'; then rounds behind the last whole group are a call of their own.");
        groups_ = p_.fresh(call.scope + ".groups"), rest_ = p_.fresh(call.scope + ".behind");
        p_.made.dims.push_back(is_fixed ? fixed_dim(groups_, rounds_.value / every)
                                        : derived_dim(groups_, extent(rounds_.name) / Expr(every)));
        has_rest_ = is_fixed && rounds_.value % every > 0;
        if (has_rest_) p_.made.dims.push_back(fixed_dim(rest_, rounds_.value % every));
    }

    Algorithm run(const Algorithm &f) {
        for (const Step &step : f.steps) {
            const auto *call = std::get_if<Call>(&step);
            if (call && call->scope == call_.scope) add_groups();
            else p_.made.steps.push_back(step);
        }
        verify(p_.made);
        return p_.made;
    }

private:
    Program p_;
    const Call &call_;
    const Dim rounds_;
    const int64_t every_;
    std::string groups_, rest_;
    bool has_rest_ = true;

    [[noreturn]] void refuse(const std::string &what, const std::string &remedy) const {
        throw UserError("checkpoint.rounds", p_.made.name + "." + call_.scope + ": " + what, remedy).about(call_.scope, call_.span);
    }

    bool is_stacked(const std::string &output) const { return call_.repeat->stacked.count(output) > 0; }

    // The rounds of one group, over a dim of its own.
    Algorithm group() const {
        Program g(*call_.callee, call_.callee->name + ".group");
        const std::string round = g.fresh("round");
        g.made.dims.insert(g.made.dims.begin(), fixed_dim(round, every_));
        // What is carried has one extent, as the caller's dims have it.
        for (const auto &[input, output] : call_.repeat->carried) {
            const std::vector<std::string> &taken = call_.callee->find_tensor(input)->dims, given = result_of(*call_.callee, output).dims;
            for (size_t i = 0; i < taken.size(); i++)
                for (Dim &d : g.made.dims)
                    if (d.name == given[i] && taken[i] != given[i] && d.kind == DimKind::symbolic && d.equals.empty()) d.equals = taken[i];
        }
        Call each;
        each.scope = g.fresh("each");
        each.callee = call_.callee, each.span = call_.span;
        for (const Dim &d : call_.callee->dims)
            if (call_.dims.count(d.name)) each.dims[d.name] = d.name;
        each.repeat = Repeat{round, call_.repeat->carried, call_.repeat->stacked, {}};
        std::erase_if(g.made.tensors, [](const Tensor &t) { return t.role == Role::constant; });
        for (Tensor &t : g.made.tensors) {
            each.tensors[t.name] = View(t.name);
            if (!varies(call_, call_.tensors.at(t.name))) continue;
            View &view = each.tensors[t.name];
            view.index.push_back(variable(round));
            for (size_t i = 0; i < t.dims.size(); i++) view.index.push_back(axis(i));
            t.dims.insert(t.dims.begin(), round);
        }
        std::vector<Parameter> same;
        for (const Parameter &p : g.made.parameters) {
            if (varies(call_, call_.parameters.at(p.name))) {
                g.made.tensors.push_back(Tensor{p.name, p.dtype, {round}, Role::input, {}, {}});
                each.parameters[p.name] = load(p.name, p.dtype, {variable(round)});
            } else {
                same.push_back(p);
                each.parameters[p.name] = parameter(p.name, p.dtype);
            }
        }
        g.made.parameters = same;
        for (const std::string &output : call_.callee->outputs) each.results[output] = output;
        g.made.outputs = call_.callee->outputs;
        g.made.stated_ranges.clear();
        g.made.steps.emplace_back(each);
        return g.made;
    }

    // What the rounds from `first` on see: with the round of a group as the first axis, or one of them.
    View from(const View &view, const Expr &first, std::optional<size_t> rank) const {
        if (!varies(call_, view)) return view;
        View moved(view.tensor);
        std::map<std::string, Expr> behind = {{rounds_.name, rank ? first + axis(0) : first}};
        if (rank)
            for (size_t i = 0; i < *rank; i++) behind[axis(i)->name] = axis(i + 1);
        for (const Expr &e : view.index) moved.index.push_back(substitute(e, behind));
        for (const Expr &e : moved.index)
            if (rank && !affine(e, *rank + 1))
                refuse(
                    "its view of '" + view.tensor + "' at " + brief(e) + " is not affine in its rounds, so those of a group have no view",
                    "Make a stage of what a round sees, with '" + rounds_.name + "' in front.");
        return moved;
    }

    void add_groups() {
        if (!call_.repeat->until.empty()) refuse("it stops early by '" + call_.repeat->until + "'", "Group rounds that all run.");
        for (const auto &[input, output] : call_.repeat->carried)
            if (is_stacked(output))
                refuse("it stacks '" + output + "', which it carries too", "Give it twice, one that is carried and one that is stacked.");
        Call outer = call_, rest = call_;
        outer.callee = std::make_shared<const Algorithm>(group());
        outer.repeat->dim = groups_, rest.repeat->dim = rest_;
        rest.scope = p_.fresh(call_.scope + ".rest");
        const Expr first = variable(groups_) * every_, first_of_rest = extent(groups_) * every_ + variable(rest_);
        for (const Tensor &t : call_.callee->tensors) {
            if (t.role == Role::constant) continue;
            const View &view = call_.tensors.at(t.name);
            outer.tensors[t.name] = from(view, first, t.dims.size());
            rest.tensors[t.name] = from(view, first_of_rest, {});
        }
        for (const Parameter &p : call_.callee->parameters) {
            const Expr &value = call_.parameters.at(p.name);
            if (!varies(call_, value)) continue;
            const Stage all{p_.fresh(call_.scope + "_" + p.name), {rounds_.name}, Map(value), {}, {}};
            p_.add(all);
            outer.parameters.erase(p.name);
            outer.tensors[p.name] = View(all.name, {first + axis(0)});
            rest.parameters[p.name] = substitute(value, {{rounds_.name, first_of_rest}});
        }
        for (const std::string &output : call_.callee->outputs) {
            const std::string name = name_of_result(call_, output);
            if (!has_rest_ && !is_stacked(output)) {
                outer.results[output] = name;
                continue;
            }
            outer.results[output] = p_.fresh(name + ".groups");
            rest.results[output] = is_stacked(output) ? p_.fresh(name + ".rest") : name;
        }
        p_.add_as_it_is(outer);
        if (has_rest_) {
            for (const auto &[input, output] : call_.repeat->carried) rest.tensors[input] = View(name_of_result(outer, output));
            p_.add_as_it_is(rest);
        }
        for (const std::string &output : call_.callee->outputs)
            if (is_stacked(output)) join(name_of_result(call_, output), outer, rest, output);
    }

    // What is stacked, round by round.
    void join(const std::string &name, const Call &outer, const Call &rest, const std::string &output) {
        const Tensor groups = p_.tensor(name_of_result(outer, output));
        std::vector<std::string> dims(groups.dims.begin() + 1, groups.dims.end());
        dims[0] = rounds_.name;
        const Expr l = variable(rounds_.name), grouped = extent(groups_) * every_;
        Operands index = {l / Expr(every_), l % Expr(every_)}, behind = {l - grouped};
        for (size_t i = 1; i < dims.size(); i++) index.push_back(variable(dims[i])), behind.push_back(variable(dims[i]));
        Expr value = load(groups.name, groups.dtype, index);
        if (has_rest_) value = select(l < grouped, value, load(name_of_result(rest, output), groups.dtype, behind));
        p_.add({name, dims, Map(value), {}, {}});
    }
};

}  // namespace

}  // namespace differentiation

Algorithm checkpoint(const Algorithm &f, const std::string &scope, int64_t every) {
    std::vector<std::string> scopes;
    for (const Call &call : f.calls())
        if (call.repeat) scopes.push_back(call.scope);
    if (every < 1) throw UserError("checkpoint.every", f.name + ": groups of " + std::to_string(every) + " rounds; expected at least 1.");
    for (const Call &call : f.calls())
        if (call.repeat && call.scope == scope) {
            Algorithm grouped = differentiation::Groups(f, call, every).run(f);
            grouped.rule = f.rule;
            return grouped;
        }
    throw UserError("checkpoint.unknown", f.name + ": '" + scope + "' is no call that repeats, so it has no rounds to put in groups; " +
                                              (scopes.empty() ? "no call of it repeats. Leave the groups out."
                                                              : "there are " + join(scopes) + "." + did_you_mean(scope, scopes)));
}

}  // namespace tessera
