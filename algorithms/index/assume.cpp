// How bounds take in ranges and conditions: in canonical form, so that they are found again. See bounds.h.
#include <tuple>

#include "algorithms/index/prove.h"
#include "support/text/error.h"

namespace tessera {

void Bounds::set(const std::string &variable, Expr lo, Expr hi) {
    Range range;
    for (auto [end, form, from] : {std::tuple(&range.lo, &range.lo_form, &lo), std::tuple(&range.hi, &range.hi_form, &hi)}) {
        if (!from->defined()) continue;
        require(!uses_variable(*from, variable), "the range of " + variable + " uses itself");
        try {
            *form = linear_form(*from, *this);
            *end = to_expr(*form);
        } catch (LinearOverflow) { continue; }
        for (const std::string &name : variables_in(*end))
            if (const Range *other = find(name)) range.rank = std::max(range.rank, other->rank + 1);
    }
    const uint64_t bit = Expr::Node::bit_of(variable);
    const uint64_t names = variables_ ? variables_->names : 0, used = variables_ ? variables_->used : 0;
    const bool met = ((names | used | known_->variables) & bit) != 0;
    auto mentioned = [](const Expr &e) { return e.defined() ? e->variables : 0; };
    variables_ = std::make_shared<const Variable>(
        Variable{variable, range, variables_, names | bit, used | mentioned(range.lo) | mentioned(range.hi)});
    std::shared_ptr<Memo> memo = std::make_shared<Memo>();
    if (!met) memo->outer = memo_, memo->own = bit;
    memo_ = std::move(memo);
}

void Bounds::assume_nonnegative(const Linear &form, const Bounds &before) {
    constexpr size_t many = 256;  // minima of minima say something of each of theirs on every path
    if (form.is_constant() || known_->facts.size() >= many) return;
    // A minimum is above what both its operands' bound says, and so on: what elimination would have to guess.
    for (const Linear::Term &t : form.terms) {
        const Expr &f = t.factors[0];
        bool both =
            t.factors.size() == 1 && ((f.is_operation(Op::min) && t.coefficient > 0) || (f.is_operation(Op::max) && t.coefficient < 0));
        if (!both) continue;
        Linear inside, outside;
        if (!split_by(form, f, inside, outside)) continue;
        for (const Expr &arg : f->args) assume_nonnegative(inside * linear_form(arg, before) + outside, before);
        return;
    }
    // Where a minimum is surely not the one operand, it is the other.
    for (const Linear::Term &t : form.terms) {
        const Expr &f = t.factors[0];
        bool either =
            t.factors.size() == 1 && ((f.is_operation(Op::min) && t.coefficient < 0) || (f.is_operation(Op::max) && t.coefficient > 0));
        Linear inside, outside;
        if (!either || !split_by(form, f, inside, outside)) continue;
        for (size_t i = 0; i < 2; i++)
            if (range_of(inside * linear_form(f->args[i], before) + outside, before).hi < 0)
                assume_nonnegative(inside * linear_form(f->args[1 - i], before) + outside, before);
    }
    Known &known = change();
    known.facts.push_back(form);
    for (const Linear::Term &t : form.terms)
        for (const Expr &f : t.factors) known.variables |= f->variables;
    if (form.terms.size() == 1 && form.terms[0].factors.size() == 1) {
        int64_t k = form.terms[0].coefficient;
        Interval i;
        if (k > 0) i.lo = -floor_quotient(form.constant, k);
        else i.hi = floor_quotient(form.constant, -k);
        known.atoms.push_back({form.terms[0].factors[0], i});
    }
    // k*(x/c) <= k*x/c for k > 0.
    for (const Linear::Term &t : form.terms) {
        const Expr &f = t.factors[0];
        if (t.factors.size() != 1 || t.coefficient < 0 || !f.is_operation(Op::div) || !f->args[1].is_constant()) continue;
        Linear inside, outside;
        if (split_by(form, f, inside, outside))
            known.facts.push_back(inside * linear_form(f->args[0], before) + outside * f->args[1]->value.integer);
    }
}

// remainder == 0 where it is atom % c.
void Bounds::assume_multiple(const Expr &remainder, const Bounds &before) {
    if (!remainder.is_operation(Op::mod) || !remainder->args[1].is_constant() || remainder->args[1]->value.integer < 1) return;
    Linear x = linear_form(remainder->args[0], before);
    bool atom = x.terms.size() == 1 && x.terms[0].factors.size() == 1 && x.terms[0].coefficient == 1 && x.constant == 0;
    if (!atom) return;
    Known &known = change();
    known.multiples.push_back({x.terms[0].factors[0], remainder->args[1]->value.integer});
    known.variables |= remainder->variables | x.terms[0].factors[0]->variables;
}

void Bounds::assume(const Expr &condition) {
    Expr c = simplify(condition, *this);
    if (c.is_operation(Op::bit_and) && c.type() == DType::boolean) {
        assume(c->args[0]);
        assume(c->args[1]);
        return;
    }
    const Bounds before = *this;
    auto difference = [&](int64_t minus) { return linear_form(c->args[1], before) - linear_form(c->args[0], before) - Linear(minus); };
    bool on_index = c.kind() == ExprKind::operation && c->args[0].type() == DType::index;
    Known &known = change();
    if (!c.is_constant()) known.opaque.push_back(c), known.variables |= c->variables;
    try {
        if (on_index && c.is_operation(Op::lt)) assume_nonnegative(difference(1), before);
        if (on_index && (c.is_operation(Op::le) || c.is_operation(Op::eq))) assume_nonnegative(difference(0), before);
        if (on_index && c.is_operation(Op::eq)) {
            assume_nonnegative(difference(0) * -1, before);
            for (size_t i : {0, 1})
                if (c->args[1 - i].is_constant(0)) assume_multiple(c->args[i], before);
        }
    } catch (LinearOverflow) {}
}

}  // namespace tessera
