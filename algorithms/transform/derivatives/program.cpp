#include "algorithms/transform/derivatives/program.h"

#include <algorithm>

#include "algorithms/functions/conversions.h"
#include "algorithms/index/prove.h"
#include "algorithms/transform/derivatives/activity.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/verify/verify.h"
#include "support/containers/alternatives.h"

namespace tessera::differentiation {

Program::Program(const Algorithm &of, std::string name) : made(of) {
    made.name = std::move(name);
    made.steps.clear(), made.outputs.clear(), made.checks.clear();
    made.rule = nullptr;
    for (const Tensor &t : of.tensors) names_.insert(t.name), tensors_[t.name] = t;
    for (const Dim &d : of.dims) names_.insert(d.name);
    for (const Parameter &p : of.parameters) names_.insert(p.name);
    for (const Stage &s : of.stages()) {
        take_names_of(s);
        for (const Tensor &t : results_of(s)) tensors_[t.name] = t;
    }
    for (const Call &c : of.calls()) {
        names_.insert(c.scope);
        for (const Tensor &t : results_of(c)) names_.insert(t.name), tensors_[t.name] = t;
    }
}

void Program::take_names_of(const Stage &stage) {
    names_.insert(stage.name);
    for (const Tensor &t : results_of(stage)) names_.insert(t.name);
}

std::string Program::fresh(const std::string &name) {
    std::string free = name;
    for (int n = 2; names_.count(free); n++) free = name + std::to_string(n);
    names_.insert(free);
    return free;
}

std::string Program::dim_like(const std::string &dim, const std::map<std::string, std::string> &renamed) {
    Dim copy = made.dim(dim);
    std::string base = dim + "_of";
    copy.name = fresh(base);
    if (copy.kind == DimKind::symbolic) copy.equals = dim;
    if (copy.kind == DimKind::derived) {
        std::map<std::string, Expr> points;
        for (const auto &[from, to] : renamed) points[from] = variable(to);
        copy.size = substitute(copy.size, points);
    }
    made.dims.push_back(copy);
    return copy.name;
}

bool Program::is_ragged(const std::string &dim) const {
    const Dim &d = made.dim(dim);
    return d.size.defined() && !variables_in(d.size).empty();
}

Expr Program::extent_of(const std::string &dim) const {
    const Dim &d = made.dim(dim);
    return is_ragged(dim) ? max(d.size, Expr(0)) : extent(dim);
}

Bounds Program::facts_at(const std::vector<std::string> &points) const {
    Bounds facts(made.dims, made.parameters);
    for (const std::string &d : points) {
        facts.set(d, 0, extent(d) - 1);
        facts.assume(extent(d) >= 1);  // there is a point
    }
    return facts;
}

Expr Program::guarded(const Expr &e, const Bounds &facts) const {
    return replace_loads(e, [&](const Expr &n) -> Expr {
        const size_t rank = n->args.size() - (n->guarded ? 2 : 0);
        const Tensor &t = tensors_.at(n->name);
        Bounds here = facts;
        if (n->guarded) here.assume(n->args[rank]);
        Expr inside;
        Operands index;
        for (size_t axis = 0; axis < rank; axis++) {
            index.push_back(simplify(n->args[axis], facts));
            for (const Expr &claim : {Expr(0) <= index[axis], index[axis] < extent(t.dims[axis])})
                if (!prove(claim, here)) inside = inside.defined() ? inside && claim : claim;
        }
        if (!n->guarded)
            return inside.defined() ? load_or(n->name, n.type(), index, inside, constant(n.type(), 0)) : load(n->name, n.type(), index);
        const Expr guard = inside.defined() ? n->args[rank] && inside : n->args[rank];
        return load_or(n->name, n.type(), index, guard, n->args[rank + 1]);
    });
}

const Stage &Program::add(Stage stage) {
    std::vector<std::string> points = ordinary_dims(stage);
    for (const std::string &d : reduced_dims(stage)) points.push_back(d);
    const Bounds facts = facts_at(points);
    stage = map_expressions(std::move(stage), [&](const Expr &e) { return e.defined() ? guarded(e, facts) : e; });
    add_as_it_is(stage);
    return std::get<Stage>(made.steps.back());
}

void Program::add_as_it_is(const Stage &stage) {
    take_names_of(stage);
    for (const Tensor &t : results_of(stage)) tensors_[t.name] = t;
    made.steps.emplace_back(stage);
}

void Program::add_as_it_is(const Call &call) {
    names_.insert(call.scope);
    for (const Tensor &t : results_of(call)) names_.insert(t.name), tensors_[t.name] = t;
    for (const Dim &d : renamed(call, [](const std::string &) { return true; }).dims)  // those that the call does not bind
        if (!made.find_dim(d.name)) made.dims.push_back(d), names_.insert(d.name);
    made.steps.emplace_back(call);
}

const Tensor &Program::zeros(DType type, const std::vector<std::string> &dims, const std::string &name) {
    return tensor(add({fresh(name), dims, Map(constant(type, 0)), {}, {}}).name);
}

DType Program::folded_in(DType type) const {
    const DType policy = is_float(made.numerics.accumulate) ? made.numerics.accumulate : DType::f32;
    return type == DType::f64 ? type : policy;
}

DType Program::type_at_interface(DType type) { return size_of(type) < 2 ? DType::f32 : type; }

Expr Program::kept(DType type, const Expr &value) const {
    const bool flushes = made.numerics.denormals == Denormals::flushed && traits_of(type).has_zero;
    if (is_arithmetic(type)) return flushes ? flush_subnormals(converted(type, value), type) : converted(type, value);
    const Expr wide = flushes ? flush_subnormals(value, type) : value;
    return cast(type, wide, made.numerics.rounding, made.numerics.saturate);
}

Expr Program::read(const Tensor &tensor) const {
    const Expr value = converted(arithmetic_type(tensor.dtype), own_element(tensor));
    const bool flushes = made.numerics.denormals == Denormals::flushed && traits_of(tensor.dtype).has_zero;
    return flushes ? flush_subnormals(value, tensor.dtype) : value;
}

static void take_reads(const Expr &whole, std::set<std::string> &names) {
    walk(whole, [&](const Expr &e) {
        if (e.kind() == ExprKind::load || e.kind() == ExprKind::parameter) names.insert(e->name);
    });
}

std::set<std::string> reads_of(const Step &step) {
    std::set<std::string> names;
    if (const auto *stage = std::get_if<Stage>(&step)) {
        for (const Expr &e : expressions_of(*stage)) take_reads(e, names);
        for (const Write *w : writes_of(*stage)) names.insert(w->state);
        return names;
    }
    const auto &call = std::get<Call>(step);
    for (const auto &[name, view] : call.tensors) {
        names.insert(view.tensor);
        for (const Expr &e : view.index) take_reads(e, names);
    }
    for (const auto &[name, value] : call.parameters) take_reads(value, names);
    return names;
}

namespace {

// The steps of which something is needed, or that write where `keeps_writes`. `needed` becomes all that they read.
void keep_needed(Algorithm &a, std::set<std::string> &needed, bool keeps_writes);

// The call without those outputs that nothing needs, in any round.
Call with_needed_outputs(Call call, const std::set<std::string> &needed) {
    const Algorithm &callee = *call.callee;
    if (callee.rule) return call;  // which speaks of all outputs
    std::set<std::string> live;
    for (const std::string &output : callee.outputs)
        if (needed.count(name_of_result(call, output))) live.insert(output);
    if (call.repeat && !call.repeat->until.empty()) live.insert(call.repeat->until);
    live = needed_in(call, live);
    Algorithm rest = callee;
    std::erase_if(rest.outputs, [&](const std::string &output) { return !live.count(output); });
    if (rest.outputs.size() == callee.outputs.size() || rest.outputs.empty() || callee.updates_state) return call;
    for (const std::string &output : callee.outputs) {
        if (live.count(output)) continue;
        call.results.erase(output);
        if (!call.repeat) continue;
        call.repeat->stacked.erase(output);
        std::erase_if(call.repeat->carried, [&](const auto &c) { return c.second == output; });
    }
    std::set<std::string> inside(rest.outputs.begin(), rest.outputs.end());
    keep_needed(rest, inside, true);
    std::erase_if(rest.tensors, [&](const Tensor &t) { return !inside.count(t.name); });
    std::erase_if(call.tensors, [&](const auto &t) { return !rest.find_tensor(t.first); });
    if (call.repeat) std::erase_if(call.repeat->carried, [&](const auto &c) { return !rest.find_tensor(c.first); });
    std::erase_if(rest.large, [&](const std::string &name) {
        return !rest.find_tensor(name) && std::find(rest.outputs.begin(), rest.outputs.end(), name) == rest.outputs.end();
    });
    std::erase_if(rest.stated_ranges, [&](const auto &r) { return !rest.find_tensor(r.first); });
    std::erase_if(rest.checks, [&](const auto &c) { return !rest.find_stage(c.first); });
    call.callee = std::make_shared<const Algorithm>(std::move(rest));
    return call;
}

void keep_needed(Algorithm &a, std::set<std::string> &needed, bool keeps_writes) {
    for (const Dim &d : a.dims)
        if (d.size.defined()) take_reads(d.size, needed);
    std::vector<Step> kept;
    for (size_t i = a.steps.size(); i-- > 0;) {
        bool is_needed = false;
        const auto ask = [&](const Tensor &t) { is_needed |= needed.count(t.name) > 0; };
        if (const auto *stage = std::get_if<Stage>(&a.steps[i])) {
            for (const Tensor &t : results_of(*stage)) ask(t);
            for (const Write *w : writes_of(*stage)) is_needed |= keeps_writes || needed.count(w->state) > 0;
        } else {
            auto &call = std::get<Call>(a.steps[i]);
            for (const Tensor &t : results_of(call)) ask(t);
            if (call.callee->updates_state)
                for (const Tensor &t : call.callee->tensors)
                    if (t.role == Role::state) is_needed |= keeps_writes || needed.count(call.tensors.at(t.name).tensor) > 0;
            if (is_needed) call = with_needed_outputs(std::move(call), needed);
        }
        if (!is_needed) continue;
        needed.merge(reads_of(a.steps[i]));
        kept.push_back(std::move(a.steps[i]));
    }
    a.steps.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
    a.updates_state = false;
    for (const Stage &stage : a.stages()) a.updates_state |= updates(stage);
    for (const Call &call : a.calls()) a.updates_state |= call.callee->updates_state;
}

}  // namespace

void Program::drop_unneeded(bool keeps_writes) {
    std::set<std::string> needed(made.outputs.begin(), made.outputs.end());
    keep_needed(made, needed, keeps_writes);
}

void Program::drop_unread_inputs(const std::set<std::string> &kept) {
    std::set<std::string> read = kept;
    for (const Step &step : made.steps) read.merge(reads_of(step));
    for (const Dim &d : made.dims)
        if (d.size.defined()) take_reads(d.size, read);
    std::erase_if(made.tensors, [&](const Tensor &t) { return !read.count(t.name); });
    std::erase_if(made.stated_ranges, [&](const auto &r) { return !made.find_tensor(r.first); });
}

Algorithm Program::finished() {
    std::erase_if(made.large, [&](const std::string &name) {
        return !made.find_tensor(name) && std::find(made.outputs.begin(), made.outputs.end(), name) == made.outputs.end();
    });
    // Dims that stand in nothing any more.
    std::set<std::string> used;
    const auto use = [&](const Expr &whole) {
        walk(whole, [&](const Expr &e) {
            if (e.kind() == ExprKind::extent || e.kind() == ExprKind::variable) used.insert(e->name);
        });
    };
    for (const Tensor &t : made.tensors) used.insert(t.dims.begin(), t.dims.end());
    for (const Stage &stage : made.stages()) {
        used.insert(stage.dims.begin(), stage.dims.end());
        for (const std::string &d : folded_dims(stage)) used.insert(d);
        if (is_fold(stage))
            for (const Part &p : monoid_of(stage).parts) used.insert(p.dims.begin(), p.dims.end());
        for (const Expr &e : expressions_of(stage)) use(e);
    }
    for (const Call &call : made.calls()) {
        for (const auto &[own, dim] : call.dims) used.insert(dim);
        for (const Tensor &t : results_of(call)) used.insert(t.dims.begin(), t.dims.end());
        for (const auto &[name, view] : call.tensors)
            for (const Expr &e : view.index) use(e);
        for (const auto &[name, value] : call.parameters) use(value);
        if (call.repeat) used.insert(call.repeat->dim);
    }
    for (size_t i = made.dims.size(); i-- > 0;) {
        const Dim &d = made.dims[i];
        if (used.count(d.name)) {
            if (d.size.defined()) use(d.size);
            if (!d.equals.empty()) used.insert(d.equals);
        }
    }
    std::erase_if(made.dims, [&](const Dim &d) { return !used.count(d.name); });
    verify(made);
    return made;
}

Expr at_points(const Expr &e, const std::map<std::string, Expr> &points, const std::map<std::string, std::string> &dims) {
    if (!e.defined()) return e;
    const Expr moved = dims.empty() ? e : replace_extents(e, [&](const Expr &x) -> Expr {
        const auto it = dims.find(x->name);
        return it == dims.end() ? Expr() : extent(it->second);
    });
    return substitute(moved, points);
}

}  // namespace tessera::differentiation
