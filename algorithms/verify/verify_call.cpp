// One call: everything that the callee wants is bound to something that satisfies it.
#include <algorithm>

#include "algorithms/index/affine.h"
#include "algorithms/index/prove.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/verify/verify_scope.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class CallChecker {
public:
    CallChecker(const VerifyScope &scope, const Call &call) : scope_(scope), call_(call), subject_(call.scope), callee_(*call.callee) {}
    void check();

private:
    void check_dim(const Dim &dim) const;
    void check_tensor(const Tensor &tensor) const;
    void check_known() const;
    void check_written_once() const;
    void check_apart() const;
    void check_reach(const std::string &own, const std::string &bound, bool is_along_last_axis) const;
    std::vector<std::string> rounds() const;
    std::string dim_of(const std::string &callees) const;
    void check_view(const Tensor &wanted, const View &view, const Tensor &given, const std::string &pair) const;
    void check_reach_of_results() const;
    void check_repeat() const;
    std::optional<ParameterRange> values_of(const Expr &e);
    std::optional<ParameterRange> make_values(const Expr &e);
    void check_parameter(const Parameter &p);
    void check_carried(const Tensor *input, const std::string &name, const std::string &output) const;
    const Tensor *find_output(const std::string &name) const;
    [[noreturn]] void fail(const std::string &message) const { scope_.fail("call", subject_, message); }

    const VerifyScope &scope_;
    const Call &call_;
    const std::string &subject_;
    const Algorithm &callee_;
    std::vector<Tensor> results_ = results_of(call_);  // in the order of the callee's outputs
    AddressMap<std::optional<ParameterRange>> values_;
};

void CallChecker::check() {
    check_known();
    if (const std::string weaker = weaker_in(callee_.numerics, scope_.algorithm.numerics); !weaker.empty())
        fail("the callee " + callee_.name + " keeps to the policy '" + callee_.numerics.name + "', which is weaker than '" +
             scope_.algorithm.numerics.name + "': it " + weaker + ". Declare it with a policy as strict.");
    if (call_.repeat) check_repeat();
    for (const Dim &d : callee_.dims) check_dim(d);
    for (const Tensor &t : callee_.tensors)
        if (t.role != Role::constant) check_tensor(t);
    check_written_once();
    check_apart();
    check_reach_of_results();
    for (const Parameter &p : callee_.parameters) check_parameter(p);
}

// The values that an expression without loads can have, as far as that is plain to see: none where nothing is known.
std::optional<ParameterRange> CallChecker::values_of(const Expr &e) {
    if (const auto *known = values_.find(e.get())) return *known;
    const std::optional<ParameterRange> made = make_values(e);
    return *values_.add(e.get()).first = made;
}

std::optional<ParameterRange> CallChecker::make_values(const Expr &e) {
    if (e.is_constant()) return ParameterRange{e->value, e->value};
    if (e.kind() == ExprKind::parameter) {
        for (const Parameter &own : scope_.parameters)
            if (own.name == e->name) return own.range;
        return std::nullopt;
    }
    if (is_float(e.type()) || e.kind() != ExprKind::operation) return std::nullopt;
    std::vector<std::optional<ParameterRange>> of;
    for (const Expr &operand : e->args) of.push_back(values_of(operand));
    const auto bound = [](std::optional<ParameterRange> range, const ParameterRange &by, bool is_most) {
        if (!range) range = parameter_range("", by.least.type, any_finite, {});
        Scalar &least = range->least, &most = range->most;
        if (is_most) least.integer = std::min(least.integer, by.least.integer), most.integer = std::min(most.integer, by.most.integer);
        else least.integer = std::max(least.integer, by.least.integer), most.integer = std::max(most.integer, by.most.integer);
        return range;
    };
    if (e->op == Op::min || e->op == Op::max) {
        if (!of[0]) std::swap(of[0], of[1]);
        return of[0] ? bound(of[1], *of[0], e->op == Op::min) : std::nullopt;
    }
    if (e->op == Op::bit_and)
        for (const std::optional<ParameterRange> &mask : of)
            if (mask && mask->least.integer >= 0) {
                ParameterRange range = *mask;
                range.least.integer = 0;
                return range;
            }
    return std::nullopt;
}

void CallChecker::check_parameter(const Parameter &p) {
    const Expr &value = call_.parameters.at(p.name);
    verify_expression(scope_, subject_, value, rounds());
    if (!p.range) return;
    const std::optional<ParameterRange> values = values_of(value);
    if (values && p.range->contains(*values)) return;
    const std::string got = values ? "which may be " + to_string(*values) : "of which nothing is known";
    fail("the parameter '" + p.name + "' of " + callee_.name + " must be " + to_string(*p.range) + "; got " + brief(value) + ", " + got +
         ". Pass on a parameter that is declared with this range" +
         (is_float(p.dtype) ? " or a constant." : ", a constant, or an integer that min and max clamp to it."));
}

// The dims whose index may stand in views and parameters.
std::vector<std::string> CallChecker::rounds() const {
    return call_.repeat ? std::vector<std::string>{call_.repeat->dim} : std::vector<std::string>{};
}

std::string CallChecker::dim_of(const std::string &callees) const {
    auto bound = call_.dims.find(callees);
    return bound != call_.dims.end() ? bound->second : subject_ + "." + callees;
}

// The callee takes its tensors for different ones.
void CallChecker::check_written_once() const {
    for (const Tensor &state : callee_.tensors) {
        if (state.role != Role::state) continue;
        const View &written = call_.tensors.at(state.name);
        for (const auto &[other, view] : call_.tensors)
            if (other != state.name && view.tensor == written.tensor && !(view == written))
                fail("'" + state.name + "' of " + callee_.name + ", a state, and '" + other + "' are bound to '" + view.tensor +
                     "' in different ways; expected one way, or other tensors, since what is written by one would be read by the other.");
    }
}

// What goes over two dims of the callee goes over two of the caller.
void CallChecker::check_apart() const {
    const Algorithm whole = inline_calls(callee_);
    for (const Stage &stage : whole.stages()) {
        std::vector<std::string> dims = stage.dims;
        for (const std::string &d : reduced_dims(stage)) dims.push_back(d);
        std::map<std::string, std::string> first;
        for (const std::string &d : dims)
            if (const auto [other, fresh] = first.emplace(dim_of(d), d); !fresh && other->second != d)
                fail("the dims '" + other->second + "' and '" + d + "' of " + callee_.name + " are both bound to '" + dim_of(d) +
                     "', and its stage '" + stage.name + "' goes over both; bind one of them to another dim of that extent.");
    }
    for (const Tensor &t : results_)
        for (const std::string &d : t.dims)
            if (std::count(t.dims.begin(), t.dims.end(), d) > 1)
                fail("its result '" + t.name + "' has the dim '" + d + "' twice; bind the callee's to another dim of that extent.");
}

// Positions of 32 bits reach any element along the last axis, whose stride is 1; along others they may not.
void CallChecker::check_reach(const std::string &own, const std::string &bound, bool is_along_last_axis) const {
    if (!scope_.algorithm.large.count(bound) || callee_.large.count(own) || is_along_last_axis) return;
    fail("'" + own + "' of " + callee_.name + " is bound to '" + bound +
         "', which is large, and is not large itself; declare it large too, or bind a view that goes along the last axis only.");
}

void CallChecker::check_reach_of_results() const {
    for (size_t i = 0; i < callee_.outputs.size() && i < results_.size(); i++) {
        const std::string &output = callee_.outputs[i];
        const bool stacked = call_.repeat && call_.repeat->stacked.count(output);
        check_reach(output, results_[i].name, results_[i].dims.size() <= (stacked ? 2u : 1u));
        if (!call_.repeat) continue;
        for (const auto &[input, from] : call_.repeat->carried)
            if (from == output) check_reach(input, results_[i].name, callee_.find_tensor(input)->dims.size() <= 1);
    }
}

const Tensor *CallChecker::find_output(const std::string &name) const {
    for (size_t i = 0; i < callee_.outputs.size() && i < results_.size(); i++)
        if (callee_.outputs[i] == name) return &results_[i];
    return nullptr;
}

void CallChecker::check_carried(const Tensor *input, const std::string &name, const std::string &output) const {
    std::vector<std::string> inputs;
    for (const Tensor &t : callee_.tensors)
        if (t.role == Role::input) inputs.push_back(t.name);
    if (!input || input->role != Role::input)
        fail("it carries '" + name + "', which is no input of " + callee_.name + "; the inputs are " + join(inputs) + "." +
             did_you_mean(name, inputs));
    const auto start = call_.tensors.find(name);
    for (const Expr &e : start == call_.tensors.end() ? std::vector<Expr>{} : start->second.index)
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::variable && n->name == call_.repeat->dim)
                fail("it carries '" + name + "', whose first value depends on the repetition '" + n->name +
                     "'; expected an index without it.");
        });
    const Tensor &result = *find_output(output);
    std::vector<std::string> given = result.dims, wanted;
    if (call_.repeat->stacked.count(output)) given.erase(given.begin());
    for (const std::string &d : input->dims) wanted.push_back(dim_of(d));
    const Bounds facts(scope_.dims, scope_.parameters);
    bool fits = input->dtype == result.dtype && wanted.size() == given.size();
    for (size_t i = 0; fits && i < wanted.size(); i++) fits = wanted[i] == given[i] || prove(extent(wanted[i]) == extent(given[i]), facts);
    if (!fits)
        fail("it carries '" + name + "' of type " + name_of(input->dtype) + " and the dims [" + join(wanted) + "] as '" + output +
             "', which has " + name_of(result.dtype) + " and [" + join(given) + "]; expected the same.");
}

void CallChecker::check_repeat() const {
    const Repeat &r = *call_.repeat;
    const Dim &rounds = scope_.dim(r.dim, subject_);
    verify_size_is_made(scope_, subject_, rounds);
    if (scope_.ragged(rounds)) fail("it repeats over '" + r.dim + "', which is ragged; expected a dim whose extent is one number.");
    auto output = [&](const std::string &what, const std::string &name) {
        if (find_output(name)) return;
        fail(what + " '" + name + "', which is no output of " + callee_.name + "; the outputs are " + join(callee_.outputs) + "." +
             did_you_mean(name, callee_.outputs));
    };
    for (const std::string &name : r.stacked) output("it stacks", name);
    std::set<std::string> carried;
    for (const auto &[input, from] : r.carried) {
        output("it carries '" + input + "' from", from);
        check_carried(callee_.find_tensor(input), input, from);
        carried.insert(from);
    }
    if (!r.until.empty()) {
        output("it stops early by", r.until);
        if (!r.stacked.empty())
            fail("it stops early by '" + r.until + "' and stacks '" + *r.stacked.begin() +
                 "': a repeated call cannot both stop early and stack a result, since repetitions that never run would leave gaps. Write "
                 "the value to a state instead.");
        const Tensor &flag = *find_output(r.until);
        if (flag.dtype != DType::boolean || !flag.dims.empty())
            fail("it stops early by '" + r.until + "' of type " + name_of(flag.dtype) + " and the dims [" +
                 (flag.dims.empty() ? "" : join(flag.dims)) + "]; expected one bool.");
    }
    for (const std::string &name : callee_.outputs)
        if (!carried.count(name) && !r.stacked.count(name) && name != r.until &&
            !prove(Expr(1) <= extent(r.dim), Bounds(scope_.dims, scope_.parameters)))
            fail("without any repetition its output '" + name + "' would have no value, and '" + r.dim +
                 "' is not known to be at least 1; constrain it, or carry or stack that output.");
}

// Every binding names something of the callee.
void CallChecker::check_known() const {
    auto unknown = [&](const std::string &what, const std::string &name, const std::vector<std::string> &names) {
        if (std::count(names.begin(), names.end(), name)) return;
        fail("it binds the " + what + " '" + name + "', which " + callee_.name + " does not have; it has " + join(names) + "." +
             did_you_mean(name, names));
    };
    std::vector<std::string> dims, tensors, parameters;
    for (const Dim &d : callee_.dims) dims.push_back(d.name);
    for (const Tensor &t : callee_.tensors)
        if (t.role != Role::constant) tensors.push_back(t.name);
    for (const Parameter &p : callee_.parameters) parameters.push_back(p.name);
    for (const auto &[name, to] : call_.dims) unknown("dim", name, dims);
    for (const auto &[name, to] : call_.tensors) unknown("tensor", name, tensors);
    for (const auto &[name, to] : call_.parameters) unknown("parameter", name, parameters);
    for (const auto &[name, to] : call_.results) unknown("output", name, callee_.outputs);
}

void CallChecker::check_dim(const Dim &wanted) const {
    auto it = call_.dims.find(wanted.name);
    if (it == call_.dims.end()) {
        if (wanted.kind == DimKind::symbolic)
            fail("the dim '" + wanted.name + "' of " + callee_.name + " is not bound; bind it to a dim of " + scope_.algorithm.name + ".");
        return;
    }
    const Dim &given = scope_.dim(it->second, subject_);
    verify_size_is_made(scope_, subject_, given);
    const std::string path = path_through_calls(callee_, wanted.name, subject_);
    std::string pair = "the dim '" + wanted.name + "' of " + callee_.name + " is bound to '" + given.name + "', ";
    Bounds facts(scope_.dims, scope_.parameters);
    Expr n = extent(given.name);
    if (wanted.kind == DimKind::fixed && !prove(n == Expr(wanted.value), facts))
        fail(pair + "whose extent is not known to be " + std::to_string(wanted.value) + "; fix it." + path);
    if (wanted.kind != DimKind::symbolic) return;
    if (!prove(n % Expr(wanted.multiple_of) == Expr(0), facts))
        fail(pair + "which is not known to be a multiple of " + std::to_string(wanted.multiple_of) + "; constrain it." + path);
    if (!prove(Expr(wanted.min) <= n, facts))
        fail(pair + "which is not known to be at least " + std::to_string(wanted.min) + "; constrain it." + path);
    if (!prove(n <= Expr(wanted.max), facts))
        fail(pair + "which is not known to be at most " + std::to_string(wanted.max) + "; constrain it." + path);
    auto other = call_.dims.find(wanted.equals);
    if (other != call_.dims.end() && !prove(n == extent(other->second), facts))
        fail(pair + "and '" + wanted.equals + "', which has the same extent, to '" + other->second +
             "'; those are not known to be equal. Bind both to one dim." + path);
}

void CallChecker::check_tensor(const Tensor &wanted) const {
    std::string name = "'" + wanted.name + "' of " + callee_.name;
    auto it = call_.tensors.find(wanted.name);
    if (it == call_.tensors.end()) fail(name + " is not bound; bind it to a tensor of " + scope_.algorithm.name + ".");
    const std::string &bound = it->second.tensor;
    auto found = scope_.tensors.find(bound);
    if (found == scope_.tensors.end()) {
        std::vector<std::string> names;
        for (const auto &[n, t] : scope_.tensors) names.push_back(n);
        fail(name + " is bound to '" + bound + "', which does not exist; there are " + join(names) + "." + did_you_mean(bound, names));
    }
    if (!scope_.made.count(bound)) fail(name + " is bound to '" + bound + "', which is computed later; a call takes only earlier results.");
    const Tensor &given = found->second;
    std::string pair = name + " is bound to '" + given.name + "', ";
    const Tensor *own = scope_.algorithm.find_tensor(given.name);
    if (wanted.role == Role::state && (!own || own->role != Role::state)) fail(pair + "which is no state; bind it to one.");
    if (given.dtype != wanted.dtype)
        fail(pair + "which holds " + name_of(given.dtype) + " where " + name_of(wanted.dtype) + " is wanted; cast it in a stage before.");
    if (!it->second.index.empty()) return check_view(wanted, it->second, given, pair);
    if (given.dims.size() != wanted.dims.size())
        fail(pair + "which has the dims " + join(given.dims) + " where " + join(wanted.dims) + " are wanted.");
    Bounds facts(scope_.dims, scope_.parameters);
    for (size_t i = 0; i < wanted.dims.size(); i++) {
        const std::string expected = dim_of(wanted.dims[i]);
        if (given.dims[i] != expected && !prove(extent(given.dims[i]) == extent(expected), facts))
            fail(pair + "whose axis " + std::to_string(i) + " is '" + given.dims[i] + "' where '" + expected + "' is wanted, for '" +
                 wanted.dims[i] + "'; bind that to '" + given.dims[i] + "'.");
    }
    check_reach(wanted.name, given.name, wanted.dims.size() <= 1);
}

void CallChecker::check_view(const Tensor &wanted, const View &view, const Tensor &given, const std::string &pair) const {
    if (view.index.size() != given.dims.size())
        fail(pair + "which has " + std::to_string(given.dims.size()) + " axes, at " + std::to_string(view.index.size()) +
             " indices; expected one for each of " + join(given.dims) + ".");
    Bounds facts(scope_.dims, scope_.parameters);
    auto loop = [&](const std::string &variable, const std::string &dim) {
        facts.set(variable, Expr(0), extent(dim) - 1);
        facts.assume(Expr(1) <= extent(dim));
    };
    for (const std::string &d : rounds()) loop(d, d);
    for (size_t i = 0; i < wanted.dims.size(); i++) loop(axis(i)->name, dim_of(wanted.dims[i]));
    std::vector<bool> moves(wanted.dims.size(), false);
    bool is_along_last_axis = true;
    for (size_t i = 0; i < view.index.size(); i++) {
        const Expr &e = view.index[i];
        const std::string index = "index " + std::to_string(i) + ", " + (e.defined() ? brief(e) : "nothing") + ", ";
        if (!e.defined() || e.type() != DType::index) fail(pair + "where " + index + "is no position.");
        const auto parts = affine(e, wanted.dims.size());
        if (!parts)
            fail(pair + "where " + index + "is not affine in its " + std::to_string(wanted.dims.size()) +
                 " axes; make a stage of it, and bind that.");
        verify_expression(scope_, subject_, parts->first, rounds());
        for (const Expr &step : parts->steps) verify_expression(scope_, subject_, step, rounds());
        if (!prove(Expr(0) <= e, facts)) fail(pair + "where " + index + "is not known to be at least 0.");
        if (!prove(e < extent(given.dims[i]), facts))
            fail(pair + "where " + index + "is not known to be below the extent of '" + given.dims[i] + "'.");
        for (const Expr &step : parts->steps) is_along_last_axis &= i + 1 == view.index.size() || step.is_constant(0);
        if (wanted.role != Role::state) continue;
        // Every element is another one: each axis moves one of the tensor's, by more than those after it reach.
        Expr inner = Expr(0);
        for (size_t a = wanted.dims.size(); a-- > 0;) {
            const Expr &step = parts->steps[a];
            if (step.is_constant(0)) continue;
            if (moves[a] || !prove(inner < step, facts))
                fail(pair + "a state, where " + index + "is not known to be another element for each point; expected a box of it.");
            moves[a] = true;
            inner = inner + step * (extent(dim_of(wanted.dims[a])) - 1);
        }
    }
    check_reach(wanted.name, given.name, is_along_last_axis);
    if (wanted.role != Role::state) return;
    for (size_t a = 0; a < wanted.dims.size(); a++)
        if (!moves[a] && !prove(extent(dim_of(wanted.dims[a])) <= Expr(1), facts))
            fail(pair + "a state, whose axis " + std::to_string(a) + " moves nothing; expected a box of it.");
}

}  // namespace

void verify_call(const VerifyScope &scope, const Call &call) { CallChecker(scope, call).check(); }

}  // namespace tessera
