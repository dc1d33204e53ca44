// Forward mode: beside each stage what its results change by.
#include <algorithm>

#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/derivatives/linearize.h"
#include "algorithms/transform/derivatives/program.h"
#include "algorithms/transform/derivatives/request.h"
#include "support/text/error.h"

namespace tessera {

namespace differentiation {

namespace {

class Forward {
public:
    explicit Forward(const Algorithm &f, const By &by)
        : request_(checked(f, by)),
          p_(request_.f, f.name + ".jvp"),
          scope_{request_.f,
                 request_.active,
                 [this](const std::string &name) { return p_.fresh(name); },
                 {request_.f.outputs.begin(), request_.f.outputs.end()}} {}

    Algorithm run() {
        for (const Source &s : request_.by) {
            Tensor t{p_.fresh(s.name + ".tangent"), Program::type_at_interface(s.dtype), s.dims, Role::input, {}, {}};
            if (p_.made.large.count(s.name)) p_.made.large.insert(t.name);
            p_.made.tensors.push_back(t);
            p_.know(t);
            tangents_[s.name] = t;
        }
        for (const Stage &stage : request_.f.stages()) {
            p_.add_as_it_is(stage);
            LinearStage linear = linearized(scope_, stage);
            for (Stage &primal : linear.primal) p_.add(std::move(primal));
            for (const LinearResult &r : linear.results) add_tangent(r);
        }
        p_.made.outputs = request_.f.outputs;
        for (const Tensor &y : request_.of) {
            if (!tangents_.count(y.name)) continue;
            Tensor &t = tangents_.at(y.name);
            const std::string wanted = y.name + ".tangent";
            const DType type = Program::type_at_interface(y.dtype);
            if (t.dtype != type || t.name != wanted) {
                const Stage out{p_.fresh(wanted), t.dims, Map(p_.kept(type, own_element(t))), {}, {}};
                t = results_of(p_.add(out))[0];
            }
            if (p_.made.large.count(y.name)) p_.made.large.insert(t.name);
            p_.made.outputs.push_back(t.name);
        }
        p_.drop_unneeded(true);
        return p_.finished();
    }

private:
    Request request_;
    Program p_;
    LinearScope scope_;
    std::map<std::string, Tensor> tangents_;  // by what they are of

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

Algorithm jvp(const Algorithm &f, const By &by) { return differentiation::Forward(f, by).run(); }

}  // namespace tessera
