#include "algorithms/transform/roll/roll.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "algorithms/ir/rows.h"
#include "algorithms/text/json.h"
#include "algorithms/transform/roll/chain.h"
#include "algorithms/verify/verify.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// Numbers of texts: equal ones have one.
class Numbers {
public:
    size_t of(const std::string &text) { return numbers_.emplace(text, numbers_.size()).first->second; }

private:
    std::map<std::string, size_t> numbers_;
};

// Steps by number: equal ones, names of tensors aside, have one.
class StepNumbers {
public:
    std::vector<size_t> of(const std::vector<Step> &steps) {
        std::vector<size_t> numbers;
        for (const Step &s : steps) numbers.push_back(of(s));
        return numbers;
    }

private:
    Numbers steps_, callees_;
    std::map<std::shared_ptr<const Algorithm>, size_t> known_;

    size_t of(const Step &step) {
        std::map<std::string, std::string> names;
        for (const std::string &name : makes_of(step)) names.emplace(name, "made" + std::to_string(names.size()));
        for (const std::string &name : reads_of(step)) names.emplace(name, "read" + std::to_string(names.size()));
        Step plain = with_names(step, names);
        std::visit(Overloaded{
                       [](Stage &stage) { stage.name = "step"; },
                       [&](Call &call) {
                           call.scope = "step";
                           for (auto &[name, value] : call.parameters)
                               if (may_differ(call, name)) value = parameter("any", value.type());
                           Algorithm stand_in;  // the text of a callee would be written for each call
                           stand_in.name = std::to_string(number_of(call.callee));
                           stand_in.outputs = call.callee->outputs;
                           call.callee = std::make_shared<const Algorithm>(std::move(stand_in));
                       },
                   },
                   plain);
        Algorithm alone;
        alone.steps.push_back(std::move(plain));
        return steps_.of(to_json(alone).dump());
    }
    size_t number_of(const std::shared_ptr<const Algorithm> &callee) {
        const auto [it, fresh] = known_.emplace(callee, 0);
        if (fresh) it->second = callees_.of(to_json(*callee).dump());
        return it->second;
    }
};

// Every stretch of equal rounds that saves enough, those that save most first; of these, those of the shortest rounds. They are as many as
// the square of the steps, and mostly the first ones are wanted: so they are made one by one.
class Stretches {
public:
    Stretches(const std::vector<size_t> &steps, size_t least_saved) : least_saved_(least_saved) {
        for (size_t period = 1; 2 * period <= steps.size(); period++) {
            for (size_t begin = 0; begin + 2 * period <= steps.size();) {
                size_t end = begin;
                while (end + period < steps.size() && steps[end] == steps[end + period]) end++;
                push({{begin, period, (end - begin) / period + 1}, end + period, runs_++});
                begin = end + 1;
            }
        }
    }

    std::optional<Stretch> next() {
        while (!left_.empty() && !fits()) {
            if (++first_ < left_.front().longest.period) {
                left_out_ = 0;
                continue;
            }
            std::pop_heap(left_.begin(), left_.end());
            Run run = left_.back();
            left_.pop_back();
            run.longest.rounds--;
            push(run);
            first_ = left_out_ = 0;
        }
        if (left_.empty()) return std::nullopt;
        Stretch s = left_.front().longest;
        s.begin = begin();
        left_out_++;
        return s;
    }

private:
    // Steps that are equal to those a period behind them, up to `end`; stretches of so many rounds begin at each place where they fit.
    struct Run {
        Stretch longest;
        size_t end = 0, number = 0;
        friend bool operator<(const Run &a, const Run &b) {  // the greatest comes first
            if (a.longest.saved() != b.longest.saved()) return a.longest.saved() < b.longest.saved();
            if (a.longest.period != b.longest.period) return a.longest.period > b.longest.period;
            return a.number > b.number;
        }
    };
    const size_t least_saved_;
    std::vector<Run> left_;  // a heap
    size_t runs_ = 0;
    size_t first_ = 0, left_out_ = 0;  // steps and rounds of the first run that the next stretch leaves out in front

    size_t begin() const { return left_.front().longest.begin + first_ + left_out_ * left_.front().longest.period; }
    bool fits() const { return begin() + left_.front().longest.period * left_.front().longest.rounds <= left_.front().end; }
    void push(const Run &run) {
        if (run.longest.rounds < 2 || run.longest.saved() < least_saved_) return;
        left_.push_back(run);
        std::push_heap(left_.begin(), left_.end());
    }
};

// The dims that steps over these tensors name, and those that their sizes need, in the algorithm's order.
class DimsUsed {
public:
    explicit DimsUsed(const Algorithm &algorithm) : algorithm_(algorithm) {}

    void add(const std::string &name) {
        const Dim *d = algorithm_.find_dim(name);
        if (!d || !names_.insert(name).second) return;
        if (!d->equals.empty()) add(d->equals);
        if (d->kind == DimKind::derived) add(d->size);
    }
    void add(const std::vector<std::string> &names) {
        for (const std::string &n : names) add(n);
    }
    void add(const Expr &e) {
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::extent || n.kind() == ExprKind::variable) add(n->name);
        });
    }
    void add(const Step &step) {
        std::visit(Overloaded{[&](const Stage &s) { add_stage(s); }, [&](const Call &c) { add_call(c); }}, step);
        for (const Expr &e : expressions_of(step)) add(e);
        for (const Tensor &t : std::visit([](const auto &s) { return results_of(s); }, step)) add(t.dims);
    }
    std::vector<Dim> dims() const {
        std::vector<Dim> used;
        for (const Dim &d : algorithm_.dims)
            if (names_.count(d.name)) used.push_back(d);
        return used;
    }
    // Whether the size of one of them follows from data.
    bool follow_from_data() const {
        const std::vector<Dim> used = dims();
        return std::any_of(used.begin(), used.end(), [](const Dim &d) { return d.size.defined() && has_load(d.size); });
    }

private:
    const Algorithm &algorithm_;
    std::set<std::string> names_;

    void add_stage(const Stage &stage) {
        add(stage.dims), add(folded_dims(stage));
        if (!is_fold(stage)) return;
        for (const Part &p : monoid_of(stage).parts) add(p.dims);
        for (const BatchPass &p : monoid_of(stage).batch) add(p.dims);
    }
    void add_call(const Call &call) {
        for (const auto &[own, dim] : call.dims) add(dim);
        if (call.repeat) add(call.repeat->dim);
    }
};

std::string unused(const std::string &wanted, const std::function<bool(const std::string &)> &is_used) {
    std::string name = wanted;
    for (int n = 2; is_used(name); n++) name = wanted + "_" + std::to_string(n);
    return name;
}

class Roller {
public:
    Roller(Algorithm algorithm, const std::set<std::string> &stackable, size_t least_saved)
        : stackable_(stackable), least_saved_(least_saved), rolled_{std::move(algorithm), {}} {
        const Algorithm &a = rolled_.algorithm;
        special_.insert(a.large.begin(), a.large.end());
        for (const auto &[name, of] : a.half_bytes) special_.insert(name);
        for (const auto &[name, of] : a.stated_ranges) special_.insert(name);
        for (const auto &[name, of] : a.checks) special_.insert(name);
        for (const std::string &name : special_) stackable_.erase(name);
    }

    Rolled roll() {
        join_equal_constants();
        while (roll_one()) {}
        if (!rolled_.stacks.empty() || is_changed_) verify(rolled_.algorithm);
        return std::move(rolled_);
    }

private:
    std::set<std::string> stackable_;
    const size_t least_saved_;
    Rolled rolled_;
    std::set<std::string> special_;  // names of which more is said than a callee's could be
    StepNumbers numbers_;
    bool is_changed_ = false;

    // So that rounds which read equal tables read one.
    void join_equal_constants() {
        Algorithm &a = rolled_.algorithm;
        std::map<std::string, std::string> first, same_as;
        std::erase_if(a.tensors, [&](const Tensor &t) {
            if (t.role != Role::constant) return false;
            std::string key = name_of(t.dtype) + std::string(" ");
            for (const std::string &d : t.dims) key += d + " ";
            const auto [it, fresh] = first.emplace(key + constant_bytes(t), t.name);
            if (!fresh) same_as[t.name] = it->second;
            return !fresh;
        });
        if (same_as.empty()) return;
        for (Step &s : a.steps) {
            std::map<std::string, std::string> names;
            for (const std::string &name : reads_of(s))
                if (const auto it = same_as.find(name); it != same_as.end()) names.insert(*it);
            if (!names.empty()) s = with_names(std::move(s), names);
        }
        is_changed_ = true;
    }

    bool roll_one() {
        const StepTable steps(rolled_.algorithm);
        Stretches stretches(numbers_.of(rolled_.algorithm.steps), least_saved_);
        while (const std::optional<Stretch> s = stretches.next())
            if (const std::optional<Chain> chain = chain_of(steps, *s, stackable_); chain && replace(steps, *s, *chain)) return true;
        return false;
    }

    // One round as an algorithm of its own; nothing where more is said of its names than a callee could say.
    std::optional<Algorithm> round_of(const StepTable &steps, const Stretch &s, const Chain &chain) const {
        const Algorithm &whole = rolled_.algorithm;
        Algorithm round;
        round.numerics = whole.numerics;
        round.steps.assign(whole.steps.begin() + static_cast<std::ptrdiff_t>(s.begin),
                           whole.steps.begin() + static_cast<std::ptrdiff_t>(s.begin + s.period));
        DimsUsed used(whole);
        auto add_input = [&](const std::string &name) {
            Tensor t = steps.tensor(name);
            used.add(t.dims);
            if (t.role != Role::constant) t.role = Role::input;
            round.tensors.push_back(std::move(t));
        };
        for (const Chain::Carried &c : chain.carried) add_input(c.first);
        for (const std::string &name : chain.shared) add_input(name);
        for (const Chain::Stack &stack : chain.stacks) add_input(stack.first);
        std::set<std::string> parameters;
        for (size_t i = 0; i < chain.numbers.size(); i++) {
            Expr &value = std::get<Call>(round.steps[chain.numbers[i].step]).parameters.at(chain.numbers[i].parameter);
            const std::string name = number_name(i);
            round.parameters.push_back({.name = name, .dtype = value.type()});
            value = parameter(name, value.type());
        }
        for (const Step &step : round.steps) {
            used.add(step);
            for (const Expr &e : expressions_of(step))
                walk(e, [&](const Expr &n) {
                    if (n.kind() == ExprKind::parameter) parameters.insert(n->name);
                });
        }
        if (used.follow_from_data()) return std::nullopt;
        round.dims = used.dims();
        for (const Parameter &p : whole.parameters)
            if (parameters.count(p.name)) round.parameters.push_back(p);
        auto add_output = [&](const std::string &name) {
            if (std::find(round.outputs.begin(), round.outputs.end(), name) == round.outputs.end()) round.outputs.push_back(name);
        };
        for (const auto &[first, last] : chain.results) add_output(first);
        for (const Chain::Carried &c : chain.carried) add_output(c.result);
        std::set<std::string> names;
        for (size_t i = s.begin; i < s.end(); i++) {
            names.insert(steps.reads[i].begin(), steps.reads[i].end());
            names.insert(steps.makes[i].begin(), steps.makes[i].end());
            if (const auto *stage = std::get_if<Stage>(&whole.steps[i])) names.insert(stage->name);
        }
        if (std::any_of(names.begin(), names.end(), [&](const std::string &n) { return special_.count(n) != 0; })) return std::nullopt;
        return round;
    }

    // Parameters of the program bear such a name only where it has this one.
    std::string number_name(size_t i) const {
        const std::vector<Parameter> &own = rolled_.algorithm.parameters;
        return unused("number_" + std::to_string(i), [&](const std::string &n) {
            return std::any_of(own.begin(), own.end(), [&](const Parameter &p) { return p.name == n; });
        });
    }

    bool is_constant(const std::string &name) const {
        const Tensor *own = rolled_.algorithm.find_tensor(name);
        return own && own->role == Role::constant;
    }

    bool is_used(const std::string &name) const {
        const Algorithm &a = rolled_.algorithm;
        if (a.find_tensor(name) || a.find_stage(name)) return true;
        return std::any_of(a.steps.begin(), a.steps.end(), [&](const Step &s) {
            if (const auto *call = std::get_if<Call>(&s))
                if (call->scope == name || call->callee->name == name) return true;
            const std::vector<std::string> made = makes_of(s);
            return std::find(made.begin(), made.end(), name) != made.end();
        });
    }

    // `steps` are those of the algorithm before it changes here.
    bool replace(const StepTable &steps, const Stretch &s, const Chain &chain) {
        std::optional<Algorithm> round = round_of(steps, s, chain);
        if (!round) return false;
        Algorithm &whole = rolled_.algorithm;
        Call call;
        call.scope = unused("layers", [&](const std::string &n) { return is_used(n); });
        round->name = unused("layer", [&](const std::string &n) { return is_used(n); });
        const std::string dim = unused("Layers", [&](const std::string &n) { return whole.find_dim(n) != nullptr; });
        call.repeat = Repeat{dim};
        for (const Dim &d : round->dims) call.dims[d.name] = d.name;
        for (const Parameter &p : round->parameters) call.parameters[p.name] = parameter(p.name, p.dtype);  // numbers follow below
        for (size_t i = 0; i < chain.numbers.size(); i++) {
            const Chain::Number &number = chain.numbers[i];
            Tensor table;
            table.name = unused(call.scope + "_" + number_name(i), [&](const std::string &n) { return is_used(n); });
            table.dtype = number.values[0].type;
            table.dims = {dim};
            table.role = Role::constant;
            table.values = number.values;
            call.parameters[number_name(i)] = load(table.name, table.dtype, {variable(dim)});
            whole.tensors.push_back(std::move(table));
        }
        for (const Chain::Carried &c : chain.carried) call.tensors[c.first] = c.first, call.repeat->carried[c.first] = c.result;
        for (const std::string &name : chain.shared)
            if (!is_constant(name)) call.tensors[name] = name;
        std::vector<Tensor> stacked;
        for (const Chain::Stack &stack : chain.stacks) {
            Tensor t = steps.tensor(stack.first);
            View view(unused(stack.first + "_stack", [&](const std::string &n) { return is_used(n); }), {variable(dim)});
            for (size_t i = 0; i < t.dims.size(); i++) view.index.push_back(axis(i));
            t.name = view.tensor;
            t.dims.insert(t.dims.begin(), dim);
            call.tensors[stack.first] = std::move(view);
            rolled_.stacks[t.name] = stack.members;
            stacked.push_back(std::move(t));
        }
        for (const auto &[first, last] : chain.results) call.results[first] = last;
        call.callee = std::make_shared<const Algorithm>(std::move(*round));
        whole.dims.push_back(fixed_dim(dim, static_cast<int64_t>(s.rounds)));
        // Each stack stands where its first member stood, so that inputs keep their order.
        for (Tensor &t : whole.tensors)
            for (size_t i = 0; i < chain.stacks.size(); i++)
                if (t.name == chain.stacks[i].first) t = stacked[i];
        std::set<std::string> gone;
        for (const Chain::Stack &stack : chain.stacks) gone.insert(stack.members.begin(), stack.members.end());
        whole.steps.erase(whole.steps.begin() + static_cast<std::ptrdiff_t>(s.begin),
                          whole.steps.begin() + static_cast<std::ptrdiff_t>(s.end()));
        whole.steps.insert(whole.steps.begin() + static_cast<std::ptrdiff_t>(s.begin), std::move(call));
        std::set<std::string> read;
        for (const Step &step : whole.steps)
            for (const std::string &name : reads_of(step)) read.insert(name);
        // A table that only the rounds read is theirs now.
        for (const std::string &name : chain.shared)
            if (is_constant(name) && !read.count(name)) gone.insert(name);
        std::erase_if(whole.tensors, [&](const Tensor &t) { return gone.count(t.name) != 0; });
        is_changed_ = true;
        return true;
    }
};

}  // namespace

Rolled roll_chains(const Algorithm &algorithm, const std::set<std::string> &stackable, size_t least_saved) {
    if (algorithm.draws || algorithm.updates_state || keeps_rows(algorithm)) return {algorithm, {}};
    return Roller(algorithm, stackable, least_saved).roll();
}

}  // namespace tessera
