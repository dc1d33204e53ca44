#include "algorithms/transform/derivatives/compute_again.h"

#include <algorithm>

namespace tessera::differentiation {

namespace {

using Names = std::map<std::string, std::string>;  // of tensors, by what they were

Expr with_names(const Expr &e, const Names &names) {
    if (!e.defined()) return e;
    return replace_loads(e, [&](const Expr &n) -> Expr {
        const auto other = names.find(n->name);
        return other == names.end() ? Expr() : load_of(other->second, n);
    });
}

Step with_names(Step step, const Names &names) {
    if (auto *stage = std::get_if<Stage>(&step))
        return map_expressions(std::move(*stage), [&](const Expr &e) { return with_names(e, names); });
    auto &call = std::get<Call>(step);
    for (auto &[own, view] : call.tensors) {
        if (const auto other = names.find(view.tensor); other != names.end()) view.tensor = other->second;
        for (Expr &e : view.index) e = with_names(e, names);
    }
    for (auto &[own, value] : call.parameters) value = with_names(value, names);
    return step;
}

// Gives the stage and its results other names.
Stage renamed(Stage stage, const std::string &name, const std::vector<std::string> &results, Names &names) {
    const std::vector<std::string> before = names_of_results(stage);
    stage.name = name, stage.results = results;
    const std::vector<std::string> after = names_of_results(stage);
    for (size_t i = 0; i < before.size(); i++)
        if (!before[i].empty()) names[before[i]] = after[i];
    return stage;
}

}  // namespace

bool can_be_computed_again(const Stage &stage, const std::vector<Step> &steps) {
    if (updates(stage)) return false;
    std::set<std::string> written;
    for (const Step &step : steps) {
        if (const auto *other = std::get_if<Stage>(&step)) {
            for (const Write *w : writes_of(*other)) written.insert(w->state);
            continue;
        }
        const auto &call = std::get<Call>(step);
        for (const Tensor &t : call.callee->tensors)
            if (t.role == Role::state && call.callee->updates_state) written.insert(call.tensors.at(t.name).tensor);
    }
    const std::set<std::string> reads = reads_of(stage);
    return std::none_of(written.begin(), written.end(), [&](const std::string &state) { return reads.count(state) > 0; });
}

std::vector<Copy> compute_again(Program &p, size_t forward, const std::function<bool(const std::string &stage)> &is_again) {
    std::vector<Copy> copies;
    std::map<std::string, const Stage *> makers;  // by result
    for (size_t i = 0; i < forward; i++) {
        const auto *stage = std::get_if<Stage>(&p.made.steps[i]);
        if (!stage || !is_again(stage->name) || !can_be_computed_again(*stage, p.made.steps)) continue;
        for (const Tensor &t : results_of(*stage)) makers[t.name] = stage;
    }
    Names again;
    std::vector<Step> steps(p.made.steps.begin(), p.made.steps.begin() + static_cast<std::ptrdiff_t>(forward));
    const std::function<void(const Step &)> make_what_is_read = [&](const Step &step) {
        for (const std::string &name : reads_of(step)) {
            const auto maker = makers.find(name);
            if (maker == makers.end() || again.count(name)) continue;
            const Stage &original = *maker->second;
            make_what_is_read(original);
            std::vector<std::string> results;
            for (const std::string &result : original.results) results.push_back(result.empty() ? "" : p.fresh(result + ".again"));
            const Stage copy = renamed(std::get<Stage>(with_names(original, again)), p.fresh(original.name + ".again"), results, again);
            p.take_names_of(copy);
            for (const Tensor &t : results_of(original))
                if (p.made.large.count(t.name)) p.made.large.insert(again.at(t.name));
            for (const Tensor &t : results_of(copy)) p.know(t);
            copies.push_back({copy.name, original.name, original.results});
            steps.emplace_back(copy);
        }
    };
    for (size_t i = forward; i < p.made.steps.size(); i++) {
        make_what_is_read(p.made.steps[i]);
        steps.push_back(with_names(p.made.steps[i], again));
    }
    p.made.steps = std::move(steps);
    return copies;
}

void take_names_of_gone(Program &p, const std::vector<Copy> &copies) {
    Names names;
    for (Step &step : p.made.steps) {
        step = with_names(std::move(step), names);
        auto *stage = std::get_if<Stage>(&step);
        if (!stage) continue;
        const auto copy = std::find_if(copies.begin(), copies.end(), [&](const Copy &c) { return c.stage == stage->name; });
        if (copy == copies.end() || p.made.find_stage(copy->of)) continue;
        Stage original = renamed(*stage, copy->of, copy->results, names);
        for (const Tensor &t : results_of(original)) p.know(t);
        *stage = std::move(original);
    }
}

}  // namespace tessera::differentiation
