#include "algorithms/evaluate/reference.h"

#include <algorithm>
#include <utility>

#include "algorithms/evaluate/in_double.h"
#include "algorithms/evaluate/reference_rounds.h"
#include "algorithms/evaluate/reference_stage.h"
#include "algorithms/index/prove.h"
#include "algorithms/transform/inline_calls.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

std::string shape(const std::vector<int64_t> &extents) {
    std::vector<std::string> parts;
    for (int64_t e : extents) parts.push_back(std::to_string(e));
    return "(" + join(parts) + ")";
}

std::vector<std::string> input_names(const Algorithm &a) {
    std::vector<std::string> names;
    for (const Tensor &t : a.tensors)
        if (t.role != Role::constant) names.push_back(t.name);
    return names;
}

void check_arrays(const Algorithm &a, const std::map<std::string, Array> &arrays) {
    for (const auto &[name, array] : arrays) {
        const Tensor *t = a.find_tensor(name);
        if (!t || t->role == Role::constant)
            throw UserError("reference.tensor", a.name + " has no input or state '" + name + "'; it has " + join(input_names(a)) + "." +
                                                    did_you_mean(name, input_names(a)));
        if (array.dtype != t->dtype || array.extents.size() != t->dims.size())
            throw UserError("reference.tensor", a.name + "." + name + ": expected " + name_of(t->dtype) + " of rank " +
                                                    std::to_string(t->dims.size()) + ", got " + name_of(array.dtype) + " of rank " +
                                                    std::to_string(array.extents.size()) + ".");
    }
    for (const std::string &name : input_names(a))
        if (!arrays.count(name))
            throw UserError("reference.tensor", a.name + " wants " + join(input_names(a)) + "; '" + name + "' is not given.");
}

// The extents of fixed and symbolic dims, from the arrays' shapes.
class ExtentSolver {
public:
    ExtentSolver(const Algorithm &algorithm, Extents given) : a(algorithm), extents_(std::move(given)) {}
    Extents find(const std::map<std::string, Array> &arrays);

private:
    void bind(const std::string &dim, int64_t value, const std::string &where);
    void solve(const Dim &dim, int64_t value);
    void check(const Dim &dim, int64_t value) const;
    [[noreturn]] void fail(const std::string &dim, const std::string &message) const {
        throw UserError("reference.extent", a.name + "." + dim + ": " + message);
    }
    const Algorithm &a;
    Extents extents_;
};

void ExtentSolver::bind(const std::string &dim, int64_t value, const std::string &where) {
    auto [it, fresh] = extents_.emplace(dim, value);
    if (!fresh && it->second != value)
        fail(dim, "the extent is " + std::to_string(it->second) + ", but " + std::to_string(value) + " in " + where + ".");
}

// A derived size that is linear in one unknown extent gives that extent: |B1| = |B| + 1.
void ExtentSolver::solve(const Dim &dim, int64_t value) {
    Linear rest(value), form = linear_form(dim.size, Bounds());
    rest = rest - Linear(form.constant);
    const Linear::Term *unknown = nullptr;
    for (const Linear::Term &t : form.terms) {
        if (t.factors.size() != 1 || t.factors[0].kind() != ExprKind::extent) return;
        auto it = extents_.find(t.factors[0]->name);
        if (it != extents_.end()) rest = rest - Linear(it->second) * t.coefficient;
        else if (std::exchange(unknown, &t)) return;
    }
    if (unknown && rest.constant % unknown->coefficient == 0 && a.dim(unknown->factors[0]->name).kind == DimKind::symbolic)
        bind(unknown->factors[0]->name, rest.constant / unknown->coefficient, dim.name);
}

void ExtentSolver::check(const Dim &dim, int64_t value) const {
    if (dim.kind != DimKind::symbolic) return;
    auto refuse = [&](const std::string &rule) { fail(dim.name, "expected " + rule + ", got " + std::to_string(value) + "."); };
    if (value < dim.min) refuse("at least " + std::to_string(dim.min));
    if (value > dim.max) refuse("at most " + std::to_string(dim.max));
    if (value % dim.multiple_of) refuse("a multiple of " + std::to_string(dim.multiple_of));
}

Extents ExtentSolver::find(const std::map<std::string, Array> &arrays) {
    for (const Dim &d : a.dims)
        if (d.kind == DimKind::fixed) bind(d.name, d.value, "the algorithm");
    for (const auto &[name, array] : arrays) {
        const Tensor *t = a.find_tensor(name);
        for (size_t i = 0; i < t->dims.size(); i++)
            if (a.dim(t->dims[i]).kind != DimKind::derived) bind(t->dims[i], array.extents[i], name + " of shape " + shape(array.extents));
    }
    for (size_t round = 0; round < a.dims.size(); round++)
        for (const Dim &d : a.dims) {
            if (d.equals.empty()) continue;
            if (auto it = extents_.find(d.equals); it != extents_.end()) bind(d.name, it->second, d.equals);
            else if (auto mine = extents_.find(d.name); mine != extents_.end()) bind(d.equals, mine->second, d.name);
        }
    for (const auto &[name, array] : arrays) {
        const Tensor *t = a.find_tensor(name);
        for (size_t i = 0; i < t->dims.size(); i++)
            if (const Dim &d = a.dim(t->dims[i]); d.kind == DimKind::derived) solve(d, array.extents[i]);
    }
    for (const Dim &d : a.dims) {
        if (d.kind == DimKind::derived) continue;
        auto it = extents_.find(d.name);
        if (it == extents_.end()) fail(d.name, "no given tensor has this dim; give its extent in EvaluationOptions::extents.");
        check(d, it->second);
    }
    return extents_;
}

// What is of the box; `whole` is what was computed.
Array cut(const Array &array, Box whole, const Box &box) {
    whole.resize(box.size());  // a part's extra dims are whole
    std::vector<int64_t> extents;
    for (const Interval &axis : box) extents.push_back(axis.hi - axis.lo + 1);
    Array result(array.dtype, extents);
    for (int64_t i = 0; i < result.size(); i++) {
        int64_t rest = i, position = 0, stride = 1;
        for (size_t axis = box.size(); axis-- > 0;) {
            position += (rest % extents[axis] + box[axis].lo - std::max<int64_t>(whole[axis].lo, 0)) * stride;
            rest /= extents[axis], stride *= array.extents[axis];
        }
        result.set(i, array.get(position));
    }
    return result;
}

// What rounds leave is known when all have run, and which rows a box has when offsets are there.
std::map<std::string, Array> boxes_of_whole(const Algorithm &a, std::map<std::string, Array> tensors,
                                            const std::map<std::string, Scalar> &parameters, EvaluationOptions options) {
    const std::map<std::string, Box> boxes = std::exchange(options.boxes, {});
    options.every_stage = true;
    std::map<std::string, Array> all = evaluate(a, std::move(tensors), parameters, options), results;
    for (const auto &[name, box] : boxes) results[name] = cut(all.at(name), Box(box.size()), box);
    return results;
}

}  // namespace

std::map<std::string, Array> evaluate(const Algorithm &given, std::map<std::string, Array> tensors,
                                      const std::map<std::string, Scalar> &parameters, const EvaluationOptions &options) {
    Algorithm a = inline_calls(given, keeps_repeats(given));
    check_arrays(a, tensors);
    const bool repeats = !a.calls().empty();
    const bool keeps_rows = std::ranges::any_of(a.stages(), [](const Stage &stage) { return !stage.rows.empty(); });
    if ((repeats || keeps_rows) && !options.boxes.empty()) return boxes_of_whole(a, std::move(tensors), parameters, options);
    if (repeats) a = with_round_stages(std::move(a));
    if (options.precision == Precision::f64) a = in_double(a);
    for (const Parameter &p : a.parameters) {
        auto it = parameters.find(p.name);
        if (it == parameters.end() || it->second.type != p.dtype)
            throw UserError("reference.parameter",
                            a.name + " wants the parameter '" + p.name + "' of type " + name_of(p.dtype) + "; " +
                                (it == parameters.end() ? "it is not given." : std::string("got ") + name_of(it->second.type) + "."));
        if (p.range && !p.range->contains(it->second))
            throw UserError("reference.parameter", a.name + ": the parameter '" + p.name + "' must be " + to_string(*p.range) + ", not " +
                                                       value_text(it->second) + ".");
    }
    StageRunner runner(a, ExtentSolver(a, options.extents).find(tensors), parameters);
    for (auto &[name, array] : tensors) runner.add(name, std::move(array));
    for (const Tensor &t : a.tensors)
        if (t.role == Role::constant) runner.add_constant(t);
    runner.check_shapes();
    std::map<std::string, Box> computed;
    if (!options.boxes.empty()) {
        require(!a.updates_state, "points by themselves are of an algorithm that updates no state");
        computed = needed_boxes(a, options.extents, options.boxes);
        runner.limit(computed);
    }
    const EvaluateRound evaluate_round = [&](const Algorithm &callee, std::map<std::string, Array> given_round,
                                             const std::map<std::string, Scalar> &values, const Extents &extents) {
        EvaluationOptions own;
        own.precision = options.precision, own.extents = extents;
        return evaluate(callee, std::move(given_round), values, own);
    };
    for (const Step &step : a.steps)
        std::visit(Overloaded{[&](const Stage &stage) {
                                  if (!is_of_rounds(stage)) runner.run(stage);
                              },
                              [&](const Call &call) { run_rounds(call, a, runner, options.precision == Precision::f64, evaluate_round); }},
                   step);

    std::map<std::string, Array> results;
    for (auto &[name, array] : runner.take()) {
        if (is_of_rounds(name)) continue;
        const Tensor *t = a.find_tensor(name);
        bool output = std::find(a.outputs.begin(), a.outputs.end(), name) != a.outputs.end();
        if (const auto box = options.boxes.find(name); !options.boxes.empty()) {
            if (box != options.boxes.end()) results[name] = cut(array, computed.at(defining_stage(a, name)->name), box->second);
            continue;
        }
        if (output || (t ? t->role == Role::state : options.every_stage)) results[name] = std::move(array);
    }
    return results;
}

std::map<std::string, Array> evaluate(const Algorithm &algorithm, std::map<std::string, Array> tensors,
                                      const std::map<std::string, Scalar> &parameters, Precision precision) {
    EvaluationOptions options;
    options.precision = precision;
    return evaluate(algorithm, std::move(tensors), parameters, options);
}

}  // namespace tessera
