#include "algorithms/verify/verify_rule.h"

#include <algorithm>
#include <map>

#include "algorithms/ir/derivative_rule.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// What a part may take, or what it gives, by name.
using Known = std::map<std::string, Tensor>;

Known outputs_of(const Algorithm &a) {
    Known known;
    const std::set<std::string> wanted(a.outputs.begin(), a.outputs.end());
    for (const Step &step : a.steps)
        for (Tensor &t : std::visit([](const auto &s) { return results_of(s); }, step))
            if (wanted.count(t.name)) t.role = Role::input, known[t.name] = t;
    return known;
}

std::string described(const Tensor &t) {
    return std::string(t.role == Role::state ? "the state " : "") + name_of(t.dtype) + "[" + (t.dims.empty() ? "" : join(t.dims)) + "]";
}

class RuleChecker {
public:
    explicit RuleChecker(const Algorithm &f) : f_(f), rule_(*f.rule) {
        for (const Tensor &t : f.tensors)
            if (t.role != Role::constant) given_[t.name] = t;
        for (const Parameter &p : f.parameters) parameters_[p.name] = {p.name, p.dtype, {}, Role::input, {}, {}};
        results_ = outputs_of(f);
    }

    void check() const {
        if (!rule_.jvp && !rule_.backward)
            fail("expected a rule that says jvp, backward, or both; got neither", "Give the algorithm that one of them is.");
        if (rule_.forward && !rule_.backward)
            fail("expected forward beside backward, which reads what it gives; got forward without it",
                 "Give backward, or leave forward out.");
        if (f_.updates_state)
            fail("expected an algorithm that gives results; it writes a state, which a rule says nothing of",
                 "Give the values as outputs, and write the state behind the call.");
        if (rule_.forward) check_forward();
        if (rule_.jvp) check_jvp();
        if (rule_.backward) check_backward();
        if (rule_.jvp && rule_.backward) check_same_reach();
    }

private:
    const Algorithm &f_;
    const DerivativeRule &rule_;
    Known given_, parameters_, results_;

    [[noreturn]] void fail(const std::string &what, const std::string &remedy) const {
        throw UserError("algorithm.rule", f_.name + ": " + what + ".", remedy);
    }

    static Known derivatives(const Known &of, const std::string &suffix) {
        Known known;
        for (const auto &[name, t] : of)
            if (is_float(t.dtype)) known[name + suffix] = {name + suffix, derivative_type(t.dtype), t.dims, Role::input, {}, {}};
        return known;
    }
    Known derivatives_by(const std::string &suffix) const {
        Known known = derivatives(given_, suffix);
        known.merge(derivatives(parameters_, suffix));
        return known;
    }

    static std::string names(const Known &known) {
        std::vector<std::string> all;
        for (const auto &[name, t] : known) all.push_back(name);
        return all.empty() ? "none" : join(all);
    }

    void check_one(const std::string &subject, const std::string &what, const Tensor &t, const Known &known) const {
        const auto wanted = known.find(t.name);
        std::vector<std::string> all;
        for (const auto &[name, other] : known) all.push_back(name);
        if (wanted == known.end())
            fail(subject + " has the " + what + " '" + t.name + "'; expected " + (known.empty() ? "none" : "one of " + names(known)),
                 "Name it as the algorithm does, with .grad or .tangent behind." + did_you_mean(t.name, all));
        const Tensor &w = wanted->second;
        if (t.dtype != w.dtype || t.dims != w.dims || t.role != w.role)
            fail(subject + ": expected its " + what + " '" + t.name + "' to be " + described(w) + "; got " + described(t),
                 "Give it the dims of what it belongs to, by name, and its type, f32 where that has less than 16 bits.");
    }

    // Names, dims, parameters and what is read.
    void check_part(const std::string &kind, const Algorithm &part, const Known &readable) const {
        const std::string subject = kind + " of its rule, " + part.name + ",";
        tessera::verify(part);
        if (part.updates_state) fail(subject + " writes a state; expected results alone", "Give the values as outputs.");
        if (const std::string weaker = weaker_in(part.numerics, f_.numerics); !weaker.empty())
            fail(subject + " keeps to the policy '" + part.numerics.name + "', which is weaker than '" + f_.numerics.name + "': it " +
                     weaker,
                 "Declare it with a policy as strict.");
        for (const Dim &d : part.dims) check_dim(subject, d);
        for (const Parameter &p : part.parameters) check_parameter(subject, p);
        for (const Tensor &t : part.tensors)
            if (t.role != Role::constant) check_one(subject, "input", t, readable);
    }

    void check_dim(const std::string &subject, const Dim &d) const {
        const Dim *own = f_.find_dim(d.name);
        if (!own) {
            if (d.kind != DimKind::symbolic) return;  // a call brings it
            fail(subject + " has the dim '" + d.name + "'; expected those of the algorithm, " +
                     (f_.dims.empty() ? "which has none" : join(names_of(f_.dims))),
                 "Name dims as the algorithm does, and fix those that it does not have." + did_you_mean(d.name, names_of(f_.dims)));
        }
        const bool is_like = d.kind == own->kind && (d.kind != DimKind::fixed || d.value == own->value) &&
                             (d.kind != DimKind::derived || equal(d.size, own->size));
        const bool is_wider = d.kind != DimKind::symbolic || (own->multiple_of % d.multiple_of == 0 && d.min <= own->min &&
                                                              own->max <= d.max && (d.equals.empty() || d.equals == own->equals));
        if (!is_like || !is_wider)
            fail(subject + " declares the dim '" + d.name + "' otherwise than the algorithm",
                 "Declare it alike, or with fewer constraints.");
    }

    void check_parameter(const std::string &subject, const Parameter &p) const {
        for (const Parameter &own : f_.parameters) {
            if (own.name != p.name) continue;
            if (own.dtype != p.dtype)
                fail(subject + ": expected its parameter '" + p.name + "' to be " + name_of(own.dtype) + "; got " + name_of(p.dtype),
                     "Declare it alike.");
            if (p.range && !(own.range && p.range->contains(*own.range)))
                fail(subject + ": its parameter '" + p.name + "' takes " + to_string(*p.range) +
                         "; expected all that the algorithm's takes" + (own.range ? ", " + to_string(*own.range) : ""),
                     "Declare it alike, or without a range.");
            return;
        }
        fail(subject + " has the parameter '" + p.name + "'; expected those of the algorithm, " + names(parameters_),
             "Name parameters as the algorithm does.");
    }

    void check_given(const std::string &kind, const Algorithm &part, const Known &giveable) const {
        const std::string subject = kind + " of its rule, " + part.name + ",";
        for (const auto &[name, t] : outputs_of(part)) check_one(subject, "output", t, giveable);
    }

    void check_forward() const {
        check_part("forward", *rule_.forward, given_);
        const Known made = outputs_of(*rule_.forward);
        const std::string subject = "forward of its rule, " + rule_.forward->name + ",";
        for (const auto &[name, t] : results_)
            if (!made.count(name))
                fail(subject + " does not give '" + name + "'; it gives " + names(made), "Give the algorithm's outputs, by their names.");
        for (const auto &[name, t] : made) {
            if (results_.count(name)) check_one(subject, "output", t, results_);
            else if (given_.count(name) || parameters_.count(name))
                fail(subject + " gives '" + name + "', as an input of the algorithm is called", "Give it another name.");
        }
    }

    void check_jvp() const {
        Known readable = given_;
        readable.insert(results_.begin(), results_.end());
        readable.merge(derivatives_by(".tangent"));
        check_part("jvp", *rule_.jvp, readable);
        check_given("jvp", *rule_.jvp, derivatives(results_, ".tangent"));
    }

    void check_backward() const {
        Known readable = given_;
        const Known made = rule_.forward ? outputs_of(*rule_.forward) : results_;
        readable.insert(made.begin(), made.end());
        readable.merge(derivatives(results_, ".grad"));
        check_part("backward", *rule_.backward, readable);
        check_given("backward", *rule_.backward, derivatives_by(".grad"));
    }

    void check_same_reach() const {
        Algorithm alone = f_;
        const auto reach = [&](bool by_jvp) {
            auto one = std::make_shared<DerivativeRule>(rule_);
            if (by_jvp) one->backward = nullptr;
            alone.rule = one;
            return reach_of(alone);
        };
        const RuleReach jvp = reach(true), backward = reach(false);
        const auto text = [](const std::set<std::string> &all) { return all.empty() ? "nothing" : join({all.begin(), all.end()}); };
        if (jvp.by != backward.by || jvp.of != backward.of)
            fail("expected jvp and backward of its rule to have the same derivatives; jvp is of " + text(jvp.of) + " by " + text(jvp.by) +
                     ", backward of " + text(backward.of) + " by " + text(backward.by),
                 "Complete one of them, or leave it out: then it is the transpose of the other.");
    }
};

}  // namespace

void verify_rule(const Algorithm &algorithm) {
    if (algorithm.rule) RuleChecker(algorithm).check();
}

}  // namespace tessera
