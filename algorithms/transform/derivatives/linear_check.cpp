// Whether an adjoint is one: what it was made of is linear.
#include <algorithm>

#include "algorithms/transform/derivatives/backward.h"
#include "support/text/error.h"

namespace tessera::differentiation {

namespace {

// Whether values are 0 where all that is active is.
class Zeros {
public:
    explicit Zeros(const Activity &active) : active_(active) {}

    bool is_zero(const Expr &e) const {
        const auto zero = [&](size_t i) { return is_zero(e->args[i]); };
        if (e.is_constant()) return is_float(e.type()) && e->value.real == 0;
        if (e.kind() == ExprKind::load) return active_.tensors.count(e->name) && (!e->guarded || is_zero(e->args.back()));
        if (e.kind() == ExprKind::parameter) return active_.tensors.count(e->name) > 0;
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

private:
    const Activity &active_;
};

class LinearCheck {
public:
    explicit LinearCheck(const Request &request) : request_(request) {}

    // An adjoint does not depend on what f is linear in.
    void check_adjoint(const Algorithm &adjoint) const {
        for (const Step &step : adjoint.steps)
            for (const std::string &name : reads_of(step))
                if (request_.active.tensors.count(name)) refuse(step, "", "a coefficient of its derivative reads '" + name + "'");
    }

    // f of nothing is nothing.
    void check_zero(const Algorithm &f, const Activity &active, const std::string &prefix) const {
        const Zeros zeros(active);
        const std::string why = "it gives more than 0 for zeros";
        for (const Step &step : f.steps) {
            if (const auto *stage = std::get_if<Stage>(&step)) {
                for (const Tensor &t : results_of(*stage))
                    if (active.tensors.count(t.name) && !zeros.vanishes(*stage)) refuse(step, prefix, why);
                continue;
            }
            const auto &call = std::get<Call>(step);
            const RoundActivity round = round_activity(call, active);
            for (const Source &s : round.by)
                if (s.is_parameter ? !zeros.is_zero(call.parameters.at(s.name)) : !active.tensors.count(call.tensors.at(s.name).tensor))
                    refuse(step, prefix, why);
            if (round.by.empty() || round.of.empty()) continue;
            const Request inside = of_round(call, round);
            check_zero(inside.f, inside.active, prefix + call.scope + ".");
        }
    }

private:
    const Request &request_;

    [[noreturn]] void refuse(const Step &step, const std::string &prefix, const std::string &why) const {
        std::vector<std::string> names;
        for (const Source &s : request_.by) names.push_back(s.name);
        std::sort(names.begin(), names.end());
        const auto *stage = std::get_if<Stage>(&step);
        const std::string subject = prefix + (stage ? stage->name : std::get<Call>(step).scope);
        throw UserError("derivative.linear", request_.f.name + "." + subject + ": it is not linear in " + join(names) + ": " + why,
                        "Name only inputs in which the algorithm is linear, or take its vjp at a point.")
            .about(subject, stage ? stage->span : std::get<Call>(step).span);
    }
};

}  // namespace

void check_linear(const Request &request, const Algorithm &adjoint) {
    const LinearCheck check(request);
    check.check_adjoint(adjoint);
    check.check_zero(request.f, request.active, "");
}

}  // namespace tessera::differentiation
