#include "compiler/verify_races.h"

namespace tessera {

// What follows about extents: a quotient is above 0 where its dividend reaches the divisor.
static void assume_positive(Bounds &facts, const Expr &count) {
    if (count.is_constant()) return;
    facts.assume(Expr(0) < count);
    if (count.is_operation(Op::div) && count->args[1].is_constant() && count->args[1]->value.integer > 0) facts.assume(count->args[1] <= count->args[0]);
    if (count.is_operation(Op::min))
        for (const Expr &e : count->args) assume_positive(facts, e);
}

void add_facts(Bounds &facts, const Scope &scope, const Scope &end, Facts which, const std::map<std::string, Expr> &names) {
    if (!scope || scope == end) return;
    add_facts(facts, scope->outer, end, which, names);
    auto named = [&](const Expr &e) { return names.empty() ? e : substitute(e, names); };
    if (scope->variable.empty()) {
        if (which != Facts::ranges) facts.assume(named(scope->condition));
        return;
    }
    auto it = names.find(scope->variable);
    facts.set(it == names.end() ? scope->variable : it->second->name, named(scope->lo), named(scope->hi));
    if (which == Facts::counts && scope->count.defined()) assume_positive(facts, named(scope->count));
}

static std::map<std::string, Expr> others(const Scope &scope, const Scope &end) {
    std::map<std::string, Expr> names;
    for (Scope s = scope; s && s != end; s = s->outer)
        if (!s->variable.empty()) names[s->variable] = variable(s->variable + "'");
    return names;
}

// Whether `first` at one iteration and `second` at one with a larger digit are always apart.
static bool apart(const Bounds &outside, const Scope &loop, const std::string &digit, const TileAccess &first, const TileAccess &second,
                  Facts which) {
    const Scope &end = loop->outer;
    std::map<std::string, Expr> names = others(second.scope, end);
    Bounds facts = outside;
    add_facts(facts, first.scope, end, which);
    // The larger digit is bound again, above the smaller one.
    std::vector<const TileScope *> inner;
    for (Scope s = second.scope; s && s != end; s = s->outer) inner.push_back(s.get());
    for (auto s = inner.rbegin(); s != inner.rend(); ++s) {
        if ((*s)->variable.empty()) facts.assume(substitute((*s)->condition, names));
        else if ((*s)->variable == digit) facts.set(names.at(digit)->name, variable(digit) + 1, substitute((*s)->hi, names));
        else facts.set(names.at((*s)->variable)->name, substitute((*s)->lo, names), substitute((*s)->hi, names));
    }
    for (size_t axis = 0; axis < first.index.size() && axis < second.index.size(); axis++) {
        Expr a = first.index[axis], b = substitute(second.index[axis], names);
        if (prove(a < b, facts) || prove(b < a, facts)) return true;
    }
    return false;
}

std::optional<TileConflict> find_conflict(const Bounds &facts, const Scope &loop, const std::vector<std::string> &digits,
                                          const std::vector<const TileAccess *> &accesses) {
    for (const TileAccess *a : accesses)
        for (const TileAccess *b : accesses)
            if (a->store || b->store)
                for (const std::string &digit : digits)
                    if (!apart(facts, loop, digit, *a, *b, Facts::conditions) && !apart(facts, loop, digit, *a, *b, Facts::counts)) return TileConflict{a, b};
    return std::nullopt;
}

}  // namespace tessera
