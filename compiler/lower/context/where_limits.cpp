#include "compiler/lower/context/where_limits.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "algorithms/index/prove.h"
#include "compiler/lower/context/extents.h"

namespace tessera {

namespace {

const Piece any_point{Expr(0), Expr(1), Expr(1), false, {}, 0};

Expr stronger(const Expr &a, const Expr &b, Expr (*choose)(Expr, Expr)) {
    if (!a.defined()) return b;
    return b.defined() ? choose(a, b) : a;
}

Expr weaker(const Expr &a, const Expr &b, Expr (*choose)(Expr, Expr)) { return a.defined() && b.defined() ? choose(a, b) : Expr(); }

bool is_comparison(const Expr &e) { return e.is_operation(Op::le) || e.is_operation(Op::lt) || e.is_operation(Op::eq); }

// A side of a comparison as an index; undefined where it may have another value then.
Expr as_index(const Expr &side, const Bounds &facts) {
    if (side.type() == DType::index) return side;
    if (side.type() != DType::i32) return {};
    if (side.kind() != ExprKind::cast || side->args[0].type() != DType::index) return cast(DType::index, side);
    const auto range = constant_range(side->args[0], facts);
    return range && range->first >= INT32_MIN && range->second <= INT32_MAX ? side->args[0] : Expr();
}

// A condition over pieces.
class WhereOverPieces {
public:
    WhereOverPieces(const Lowering &lowering, const Scope &scope, const Expr &where, const std::string &dim, const Pieces &pieces)
        : lowering_(lowering), scope_(scope), pieces_(pieces) {
        for (const std::string &d : variables_in(where))
            if (d != dim && !pieces.count(d) && lowering.algorithm.find_dim(d)) pieces_[d] = whole(lowering, scope, d, pieces);
        for (const auto &[d, piece] : pieces_)
            if (piece.size.is_constant(1)) points_[d] = piece.lo;
        if (!dim.empty()) pieces_[dim] = any_point, points_.erase(dim);
    }

    std::optional<Limits> limits(const Expr &where, const std::string &dim, bool somewhere) const;
    Expr somewhere(const Expr &where) const;
    void add_data(const Expr &where, const std::string &dim, std::vector<Expr> &data) const;

private:
    const Lowering &lowering_;
    const Scope &scope_;
    Pieces pieces_;
    std::map<std::string, Expr> points_;

    // What is at least 0 where the comparison holds, and below 0 where it does not; undefined where it uses what is not known here.
    Expr slack(const Expr &comparison) const;
    Expr located(const Expr &e) const;
    std::optional<Limits> limits_of_comparison(const Expr &e, const std::string &dim, bool somewhere) const;
};

// The expression with elements of tensors where they are stored.
Expr WhereOverPieces::located(const Expr &e) const {
    if (!e->loads) return e;
    bool there = true;
    Expr made = replace_loads(substitute(e, points_), [&](const Expr &n) -> Expr {
        const Stored *where = scope_.find(n->name);
        there &= where != nullptr;
        if (!there) return {};
        const std::vector<Expr> index = index_of(n);
        const auto rank = index.size();
        const std::vector<Expr> axes = locate(*where, index_along(*where, index), scope_.facts);
        if (!n->guarded) return load(where->buffer.name, n.type(), axes);
        return load_or(where->buffer.name, n.type(), axes, n->args[rank], n->args[rank + 1]);
    });
    if (!there) return {};
    return in_names_of_limits(made, scope_);
}

Expr WhereOverPieces::slack(const Expr &comparison) const {
    const Expr a = as_index(comparison->args[0], scope_.facts), b = as_index(comparison->args[1], scope_.facts);
    if (!a.defined() || !b.defined()) return {};
    return located(b - a - Expr(comparison.is_operation(Op::lt) ? 1 : 0));
}

std::optional<Limits> WhereOverPieces::limits_of_comparison(const Expr &e, const std::string &dim, bool somewhere) const {
    const Expr slack = this->slack(e);
    if (!slack.defined()) return std::nullopt;
    const auto form = affine(slack, pieces_);
    if (!form || !form->coefficients.count(dim)) return std::nullopt;
    const int64_t c = form->coefficients.at(dim);
    // The slack at index 0. Data that becomes an index is of 32 bits, so that this is of 64.
    const auto rest_at = [&](bool highest) { return extreme(slack, pieces_, highest); };
    Limits limits;
    if (!e.is_operation(Op::eq)) {
        const Expr rest = rest_at(somewhere);
        if (!rest.defined()) return std::nullopt;
        const Expr steps = operation(Op::div, {rest, Expr(std::abs(c))});
        if (c < 0) limits.end = simplify(steps + 1, scope_.facts);
        else limits.first = simplify(Expr(0) - steps, scope_.facts);
        return limits;
    }
    const Expr most = rest_at(true), least = rest_at(false);
    if (!somewhere || !most.defined() || !least.defined()) return std::nullopt;
    // c d + rest = 0 for some rest of least ..= most.
    const Expr below = c < 0 ? least : Expr(0) - most, above = c < 0 ? most : Expr(0) - least;
    limits.first = simplify(operation(Op::div, {below, Expr(std::abs(c))}), scope_.facts);
    limits.end = simplify(operation(Op::div, {above, Expr(std::abs(c))}) + 1, scope_.facts);
    return limits;
}

std::optional<Limits> WhereOverPieces::limits(const Expr &where, const std::string &dim, bool somewhere) const {
    if (is_comparison(where)) return limits_of_comparison(where, dim, somewhere);
    const bool all = where.is_operation(Op::bit_and);
    if (!all && !where.is_operation(Op::bit_or)) return std::nullopt;
    std::optional<Limits> a = limits(where->args[0], dim, somewhere), b = limits(where->args[1], dim, somewhere);
    if (!a || !b) {
        if (all != somewhere) return std::nullopt;
        return a ? a : b;
    }
    if (!all && !somewhere) return b;  // between the limits of either
    Limits both;
    both.with_gaps = !all || a->with_gaps || b->with_gaps;
    both.first = all ? stronger(a->first, b->first, max) : weaker(a->first, b->first, min);
    both.end = all ? stronger(a->end, b->end, min) : weaker(a->end, b->end, max);
    if (both.first.defined()) both.first = simplify(both.first, scope_.facts);
    if (both.end.defined()) both.end = simplify(both.end, scope_.facts);
    return both;
}

Expr WhereOverPieces::somewhere(const Expr &where) const {
    if (where.is_operation(Op::bit_and) || where.is_operation(Op::bit_or)) {
        const Expr a = somewhere(where->args[0]), b = somewhere(where->args[1]);
        if (where.is_operation(Op::bit_or)) return a.defined() && b.defined() ? simplify(a || b, scope_.facts) : Expr();
        return a.defined() && b.defined() ? simplify(a && b, scope_.facts) : a.defined() ? a : b;
    }
    if (!where.is_operation(Op::le) && !where.is_operation(Op::lt)) return {};
    const Expr slack = this->slack(where);
    if (!slack.defined()) return {};
    const Expr most = extreme(slack, pieces_, true);
    return most.defined() ? simplify(Expr(0) <= most, scope_.facts) : Expr();
}

// The terms of a sum that have elements of tensors.
void add_terms(const Expr &e, std::vector<Expr> &terms) {
    if (!has_load(e)) return;
    const bool is_sum = e.is_operation(Op::add) || e.is_operation(Op::sub) || e.is_operation(Op::mul) || e.is_operation(Op::div);
    if (!is_sum) return terms.push_back(e);
    for (const Expr &arg : e->args) add_terms(arg, terms);
}

void WhereOverPieces::add_data(const Expr &where, const std::string &dim, std::vector<Expr> &data) const {
    if (where.is_operation(Op::bit_and) || where.is_operation(Op::bit_or))
        for (const Expr &arg : where->args) add_data(arg, dim, data);
    if (!is_comparison(where)) return;
    const Expr slack = this->slack(where);
    if (!slack.defined() || !uses_variable(slack, dim)) return;
    std::vector<Expr> terms;
    add_terms(slack, terms);
    for (const Expr &term : terms) {
        const std::set<std::string> used = variables_in(term);
        if (std::none_of(used.begin(), used.end(), [&](const std::string &v) { return lowering_.algorithm.find_dim(v); }))
            data.push_back(term);
    }
}

}  // namespace

Expr in_names_of_limits(const Expr &e, const Scope &scope) {
    return scope.limits.empty() ? e : rewrite(e, [&](const Expr &n) -> Expr {
        if (!has_load(n)) return {};
        for (const auto &[value, name] : scope.limits)
            if (equal(value, n)) return name;
        return {};
    });
}

std::vector<Expr> data_in_limits(const Lowering &lowering, const Scope &scope, const Expr &where, const std::string &dim,
                                 const Pieces &pieces) {
    std::vector<Expr> data;
    WhereOverPieces(lowering, scope, where, dim, pieces).add_data(where, dim, data);
    // What is part of another one first.
    auto nodes = [](const Expr &e) {
        int count = 0;
        walk(e, [&](const Expr &) { count++; });
        return count;
    };
    std::stable_sort(data.begin(), data.end(), [&](const Expr &a, const Expr &b) { return nodes(a) < nodes(b); });
    return data;
}

std::optional<Limits> where_may_hold(const Lowering &lowering, const Scope &scope, const Expr &where, const std::string &dim,
                                     const Pieces &pieces) {
    return WhereOverPieces(lowering, scope, where, dim, pieces).limits(where, dim, true);
}

std::optional<Limits> where_holds(const Lowering &lowering, const Scope &scope, const Expr &where, const std::string &dim,
                                  const Pieces &pieces) {
    return WhereOverPieces(lowering, scope, where, dim, pieces).limits(where, dim, false);
}

Expr may_hold(const Lowering &lowering, const Scope &scope, const Expr &where, const Pieces &pieces) {
    return WhereOverPieces(lowering, scope, where, "", pieces).somewhere(where);
}

int64_t step_in(const Expr &where, const std::string &dim) {
    if (where.is_operation(Op::bit_and) || where.is_operation(Op::bit_or))
        return std::max(step_in(where->args[0], dim), step_in(where->args[1], dim));
    if (!is_comparison(where) || where->args[0].type() != DType::index) return 0;
    auto a = affine(where->args[1] - where->args[0], {{dim, any_point}});
    return a && a->coefficients.count(dim) ? std::abs(a->coefficients.at(dim)) : 0;
}

}  // namespace tessera
