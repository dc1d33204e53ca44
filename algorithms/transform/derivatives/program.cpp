#include "algorithms/transform/derivatives/program.h"

#include <algorithm>

#include "algorithms/functions/conversions.h"
#include "algorithms/index/prove.h"
#include "algorithms/verify/verify.h"
#include "support/containers/alternatives.h"

namespace tessera::differentiation {

Program::Program(const Algorithm &of, std::string name) : made(of) {
    made.name = std::move(name);
    made.steps.clear(), made.outputs.clear(), made.checks.clear();
    for (const Tensor &t : of.tensors) names_.insert(t.name), tensors_[t.name] = t;
    for (const Dim &d : of.dims) names_.insert(d.name);
    for (const Parameter &p : of.parameters) names_.insert(p.name);
    for (const Stage &s : of.stages()) {
        take_names_of(s);
        for (const Tensor &t : results_of(s)) tensors_[t.name] = t;
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

void Program::drop_unneeded(bool keeps_writes) {
    std::set<std::string> needed(made.outputs.begin(), made.outputs.end());
    const auto need = [&](const Expr &whole) {
        walk(whole, [&](const Expr &e) {
            if (e.kind() == ExprKind::load) needed.insert(e->name);
        });
    };
    for (const Dim &d : made.dims)
        if (d.size.defined()) need(d.size);
    std::vector<Step> kept;
    for (size_t i = made.steps.size(); i-- > 0;) {
        const auto &stage = std::get<Stage>(made.steps[i]);
        bool is_needed = false;
        for (const Tensor &t : results_of(stage)) is_needed |= needed.count(t.name) > 0;
        for (const Write *w : writes_of(stage)) is_needed |= keeps_writes || needed.count(w->state) > 0;
        if (!is_needed) continue;
        for (const Expr &e : expressions_of(stage)) need(e);
        kept.push_back(std::move(made.steps[i]));
    }
    made.steps.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
    made.updates_state = false;
    for (const Stage &stage : made.stages()) made.updates_state |= updates(stage);
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
