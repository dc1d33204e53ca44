#include "compiler/tile/wide_positions.h"

#include <algorithm>
#include <set>

#include "algorithms/index/prove.h"
#include "schedules/knobs/schedule.h"
#include "support/text/error.h"

namespace tessera {

namespace {

bool fits(int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

// Whether the result of an operation on positions of 32 bits may need more. One of two numbers, and bits of them, never do.
bool may_grow(const Expr &e) {
    const auto by = [&] { return e->args[1].is_constant() ? std::optional(e->args[1]->value.integer) : std::nullopt; };
    switch (e->op) {
    case Op::neg:
    case Op::abs:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::fma:
    case Op::shl: return true;
    case Op::div: return !by() || *by() < 0;                 // the least number by -1
    case Op::shr: return !by() || *by() < 0 || *by() >= 32;  // 64 bits are shifted by other numbers than 32 are
    case Op::mod:
    case Op::min:
    case Op::max:
    case Op::select:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::logical_not:
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le: return false;
    }
    throw InternalError("unknown operation");
}

// What a loop over several dims at once counts: each factor is above 0 inside.
void add_factors(const Expr &count, std::vector<Expr> &factors) {
    if (!count.is_operation(Op::mul)) return factors.push_back(count);
    for (const Expr &e : count->args) add_factors(e, factors);
}

bool lies_in(const Expr &e, int64_t least, int64_t most, const Bounds &facts) {
    const auto range = constant_range(e, facts);
    if (range && range->first >= least && range->second <= most) return true;
    return prove(e <= Expr(most), facts) && prove(Expr(least) <= e, facts);
}

bool is_proved(const Expr &e, const Bounds &facts) {
    if (e.is_operation(Op::div)) return prove(Expr(int64_t{INT32_MIN}) < e->args[0], facts) || prove(Expr(0) <= e->args[1], facts);
    // Halide takes differences apart: min(m, p) - p is min(m - p, 0) to it, which does not fit for each p of 32 bits.
    for (const Expr &arg : e->args)
        if (!lies_in(arg, INT32_MIN + 1, INT32_MAX - 1, facts)) return false;
    return lies_in(e, INT32_MIN, INT32_MAX, facts);
}

class Search {
public:
    Search(const TileProgram &program, std::vector<Expr> &unproved) : unproved_(unproved) {
        std::vector<Dim> limited = program.dims;
        for (Dim &d : limited)
            if (d.kind == DimKind::symbolic) d.max = std::min(d.max, max_extent);
        facts_ = Bounds(limited);
        for (const Ascending &tensor : program.ascending) facts_.set_ascending(tensor);
        for (const Dim &d : limited)
            if (d.kind == DimKind::derived && !d.size->variables && !d.size->loads) facts_.assume(d.size <= Expr(max_extent));
        for (const Parameter &p : program.parameters) {
            if (!p.range || !is_integer(p.dtype)) continue;
            const Expr position = cast(DType::index, parameter(p.name, p.dtype));
            facts_.assume(Expr(saturated(p.range->least)) <= position && position <= Expr(saturated(p.range->most)));
        }
    }

    void visit(const TileBody &body) {
        for (const auto &node : body) std::visit([&](const auto &n) { visit(n); }, *node);
    }

private:
    std::vector<Expr> &unproved_;
    Bounds facts_;
    static int64_t saturated(const Scalar &end) { return std::clamp<int64_t>(end.integer, INT32_MIN, INT32_MAX); }
    std::map<std::string, Expr> counts_;  // of loops and of the digits of their variables
    std::vector<Expr> positive_;
    using Seen = std::set<const Expr::Node *>;

    template <typename F>
    void within(F inside) {
        const Bounds outside = facts_;
        inside();
        facts_ = outside;
    }
    void under(const Expr &condition, const std::function<void()> &inside) {
        within([&] {
            if (condition.defined()) facts_.assume(condition);
            inside();
        });
    }

    void look(const Expr &e) {
        Seen seen;
        look(e, seen);
    }
    void look(const Expr &e, Seen &seen) {
        if (!seen.insert(e.get()).second) return;
        if (e.kind() == ExprKind::load && e->guarded) {
            const size_t rank = e->args.size() - 2;
            look(e->args[rank], seen);
            look(e->args[rank + 1], seen);
            if (std::all_of(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank), [](const Expr &i) { return is_leaf(i); }))
                return;
            under(e->args[rank], [&] {
                for (size_t i = 0; i < rank; i++) look(e->args[i]);
            });
            return;
        }
        for (const Expr &arg : e->args) look(arg, seen);
        if (e.type() == DType::index && e.kind() == ExprKind::operation && may_grow(e) && !is_proved(e, facts_)) unproved_.push_back(e);
    }
    static bool is_leaf(const Expr &e) { return e->args.empty(); }

    void visit(const Loop &n) {
        look(n.count);
        const size_t before = positive_.size();
        add_factors(n.count, positive_);
        counts_[n.variable] = n.count;
        within([&] {
            facts_.set(n.variable, Expr(0), n.count - 1);
            visit(n.body);
        });
        positive_.resize(before);
    }

    // The count of a digit: what takes the variable of a loop over several dims apart by the count of one of them.
    Expr count_of_digit(const Expr &value) const {
        const bool is_quotient = value.is_operation(Op::div), is_remainder = value.is_operation(Op::mod);
        if ((!is_quotient && !is_remainder) || value->args[0].kind() != ExprKind::variable) return {};
        const auto whole = counts_.find(value->args[0]->name);
        const Expr &by = value->args[1];
        if (whole == counts_.end() || std::none_of(positive_.begin(), positive_.end(), [&](const Expr &e) { return equal(e, by); }))
            return {};
        if (is_remainder) return by;
        return whole->second.is_operation(Op::mul) && equal(whole->second->args[1], by) ? whole->second->args[0] : Expr();
    }

    void visit(const Let &n) {
        look(n.value);
        within([&] {
            bind(n);
            visit(n.body);
        });
    }

    // A minimum by its sides; the exact value would be put in place of the name, and its cases multiply.
    void bind(const Let &n) {
        if (n.value.type() != DType::index) return;
        if (const Expr count = count_of_digit(n.value); count.defined()) {
            counts_[n.variable] = count;
            return facts_.set(n.variable, Expr(0), count - 1);
        }
        const bool chosen = n.value.is_operation(Op::min) || n.value.is_operation(Op::max) || n.value.is_operation(Op::select);
        const auto range = constant_range(n.value, facts_);
        if (!chosen && !range) return facts_.set(n.variable, n.value, n.value);
        Expr lo, hi;
        if (range) lo = Expr(range->first), hi = Expr(range->second);
        if (!(range && range->first >= 0) && prove(Expr(0) <= n.value, facts_)) lo = Expr(0);
        facts_.set(n.variable, lo, hi);
        if (n.value.is_operation(Op::min))
            for (const Expr &side : n.value->args) facts_.assume(variable(n.variable) <= side);
    }

    void visit(const Guard &n) {
        look(n.condition);
        under(n.condition, [&] { visit(n.then); });
        under(!n.condition, [&] { visit(n.otherwise); });
    }

    void visit(const StoreNode auto &n) {
        if (n.guard.defined()) look(n.guard);
        under(n.guard, [&] {
            for (const Expr &e : n.index) look(e);
            look(n.value);
        });
    }

    void visit(const Alloc &n) { visit(n.body); }  // sizes are computed in 64 bits
    void visit(const Prefetch &) {}                // the element need not exist
    void visit(const WaitNode auto &) {}
    void visit(const Invoke &n) {
        for (const Expr &e : expressions_of(TileNode{n})) look(e);
    }
    void visit(const FragmentNode auto &n) {
        for (const Expr &e : expressions_of(TileNode{n})) look(e);
    }
};

}  // namespace

std::vector<Expr> unproved_positions(const TileProgram &program, const TileBody &body) {
    std::vector<Expr> unproved;
    Search(program, unproved).visit(body);
    return unproved;
}

void WidePositions::look_at(const TileProgram &program, const TileBody &body) {
    for (const Expr &e : unproved_positions(program, body))
        if (!is_unproved(e)) unproved_.emplace(e->hash, e);
    known_.clear();
}

bool WidePositions::is_unproved(const Expr &e) const {
    const auto [first, last] = unproved_.equal_range(e->hash);
    return std::any_of(first, last, [&](const auto &entry) { return equal(entry.second, e); });
}

void WidePositions::bind(const std::string &variable, const Expr &value) {
    bound_[variable] = value.type() == DType::index && find(value);
    known_.clear();
}

bool WidePositions::is_wide(const Expr &e) { return find(e); }

bool WidePositions::find(const Expr &e) {
    if (e.type() != DType::index) return false;
    if (e.is_constant()) return !fits(e->value.integer);
    if (auto it = known_.find(e.get()); it != known_.end()) return it->second.second;
    bool wide = false;
    switch (e.kind()) {
    case ExprKind::variable: {
        const auto it = bound_.find(e->name);
        wide = it != bound_.end() && it->second;
        break;
    }
    case ExprKind::bounded: wide = find(e->args[1]) || find(e->args[2]); break;
    case ExprKind::operation:
        wide = std::any_of(e->args.begin(), e->args.end(), [&](const Expr &arg) { return find(arg); }) || is_unproved(e);
        break;
    case ExprKind::cast:
    case ExprKind::constant:
    case ExprKind::extent:
    case ExprKind::parameter:
    case ExprKind::load:
    case ExprKind::bitcast:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: break;
    }
    known_.emplace(e.get(), std::pair(e, wide));
    return wide;
}

}  // namespace tessera
