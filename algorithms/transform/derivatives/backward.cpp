#include "algorithms/transform/derivatives/backward.h"

#include <algorithm>

#include "algorithms/index/prove.h"
#include "algorithms/transform/derivatives/compute_again.h"
#include "algorithms/transform/derivatives/linearize.h"
#include "support/text/error.h"
#include "support/text/printable.h"
#include "support/text/shortened.h"

namespace tessera::differentiation {

static std::string suffix(BackwardKind kind) {
    return kind == BackwardKind::value_and_grad ? ".value_and_grad" : kind == BackwardKind::transpose ? ".transpose" : ".grad";
}

Backward::Backward(Request request, BackwardKind kind)
    : request_(std::move(request)),
      kind_(kind),
      p_(request_.f, request_.f.name + suffix(kind)),
      contributor_(p_),
      scope_{request_.f,
             request_.active,
             [this](const std::string &name) { return p_.fresh(name); },
             {request_.f.outputs.begin(), request_.f.outputs.end()}} {}

static void add_stages(const Algorithm &f, const std::string &prefix, std::vector<std::string> &names) {
    for (const Stage &stage : f.stages()) names.push_back(prefix + stage.name);
    for (const Call &call : f.calls()) add_stages(*call.callee, prefix + call.scope + ".", names);
}

static void add_stages(const std::vector<ForwardPart> &parts, std::vector<std::string> &names) {
    for (const ForwardPart &part : parts) {
        for (const ForwardStage &s : part.stages) names.push_back(s.name);
        add_stages(part.within, names);
    }
}

// A pattern that fits nothing is a slip: the gradient would keep, or compute again, what nobody asked for.
void Backward::check_residuals() const {
    std::vector<std::string> names;
    const std::vector<Residuals::Choice> &choices = request_.residuals.choices;
    for (const Residuals::Choice &choice : choices) {
        if (choice.stages == "*") continue;
        if (names.empty()) {
            for (const Stage &stage : p_.made.stages()) names.push_back(stage.name);
            add_stages(request_.f, "", names), add_stages(within_, names);
            std::sort(names.begin(), names.end());
            names.erase(std::unique(names.begin(), names.end()), names.end());
        }
        const auto is_fitting = [&](const std::string &name) { return Residuals{{{choice.stages, true}}, {}}.saves(name, true); };
        if (std::any_of(names.begin(), names.end(), is_fitting)) continue;
        throw UserError("derivative.residuals", request_.f.name + ": residuals name the stages '" + printable(choice.stages) +
                                                    "', which fit none; there are " + first_of(names, 40) + "." +
                                                    did_you_mean(choice.stages, names));
    }
}

void Backward::make() {
    add_primal(RoundWiring());
    forward_ = p_.made.steps.size();
    check_residuals();
    seed();
    transpose_all();
    if (kind_ == BackwardKind::value_and_grad) p_.made.outputs = request_.f.outputs;
    for (const Source &s : request_.by) p_.made.outputs.push_back(add_output(s, Program::type_at_interface(s.dtype)));
}

Algorithm Backward::run() {
    make();
    const std::vector<Copy> copies =
        compute_again(p_, forward_, [&](const std::string &stage) { return !request_.residuals.saves(stage, false); });
    p_.drop_unneeded(kind_ == BackwardKind::value_and_grad);
    take_names_of_gone(p_, copies);
    if (kind_ == BackwardKind::transpose) check_linear(request_, p_.made);
    return p_.finished();
}

ForwardPart Backward::run_forward_part() {
    make();
    ForwardPart part = part_of({p_.made.steps.begin(), p_.made.steps.begin() + static_cast<std::ptrdiff_t>(forward_)});
    std::set<std::string> forward, read;
    for (const Step &step : part.algorithm.steps)
        for (const Tensor &t : std::visit([](const auto &s) { return results_of(s); }, step)) forward.insert(t.name);
    p_.drop_unneeded(false);
    for (const Step &step : p_.made.steps) {
        const std::vector<Tensor> results = std::visit([](const auto &s) { return results_of(s); }, step);
        if (std::none_of(results.begin(), results.end(), [&](const Tensor &t) { return forward.count(t.name) > 0; }))
            read.merge(reads_of(step));
    }
    for (ForwardStage &s : part.stages)
        for (const Tensor &t : results_of(s.stage)) s.is_read |= read.count(t.name) > 0;
    return part;
}

ForwardPart Backward::part_of(const std::vector<Step> &steps) const {
    ForwardPart part;
    part.algorithm = request_.f;
    part.algorithm.steps = steps;
    part.within = within_;
    std::map<std::string, size_t> makers;
    for (const Step &step : steps) {
        const auto *stage = std::get_if<Stage>(&step);
        if (!stage) continue;
        ForwardStage made{request_.prefix + stage->name, *stage, {}, false, !can_be_computed_again(*stage, steps)};
        std::set<size_t> reads;
        for (const std::string &name : reads_of(step))
            if (const auto maker = makers.find(name); maker != makers.end()) reads.insert(maker->second);
        made.reads.assign(reads.begin(), reads.end());
        for (const Tensor &t : results_of(*stage)) makers[t.name] = part.stages.size();
        part.stages.push_back(std::move(made));
    }
    return part;
}

void Backward::add_primal(const RoundWiring &wiring) {
    for (const Step &step : request_.f.steps) {
        const auto *stage = std::get_if<Stage>(&step);
        if (!stage) {
            add_primal(std::get<Call>(step));
            continue;
        }
        const std::vector<Tensor> results = results_of(*stage);
        if (std::any_of(results.begin(), results.end(), [&](const Tensor &t) { return wiring.saved.count(t.name) > 0; }))
            for (Tensor t : results) p_.made.tensors.push_back(t);
        else p_.add_as_it_is(*stage);
        linear_.emplace_back(std::pair{stage, linearized(scope_, *stage)});
        for (Stage &primal : std::get<0>(linear_.back()).second.primal) p_.add(primal);
    }
}

// An input whose elements are given to a tensor of these dims.
std::string Backward::seed_by_input(const std::string &of, const std::vector<std::string> &dims, DType type, const std::string &name) {
    const Tensor t{p_.fresh(name), type, dims, Role::input, {}, {}};
    if (p_.made.large.count(of)) p_.made.large.insert(t.name);
    p_.made.tensors.push_back(t), p_.know(t);
    Contribution c;
    c.core = p_.read(t);
    given_[of].push_back(std::move(c));
    return t.name;
}

void Backward::seed() {
    const bool is_of_one = kind_ == BackwardKind::grad || kind_ == BackwardKind::value_and_grad;
    if (is_of_one && (request_.of.size() != 1 || !request_.of[0].dims.empty())) {
        std::vector<std::string> all;
        for (const Tensor &y : request_.of) all.push_back(y.name + "[" + (y.dims.empty() ? "" : join(y.dims)) + "]");
        throw UserError("derivative.scalar", request_.f.name + ": a gradient is of one number, an output without dims; got " + join(all),
                        "Say which output (of), sum it up to one number, or take vjp, which weights each element.");
    }
    for (const Tensor &y : request_.of) {
        if (is_of_one) {
            Contribution c;
            c.core = constant(arithmetic_type(y.dtype), 1);
            given_[y.name].push_back(std::move(c));
        } else {
            seed_by_input(y.name, y.dims, Program::type_at_interface(y.dtype), y.name + ".grad");
        }
    }
}

// The sum of what a tensor was given, over its own indices.
Expr Backward::total(const std::vector<Contribution> &all) const {
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

// What makes this contribution alone, a stage or a call, calls it so.
Expr Backward::named(const std::string &result, const std::string &name) {
    const std::string free = p_.fresh(name);
    for (Stage &s : p_.made.stages())
        if (s.name == result) {
            s.name = free;
            const Tensor t = results_of(s)[0];
            p_.know(t), p_.take_names_of(s);
            return own_element(t);
        }
    for (Call &call : p_.made.calls())
        for (const std::string &output : call.callee->outputs)
            if (name_of_result(call, output) == result) {
                Tensor t = p_.tensor(result);
                call.results[output] = t.name = free;
                p_.know(t);
                return own_element(t);
            }
    throw InternalError("what makes a contribution is gone");
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

Cotangent Backward::cotangent_of(const Tensor &t) {
    const std::vector<Contribution> &all = given_.at(t.name);
    if (is_alone(all)) {
        if (!all[0].stage.empty()) return {named(all[0].stage, t.name + ".grad"), {}};
        return {all[0].core, {}};
    }
    const Stage stage = p_.add({p_.fresh(t.name + ".grad"), t.dims, Map(total(all)), {}, {}});
    return {own_element(results_of(stage)[0]), support_of(all)};
}

// What elements of a scan get from those behind them.
Cotangent Backward::through_scan(const LinearResult &r, const Cotangent &g) {
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

Tensor Backward::source_tensor(const Term &term) const {
    for (const Parameter &p : request_.f.parameters)
        if (p.name == term.source) return {p.name, p.dtype, {}, Role::input, {}, {}};
    return p_.tensor(term.source);
}

void Backward::transpose_all() {
    for (size_t i = linear_.size(); i-- > 0;) std::visit([&](const auto &step) { transpose(step); }, linear_[i]);
}

void Backward::transpose(const std::pair<const Stage *, LinearStage> &step) {
    for (size_t r = step.second.results.size(); r-- > 0;) transpose(*step.first, step.second.results[r]);
}

void Backward::transpose(const Stage &stage, const LinearResult &r) {
    if (!given_.count(r.result.name)) return;
    Cotangent g = cotangent_of(r.result);
    if (r.scan) g = through_scan(r, g);
    for (const Term &term : r.terms) {
        Contribution c = contributor_.of(r, term, g, source_tensor(term), stage.name);
        given_[term.source].push_back(std::move(c));
    }
}

// The gradient by a source, as a result of its own.
std::string Backward::add_output(const Source &s, DType type) {
    const std::string wanted = s.name + ".grad";
    const auto known = given_.find(s.name);
    std::string name;
    if (known == given_.end()) {
        name = p_.zeros(type, s.dims, wanted).name;
    } else if (const std::vector<Contribution> &all = known->second; is_alone(all) && !all[0].stage.empty() && all[0].core.type() == type &&
                                                                     p_.kept(type, all[0].core).get() == all[0].core.get()) {
        name = named(all[0].stage, wanted)->name;
    } else {
        name = p_.fresh(wanted);
        p_.add({name, s.dims, Map(p_.kept(type, total(all))), {}, {}});
    }
    if (p_.made.large.count(s.name)) p_.made.large.insert(name);
    return name;
}

}  // namespace tessera::differentiation
