// Forward mode: beside each stage what its results change by.
#include <algorithm>

#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/derivatives/linearize.h"
#include "algorithms/transform/derivatives/program.h"
#include "algorithms/transform/derivatives/request.h"
#include "algorithms/transform/derivatives/rounds.h"
#include "algorithms/transform/derivatives/rule_call.h"
#include "support/text/error.h"

namespace tessera {

namespace differentiation {

namespace {

class Forward {
public:
    // `is_round`: for one round of a call, where all that is asked for is given, in the type of arithmetic.
    Forward(Request request, bool is_round)
        : request_(std::move(request)),
          is_round_(is_round),
          p_(request_.f, request_.f.name + ".jvp"),
          scope_{request_.f,
                 request_.active,
                 [this](const std::string &name) { return p_.fresh(name); },
                 {request_.f.outputs.begin(), request_.f.outputs.end()}} {}

    Algorithm run() {
        for (const Source &s : request_.by) {
            Tensor t{p_.fresh(s.name + ".tangent"), type_given(s.dtype), s.dims, Role::input, {}, {}};
            if (p_.made.large.count(s.name)) p_.made.large.insert(t.name);
            p_.made.tensors.push_back(t);
            p_.know(t);
            tangents_[s.name] = t, inputs_[s.name] = t.name;
        }
        for (const Step &step : request_.f.steps) std::visit([&](const auto &s) { add(s); }, step);
        p_.made.outputs = request_.f.outputs;
        for (const Tensor &y : request_.of) {
            if (!tangents_.count(y.name)) {
                if (!is_round_) continue;
                tangents_[y.name] = p_.zeros(type_given(y.dtype), y.dims, y.name + ".tangent");
            }
            Tensor &t = tangents_.at(y.name);
            const std::string wanted = y.name + ".tangent";
            const DType type = type_given(y.dtype);
            if (t.dtype != type || (!is_round_ && t.name != wanted)) {
                const Stage out{p_.fresh(wanted), t.dims, Map(p_.kept(type, own_element(t))), {}, {}};
                t = results_of(p_.add(out))[0];
            }
            if (p_.made.large.count(y.name)) p_.made.large.insert(t.name);
            p_.made.outputs.push_back(t.name);
        }
        p_.drop_unneeded(true);
        return p_.finished();
    }

    // The tangent of what it is by, as the input is called, and that of any tensor.
    const std::string &input_of(const std::string &name) const { return inputs_.at(name); }
    const Tensor &tangent_of(const std::string &name) const { return tangents_.at(name); }

private:
    Request request_;
    bool is_round_;
    Program p_;
    LinearScope scope_;
    std::map<std::string, Tensor> tangents_;  // by what they are of
    std::map<std::string, std::string> inputs_;

    DType type_given(DType type) const { return is_round_ ? arithmetic_type(type) : Program::type_at_interface(type); }

    void add(const Stage &stage) {
        p_.add_as_it_is(stage);
        LinearStage linear = linearized(scope_, stage);
        for (Stage &primal : linear.primal) p_.add(std::move(primal));
        for (const LinearResult &r : linear.results) add_tangent(r);
    }

    // The call with tangents beside what each round takes and gives.
    void add(const Call &given) {
        if (given.callee->rule) return add_by_rule(given);
        const RoundActivity active = round_activity(given, request_.active);
        if (active.by.empty() || active.of.empty()) return p_.add_as_it_is(given);
        Forward round(of_round(given, active), true);
        Call call = given;
        call.callee = std::make_shared<const Algorithm>(round.run());
        bind_dims(p_, call);
        for (const Source &s : active.by) {
            const DType type = arithmetic_type(s.dtype);
            call.tensors[round.input_of(s.name)] = s.is_parameter ? tangent_of_parameter(given, s, type) : tangent_view(given, s, type);
        }
        for (const std::string &y : active.of) {
            const std::string output = round.tangent_of(y).name;
            call.results[output] = p_.fresh(name_of_result(given, y) + ".tangent");
            if (call.repeat->stacked.count(y)) call.repeat->stacked.insert(output);
            for (const auto &[input, from] : given.repeat->carried)
                if (from == y) call.repeat->carried[round.input_of(input)] = output;
        }
        p_.add_as_it_is(call);
        for (const std::string &y : active.of)
            tangents_[name_of_result(given, y)] = p_.tensor(name_of_result(call, round.tangent_of(y).name));
    }

    // The call, and beside it one of what its rule says.
    void add_by_rule(const Call &given) {
        const RoundActivity active = rule_activity(given, request_.active);
        if (active.by.empty() || active.of.empty()) return p_.add_as_it_is(given);
        const RulePart part = jvp_part(given.callee);
        const Call primal = primal_call(p_, given, part);
        p_.add_as_it_is(primal);
        Call call = part_call(p_, given, primal, part, ".tangent");
        for (const Tensor &t : given.callee->tensors) {
            const auto input = part.given.find(t.name);
            if (input != part.given.end())
                call.tensors[input->second] = tangent_view(given, {t.name, t.dtype, t.dims, false}, derivative_type(t.dtype));
        }
        for (const Parameter &p : given.callee->parameters)
            if (const auto input = part.given.find(p.name); input != part.given.end())
                call.tensors[input->second] = tangent_of_parameter(given, {p.name, p.dtype, {}, true}, p.dtype);
        p_.add_as_it_is(call);
        for (const std::string &y : active.of) tangents_[name_of_result(given, y)] = p_.tensor(name_of_result(call, part.gives.at(y)));
    }

    // What a callee sees of the tangent of what it is bound to.
    View tangent_view(const Call &call, const Source &s, DType type) {
        const View &view = call.tensors.at(s.name);
        const auto known = tangents_.find(view.tensor);
        if (known == tangents_.end()) return {p_.zeros(type, dims_in_caller(call, s.dims), call.scope + "." + s.name + ".tangent").name};
        const Tensor &t = known->second;
        if (t.dtype == type) return {t.name, view.index};
        const Stage cast{p_.fresh(t.name + "." + name_of(type)), t.dims, Map(p_.kept(type, own_element(t))), {}, {}};
        return {results_of(p_.add(cast))[0].name, view.index};
    }
    View tangent_of_parameter(const Call &call, const Source &s, DType type) {
        const Expr &value = call.parameters.at(s.name);
        LinearResult r;
        r.terms = terms_of(request_for(scope_, {call.scope, {}, Map(value), {}, {}}, value), false);
        const Expr change = sum_of(r, false);
        std::vector<std::string> dims;
        if (call.repeat && change.defined() && uses_variable(change, call.repeat->dim)) dims.push_back(call.repeat->dim);
        const Expr all = change.defined() ? converted(type, change) : constant(type, 0);
        const Stage made{p_.fresh(call.scope + "." + s.name + ".tangent"), dims, Map(all), {}, {}};
        return {results_of(p_.add(made))[0].name, variables_of(dims)};
    }

    // Undefined where nothing is left of it.
    Expr value_of(const Term &term) const {
        const auto it = tangents_.find(term.source);
        if (it == tangents_.end()) return {};
        const Tensor &t = it->second;
        Expr element = load(t.name, t.dtype, Operands(term.index.begin(), term.index.end()));
        element = converted(term.coefficient.type(), element);
        return product(term.coefficient, element);
    }
    static Expr chosen(const std::vector<Expr> &conditions, const Expr &value) {
        const Expr all = all_of(conditions);
        return all.defined() ? select(all, value, constant(value.type(), 0)) : value;
    }

    Expr sum_of(const LinearResult &r, bool folded) const {
        Expr all;
        for (const Term &term : r.terms) {
            if (term.folded != folded) continue;
            if (const Expr value = value_of(term); value.defined()) {
                const Expr one = chosen(term.conditions, value);
                all = sum(all, all.defined() ? converted(all.type(), one) : one);
            }
        }
        return all;
    }

    // The two factors of a sum of products.
    std::optional<std::vector<Expr>> factors(const LinearResult &r, DType type) const {
        const Term *only = nullptr;
        for (const Term &term : r.terms) {
            if (!term.folded || !tangents_.count(term.source)) continue;
            if (only || !term.conditions.empty()) return std::nullopt;
            only = &term;
        }
        if (!only || only->coefficient.is_constant()) return std::nullopt;
        const Tensor &t = tangents_.at(only->source);
        const Expr element = load(t.name, t.dtype, Operands(only->index.begin(), only->index.end()));
        return std::vector<Expr>{converted(type, only->coefficient), converted(type, element)};
    }

    void add_tangent(const LinearResult &r) {
        const DType type = p_.folded_in(arithmetic_type(r.result.dtype));
        const Expr plain = sum_of(r, false), folded = sum_of(r, true);
        if (!plain.defined() && !folded.defined()) return;
        const bool is_output =
            std::any_of(request_.of.begin(), request_.of.end(), [&](const Tensor &y) { return y.name == r.result.name; });
        const std::string name = r.result.name + ".tangent";
        const auto made = [&](Stage stage, size_t which = 0) { tangents_[r.result.name] = results_of(p_.add(std::move(stage)))[which]; };
        if (r.scan) {
            const Expr added = converted(type, plain.defined() ? plain : folded);
            Scan scan{sum_monoid(type), r.scan->dim, r.scan->inclusive, {added}, r.scan->direction, r.scan->segments};
            Stage stage{p_.fresh(name), r.result.dims, scan, {}, {}};
            if (r.scan->factor.defined()) {
                auto &body = std::get<Scan>(stage.body);
                body.monoid = recurrence_monoid(type), body.inputs = {converted(type, r.scan->factor), added};
                stage.results = {p_.fresh(name + ".decay"), stage.name};
                stage.name = p_.fresh(name + ".scan");
                return made(std::move(stage), 1);
            }
            return made(std::move(stage));
        }
        Expr value = plain;
        if (folded.defined()) {
            const auto two = factors(r, type);
            const bool is_alone = !plain.defined();
            Reduce reduce{two ? dot_monoid(type) : sum_monoid(type), r.folded, two ? *two : std::vector{converted(type, folded)}, r.where,
                          r.at};
            const DType wanted = is_output ? Program::type_at_interface(r.result.dtype) : type;
            const bool is_whole = is_alone && wanted == type;
            Stage acc{p_.fresh(is_whole ? name : name + ".acc"), r.result.dims, std::move(reduce), {}, {}};
            made(std::move(acc));
            if (is_alone) return;
            value = converted(type, plain) + own_element(tangents_.at(r.result.name));
        }
        const DType wanted = is_output ? Program::type_at_interface(r.result.dtype) : value.type();
        made(Stage{p_.fresh(name), r.result.dims, Map(p_.kept(wanted, value)), {}, {}});
    }
};

}  // namespace

}  // namespace differentiation

Algorithm jvp(const Algorithm &f, const By &by) { return differentiation::Forward(differentiation::checked(f, by), false).run(); }

}  // namespace tessera
