#include "compiler/rewrite/calls.h"

#include <algorithm>

#include "algorithms/text/hash.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/transform/scopes.h"
#include "schedules/knobs/knob_names.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Stages = KnobsByStage;

bool is_within(const std::string &name, const std::string &scope) { return name.starts_with(scope + "."); }

void add_scopes(const Algorithm &algorithm, const std::string &prefix, std::vector<std::string> &scopes) {
    for (const Call &call : algorithm.calls()) {
        scopes.push_back(prefix + call.scope);
        add_scopes(*call.callee, prefix + call.scope + ".", scopes);
    }
}

// Names of the caller as the callee has them.
class Translation {
public:
    Translation(const std::string &s, const std::map<std::string, std::string> &dims, const std::map<std::string, View> &tensors)
        : scope_(s) {
        for (auto &[own, callers] : dims) dims_[callers] = own;
        for (auto &[own, view] : tensors) tensors_.emplace(view.tensor, own);
    }

    std::string stage(const std::string &name) const { return is_within(name, scope_) ? name.substr(scope_.size() + 1) : name; }
    std::string tensor(const std::string &name) const {
        auto it = tensors_.find(name);
        return it == tensors_.end() ? stage(name) : it->second;
    }
    std::string dim(const std::string &name) const { return find_dim(name).value_or(name); }

    std::string loop(const std::string &text) const {
        LoopName name = parse_loop(text, [&](const std::string &d) { return find_dim(d).has_value(); });
        name.dim = dim(name.dim);
        return name.text();
    }

    KnobsByStage operator()(const KnobsByStage &given) const {
        KnobNames names;
        names.dim = [&](const std::string &d) { return dim(d); };
        names.loop = [&](const std::string &, const std::string &text) { return loop(text); };
        names.axis = [&](const std::string &, const std::string &d) { return dim(d); };
        names.stage = [&](const std::string &name) { return stage(name); };
        names.tensor = [&](const std::string &name) { return tensor(name); };
        return renamed(given, names);
    }

private:
    std::string scope_;
    std::map<std::string, std::string> dims_, tensors_;

    // The pieces of a split dim have names that begin with the dim's.
    std::optional<std::string> find_dim(const std::string &name) const {
        for (size_t end = name.size(); end != std::string::npos && end > 0; end = name.rfind('.', end - 1))
            if (auto it = dims_.find(name.substr(0, end)); it != dims_.end()) return it->second + name.substr(end);
        if (is_within(name, scope_)) return stage(name);
        return std::nullopt;
    }
};

// The callee with one name for all of its names that the caller binds to one thing.
Callee callee_of(const Call &call) {
    Callee result;
    result.scope = call.scope;
    result.parameters = call.parameters;
    Call own{"", call.callee, {}, {}, {}, {}};
    std::map<std::string, std::string> dim_of;        // of the caller -> the callee's first
    std::vector<std::pair<View, std::string>> views;  // likewise
    result.repeat = call.repeat;
    auto is_carried = [&](const std::string &tensor) { return call.repeat && call.repeat->carried.count(tensor); };
    for (const Dim &d : call.callee->dims) {
        auto bound = call.dims.find(d.name);
        if (bound != call.dims.end()) own.dims[d.name] = dim_of.emplace(bound->second, d.name).first->second;
    }
    for (const Tensor &t : call.callee->tensors) {
        auto bound = call.tensors.find(t.name);
        if (bound == call.tensors.end()) continue;
        const View &view = bound->second;
        auto known = std::find_if(views.begin(), views.end(),
                                  [&](const auto &v) { return v.first == view && !is_carried(t.name) && !is_carried(v.second); });
        if (known == views.end()) known = views.insert(views.end(), {view, t.name});
        own.tensors[t.name] = known->second;
    }
    for (const Parameter &p : call.callee->parameters) own.parameters[p.name] = parameter(p.name, p.dtype);
    Algorithm &a = result.algorithm;
    a = renamed(own, [](const std::string &) { return true; });
    std::vector<Dim> dims;
    for (Dim &d : a.dims) {
        if (d.equals == d.name) d.equals.clear();
        if (std::none_of(dims.begin(), dims.end(), [&](const Dim &e) { return e.name == d.name; })) dims.push_back(d);
    }
    a.dims = dims;
    std::vector<Tensor> tensors;
    for (const Tensor &t : a.tensors) {
        auto same = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor &e) { return e.name == t.name; });
        if (same == tensors.end()) tensors.push_back(t);
        else if (t.role == Role::state) same->role = t.role;
    }
    a.tensors = tensors;
    for (const Dim &d : a.dims) result.dims[d.name] = call.scope + "." + d.name;
    for (auto &[callers, name] : dim_of) result.dims[name] = callers;
    for (auto &[view, name] : views) result.tensors[name] = view;
    for (const std::string &output : a.outputs) result.tensors[output] = name_of_result(call, output);
    return result;
}

// Whether the rounds run in parallel.
bool runs_in_parallel(const Call &call, const Knobs &k) {
    if (k.parallel.empty()) return false;
    auto refuse = [&](const std::string &why) { throw UserError("schedule.parallel", call.scope + ": " + why); };
    if (!call.repeat) refuse("a call has no loop that could run in parallel; its callee's stages may have.");
    if (k.parallel != std::vector<std::string>{call.repeat->dim})
        refuse("expected the dim that it repeats over, '" + call.repeat->dim + "', got " + join(k.parallel) + ".");
    const Repeat &r = *call.repeat;
    if (!r.carried.empty())
        refuse("each repetition takes the result of the one before ('" + r.carried.begin()->first + "'), so they run in order.");
    if (!r.until.empty()) refuse("each repetition decides whether there is a next one ('" + r.until + "'), so they run in order.");
    for (const std::string &output : call.callee->outputs)
        if (!r.stacked.count(output))
            refuse("its output '" + output + "' is that of the last repetition; stack it, or leave the repetitions in order.");
    for (const Tensor &t : call.callee->tensors)
        if (t.role == Role::state) refuse("its repetitions write the state '" + t.name + "', so they run in order.");
    return true;
}

bool same_constraints(const Dim &a, const Dim &b) {
    return a.kind == b.kind && a.value == b.value && a.multiple_of == b.multiple_of && a.min == b.min && a.max == b.max;
}

// Callees that are alike are one program, so they know of a dim's extent what is so at every call.
void take_extents(std::vector<Callee> &callees, const Algorithm &caller) {
    std::vector<std::string> what;
    for (const Callee &c : callees) what.push_back(semantic_hash(c.algorithm) + surface_hash(c.algorithm));
    std::vector<Callee> as_declared = callees;
    for (size_t i = 0; i < callees.size(); i++)
        for (Dim &d : callees[i].algorithm.dims) {
            if (d.kind != DimKind::symbolic) continue;
            auto given = [&](size_t c) { return caller.dim(callees[c].dims.at(d.name)); };
            bool agree = given(i).kind != DimKind::derived;
            for (size_t c = 0; c < callees.size(); c++)
                if (what[c] == what[i] && as_declared[c].stages == as_declared[i].stages)
                    agree = agree && same_constraints(given(c), given(i));
            if (!agree) continue;
            Dim known = given(i);
            d.kind = known.kind, d.value = known.value, d.multiple_of = known.multiple_of, d.min = known.min, d.max = known.max;
            if (d.kind == DimKind::fixed) d.equals.clear();
        }
}

}  // namespace

KeepsCall emitted_once(const Algorithm &algorithm, const Stages &stages) {
    std::vector<std::string> scopes;
    add_scopes(algorithm, "", scopes);
    std::set<std::string> once;
    for (auto &[name, k] : stages) {
        if (k.use && *k.use != "none")
            throw UserError("schedule.use", name + ": it uses the callee's schedule '" + *k.use +
                                                "', which is no part of these knobs. Resolve the schedule with resolve_program "
                                                "(schedules/artifact/callee_schedules.h), which merges it in.");
        if (!k.call) continue;
        if (std::find(scopes.begin(), scopes.end(), name) == scopes.end())
            throw UserError("schedule.call", name + ": the knob 'call' is for the scope of a call; the scopes of " + algorithm.name +
                                                 " are " + join(scopes) + "." + did_you_mean(name, scopes));
        if (*k.call == "once") once.insert(name);
        else if (*k.call == "inline" && keeps_repeats(algorithm)(name))
            throw UserError("schedule.call",
                            name + ": it repeats its callee, which is emitted once; expected 'once', or nothing, got 'inline'.");
        else if (*k.call != "inline") throw UserError("schedule.call", name + ": a call is 'inline' or 'once'; got '" + *k.call + "'.");
    }
    return [once, repeats = keeps_repeats(algorithm)](const std::string &scope) { return once.count(scope) > 0 || repeats(scope); };
}

std::map<std::string, Callee> take_callees(const Algorithm &caller, Stages &stages) {
    std::vector<Callee> callees;
    for (const Call &call : caller.calls()) {
        Callee callee = callee_of(call);
        Translation translate(callee.scope, callee.dims, callee.tensors);
        std::string once = "the call '" + call.scope + "', which is emitted once", remedy = call.repeat ? "." : ", or inline the call.";
        Stages others, own;
        if (auto k = stages.find(call.scope); k != stages.end()) callee.in_parallel = runs_in_parallel(call, k->second);
        for (auto &[name, k] : stages) {
            bool leads = k.place && k.place->kind == Place::Kind::at, inside = leads && is_within(k.place->stage, call, caller);
            if (name == call.scope) continue;
            if (!is_within(name, call, caller)) {
                if (inside)
                    throw UserError("schedule.call", name + ": it is placed at " + k.place->stage + "." + k.place->loop + ", inside " +
                                                         once + "; place it at root" + remedy);
                others[name] = k;
                continue;
            }
            if (leads && !inside)
                throw UserError("schedule.call", name + ": it is placed at " + k.place->stage + "." + k.place->loop + ", outside " + once +
                                                     "; place it at root or at a loop of the call's own stages" + remedy);
            own[name] = k;
        }
        callee.stages = translate(own);
        stages = others;
        callees.push_back(callee);
    }
    take_extents(callees, caller);
    std::map<std::string, Callee> by_scope;
    for (Callee &callee : callees) by_scope.emplace(callee.scope, std::move(callee));
    return by_scope;
}

}  // namespace tessera
