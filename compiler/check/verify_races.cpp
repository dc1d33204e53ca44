#include "compiler/check/verify_races.h"

#include <map>
#include <optional>
#include <set>

#include "algorithms/index/linear.h"

namespace tessera {

// What follows about extents: a quotient is above 0 where its dividend reaches the divisor.
static void assume_positive(Bounds &facts, const Expr &count) {
    if (count.is_constant()) return;
    facts.assume(Expr(0) < count);
    if (count.is_operation(Op::div) && count->args[1].is_constant() && count->args[1]->value.integer > 0)
        facts.assume(count->args[1] <= count->args[0]);
    if (count.is_operation(Op::min))
        for (const Expr &e : count->args) assume_positive(facts, e);
}

static bool is_op_of(const Expr &e, Op op) {
    return e.is_operation(op) && e.type() == DType::index && e->args[1].is_constant() && e->args[1]->value.integer > 0;
}

// A loop's variable below its count, in the words that indices use: remainders as differences, and whole numbers where
// the prover would take a quotient for a fraction.
static void assume_below(Bounds &facts, const std::string &name, const Expr &count) {
    Expr written = rewrite(count, [](const Expr &n) -> Expr {
        if (!is_op_of(n, Op::mod)) return {};
        return n->args[0] - n->args[0] / n->args[1] * n->args[1];
    });
    bool quotients = false;
    walk(written, [&](const Expr &n) { quotients |= n.is_operation(Op::div); });
    if (!quotients) return;
    if (written.is_operation(Op::sub)) facts.assume(variable(name) < written);
    if (auto range = constant_range(count, facts); range && range->second < INT32_MAX) facts.assume(variable(name) < Expr(range->second));
}

// What X / c * c < y says of whole quotients: X / c <= (U - 1) / c where y <= U, and X / c < (X + c - 1) / c where y is X.
static void assume_quotients(Bounds &facts, const Expr &condition) {
    if (condition.is_operation(Op::bit_and)) {
        for (const Expr &e : condition->args) assume_quotients(facts, e);
        return;
    }
    if (!condition.is_operation(Op::lt) || !is_op_of(condition->args[0], Op::mul)) return;
    const Expr &quotient = condition->args[0]->args[0], &c = condition->args[0]->args[1], &y = condition->args[1];
    if (!is_op_of(quotient, Op::div) || !equal(quotient->args[1], c)) return;
    int64_t unit = c->value.integer;
    if (auto range = constant_range(y, facts); range && range->second > 0 && range->second < INT32_MAX)
        facts.assume(quotient <= Expr((range->second - 1) / unit));
    if (equal(quotient->args[0], y)) facts.assume(quotient + 1 <= (y + Expr(unit - 1)) / c);
}

void add_facts(Bounds &facts, const EnclosingScope &scope, const EnclosingScope &end, Facts which,
               const std::map<std::string, Expr> &names) {
    if (!scope || scope == end) return;
    add_facts(facts, scope->outer, end, which, names);
    auto named = [&](const Expr &e) { return names.empty() ? e : substitute(e, names); };
    if (scope->variable.empty()) {
        if (which == Facts::ranges) return;
        // What it says of quotients first: simplified under the condition itself, that would be lost.
        assume_quotients(facts, named(scope->condition));
        facts.assume(named(scope->condition));
        return;
    }
    auto it = names.find(scope->variable);
    std::string name = it == names.end() ? scope->variable : it->second->name;
    facts.set(name, named(scope->lo), named(scope->hi));
    if (scope->count.defined() && which != Facts::ranges) assume_below(facts, name, named(scope->count));
    if (which == Facts::counts && scope->count.defined()) assume_positive(facts, named(scope->count));
}

static std::map<std::string, Expr> others(const EnclosingScope &scope, const EnclosingScope &end) {
    std::map<std::string, Expr> names;
    for (EnclosingScope s = scope; s && s != end; s = s->outer)
        if (!s->variable.empty()) names[s->variable] = variable(s->variable + "'");
    return names;
}

// Whether a - b is a multiple of some constant and a rest that is between two multiples: what one thread of several reaches by
// steps over all of them.
static bool differ_modulo(const Expr &a, const Expr &b, const Bounds &facts) {
    try {
        Linear difference = linear_form(a - b, facts);
        std::set<int64_t> moduli;
        for (const Linear::Term &t : difference.terms)
            if (std::abs(t.coefficient) > 1) moduli.insert(std::abs(t.coefficient));
        for (int64_t m : moduli) {
            Linear rest = difference;
            erase_if(rest.terms, [&](const Linear::Term &t) { return t.coefficient % m == 0; });
            if (rest.terms.size() == difference.terms.size()) continue;
            Expr r = to_expr(rest);
            if (prove(Expr(0) < r, facts) && prove(r < Expr(m), facts)) return true;
            if (prove(r < Expr(0), facts) && prove(Expr(-m) < r, facts)) return true;
        }
    } catch (const LinearOverflow &) {}
    return false;
}

static int64_t coefficient_of(const std::string &digit, const Expr &index, const Bounds &facts) {
    try {
        for (const Linear::Term &t : linear_form(index, facts).terms)
            if (t.factors.size() == 1 && t.factors[0].kind() == ExprKind::variable && t.factors[0]->name == digit) return t.coefficient;
    } catch (const LinearOverflow &) {}
    return 0;
}

// Whether accesses of a loop's iterations keep to a strip of one axis that is the iteration's own: c*digit <= index < c*digit + c. Each
// side is shown by what holds at one access, which takes tiles in tiles that divide nothing where both together are too much for the
// prover, and is shown once for an access, however many others there are.
class Strips {
public:
    Strips(const Bounds &outside, const EnclosingScope &loop, const std::string &digit) : outside_(outside), loop_(loop), digit_(digit) {}

    bool hold(const TileAccess &first, const TileAccess &second) {
        for (Facts which : {Facts::conditions, Facts::ranges})
            for (size_t i = 0; i < first.index.size(); i++) {
                Side &a = side(first, which, i), &b = side(second, which, i);
                if (a.width < 1 || a.width != b.width) continue;
                const Expr start = variable(digit_) * Expr(a.width);
                if (!a.below) a.below = prove(first.index[i] < start + Expr(a.width), facts_at(first, which));
                if (!*a.below) continue;
                if (!b.above) b.above = prove(start <= second.index[i], facts_at(second, which));
                if (*b.above) return true;
            }
        return false;
    }

private:
    struct Side {
        int64_t width = 0;  // c
        std::optional<bool> below, above;
    };
    const Bounds &outside_;
    const EnclosingScope &loop_;
    const std::string &digit_;
    std::map<std::pair<const TileScope *, Facts>, Bounds> facts_;
    std::map<std::pair<const TileAccess *, Facts>, std::vector<Side>> sides_;

    const Bounds &facts_at(const TileAccess &access, Facts which) {
        const auto [known, is_new] = facts_.try_emplace({access.scope.get(), which}, outside_);
        if (is_new) add_facts(known->second, access.scope, loop_->outer, which);
        return known->second;
    }

    Side &side(const TileAccess &access, Facts which, size_t i) {
        std::vector<Side> &all = sides_[{&access, which}];
        if (all.empty())
            for (const Expr &index : access.index) all.push_back({coefficient_of(digit_, index, facts_at(access, which)), {}, {}});
        return all[i];
    }
};

// Whether `first` at one iteration and `second` at one with a larger digit are always apart.
static bool apart(const Bounds &outside, const EnclosingScope &loop, const std::string &digit, const TileAccess &first,
                  const TileAccess &second, Facts which) {
    const EnclosingScope &end = loop->outer;
    std::map<std::string, Expr> names = others(second.scope, end);
    Bounds facts = outside;
    add_facts(facts, first.scope, end, which);
    // The larger digit is bound again, above the smaller one.
    std::vector<const TileScope *> inner;
    for (EnclosingScope s = second.scope; s && s != end; s = s->outer) inner.push_back(s.get());
    for (auto s = inner.rbegin(); s != inner.rend(); ++s) {
        if ((*s)->variable.empty()) {
            assume_quotients(facts, substitute((*s)->condition, names));
            facts.assume(substitute((*s)->condition, names));
            continue;
        }
        const std::string &name = names.at((*s)->variable)->name;
        facts.set(name, (*s)->variable == digit ? variable(digit) + 1 : substitute((*s)->lo, names), substitute((*s)->hi, names));
        if ((*s)->count.defined()) assume_below(facts, name, substitute((*s)->count, names));
    }
    auto differ = [&](const Expr &a, const Expr &b) { return prove(a < b, facts) || prove(b < a, facts) || differ_modulo(a, b, facts); };
    std::vector<Expr> there;
    for (const Expr &e : second.index) there.push_back(substitute(e, names));
    for (size_t i = 0; i < there.size(); i++)
        if (differ(first.index[i], there[i])) return true;
    // A dim laid out as quotient and remainder: the two together.
    for (size_t j = 0; j < there.size(); j++) {
        if (!is_op_of(first.index[j], Op::mod) && !is_op_of(second.index[j], Op::mod)) continue;
        Expr c = is_op_of(first.index[j], Op::mod) ? first.index[j]->args[1] : second.index[j]->args[1];
        for (size_t i = 0; i < there.size(); i++)
            if (i != j && differ(simplify(first.index[i] * c + first.index[j], facts), simplify(there[i] * c + there[j], facts)))
                return true;
    }
    return false;
}

std::optional<TileConflict> find_conflict(const Bounds &facts, const EnclosingScope &loop, const std::vector<std::string> &digits,
                                          const std::vector<const TileAccess *> &accesses) {
    for (const std::string &digit : digits) {
        Strips strips(facts, loop, digit);
        for (const TileAccess *a : accesses)
            for (const TileAccess *b : accesses)
                if ((a->store || b->store) && !strips.hold(*a, *b) && !apart(facts, loop, digit, *a, *b, Facts::conditions) &&
                    !apart(facts, loop, digit, *a, *b, Facts::counts))
                    return TileConflict{a, b};
    }
    return std::nullopt;
}

}  // namespace tessera
