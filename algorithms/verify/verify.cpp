#include "algorithms/verify/verify.h"

#include <algorithm>
#include <cmath>

#include "algorithms/transform/inline_calls.h"
#include "algorithms/verify/verify_scope.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

void VerifyScope::fail(const std::string &rule, const std::string &subject, const std::string &message) const {
    const Span declared = declared_at(algorithm, subject);
    const SpanScope at(declared ? declared : SpanScope::current());
    throw UserError("algorithm." + rule, algorithm.name + (subject.empty() ? "" : "." + subject) + ": " + message).about(subject);
}

const Dim *VerifyScope::find(const std::string &name) const {
    auto it = std::find_if(dims.begin(), dims.end(), [&](const Dim &d) { return d.name == name; });
    return it == dims.end() ? nullptr : &*it;
}

const Dim &VerifyScope::dim(const std::string &name, const std::string &subject) const {
    if (const Dim *d = find(name)) return *d;
    std::vector<std::string> names;
    for (const Dim &d : dims) names.push_back(d.name);
    fail("unknown-dim", subject, "there is no dim '" + name + "'; the dims are " + join(names) + "." + did_you_mean(name, names));
}

bool VerifyScope::ragged(const Dim &d) const {
    if (!d.size.defined()) return false;
    bool varies = false;
    walk(d.size, [&](const Expr &e) {
        varies |= e.kind() == ExprKind::variable;
        if (e.kind() == ExprKind::extent && e->name != d.name)
            if (const Dim *other = find(e->name)) varies |= ragged(*other);
    });
    return varies;
}

Bounds VerifyScope::facts(const std::vector<std::string> &inside) const {
    Bounds b(this->dims, parameters);
    for (const Ascending &tensor : ascending) b.set_ascending(tensor);
    for (const std::string &d : inside) {
        b.set(d, 0, extent(d) - 1);
        b.assume(extent(d) >= 1);  // there is a point
    }
    return b;
}

void verify_name(const VerifyScope &scope, const std::string &what, const std::string &name) {
    auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    bool legal = !name.empty() && is_letter(name[0]) && name.back() != '.' && name.find("..") == std::string::npos;
    for (char c : name) legal &= is_letter(c) || is_digit(c) || c == '.';
    if (!legal)
        scope.fail("name", "",
                   what + " is named '" + name +
                       "'; a name has letters, digits and '_', in parts separated by '.', and "
                       "begins with no digit.");
}

namespace {

class Verifier {
public:
    explicit Verifier(const Algorithm &algorithm) : a_(algorithm), scope_{algorithm, {}, {}, {}, {}} {}
    void verify();

private:
    void add_name(std::set<std::string> &names, const std::string &what, const std::string &name);
    void check_names();
    void check_inner_names(const Algorithm &flat) const;
    void check_tensor(const Tensor &tensor);
    void check_callees() const;
    void check_steps();
    void check_outputs() const;
    void check_large() const;
    void check_numerics_checks() const;
    void check_effects(const Algorithm &flat) const;

    const Algorithm &a_;
    VerifyScope scope_;
};

void Verifier::add_name(std::set<std::string> &names, const std::string &what, const std::string &name) {
    verify_name(scope_, what, name);
    if (!names.insert(name).second) scope_.fail("name", "", "the name '" + name + "' is used twice; rename " + what + ".");
}

void Verifier::check_names() {
    verify_name(scope_, "the algorithm", a_.name);
    std::set<std::string> dims, parameters, tensors;
    for (const Dim &d : a_.dims) add_name(dims, "a dim", d.name);
    for (const Parameter &p : a_.parameters) {
        add_name(parameters, "a parameter", p.name);
        if (!is_arithmetic(p.dtype) || p.dtype == DType::index)
            scope_.fail("type", p.name,
                        std::string("a parameter of type ") + name_of(p.dtype) + "; declare it f32, f64, i32, i64 or bool.");
        if (p.range)
            if (const std::string wrong = range_error(p.dtype, *p.range); !wrong.empty()) scope_.fail("parameter-range", p.name, wrong);
    }
    for (const Tensor &t : a_.tensors) add_name(tensors, "a tensor", t.name);
    for (const Stage &s : a_.stages()) {
        add_name(tensors, "a stage", s.name);
        if (auto *map = std::get_if<Map>(&s.body))
            for (const Value &v : map->values)
                if (!v.value.defined()) scope_.fail("type", s.name, "its value is missing.");
        for (const Tensor &t : results_of(s))
            if (t.name != s.name) add_name(tensors, "a result", t.name);
    }
    for (const Call &c : a_.calls()) {
        add_name(tensors, "a call", c.scope);
        for (const auto &[output, name] : c.results) add_name(tensors, "a call's result", name);
    }
}

// Names of stages and results must not meet those that callees have inside of their scopes.
void Verifier::check_inner_names(const Algorithm &flat) const {
    std::set<std::string> results, stages;
    auto add = [&](std::set<std::string> &names, const std::string &name) {
        if (!names.insert(name).second)
            scope_.fail("name", "", "the name '" + name + "' is used twice, once by a stage of a call; rename the other.");
    };
    for (const Stage &s : flat.stages()) {
        add(stages, s.name);
        for (const Tensor &t : results_of(s)) add(results, t.name);
    }
}

void Verifier::check_tensor(const Tensor &t) {
    if (t.dtype == DType::index) scope_.fail("type", t.name, "an index is never stored; declare the tensor i32 or i64.");
    if (t.role == Role::state && is_in_half_bytes(t.dtype))
        scope_.fail("type", t.name,
                    std::string("a state of type ") + name_of(t.dtype) +
                        ", two elements of which are a byte: one cannot be written without the other; declare it u8 or i8.");
    int64_t count = 1;
    for (const std::string &name : t.dims) {
        const Dim &d = scope_.dim(name, t.name);
        if (scope_.ragged(d))
            scope_.fail("ragged", t.name,
                        "the dim '" + name +
                            "' is ragged and cannot be an axis of a tensor; store the rows one after "
                            "the other along a dim of their total.");
        if (t.role != Role::constant) continue;
        if (d.kind != DimKind::fixed) scope_.fail("dim", t.name, "a constant has fixed dims only; fix '" + name + "'.");
        count *= d.value;
    }
    bool typed = std::all_of(t.values.begin(), t.values.end(), [&](const Scalar &s) { return s.type == t.dtype; });
    if (t.role == Role::constant && (static_cast<int64_t>(t.values.size()) != count || !typed))
        scope_.fail("type", t.name,
                    "a constant of the dims " + join(t.dims) + " needs " + std::to_string(count) + " values of type " + name_of(t.dtype) +
                        ", got " + std::to_string(t.values.size()) + (typed ? "." : ", some of another type."));
    if (t.role != Role::constant && !t.values.empty()) scope_.fail("type", t.name, "only a constant has values; remove them.");
}

// Enough to inline the calls; verify_call checks the rest.
void Verifier::check_callees() const {
    for (const Call &c : a_.calls()) {
        if (!c.callee) scope_.fail("call", c.scope, "it has no callee; give one.");
        tessera::verify(*c.callee);
        for (const Parameter &p : c.callee->parameters) {
            auto it = c.parameters.find(p.name);
            std::string subject = "the parameter '" + p.name + "' of " + c.callee->name + " is ";
            if (it == c.parameters.end() || !it->second.defined())
                scope_.fail("call", c.scope, subject + "not bound; give an expression of type " + name_of(p.dtype) + ".");
            if (it->second.type() != p.dtype)
                scope_.fail("call", c.scope,
                            subject + name_of(p.dtype) + ", but is bound to " + brief(it->second) + " of type " +
                                name_of(it->second.type()) + "; cast it.");
        }
    }
}

void Verifier::check_steps() {
    scope_.made.clear();
    for (const Tensor &t : a_.tensors) scope_.made.insert(t.name);
    for (const Step &step : a_.steps)
        std::visit(Overloaded{
                       [&](const Stage &stage) {
                           verify_stage(scope_, stage);
                           for (const Tensor &t : results_of(stage)) scope_.made.insert(t.name);
                       },
                       [&](const Call &call) {
                           verify_call(scope_, call);
                           for (const std::string &output : call.callee->outputs) scope_.made.insert(name_of_result(call, output));
                       },
                   },
                   step);
}

void Verifier::check_outputs() const {
    const bool writes = std::ranges::any_of(a_.steps, [](const Step &step) {
        const auto *stage = std::get_if<Stage>(&step);
        return !stage || updates(*stage);
    });
    if (a_.outputs.empty() && !writes)
        scope_.fail("output", "", "it has no output and updates no state; name the tensors that it computes in outputs.");
    std::set<std::string> seen;
    for (const std::string &name : a_.outputs) {
        std::vector<std::string> names;
        for (const auto &[n, t] : scope_.tensors)
            if (!a_.find_tensor(n)) names.push_back(n);
        if (!std::count(names.begin(), names.end(), name))
            scope_.fail("output", name, "no stage computes it; the results are " + join(names) + "." + did_you_mean(name, names));
        if (!seen.insert(name).second) scope_.fail("output", name, "it is an output twice; remove one.");
    }
}

void Verifier::check_numerics_checks() const {
    const auto fail = [&](const std::string &subject, const std::string &words) { scope_.fail("numerics", subject, words); };
    for (const auto &[name, range] : a_.stated_ranges) {
        const Tensor *t = a_.find_tensor(name);
        if (!t || t->role == Role::constant) fail(name, "a range is stated of it, and it is no input or state.");
        if (!(range.first <= range.second) || !std::isfinite(range.first) || !std::isfinite(range.second))
            fail(name, "its stated range has a lower end above its upper one, or ends that are no finite numbers.");
    }
    for (const auto &[name, check] : a_.checks) {
        const Stage *stage = a_.find_stage(name);
        if (!stage) fail(name, "its numerics are to be checked, and it is no stage.");
        for (const Tensor &t : results_of(*stage))
            if (!is_float(t.dtype))
                fail(name, std::string("its numerics are to be checked, and it is of ") + name_of(t.dtype) + "; expected floats.");
        if (check.bounded && !(check.bounded->first <= check.bounded->second))
            fail(name, "its bounds have a lower end above the upper one.");
        if (check.loss && !(*check.loss >= 0)) fail(name, "its loss is to be at most a negative number.");
    }
}

void Verifier::check_large() const {
    std::vector<std::string> names = a_.outputs;
    for (const Tensor &t : a_.tensors)
        if (t.role != Role::constant) names.push_back(t.name);
    for (const std::string &name : a_.large)
        if (!std::count(names.begin(), names.end(), name))
            scope_.fail(
                "large", name,
                "it is declared large and is no input, state or output; those are " + join(names) + "." + did_you_mean(name, names));
}

void Verifier::check_effects(const Algorithm &flat) const {
    const bool writes = std::ranges::any_of(flat.stages(), updates);
    if (writes && !a_.updates_state) scope_.fail("effects", "", "it updates a state and does not declare the effect 'memory'; add it.");
    if (!writes && a_.updates_state) scope_.fail("effects", "", "it declares the effect 'memory' and updates no state; remove the effect.");
    for (const Call &call : a_.calls())
        if (call.callee->draws && !a_.draws)
            scope_.fail(
                "effects", call.scope,
                "its callee " + call.callee->name + " draws random numbers, and the caller does not declare the effect 'random'; add it.");
}

void Verifier::verify() {
    scope_.parameters = a_.parameters;
    check_names();
    check_callees();
    Algorithm flat = a_.calls().empty() ? a_ : inline_calls(a_);
    check_inner_names(flat);
    scope_.dims = flat.dims;
    scope_.ascending = ascending_results(flat);
    verify_constraints(scope_);
    for (const Tensor &t : a_.tensors) check_tensor(t);

    for (const Tensor &t : a_.tensors) scope_.tensors[t.name] = t;
    for (const Stage &s : a_.stages())
        for (const Tensor &t : results_of(s)) scope_.tensors[t.name] = t;
    for (const Call &c : a_.calls())
        for (const Tensor &t : results_of(c)) scope_.tensors[t.name] = t;
    for (const auto &[name, t] : scope_.tensors) scope_.made.insert(name);
    verify_sizes(scope_);
    check_steps();
    check_outputs();
    check_large();
    check_numerics_checks();
    check_effects(flat);
}

}  // namespace

void verify(const Algorithm &algorithm) { Verifier(algorithm).verify(); }

}  // namespace tessera
