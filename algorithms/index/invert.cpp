#include "algorithms/index/invert.h"

#include <algorithm>

#include "algorithms/index/prove.h"

namespace tessera {

namespace {

class Inverter {
public:
    Inverter(const std::vector<std::string> &points, const std::map<std::string, Expr> &extents, const Bounds &facts)
        : points_(points), extents_(extents), facts_(facts) {}

    Inversion run(const std::vector<Expr> &index, const std::vector<Expr> &targets) {
        std::vector<size_t> left;
        // What one variable says is taken first: then x[i, i + j] is solved for j.
        for (size_t axis = 0; axis < index.size(); axis++) {
            const Expr &e = index[axis];
            if (e.kind() == ExprKind::variable && is_open(e->name)) solve(e->name, targets[axis]);
            else left.push_back(axis);
        }
        for (bool goes_on = true; goes_on;) {
            goes_on = false;
            for (size_t &axis : left) {
                if (axis == done || !solve_axis(index[axis], targets[axis])) continue;
                axis = done, goes_on = true;
            }
        }
        for (const size_t axis : left) {
            if (axis == done) continue;
            const Expr e = substitute(index[axis], result_.solved);
            if (open_in(e).empty()) wants(e == targets[axis]);
            else result_.open.push_back(axis);
        }
        for (const std::string &p : points_)
            if (is_open(p)) result_.free.push_back(p);
        return std::move(result_);
    }

private:
    static constexpr size_t done = SIZE_MAX;
    const std::vector<std::string> &points_;
    const std::map<std::string, Expr> &extents_;
    const Bounds &facts_;
    Inversion result_;

    bool is_open(const std::string &name) const {
        return !result_.solved.count(name) && std::find(points_.begin(), points_.end(), name) != points_.end();
    }
    // Those points in the order in which they were given.
    std::vector<std::string> open_in(const Expr &e) const {
        const std::set<std::string> used = variables_in(e);
        std::vector<std::string> open;
        for (const std::string &p : points_)
            if (used.count(p) && is_open(p)) open.push_back(p);
        return open;
    }

    void wants(const Expr &condition) {
        if (!prove(condition, facts_)) result_.conditions.push_back(simplify(condition, facts_));
    }

    void solve(const std::string &point, const Expr &value) {
        const Expr is = simplify(value, facts_);
        wants(Expr(0) <= is), wants(is < extents_.at(point));
        for (auto &[other, known] : result_.solved) known = substitute(known, {{point, is}});
        for (Expr &condition : result_.conditions) condition = substitute(condition, {{point, is}});
        result_.solved[point] = is;
    }

    // Whether the axis needs no more thought.
    bool solve_axis(const Expr &index, const Expr &target) {
        const Expr e = substitute(index, result_.solved);
        if (open_in(e).empty()) return wants(e == target), true;
        try {
            const Linear form = linear_form(e, facts_);
            return is_sum_of_points(form) && solve_sum(form, target);
        } catch (const LinearOverflow &) { return false; }
    }

    // Whether open points stand in it only as they are, one in a product at most.
    bool is_sum_of_points(const Linear &form) const {
        for (const Linear::Term &term : form.terms) {
            int points = 0;
            for (const Expr &factor : term.factors) {
                const bool is_point = factor.kind() == ExprKind::variable && is_open(factor->name);
                if (!is_point && !open_in(factor).empty()) return false;
                points += is_point;
            }
            if (points > 1) return false;
        }
        return true;
    }

    bool solve_sum(const Linear &form, const Expr &target) {
        const std::vector<std::string> open = open_in(to_expr(form));
        if (open.empty()) return wants(to_expr(form) == target), true;
        for (const std::string &p : open) {
            Linear step, rest;
            split_by(form, variable(p), step, rest);
            if (!prove_nonnegative(step - Linear(1), facts_)) continue;
            if (!prove_nonnegative(rest, facts_) || !prove_nonnegative(step - rest - Linear(1), facts_)) continue;
            const Expr by = to_expr(step);
            solve(p, by.is_constant(1) ? target : target / by);
            if (by.is_constant(1)) return wants(substitute(to_expr(rest), result_.solved) == Expr(0)), true;
            const Expr digit = substitute(to_expr(rest), result_.solved);
            return solve_sum(linear_form(digit, facts_), target % by);
        }
        for (const std::string &p : open) {
            Linear step, rest;
            split_by(form, variable(p), step, rest);
            const bool is_positive = prove_nonnegative(step - Linear(1), facts_);
            if (!is_positive && !prove_nonnegative(step * -1 - Linear(1), facts_)) continue;
            const Expr by = to_expr(is_positive ? step : step * -1);
            const Expr distance = is_positive ? target - to_expr(rest) : to_expr(rest) - target;
            if (!by.is_constant(1)) wants(distance % by == Expr(0));
            solve(p, by.is_constant(1) ? distance : distance / by);
            return true;
        }
        return false;
    }
};

}  // namespace

Inversion invert(const std::vector<Expr> &index, const std::vector<Expr> &targets, const std::vector<std::string> &points,
                 const std::map<std::string, Expr> &extents, const Bounds &facts) {
    return Inverter(points, extents, facts).run(index, targets);
}

}  // namespace tessera
