#include "algorithms/transform/derivatives/activity.h"

#include <algorithm>
#include <unordered_map>

#include "algorithms/expr/function.h"
#include "algorithms/ir/derivative_rule.h"

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

// The results that change with the sources, as far as the derivative is concerned.
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

// By its rule.
void add_changed_by_rule(const Call &call, Activity &known) {
    Paths paths(known);
    const RuleReach reach = reach_of(*call.callee);
    bool changes = false;
    for (const auto &[name, view] : call.tensors) changes |= reach.by.count(name) && known.tensors.count(view.tensor);
    for (const auto &[name, value] : call.parameters) changes |= reach.by.count(name) && paths.of(value) == Change::real;
    if (changes)
        for (const std::string &output : reach.of) known.tensors.insert(name_of_result(call, output));
}

void add_changed(const Call &call, Activity &known) {
    if (call.callee->rule) return add_changed_by_rule(call, known);
    Paths paths(known);
    Activity inside;
    for (const auto &[name, view] : call.tensors) {
        if (known.tensors.count(view.tensor)) inside.tensors.insert(name);
        if (known.holds_bits.count(view.tensor)) inside.holds_bits.insert(name);
    }
    for (const auto &[name, value] : call.parameters)
        if (paths.of(value) == Change::real) inside.tensors.insert(name);
    inside = changed_in(call, inside);
    for (const std::string &output : call.callee->outputs) {
        const std::string result = name_of_result(call, output);
        if (inside.tensors.count(output)) known.tensors.insert(result);
        if (inside.holds_bits.count(output)) known.holds_bits.insert(result);
    }
    for (const Tensor &t : call.callee->tensors)
        if (t.role == Role::state && inside.tensors.count(t.name)) known.tensors.insert(call.tensors.at(t.name).tensor);
}

void add_changed(const Step &step, Activity &known) {
    std::visit([&](const auto &s) { add_changed(s, known); }, step);
}

void add_needed(const Expr &whole, std::set<std::string> &needed) {
    walk(whole, [&](const Expr &e) {
        if (e.kind() == ExprKind::load || e.kind() == ExprKind::parameter) needed.insert(e->name);
    });
}

// What a step reads, where it gives something that is needed.
void add_needed(const Stage &stage, std::set<std::string> &needed) {
    bool is_needed = false;
    for (const Tensor &t : results_of(stage)) is_needed |= needed.count(t.name) > 0;
    for (const Write *w : writes_of(stage)) is_needed |= needed.count(w->state) > 0;
    if (!is_needed) return;
    for (const Expr &whole : expressions_of(stage)) add_needed(whole, needed);
}

void add_needed(const Call &call, std::set<std::string> &needed) {
    std::set<std::string> inside;
    for (const std::string &output : call.callee->outputs)
        if (needed.count(name_of_result(call, output))) inside.insert(output);
    for (const Tensor &t : call.callee->tensors)
        if (t.role == Role::state && needed.count(call.tensors.at(t.name).tensor)) inside.insert(t.name);
    if (inside.empty()) return;
    const std::set<std::string> asked = inside;
    inside = needed_in(call, inside);
    if (call.callee->rule) {  // may have a derivative by what the algorithm does not read
        const RuleReach reach = reach_of(*call.callee);
        const auto has_one = [&](const std::string &output) { return reach.of.count(output) > 0; };
        if (std::any_of(asked.begin(), asked.end(), has_one)) inside.insert(reach.by.begin(), reach.by.end());
    }
    for (const auto &[name, view] : call.tensors) {
        if (!inside.count(name)) continue;
        needed.insert(view.tensor);
        for (const Expr &e : view.index) add_needed(e, needed);
    }
    for (const auto &[name, value] : call.parameters)
        if (inside.count(name)) add_needed(value, needed);
}

void add_all_needed(const Algorithm &algorithm, std::set<std::string> &needed) {
    for (size_t i = algorithm.steps.size(); i-- > 0;) std::visit([&](const auto &s) { add_needed(s, needed); }, algorithm.steps[i]);
}

}  // namespace

Activity changed_in(const Call &call, Activity inside) {
    for (;;) {
        Activity all = inside;
        for (const Step &step : call.callee->steps) add_changed(step, all);
        bool grows = false;
        if (call.repeat)
            for (const auto &[input, output] : call.repeat->carried) {
                if (inside.tensors.count(input)) all.tensors.insert(output);  // where there are no rounds
                if (all.tensors.count(output)) grows |= inside.tensors.insert(input).second;
                if (all.holds_bits.count(output)) grows |= inside.holds_bits.insert(input).second;
            }
        if (!grows) return all;
    }
}

std::set<std::string> needed_in(const Call &call, std::set<std::string> needed) {
    for (;;) {
        std::set<std::string> all = needed;
        add_all_needed(*call.callee, all);
        bool grows = false;
        if (call.repeat)
            for (const auto &[input, output] : call.repeat->carried) {
                if (all.count(input)) grows |= needed.insert(output).second;
                if (needed.count(output)) grows |= needed.insert(input).second;  // where there are no rounds
            }
        if (!grows) return all;
    }
}

Activity activity(const Algorithm &algorithm, const std::set<std::string> &by, const std::set<std::string> &of) {
    Activity varied;
    varied.tensors = by;
    for (const Step &step : algorithm.steps) add_changed(step, varied);
    std::set<std::string> needed = of;
    add_all_needed(algorithm, needed);
    Activity both;
    for (const std::string &t : varied.tensors)
        if (needed.count(t)) both.tensors.insert(t);
    both.holds_bits = varied.holds_bits;
    return both;
}

RoundActivity rule_activity(const Call &call, const Activity &around) {
    Paths paths(around);
    const RuleReach reach = reach_of(*call.callee);
    RoundActivity active;
    for (const Tensor &t : call.callee->tensors)
        if (reach.by.count(t.name) && around.tensors.count(call.tensors.at(t.name).tensor))
            active.by.push_back({t.name, t.dtype, t.dims, false});
    for (const Parameter &p : call.callee->parameters)
        if (reach.by.count(p.name) && paths.of(call.parameters.at(p.name)) == Change::real)
            active.by.push_back({p.name, p.dtype, {}, true});
    for (const std::string &output : call.callee->outputs)
        if (reach.of.count(output) && around.tensors.count(name_of_result(call, output))) active.of.push_back(output);
    return active;
}

RoundActivity round_activity(const Call &call, const Activity &around) {
    Paths paths(around);
    Activity inside;
    std::set<std::string> of;
    for (const auto &[name, view] : call.tensors)
        if (around.tensors.count(view.tensor)) inside.tensors.insert(name);
    for (const auto &[name, value] : call.parameters)
        if (paths.of(value) == Change::real) inside.tensors.insert(name);
    for (const std::string &output : call.callee->outputs)
        if (around.tensors.count(name_of_result(call, output))) of.insert(output);
    RoundActivity round;
    if (inside.tensors.empty() || of.empty()) return round;
    inside = changed_in(call, inside);
    const std::set<std::string> needed = needed_in(call, of);
    const auto is_active = [&](const std::string &name) { return inside.tensors.count(name) && needed.count(name); };
    for (const Tensor &t : call.callee->tensors)
        if (t.role != Role::constant && is_active(t.name)) round.by.push_back({t.name, t.dtype, t.dims, false});
    for (const Parameter &p : call.callee->parameters)
        if (is_active(p.name)) round.by.push_back({p.name, p.dtype, {}, true});
    for (const std::string &output : call.callee->outputs)
        if (is_active(output)) round.of.push_back(output);
    return round;
}

}  // namespace tessera::differentiation
