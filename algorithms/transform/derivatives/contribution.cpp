#include "algorithms/transform/derivatives/contribution.h"

#include <algorithm>

#include "algorithms/index/invert.h"
#include "algorithms/index/prove.h"

namespace tessera::differentiation {

void split_factors(const Expr &e, std::vector<Factor> &factors, bool &is_negative) {
    if (e.is_constant() && e->value.real == 1) return;
    if (e.is_operation(Op::neg)) {
        is_negative = !is_negative;
        return split_factors(e->args[0], factors, is_negative);
    }
    if (e.is_operation(Op::mul)) return split_factors(e->args[0], factors, is_negative), split_factors(e->args[1], factors, is_negative);
    if (e.is_operation(Op::div)) {
        split_factors(e->args[0], factors, is_negative);
        return factors.push_back({e->args[1], true});
    }
    factors.push_back({e, false});
}

Expr multiplied(Expr value, const std::vector<Factor> &factors) {
    for (const Factor &f : factors) {
        const Expr by = converted(value.type(), f.value);
        if (f.divides) value = value / by;
        else value = product(by, value);
    }
    return value;
}

namespace {

// What holds both.
DType wider(DType a, DType b) { return a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32; }

bool uses_any(const Expr &e, const std::set<std::string> &names) {
    if (!e.defined()) return false;
    const std::set<std::string> used = variables_in(e);
    return std::any_of(used.begin(), used.end(), [&](const std::string &u) { return names.count(u) > 0; });
}

}  // namespace

// Over those points that it uses.
Expr Contributor::as_stage(const Expr &value, const std::vector<std::string> &points, const std::string &reader) {
    for (const Known &k : known_)
        if (equal(k.value, value)) return k.element;
    std::vector<std::string> dims;
    for (const std::string &d : points)
        if (uses_variable(value, d)) dims.push_back(d);
    const Stage stage = p_.add({p_.fresh(reader + ".coefficient"), dims, Map(value), {}, {}});
    known_.push_back({value, own_element(results_of(stage)[0])});
    return known_.back().element;
}

Expr Contributor::with_known(const Expr &e) const {
    if (known_.empty()) return e;
    return rewrite(e, [&](const Expr &n) -> Expr {
        for (const Known &k : known_)
            if (equal(k.value, n)) return k.element;
        return {};
    });
}

Contribution Contributor::of(const LinearResult &result, const Term &term, const Cotangent &cotangent, const Tensor &tensor,
                             const std::string &reader) {
    std::vector<std::string> points = result.points;
    if (term.folded) points.insert(points.end(), result.folded.begin(), result.folded.end());

    // The cotangent at the point.
    std::vector<Expr> conditions;
    Expr of_result = cotangent.value;
    if (!result.at.empty()) {
        std::map<std::string, Expr> at;
        for (size_t i = 0; i < result.at.size(); i++) {
            const std::string &d = result.result.dims[i];
            if (result.at[i].kind() == ExprKind::variable && result.at[i]->name == d) continue;
            at[d] = result.at[i];
            conditions.push_back(Expr(0) <= result.at[i]), conditions.push_back(result.at[i] < extent(d));
        }
        of_result = substitute(of_result, at);
    } else if (term.folded) {
        conditions.insert(conditions.end(), cotangent.support.begin(), cotangent.support.end());
    }
    if (term.folded && result.where.defined()) conditions.push_back(result.where);
    conditions.insert(conditions.end(), term.conditions.begin(), term.conditions.end());

    // Points solved for the tensor's indices: first those of the stage, and dims of any extent before fixed ones, which are taps.
    std::vector<std::string> preferred;
    for (const bool fixed : {false, true})
        for (const std::string &d : points)
            if ((p_.made.dim(d).kind == DimKind::fixed) == fixed) preferred.push_back(d);
    Bounds facts = p_.facts_at(points);
    std::vector<Expr> targets;
    std::map<std::string, Expr> extents, own;
    for (size_t a = 0; a < tensor.dims.size(); a++) {
        targets.push_back(axis(a));
        facts.set(axis(a)->name, 0, extent(tensor.dims[a]) - 1);
        facts.assume(extent(tensor.dims[a]) >= 1);
        own[axis(a)->name] = variable(tensor.dims[a]);
    }
    for (const std::string &d : points) extents[d] = p_.extent_of(d);
    Inversion inverse = invert(term.index, targets, preferred, extents, facts);
    // A ragged point that stays free needs the points around it.
    const auto keeps_ragged = [&] {
        for (const std::string &d : inverse.free) {
            if (!p_.is_ragged(d)) continue;
            for (const std::string &outer : variables_in(p_.made.dim(d).size))
                if (inverse.solved.count(outer)) return false;
        }
        return true;
    };
    if (!keeps_ragged() ||
        std::any_of(inverse.solved.begin(), inverse.solved.end(), [&](const auto &s) { return p_.is_ragged(s.first); })) {
        inverse = {};
        inverse.free = points;
        for (size_t a = 0; a < tensor.dims.size(); a++) inverse.open.push_back(a);
    }
    std::vector<std::string> free;  // outer before inner
    for (const std::string &d : points)
        if (std::find(inverse.free.begin(), inverse.free.end(), d) != inverse.free.end()) free.push_back(d);

    // Free points whose name the tensor's dims have are called otherwise.
    std::map<std::string, std::string> other_dims;
    std::map<std::string, Expr> moved;
    for (std::string &d : free) {
        const std::string before = d;
        const bool is_taken = std::find(tensor.dims.begin(), tensor.dims.end(), d) != tensor.dims.end();
        bool moves = is_taken;
        if (p_.is_ragged(d))
            for (const std::string &outer : variables_in(p_.made.dim(d).size)) moves |= other_dims.count(outer) > 0;
        if (moves) d = p_.dim_like(d, other_dims);
        if (moves) other_dims[before] = d;
        moved[before] = variable(d);
    }
    std::map<std::string, Expr> free_and_own = own;
    for (const auto &[from, to] : moved) free_and_own[from] = to;
    for (const auto &[point, value] : inverse.solved) moved[point] = substitute(value, free_and_own);
    const auto there = [&](const Expr &e) { return at_points(e, moved, other_dims); };

    const std::set<std::string> folded(free.begin(), free.end());
    std::vector<Expr> inside, outside;  // conditions
    const auto add_condition = [&](const Expr &c) {
        std::vector<Expr> &to = uses_any(c, folded) ? inside : outside;
        if (std::none_of(to.begin(), to.end(), [&](const Expr &known) { return equal(known, c); })) to.push_back(c);
    };
    for (const Expr &c : inverse.conditions) add_condition(substitute(c, free_and_own));
    for (const Expr &c : conditions) add_condition(there(c));

    Contribution made;
    std::vector<Factor> factors;
    split_factors(term.coefficient, factors, made.is_negative);
    const bool scatters = !inverse.open.empty();
    if (free.empty()) {
        made.conditions = outside, made.core = there(of_result);
        for (const Factor &f : factors) made.factors.push_back({there(f.value), f.divides});
        return made;
    }
    // What the fold does not vary stands behind it; a solved point varies with the free ones that it is solved by. A scatter has nothing
    // behind it.
    std::vector<Factor> of_fold;
    for (const Factor &f : factors) {
        if (scatters || uses_any(there(f.value), folded)) of_fold.push_back(f);
        else made.factors.push_back({there(f.value), f.divides});
    }
    Expr coefficient;
    DType type = p_.folded_in(wider(of_result.type(), term.coefficient.type()));
    for (const Factor &f : of_fold) {
        if (f.divides) coefficient = coefficient.defined() ? coefficient / f.value : constant(f.value.type(), 1) / f.value;
        else coefficient = coefficient.defined() ? coefficient * f.value : f.value;
    }
    if (coefficient.defined() && !is_plain_load(coefficient) && !coefficient.is_constant()) {
        // What a fold would compute again and again is computed once.
        bool is_recomputed = false, is_stored = true;
        for (const std::string &d : points) {
            const bool used = uses_variable(coefficient, d);
            is_recomputed |= !used, is_stored &= !used || !p_.is_ragged(d);
        }
        if (is_recomputed && is_stored && coefficient->loads) coefficient = as_stage(coefficient, points, reader);
        else coefficient = with_known(coefficient);
    }
    Expr summed = of_result;
    if (!scatters && !uses_any(there(summed), folded)) made.core = there(summed), summed = {};
    std::vector<Expr> operands;
    for (const Expr &e : {summed, coefficient})
        if (e.defined()) operands.push_back(converted(type, there(e)));
    const std::string name = p_.fresh(tensor.name + ".grad." + reader);
    Monoid monoid = operands.size() == 2 ? dot_monoid(type) : sum_monoid(type);
    if (operands.empty()) operands.push_back(constant(type, 1));
    Reduce reduce{std::move(monoid), free, operands, all_of(inside), {}};
    if (scatters) {
        if (const Expr all = all_of(outside); all.defined()) reduce.where = reduce.where.defined() ? all && reduce.where : all;
        for (size_t a = 0; a < tensor.dims.size(); a++) {
            const bool is_open = std::find(inverse.open.begin(), inverse.open.end(), a) != inverse.open.end();
            reduce.at.push_back(is_open ? there(term.index[a]) : variable(tensor.dims[a]));
        }
    } else {
        made.conditions = outside;
    }
    const Stage stage = p_.add({name, tensor.dims, std::move(reduce), {}, {}});
    const Expr sum_of_fold = own_element(results_of(stage)[0]);
    if (made.core.defined()) made.factors.insert(made.factors.begin(), {sum_of_fold, false});
    else made.core = sum_of_fold, made.stage = stage.name;
    return made;
}

}  // namespace tessera::differentiation
