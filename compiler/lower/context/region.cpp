#include "compiler/lower/context/region.h"

#include "support/text/error.h"

namespace tessera {

static void add(Affine &to, const Affine &from, int64_t factor) {
    for (auto &[name, c] : from.coefficients)
        if ((to.coefficients[name] += c * factor) == 0) to.coefficients.erase(name);
    to.rest = to.rest + from.rest * Expr(factor);
}

static bool touches(const Expr &e, const Pieces &variables) {
    for (const std::string &name : variables_in(e))
        if (variables.count(name)) return true;
    return false;
}

using Forms = AddressMap<std::optional<Affine>>;

static std::optional<Affine> affine(const Expr &e, const Pieces &variables, Forms &known);

std::optional<Affine> affine(const Expr &e, const Pieces &variables) {
    Forms known;
    return affine(e, variables, known);
}

static std::optional<Affine> make_affine(const Expr &e, const Pieces &variables, Forms &known) {
    if (e.kind() == ExprKind::variable) return variables.count(e->name) ? Affine{{{e->name, 1}}, Expr(0)} : Affine{{}, e};
    if (!touches(e, variables)) return Affine{{}, e};
    if (e.kind() != ExprKind::operation) return std::nullopt;
    if (e->op == Op::add || e->op == Op::sub) {
        auto a = affine(e->args[0], variables, known), b = affine(e->args[1], variables, known);
        if (!a || !b) return std::nullopt;
        add(*a, *b, e->op == Op::add ? 1 : -1);
        return a;
    }
    if (e->op == Op::mul) {
        int k = e->args[0].is_constant() ? 0 : 1;
        if (!e->args[k].is_constant()) return std::nullopt;
        auto a = affine(e->args[1 - k], variables, known);
        if (!a) return std::nullopt;
        Affine scaled{{}, Expr(0)};
        add(scaled, *a, e->args[k]->value.integer);
        return scaled;
    }
    return std::nullopt;
}

static std::optional<Affine> affine(const Expr &e, const Pieces &variables, Forms &known) {
    if (const std::optional<Affine> *found = known.find(e.get())) return *found;
    std::optional<Affine> made = make_affine(e, variables, known);
    return *known.add(e.get()).first = std::move(made);
}

Piece span(const Expr &e, const Pieces &pieces, const Bounds &facts) {
    Piece result{e, Expr(1), Expr(1), false, {}, 0};
    auto a = affine(e, pieces);
    if (!a) return {};
    Expr lo = a->rest, size = 1, most = 1, last = a->rest;
    for (auto &[name, c] : a->coefficients) {
        const Piece &p = pieces.at(name);
        if (!p.size.defined()) return {};
        lo = lo + Expr(c) * (c > 0 ? p.lo : p.lo + p.size - 1);
        int64_t step = c > 0 ? c : -c;
        size = size + Expr(step) * (p.size - 1);
        if (most.defined()) most = p.max_size.defined() ? most + Expr(step) * (p.max_size - 1) : Expr();
        if (p.padded) result.padded = true, result.since = std::max(result.since, p.since), result.zeros |= p.zeros;
        last = last + Expr(c) * (c < 0 ? p.lo : (p.padded && p.limit.defined() ? p.limit : p.lo + p.size) - 1);
    }
    if (result.padded) result.limit = simplify(last + 1, facts);
    result.lo = simplify(lo, facts), result.size = simplify(size, facts);
    result.max_size = most.defined() ? simplify(most, facts) : Expr();
    return result;
}

Piece unite(const Piece &a, const Piece &b, const Bounds &facts) {
    if (!a.size.defined() || !b.size.defined()) {
        Piece unknown;
        unknown.again = a.again || b.again;
        return unknown;
    }
    Piece result = a;
    result.padded = a.padded || b.padded;
    result.since = std::max(a.since, b.since);
    result.zeros = a.zeros || b.zeros;
    result.whole = a.whole || b.whole;
    result.again = a.again || b.again;
    if (equal(a.lo, b.lo) && equal(a.size, b.size)) return result;
    result.lo = simplify(min(a.lo, b.lo), facts);
    Expr end = simplify(max(a.lo + a.size, b.lo + b.size), facts);
    result.size = simplify(end - result.lo, facts);
    // The hull of pieces that are apart is longer than either: its length must itself be free of loop variables.
    if (equal(a.lo, b.lo))
        result.max_size = a.max_size.defined() && b.max_size.defined() ? simplify(max(a.max_size, b.max_size), facts) : Expr();
    else if (variables_in(result.size).empty()) result.max_size = result.size;
    else result.max_size = Expr();
    return result;
}

Expr extreme(const Expr &e, const Pieces &pieces, bool highest) {
    auto a = affine(e, pieces);
    if (!a) return {};
    Expr value = a->rest;
    for (auto &[name, c] : a->coefficients) {
        const Piece &p = pieces.at(name);
        if (!p.size.defined()) return {};
        value = value + Expr(c) * ((c > 0) == highest ? p.lo + p.size - 1 : p.lo);
    }
    return value;
}

Expr holds_throughout(const Expr &guard, const Pieces &pieces) {
    if (guard.is_operation(Op::bit_and)) {
        const Expr a = holds_throughout(guard->args[0], pieces), b = holds_throughout(guard->args[1], pieces);
        return a.defined() && b.defined() ? a && b : Expr();
    }
    if (!guard.is_operation(Op::le) && !guard.is_operation(Op::lt)) return {};
    if (guard->args[0].type() != DType::index) return {};
    const Expr least = extreme(guard->args[1] - guard->args[0], pieces, false);
    if (!least.defined()) return {};
    return guard->op == Op::lt ? Expr(0) < least : Expr(0) <= least;
}

}  // namespace tessera
