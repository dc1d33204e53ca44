#include "costmodel/features/loop_nest.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tessera {

namespace {

constexpr double max_iterations = 4e18;  // that an integer counts

bool is_both(const Expr &e) { return e.is_operation(Op::bit_and) && e.type() == DType::boolean; }

}  // namespace

void LoopNest::enter(const Loop &loop, double count) {
    const int64_t about = std::max<int64_t>(1, std::llround(std::min(count, max_iterations)));
    frames_.push_back({loop.variable, loop.kind, about - 1, count, nodes_++, loop.count, loops_of(loop.count)});
    at.loops[loop.variable] = frames_.back().last / 2;
    varies_[loop.variable] = {frames_.size() > 64 ? 0 : Mask{1} << (frames_.size() - 1), 0};
}

void LoopNest::leave() {
    varies_.erase(frames_.back().variable);
    at.loops.erase(frames_.back().variable);
    frames_.pop_back();
}

void LoopNest::bind(const Let &let) {
    at.lets[let.variable] = let.value;
    varies_[let.variable] = reach_of(let.value);
}

void LoopNest::unbind(const Let &let) {
    varies_.erase(let.variable);
    at.lets.erase(let.variable);
}

void LoopNest::suppose(const Expr &condition, bool holds, double part) {
    suppositions_.push_back({likely() * part, conditions_.size(), ++supposed_});
    if (!condition->loads) add_each(condition, holds, conditions_);  // what data says of other loops nobody knows
}

void LoopNest::add_each(const Expr &condition, bool holds, std::vector<SummedCondition> &conditions) const {
    if (is_both(condition) && holds) {
        for (const Expr &one : condition->args) add_each(one, holds, conditions);
        return;
    }
    if (const Mask depends = loops_of(condition)) conditions.push_back({condition, !holds, depends});
}

void LoopNest::forget() {
    conditions_.resize(suppositions_.back().conditions);
    suppositions_.pop_back();
}

std::optional<size_t> LoopNest::innermost() const {
    for (size_t i = frames_.size(); i-- > 0;)
        if (!frames_[i].is_inside()) return i;
    return std::nullopt;
}

double LoopNest::turns() const {
    double n = likely();
    for (const Frame &f : frames_) n *= f.count;
    return n;
}

double LoopNest::turns_without(Mask loops) const {
    double n = likely();
    Mask varying = 0;
    size_t node = 0;  // of the innermost loop whose iterations vary
    for (size_t i = 0; i < frames_.size(); i++) {
        const bool varies = frames_[i].depends != 0;
        if (varies) node = frames_[i].node;
        if (varies && has(loops, i)) varying |= Mask{1} << i;
        if (varies || !has(loops, i)) n *= frames_[i].count;
    }
    if (varying == 0) return n;
    const std::array<uint64_t, 3> place{node, suppositions_.empty() ? 0 : suppositions_.back().number, varying};
    const auto [share, is_new] = shares_.emplace(place, 1);
    if (is_new) {
        const double all = sum_of(Expr(1), varying, 0).points;
        if (all > 0) share->second = sum_of(Expr(1), varying, varying).points / all;
    }
    return n * share->second;
}

double LoopNest::issues(Mask mask, double element, double vector_bytes) const {
    const std::optional<size_t> inner = innermost();
    double registers = 1;
    Mask shared = 0;
    for (size_t i = 0; i < frames_.size() && i < 64; i++) {
        const Frame &f = frames_[i];
        const bool is_vector = f.kind == LoopKind::vector;
        if (is_vector && has(mask, i)) registers *= std::max(1.0, f.count * element / vector_bytes);
        if (is_vector || (!has(mask, i) && (inner == i || f.kind == LoopKind::unrolled))) shared |= Mask{1} << i;
    }
    return turns_without(shared) * registers;
}

double LoopNest::lanes() const {
    double n = 1;
    for (const Frame &f : frames_)
        if (f.kind == LoopKind::vector) n *= f.count;
    return n;
}

bool LoopNest::in_lanes(Mask mask) const {
    for (size_t i = 0; i < frames_.size(); i++)
        if (frames_[i].kind == LoopKind::vector && has(mask, i)) return true;
    return false;
}

bool LoopNest::is_shared(Mask mask) const {
    for (size_t i = 0; i < frames_.size(); i++)
        if (frames_[i].kind == LoopKind::unrolled && frames_[i].last > 0 && !has(mask, i)) return true;
    return false;
}

LoopNest::Reach LoopNest::reach_of(const Expr &e) const {
    if (!may_share_much(e)) return reach_of(e, nullptr);
    AddressMap<Reach> known;
    return reach_of(e, &known);
}

LoopNest::Reach LoopNest::reach_of(const Expr &e, AddressMap<Reach> *known) const {
    if (e->variables == 0) return {};
    if (const Reach *found = known ? known->find(e.get()) : nullptr) return *found;
    if (e.kind() == ExprKind::variable) {
        auto varying = varies_.find(e->name);
        return varying == varies_.end() ? Reach{} : varying->second;
    }
    Reach all;
    for (const Expr &arg : e->args) {
        const Reach one = reach_of(arg, known);
        all.depends |= one.depends, all.wraps |= one.wraps;
    }
    if (e.kind() == ExprKind::operation && (e->op == Op::div || e->op == Op::mod)) all.wraps |= all.depends;
    if (known) *known->add(e.get()).first = all;
    return all;
}

LoopNest::Mask LoopNest::loops_of(const Expr &e) const { return reach_of(e).depends; }

LoopNest::Mask LoopNest::wraps(const Expr &e) const { return reach_of(e).wraps; }

double LoopNest::mean_of(const Expr &e) {
    const Mask used = loops_of(e);
    if (used != 0 && is_both(e) && !e->loads) {  // loops of one part need not turn together with those of the other
        const double first = mean_of(e->args[0]);
        if (first == 0) return 0;
        suppose(e->args[0], true, first);
        const double second = mean_of(e->args[1]);
        forget();
        return first * second;
    }
    if (used == 0) return static_cast<double>(at.value(e));
    const IterationSum sum = sum_of(e, used, 0);
    return sum.points > 0 ? sum.value / sum.points : static_cast<double>(at.value(e));
}

IterationSum LoopNest::sum_of(const Expr &e, Mask used, Mask shared) const {
    for (Mask before = 0; before != used;) {
        before = used;
        for (size_t i = 0; i < frames_.size() && i < 64; i++) {
            if (frames_[i].depends & used) used |= Mask{1} << i;
            if (has(used, i)) used |= frames_[i].depends;
        }
        for (const SummedCondition &c : conditions_)
            if (c.depends & used) used |= c.depends;
    }
    std::vector<SummedLoop> loops;
    std::vector<SummedCondition> conditions;
    for (size_t i = 0; i < frames_.size() && i < 64; i++) {
        const Frame &f = frames_[i];
        if (has(used, i)) loops.push_back({i, f.variable, f.iterations, f.depends, f.count, has(shared, i)});
    }
    std::vector<Expr> one_fails;  // of two conditions
    for (const SummedCondition &c : conditions_) {
        if (!(c.depends & used)) continue;
        if (c.otherwise && is_both(c.holds)) one_fails.push_back(c.holds);
        else conditions.push_back(c);
    }
    return sum_where(e, loops, conditions, one_fails);
}

// Where not all holds: everywhere, less where all does. Conditions that hold bind together fewer loops than one that fails.
IterationSum LoopNest::sum_where(const Expr &e, const std::vector<SummedLoop> &loops, std::vector<SummedCondition> &conditions,
                                 std::vector<Expr> &one_fails) const {
    if (one_fails.empty()) return iteration_sum(at, loops, conditions, e);
    const Expr all = one_fails.back();
    one_fails.pop_back();
    IterationSum sum = sum_where(e, loops, conditions, one_fails);
    const size_t before = conditions.size();
    add_each(all, true, conditions);
    const IterationSum less = sum_where(e, loops, conditions, one_fails);
    conditions.resize(before), one_fails.push_back(all);
    sum.points -= less.points, sum.value -= less.value;
    return sum;
}

int64_t LoopNest::moved(const Expr &e, size_t frame) {
    int64_t &position = at.loops[frames_[frame].variable];
    position = frames_[frame].last;
    const int64_t last = at.value(e);
    position = 0;
    const int64_t first = at.value(e);
    position = frames_[frame].last / 2;
    return last - first;
}

}  // namespace tessera
