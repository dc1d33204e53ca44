// Reverse mode: the steps that are linear in tangents, transposed from the last to the first.
#include <algorithm>

#include "algorithms/index/prove.h"
#include "algorithms/transform/derivatives/contribution.h"
#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/derivatives/linearize.h"
#include "algorithms/transform/derivatives/request.h"
#include "support/text/error.h"

namespace tessera {

namespace differentiation {

namespace {

enum class Kind : uint8_t { vjp, grad, value_and_grad, transpose };

class Backward {
public:
    Backward(const Algorithm &f, const By &by, Kind kind)
        : request_(checked(f, by)),
          kind_(kind),
          p_(request_.f, f.name + suffix(kind)),
          contributor_(p_),
          scope_{request_.f,
                 request_.active,
                 [this](const std::string &name) { return p_.fresh(name); },
                 {request_.f.outputs.begin(), request_.f.outputs.end()}} {}

    Algorithm run() {
        std::vector<std::pair<const Stage *, LinearStage>> linear;
        for (const Stage &stage : request_.f.stages()) {
            p_.add_as_it_is(stage);
            linear.emplace_back(&stage, linearized(scope_, stage));
            for (Stage &primal : linear.back().second.primal) p_.add(primal);
        }
        seed();
        for (size_t i = linear.size(); i-- > 0;)
            for (size_t r = linear[i].second.results.size(); r-- > 0;) transpose(*linear[i].first, linear[i].second.results[r]);
        if (kind_ == Kind::value_and_grad) p_.made.outputs = request_.f.outputs;
        for (const Source &s : request_.by) add_output(s);
        p_.drop_unneeded(kind_ == Kind::value_and_grad);
        if (kind_ == Kind::transpose) check_linear();
        return p_.finished();
    }

private:
    Request request_;
    Kind kind_;
    Program p_;
    Contributor contributor_;
    LinearScope scope_;
    std::map<std::string, std::vector<Contribution>> given_;  // to tensors

    static std::string suffix(Kind kind) {
        return kind == Kind::value_and_grad ? ".value_and_grad" : kind == Kind::transpose ? ".transpose" : ".grad";
    }

    void seed() {
        const bool is_of_one = kind_ == Kind::grad || kind_ == Kind::value_and_grad;
        if (is_of_one && (request_.of.size() != 1 || !request_.of[0].dims.empty())) {
            std::vector<std::string> all;
            for (const Tensor &y : request_.of) all.push_back(y.name + "[" + (y.dims.empty() ? "" : join(y.dims)) + "]");
            throw UserError("derivative.scalar",
                            request_.f.name + ": a gradient is of one number, an output without dims; got " + join(all),
                            "Say which output (of), sum it up to one number, or take vjp, which weights each element.");
        }
        for (const Tensor &y : request_.of) {
            Contribution c;
            if (is_of_one) {
                c.core = constant(arithmetic_type(y.dtype), 1);
            } else {
                Tensor t{p_.fresh(y.name + ".grad"), Program::type_at_interface(y.dtype), y.dims, Role::input, {}, {}};
                if (p_.made.large.count(y.name)) p_.made.large.insert(t.name);
                p_.made.tensors.push_back(t), p_.know(t);
                c.core = p_.read(t);
            }
            given_[y.name].push_back(std::move(c));
        }
    }

    // The sum of what a tensor was given, over its own indices.
    Expr total(const std::vector<Contribution> &all) const {
        struct Group {
            std::vector<Expr> conditions;
            std::vector<Factor> factors;
            bool is_negative;
            Expr core;
        };
        const auto same = [](const Group &g, const Contribution &c) {
            const auto same_expr = [](const Expr &a, const Expr &b) { return equal(a, b); };
            const auto same_factor = [](const Factor &a, const Factor &b) { return a.divides == b.divides && equal(a.value, b.value); };
            return g.is_negative == c.is_negative &&
                   std::equal(g.conditions.begin(), g.conditions.end(), c.conditions.begin(), c.conditions.end(), same_expr) &&
                   std::equal(g.factors.begin(), g.factors.end(), c.factors.begin(), c.factors.end(), same_factor);
        };
        DType type = DType::f32;
        for (const Contribution &c : all)
            if (c.core.type() == DType::f64) type = DType::f64;
        std::vector<Group> groups;
        for (const Contribution &c : all) {
            const Expr core = converted(type, c.core);
            auto known = std::find_if(groups.begin(), groups.end(), [&](const Group &g) { return same(g, c); });
            if (known != groups.end()) known->core = known->core + core;
            else groups.push_back({c.conditions, c.factors, c.is_negative, core});
        }
        Expr sum_of_all;
        for (const Group &g : groups) {
            Expr value = multiplied(g.core, g.factors);
            if (g.is_negative) value = -value;
            if (const Expr all_hold = all_of(g.conditions); all_hold.defined()) value = select(all_hold, value, constant(type, 0));
            sum_of_all = sum(sum_of_all, value);
        }
        return contributor_.with_known(sum_of_all);
    }

    static bool is_alone(const std::vector<Contribution> &all) {
        return all.size() == 1 && all[0].conditions.empty() && all[0].factors.empty() && !all[0].is_negative;
    }

    // A stage that only this contribution is made by takes the name.
    Expr named(const std::string &stage, const std::string &name) {
        const std::string free = p_.fresh(name);
        for (Stage &s : p_.made.stages())
            if (s.name == stage) {
                s.name = free;
                const Tensor t = results_of(s)[0];
                p_.know(t), p_.take_names_of(s);
                return own_element(t);
            }
        throw InternalError("a contribution's stage is gone");
    }

    // Conditions over indices outside of which all contributions are 0.
    static std::vector<Expr> support_of(const std::vector<Contribution> &all) {
        std::vector<Expr> common;
        for (const Expr &c : all[0].conditions) {
            if (c->loads) continue;
            const bool is_everywhere = std::all_of(all.begin(), all.end(), [&](const Contribution &o) {
                return std::any_of(o.conditions.begin(), o.conditions.end(), [&](const Expr &e) { return equal(e, c); });
            });
            if (is_everywhere) common.push_back(c);
        }
        return common;
    }

    Cotangent cotangent_of(const Tensor &t) {
        const std::vector<Contribution> &all = given_.at(t.name);
        if (is_alone(all)) {
            if (!all[0].stage.empty()) return {named(all[0].stage, t.name + ".grad"), {}};
            return {all[0].core, {}};
        }
        const Stage stage = p_.add({p_.fresh(t.name + ".grad"), t.dims, Map(total(all)), {}, {}});
        return {own_element(results_of(stage)[0]), support_of(all)};
    }

    // What elements of a scan get from those behind them.
    Cotangent through_scan(const LinearResult &r, const Cotangent &g) {
        const Recurrence &scan = *r.scan;
        const DType type = p_.folded_in(arithmetic_type(r.result.dtype));
        const bool is_forward = scan.direction == ScanDirection::forward;
        const Expr i = variable(scan.dim), next = is_forward ? i + 1 : i - 1;
        const Expr is_there = is_forward ? next < extent(scan.dim) : Expr(1) <= i;
        const auto at_next = [&](const Expr &e) { return read_where(substitute(e, {{scan.dim, next}}), is_there); };
        Scan back{sum_monoid(type),
                  scan.dim,
                  scan.inclusive,
                  {converted(type, g.value)},
                  is_forward ? ScanDirection::backward : ScanDirection::forward,
                  {}};
        if (scan.segments.defined()) back.segments = is_there && at_next(scan.segments);
        Stage stage{p_.fresh(r.result.name + ".grad.scan"), r.result.dims, back, {}, {}};
        size_t which = 0;
        if (scan.factor.defined()) {
            auto &body = std::get<Scan>(stage.body);
            body.monoid = recurrence_monoid(type);
            const Expr factor = scan.inclusive ? select(is_there, at_next(scan.factor), constant(scan.factor.type(), 0)) : scan.factor;
            body.inputs = {converted(type, factor), body.inputs[0]};
            stage.results = {p_.fresh(stage.name + ".decay"), p_.fresh(stage.name + ".sum")};
            which = 1;
        }
        return {own_element(results_of(p_.add(std::move(stage)))[which]), {}};
    }

    Tensor source_tensor(const Term &term) const {
        for (const Parameter &p : request_.f.parameters)
            if (p.name == term.source) return {p.name, p.dtype, {}, Role::input, {}, {}};
        return p_.tensor(term.source);
    }

    void transpose(const Stage &stage, const LinearResult &r) {
        if (!given_.count(r.result.name)) return;
        Cotangent g = cotangent_of(r.result);
        if (r.scan) g = through_scan(r, g);
        for (const Term &term : r.terms) {
            Contribution c = contributor_.of(r, term, g, source_tensor(term), stage.name);
            given_[term.source].push_back(std::move(c));
        }
    }

    void add_output(const Source &s) {
        const DType type = Program::type_at_interface(s.dtype);
        const std::string wanted = s.name + ".grad";
        const std::vector<Contribution> &all = given_.at(s.name);
        std::string name;
        if (is_alone(all) && !all[0].stage.empty() && all[0].core.type() == type && p_.kept(type, all[0].core).get() == all[0].core.get()) {
            name = named(all[0].stage, wanted)->name;
        } else {
            name = p_.fresh(wanted);
            p_.add({name, s.dims, Map(p_.kept(type, total(all))), {}, {}});
        }
        if (p_.made.large.count(s.name)) p_.made.large.insert(name);
        p_.made.outputs.push_back(name);
    }

    // An adjoint does not depend on what f is linear in, and f of nothing is nothing.
    void check_linear() const {
        std::set<std::string> names;
        for (const Source &s : request_.by) names.insert(s.name);
        const auto refuse = [&](const Stage &stage, const std::string &why) {
            throw UserError("derivative.linear",
                            request_.f.name + "." + stage.name + ": it is not linear in " + join({names.begin(), names.end()}) + ": " + why,
                            "Name only inputs in which the algorithm is linear, or take its vjp at a point.")
                .about(stage.name, stage.span);
        };
        for (const Stage &stage : p_.made.stages())
            for (const Expr &whole : expressions_of(stage))
                walk(whole, [&](const Expr &e) {
                    if (e.kind() == ExprKind::load && request_.active.tensors.count(e->name))
                        refuse(stage, "a coefficient of its derivative reads '" + e->name + "'");
                });
        for (const Stage &stage : request_.f.stages())
            for (const Tensor &t : results_of(stage))
                if (request_.active.tensors.count(t.name) && !vanishes(stage)) refuse(stage, "it gives more than 0 for zeros");
    }

    bool is_zero(const Expr &e) const {
        const auto zero = [&](size_t i) { return is_zero(e->args[i]); };
        if (e.is_constant()) return is_float(e.type()) && e->value.real == 0;
        if (e.kind() == ExprKind::load) return request_.active.tensors.count(e->name) && (!e->guarded || is_zero(e->args.back()));
        if (e.kind() == ExprKind::parameter) return request_.active.tensors.count(e->name) > 0;
        if (e.kind() == ExprKind::cast) return zero(0);
        if (e.kind() == ExprKind::function) return e->function->facts.rounds && zero(0);
        if (e.kind() != ExprKind::operation) return false;
        switch (e->op) {
        case Op::neg: return zero(0);
        case Op::add:
        case Op::sub: return zero(0) && zero(1);
        case Op::mul: return zero(0) || zero(1);
        case Op::div: return zero(0);
        case Op::fma: return (zero(0) || zero(1)) && zero(2);
        case Op::select: return zero(1) && zero(2);
        default: return false;
        }
    }
    bool vanishes(const Stage &stage) const {
        if (const auto *map = std::get_if<Map>(&stage.body)) {
            const std::vector<Expr> alone = values_alone(*map);
            return std::all_of(alone.begin(), alone.end(), [&](const Expr &e) { return is_zero(e); });
        }
        const std::vector<Expr> &inputs = inputs_of(stage);
        return std::any_of(inputs.begin(), inputs.end(), [&](const Expr &e) { return is_zero(e); });
    }
};

}  // namespace

}  // namespace differentiation

Algorithm vjp(const Algorithm &f, const By &by) { return differentiation::Backward(f, by, differentiation::Kind::vjp).run(); }
Algorithm grad(const Algorithm &f, const By &by) { return differentiation::Backward(f, by, differentiation::Kind::grad).run(); }
Algorithm value_and_grad(const Algorithm &f, const By &by) {
    return differentiation::Backward(f, by, differentiation::Kind::value_and_grad).run();
}
Algorithm transpose(const Algorithm &f, const std::vector<std::string> &linear_in) {
    return differentiation::Backward(f, {linear_in, {}}, differentiation::Kind::transpose).run();
}

}  // namespace tessera
