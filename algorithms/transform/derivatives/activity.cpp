#include "algorithms/transform/derivatives/activity.h"

#include <unordered_map>

#include "algorithms/expr/function.h"

namespace tessera::differentiation {

namespace {

// How a value changes with active numbers: as a float does, in bits, or not at all.
enum class Change : uint8_t { none, real, bits };

class Paths {
public:
    explicit Paths(const Activity &known) : known_(known) {}

    Change of(const Expr &e) {
        if (!e.defined()) return Change::none;
        if (const auto it = seen_.find(e.get()); it != seen_.end()) return it->second;
        return seen_[e.get()] = make(e);
    }

private:
    const Activity &known_;
    std::unordered_map<const Expr::Node *, Change> seen_;

    Change any(const Expr &e, size_t from) {
        Change all = Change::none;
        for (size_t i = from; i < e->args.size(); i++) all = std::max(all, of(e->args[i]));
        return all;
    }

    Change make(const Expr &e) {
        switch (e.kind()) {
        case ExprKind::parameter: return known_.tensors.count(e->name) ? Change::real : Change::none;
        case ExprKind::load:
            if (known_.holds_bits.count(e->name)) return Change::bits;
            if (known_.tensors.count(e->name)) return Change::real;
            return e->guarded ? of(e->args.back()) : Change::none;
        case ExprKind::operation:
            if (is_comparison(e->op) || e->op == Op::floor || e->op == Op::ceil || e->op == Op::round || e->op == Op::trunc)
                return Change::none;
            return any(e, e->op == Op::select ? 1 : 0);
        case ExprKind::function: {
            Change all = Change::none;
            for (size_t i = 0; i < e->args.size(); i++) {
                const Expr by = derivative_of(e, i);
                const bool is_zero = by.defined() && by.is_constant() && by->value.real == 0;
                if (!is_zero) all = std::max(all, of(e->args[i]));
            }
            return all;
        }
        case ExprKind::bitcast: return any(e, 0) == Change::none ? Change::none : is_float(e.type()) ? Change::real : Change::bits;
        case ExprKind::cast: {
            const Change change = any(e, 0);
            // What becomes an integer is cut, and what was bits stays so.
            if (is_float(e.type()) == is_float(e->args[0].type())) return change;
            return Change::none;
        }
        default: return Change::none;
        }
    }
};

// The sources that change a result of the stage, as far as the derivative is concerned.
void add_changed(const Stage &stage, Activity &known) {
    Paths paths(known);
    Change change = Change::none;
    const auto name = [&](const std::string &result, DType type, Change how) {
        if (result.empty() || how == Change::none) return;
        if (is_float(type)) known.tensors.insert(result);
        else if (how == Change::bits) known.holds_bits.insert(result);
    };
    const std::vector<std::string> names = names_of_results(stage);
    if (const auto *map = std::get_if<Map>(&stage.body)) {
        const std::vector<Expr> alone = values_alone(*map);
        for (size_t i = 0; i < alone.size(); i++) {
            const Change how = paths.of(alone[i]);
            if (map->values[i].to && how != Change::none) known.tensors.insert(map->values[i].to->state);
            name(names[i], alone[i].type(), how);
        }
        return;
    }
    for (const Expr &e : inputs_of(stage)) change = std::max(change, paths.of(e));
    const Monoid &m = monoid_of(stage);
    for (size_t p = 0; p < m.parts.size(); p++) name(names[p], m.parts[p].identity.type, change);
}

}  // namespace

Activity activity(const Algorithm &algorithm, const std::set<std::string> &by, const std::set<std::string> &of) {
    Activity varied;
    varied.tensors = by;
    for (const Stage &stage : algorithm.stages()) add_changed(stage, varied);
    // Backward: what a stage that is needed reads.
    std::set<std::string> needed = of;
    for (size_t i = algorithm.steps.size(); i-- > 0;) {
        const auto &stage = std::get<Stage>(algorithm.steps[i]);
        bool is_needed = false;
        for (const Tensor &t : results_of(stage)) is_needed |= needed.count(t.name) > 0;
        for (const Write *w : writes_of(stage)) is_needed |= needed.count(w->state) > 0;
        if (!is_needed) continue;
        for (const Expr &whole : expressions_of(stage))
            walk(whole, [&](const Expr &e) {
                if (e.kind() == ExprKind::load || e.kind() == ExprKind::parameter) needed.insert(e->name);
            });
    }
    Activity both;
    for (const std::string &t : varied.tensors)
        if (needed.count(t)) both.tensors.insert(t);
    both.holds_bits = varied.holds_bits;
    return both;
}

}  // namespace tessera::differentiation
