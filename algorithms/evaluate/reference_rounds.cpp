#include "algorithms/evaluate/reference_rounds.h"

#include <algorithm>

#include "support/text/error.h"

namespace tessera {

namespace {

// No name of an algorithm has a '%' in it.
std::string given(const Call &call, const std::string &tensor) { return call.scope + "%given%" + tensor; }
std::string left(const Call &call, const std::string &state) { return call.scope + "%left%" + state; }
std::string write_of(const Call &call, const std::string &state) { return call.scope + "%write%" + state; }
std::string value(const Call &call, const std::string &parameter) { return call.scope + "%value%" + parameter; }

std::string dim_of(const Call &call, const std::string &callees) {
    auto bound = call.dims.find(callees);
    return bound != call.dims.end() ? bound->second : call.scope + "." + callees;
}

void add_round_stages(const Call &call, Algorithm &a, std::vector<Step> &steps) {
    for (const Tensor &t : call.callee->tensors) {
        if (t.role == Role::constant) continue;
        const View &view = call.tensors.at(t.name);
        const std::string name = given(call, t.name);
        std::vector<std::string> dims;
        std::vector<Expr> at;
        std::map<std::string, Expr> axes;
        for (size_t i = 0; i < t.dims.size(); i++) {
            dims.push_back(name + "%" + std::to_string(i));
            a.dims.push_back(derived_dim(dims.back(), extent(dim_of(call, t.dims[i]))));
            at.push_back(variable(dims.back()));
        }
        const std::vector<Expr> index = index_in(view, at);
        steps.emplace_back(Stage{name, dims, Map(load(view.tensor, t.dtype, index))});
        if (t.role != Role::state) continue;
        a.tensors.push_back({left(call, t.name), t.dtype, dims, Role::input, {}});
        steps.emplace_back(Stage{write_of(call, t.name), dims, Map(Write{view.tensor, index}, load(left(call, t.name), t.dtype, at))});
    }
    for (const Parameter &p : call.callee->parameters) steps.emplace_back(Stage{value(call, p.name), {}, Map(call.parameters.at(p.name))});
}

Array converted(const Array &array, DType type) { return array.dtype == type ? array : Array(type, array.extents, array.values()); }

class Rounds {
public:
    Rounds(const Call &call, const Algorithm &algorithm, StageRunner &runner, bool in_double, const EvaluateRound &evaluate_round)
        : call_(call), callee_(*call.callee), a_(algorithm), runner_(runner), in_double_(in_double), evaluate_round_(evaluate_round) {
        for (const Dim &d : callee_.dims)
            if (d.kind != DimKind::derived) extents_[d.name] = runner.extent_of(dim_of(call, d.name));
    }

    void run() {
        const Repeat &repeat = *call_.repeat;
        const int64_t rounds = runner_.extent_of(repeat.dim);
        std::map<std::string, Array> stacks, before;
        for (int64_t round = 0; round < rounds; round++) {
            runner_.set_index(repeat.dim, round);
            std::map<std::string, Array> after = run_round(before);
            for (const std::string &output : repeat.stacked) stack(stacks[output], after.at(output), round, rounds);
            before = std::move(after);
            if (!repeat.until.empty() && before.at(repeat.until).get(0).integer) break;
        }
        if (rounds == 0)
            for (const auto &[input, output] : repeat.carried) before[output] = run_stage(given(call_, input));
        if (rounds == 0 && !repeat.until.empty()) before.emplace(repeat.until, Array(DType::boolean, {}));
        for (const Tensor &t : results_of(call_))
            for (const std::string &output : callee_.outputs) {
                if (name_of_result(call_, output) != t.name) continue;
                const bool is_stacked = repeat.stacked.count(output) > 0;
                runner_.add(t.name, !is_stacked ? before.at(output) : rounds ? stacks.at(output) : nothing(t));
            }
    }

private:
    const Call &call_;
    const Algorithm &callee_, &a_;
    StageRunner &runner_;
    const bool in_double_;
    const EvaluateRound &evaluate_round_;
    Extents extents_;

    const Array &run_stage(const std::string &name) {
        runner_.run(*a_.find_stage(name));
        return runner_.array(name);
    }

    std::map<std::string, Array> run_round(const std::map<std::string, Array> &before) {
        std::map<std::string, Array> tensors;
        for (const Tensor &t : callee_.tensors) {
            if (t.role == Role::constant) continue;
            const auto carried = call_.repeat->carried.find(t.name);
            const bool is_there = carried != call_.repeat->carried.end() && !before.empty();
            tensors[t.name] = converted(is_there ? before.at(carried->second) : run_stage(given(call_, t.name)), t.dtype);
        }
        std::map<std::string, Scalar> parameters;
        for (const Parameter &p : callee_.parameters) parameters[p.name] = converted(run_stage(value(call_, p.name)), p.dtype).get(0);
        std::map<std::string, Array> after = evaluate_round_(callee_, std::move(tensors), parameters, extents_);
        for (const Tensor &t : callee_.tensors) {
            if (t.role != Role::state) continue;
            runner_.add(left(call_, t.name), after.at(t.name));
            runner_.run(*a_.find_stage(write_of(call_, t.name)));
        }
        return after;
    }

    static void stack(Array &all, const Array &one, int64_t round, int64_t rounds) {
        if (round == 0) {
            std::vector<int64_t> extents = one.extents;
            extents.insert(extents.begin(), rounds);
            all = Array(one.dtype, extents);
        }
        std::copy(one.data.begin(), one.data.end(), all.data.begin() + static_cast<std::ptrdiff_t>(one.data.size()) * round);
    }

    Array nothing(const Tensor &t) {
        std::vector<int64_t> extents;
        for (const std::string &d : t.dims) extents.push_back(runner_.extent_of(d));
        return {in_double_ && is_float(t.dtype) ? DType::f64 : t.dtype, extents};
    }
};

}  // namespace

Algorithm with_round_stages(Algorithm algorithm) {
    std::vector<Step> steps;
    for (const Step &step : algorithm.steps) {
        if (const auto *call = std::get_if<Call>(&step)) add_round_stages(*call, algorithm, steps);
        steps.push_back(step);
    }
    algorithm.steps = std::move(steps);
    return algorithm;
}

bool is_of_rounds(const std::string &name) { return name.find('%') != std::string::npos; }

void run_rounds(const Call &call, const Algorithm &algorithm, StageRunner &runner, bool in_double, const EvaluateRound &evaluate_round) {
    Rounds(call, algorithm, runner, in_double, evaluate_round).run();
}

}  // namespace tessera
