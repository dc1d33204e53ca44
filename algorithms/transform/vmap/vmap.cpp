#include "algorithms/transform/vmap/vmap.h"

#include <algorithm>
#include <map>
#include <set>

#include "algorithms/ir/derivative_rule.h"
#include "algorithms/ir/rows.h"
#include "algorithms/transform/as_a_call.h"
#include "algorithms/verify/verify.h"
#include "runtime/abi/tessera.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Names = std::set<std::string>;

class Mapping {
public:
    // `forced`: outputs that have the dim in any case.
    Mapping(const Algorithm &f, Dim over, const Names &mapped, const Names &forced)
        : f_(f), made_(f), over_(std::move(over)), forced_(forced) {
        for (const Dim &d : f.dims) names_.insert(d.name);
        for (const Tensor &t : f.tensors) names_.insert(t.name);
        for (const Parameter &p : f.parameters) names_.insert(p.name);
        for (const Stage &s : f.stages()) {
            names_.insert(s.name);
            for (const Tensor &t : results_of(s)) names_.insert(t.name);
        }
        for (const Call &c : f.calls()) {
            names_.insert(c.scope);
            for (const Tensor &t : results_of(c)) names_.insert(t.name);
        }
        over_.name = fresh(over_.name);
        made_.rule = nullptr;
        made_.steps.clear();
        made_.dims.insert(made_.dims.begin(), over_);
        for (Tensor &t : made_.tensors)
            if (mapped.count(t.name)) t.dims.insert(t.dims.begin(), over_.name), axis_of_[t.name] = 0;
        for (const Parameter &p : f.parameters) {
            if (!mapped.count(p.name)) continue;
            parameters_.insert(p.name);
            made_.tensors.push_back(Tensor{p.name, p.dtype, {over_.name}, Role::input, {}, {}});
        }
        std::erase_if(made_.parameters, [&](const Parameter &p) { return parameters_.count(p.name) > 0; });
        for (const Dim &d : f.dims)
            if (d.size.defined() && depends(d.size))
                throw UserError("vmap.extent",
                                f.name + ": the extent of its dim '" + d.name + "', " + brief(d.size) +
                                    ", would be another one at each index of '" + over_.name + "', and tensors have one",
                                "Leave unmapped what it depends on, or call the algorithm once for each index (Builder::repeat).");
    }

    void run() {
        for (const Step &step : f_.steps) std::visit([&](const auto &s) { add(s); }, step);
        for (std::string &output : made_.outputs) {
            const auto at = axis_of_.find(output);
            if (at != axis_of_.end() && at->second > 0) in_front(output);
        }
    }

    const Algorithm &made() const { return made_; }
    const Dim &over() const { return over_; }
    bool is_mapped(const std::string &tensor) const { return axis_of_.count(tensor) > 0; }

private:
    const Algorithm &f_;
    Algorithm made_;
    Dim over_;
    Names forced_, names_, parameters_;      // parameters that are mapped
    std::map<std::string, size_t> axis_of_;  // of the dim, in tensors and results that have it

    std::string fresh(const std::string &name) {
        std::string free = name;
        for (int n = 2; names_.count(free); n++) free = name + std::to_string(n);
        names_.insert(free);
        return free;
    }

    bool depends(const Expr &whole) const {
        bool found = false;
        walk(whole, [&](const Expr &e) {
            found |=
                (e.kind() == ExprKind::load && axis_of_.count(e->name)) || (e.kind() == ExprKind::parameter && parameters_.count(e->name));
        });
        return found;
    }

    // The expression at an index of the dim.
    Expr at_index(const Expr &whole) const {
        if (!whole.defined()) return whole;
        return rewrite(whole, [&](const Expr &e) -> Expr {
            if (e.kind() == ExprKind::parameter && parameters_.count(e->name)) return load(e->name, e.type(), {variable(over_.name)});
            if (e.kind() != ExprKind::load) return {};
            const auto at = axis_of_.find(e->name);
            if (at == axis_of_.end()) return {};
            const size_t rank = e->args.size() - (e->guarded ? 2 : 0);
            std::vector<Expr> all(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank));
            all.insert(all.begin() + static_cast<std::ptrdiff_t>(at->second), variable(over_.name));
            const Operands index(all.begin(), all.end());
            return e->guarded ? load_or(e->name, e.type(), index, e->args[rank], e->args[rank + 1]) : load(e->name, e.type(), index);
        });
    }

    void add(Stage stage) {
        bool is_mapped = false;
        for (const Expr &e : expressions_of(stage)) is_mapped |= depends(e);
        for (const Tensor &t : results_of(stage)) is_mapped |= forced_.count(t.name) > 0;
        for (const Write *w : writes_of(stage)) {
            is_mapped |= axis_of_.count(w->state) > 0;
            if (!axis_of_.count(w->state))
                throw UserError("vmap.write",
                                f_.name + "." + stage.name + ": it writes the state '" + w->state +
                                    "', which is not mapped, so each index of '" + over_.name + "' would write the same elements",
                                "Map the state too, or call the algorithm once for each index (Builder::repeat).")
                    .about(stage.name, stage.span);
        }
        if (!is_mapped) return made_.steps.emplace_back(std::move(stage)), void();
        const Expr own = variable(over_.name);
        stage = map_expressions(std::move(stage), [&](const Expr &e) { return at_index(e); });
        stage.dims.insert(stage.dims.begin(), over_.name);
        if (auto *map = std::get_if<Map>(&stage.body)) {
            for (Value &v : map->values)
                if (v.to) v.to->index.insert(v.to->index.begin() + static_cast<std::ptrdiff_t>(axis_of_.at(v.to->state)), own);
        } else if (auto *reduce = std::get_if<Reduce>(&stage.body); reduce && !reduce->at.empty()) {
            reduce->at.insert(reduce->at.begin(), own);
        }
        for (const Tensor &t : results_of(stage)) axis_of_[t.name] = 0;
        made_.steps.emplace_back(std::move(stage));
    }

    [[noreturn]] void refuse(const Call &call, const std::string &id, const std::string &what, const std::string &remedy) const {
        throw UserError("vmap." + id, f_.name + "." + call.scope + ": " + what, remedy).about(call.scope, call.span);
    }

    void add(const Call &given) {
        Names inside, forced;
        for (const auto &[name, view] : given.tensors) {
            if (axis_of_.count(view.tensor)) inside.insert(name);
            for (const Expr &e : view.index)
                if (depends(e))
                    refuse(given, "view",
                           "its view of '" + view.tensor + "' lies at " + brief(e) +
                               ", which would be another place at each "
                               "index of '" +
                               over_.name + "'",
                           "Read it there in a stage, and call with that; or leave the number unmapped.");
        }
        for (const auto &[name, value] : given.parameters)
            if (depends(value)) inside.insert(name);
        for (const std::string &output : given.callee->outputs)
            if (forced_.count(name_of_result(given, output))) forced.insert(output);
        if (given.callee->rule) return add_by_rule(given, inside, forced);
        for (;;) {
            Mapping callee(*given.callee, over_, inside, forced);
            callee.run();
            bool grows = false;
            if (given.repeat)
                for (const auto &[input, output] : given.repeat->carried) {
                    if (callee.is_mapped(output)) grows |= inside.insert(input).second;
                    if (inside.count(input)) grows |= forced.insert(output).second;
                }
            if (!grows) return add(given, callee, inside);
        }
    }

    // The callee with its rule: each index then has its own of all that the rule has derivatives by and of.
    void add_by_rule(const Call &given, Names inside, Names forced) {
        const Algorithm &callee = *given.callee;
        if (inside.empty() && forced.empty()) return made_.steps.emplace_back(given), void();
        const DerivativeRule &rule = *callee.rule;
        const RuleReach reach = reach_of(callee);
        inside.insert(reach.by.begin(), reach.by.end());
        forced.insert(callee.outputs.begin(), callee.outputs.end());
        Dim over = over_;
        const auto is_taken = [&](const Algorithm *a) {
            const auto is = [&](const auto &named) { return named.name == over.name; };
            return a && (a->find_dim(over.name) || a->find_tensor(over.name) || a->find_stage(over.name) ||
                         std::any_of(a->parameters.begin(), a->parameters.end(), is));
        };
        for (int n = 2; is_taken(&callee) || is_taken(rule.jvp.get()) || is_taken(rule.forward.get()) || is_taken(rule.backward.get()); n++)
            over.name = over_.name + std::to_string(n);
        const auto mapped = [&](const std::shared_ptr<const Algorithm> &part) -> std::shared_ptr<const Algorithm> {
            if (!part) return nullptr;
            Names names;
            const auto is_same = [&](const std::string &name) {  // at each index
                const auto is = [&](const Parameter &p) { return p.name == name; };
                const bool is_argument = callee.find_tensor(name) || std::any_of(callee.parameters.begin(), callee.parameters.end(), is);
                return is_argument && !inside.count(name);
            };
            for (const Tensor &t : part->tensors)
                if (t.role != Role::constant && !is_same(t.name)) names.insert(t.name);
            for (const Parameter &p : part->parameters)
                if (!is_same(p.name)) names.insert(p.name);
            Mapping mapping(*part, over, names, {part->outputs.begin(), part->outputs.end()});
            mapping.run();
            return std::make_shared<const Algorithm>(mapping.made());
        };
        Mapping mapping(callee, over, inside, forced);
        mapping.run();
        mapping.made_.rule = std::make_shared<const DerivativeRule>(
            DerivativeRule{mapped(rule.jvp), mapped(rule.backward), mapped(rule.forward), rule.differs});
        add(given, mapping, inside);
    }

    void add(const Call &given, const Mapping &callee, const Names &inside) {
        if (given.repeat && !given.repeat->until.empty() && callee.is_mapped(given.repeat->until))
            refuse(
                given, "until",
                "it stops early by '" + given.repeat->until + "', which may hold after another round at each index of '" + over_.name + "'",
                "Let all rounds run, and select what counts; or leave unmapped what it depends on.");
        const bool is_any = std::any_of(given.callee->outputs.begin(), given.callee->outputs.end(),
                                        [&](const std::string &output) { return callee.is_mapped(output); });
        if (!is_any && inside.empty()) return made_.steps.emplace_back(given), void();
        Call call = given;
        call.callee = std::make_shared<const Algorithm>(callee.made());
        call.dims[callee.over().name] = over_.name;
        for (const Tensor &t : given.callee->tensors)
            if (inside.count(t.name)) call.tensors[t.name] = batched(given.tensors.at(t.name), t.dims.size());
        for (const Parameter &p : given.callee->parameters)
            if (inside.count(p.name)) call.tensors[p.name] = as_tensor(given, p), call.parameters.erase(p.name);
        for (const std::string &output : given.callee->outputs) {
            if (!callee.is_mapped(output)) continue;
            axis_of_[name_of_result(given, output)] = given.repeat && given.repeat->stacked.count(output) ? 1 : 0;
        }
        made_.steps.emplace_back(std::move(call));
    }

    // The view with the dim as its first axis, which moves nothing where what it is of has none.
    View batched(const View &view, size_t rank) const {
        std::map<std::string, Expr> behind;
        for (size_t i = 0; i < rank; i++) behind[axis(i)->name] = axis(i + 1);
        View moved(view.tensor);
        for (const Expr &e : view.index) moved.index.push_back(substitute(e, behind));
        const auto at = axis_of_.find(view.tensor);
        if (view.index.empty()) {
            if (at != axis_of_.end() && at->second == 0) return view;
            for (size_t i = 0; i < rank; i++) moved.index.push_back(axis(i + 1));
        }
        if (at != axis_of_.end()) moved.index.insert(moved.index.begin() + static_cast<std::ptrdiff_t>(at->second), axis(0));
        return moved;
    }

    // A parameter of the callee that is another number at each index.
    View as_tensor(const Call &call, const Parameter &p) {
        const Expr value = at_index(call.parameters.at(p.name));
        std::vector<std::string> dims;
        View view(fresh(call.scope + "_" + p.name));
        if (call.repeat && uses_variable(value, call.repeat->dim))
            dims.push_back(call.repeat->dim), view.index.push_back(variable(dims[0]));
        dims.push_back(over_.name), view.index.push_back(axis(0));
        made_.steps.emplace_back(Stage{view.tensor, dims, Map(value), {}, {}});
        return view;
    }

    // An output that has the dim elsewhere, as what is stacked has: the result gets another name, and is copied.
    void in_front(const std::string &output) {
        for (Call &call : made_.calls())
            for (const Tensor &t : results_of(call)) {
                if (t.name != output) continue;
                const std::string stacked = fresh(output + ".stacked");
                for (const std::string &own : call.callee->outputs)
                    if (name_of_result(call, own) == output) call.results[own] = stacked;
                rename_loads(output, stacked);
                std::vector<std::string> dims = t.dims;
                std::rotate(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis_of_.at(output)),
                            dims.begin() + static_cast<std::ptrdiff_t>(axis_of_.at(output)) + 1);
                Operands index;
                for (const std::string &d : t.dims) index.push_back(variable(d));
                made_.steps.emplace_back(Stage{output, dims, Map(load(stacked, t.dtype, index)), {}, {}});
                axis_of_[output] = 0;
                return;
            }
    }
    void rename_loads(const std::string &from, const std::string &to) {
        made_ = map_expressions(std::move(made_), [&](const Expr &whole) {
            return whole.defined()
                       ? rewrite(whole,
                                 [&](const Expr &e) { return e.kind() == ExprKind::load && e->name == from ? load_of(to, e) : Expr(); })
                       : whole;
        });
        for (Call &call : made_.calls())
            for (auto &[own, view] : call.tensors)
                if (view.tensor == from) view.tensor = to;
    }
};

void check_named(const Algorithm &f, const std::vector<std::string> &mapped) {
    std::vector<std::string> there;
    for (const Tensor &t : f.tensors)
        if (t.role != Role::constant) there.push_back(t.name);
    const bool has_tensors = !there.empty();
    for (const Parameter &p : f.parameters) there.push_back(p.name);
    for (const std::string &name : mapped)
        if (!std::count(there.begin(), there.end(), name))
            throw UserError("vmap.unknown", f.name + ": '" + name + "' is to be mapped, and is no input, state or parameter; there are " +
                                                (there.empty() ? "none" : join(there)) + "." + did_you_mean(name, there));
    if (mapped.empty() && !has_tensors)
        throw UserError("vmap.unknown",
                        f.name + ": it has no input or state that could be mapped; there are " +
                            (there.empty() ? "no parameters either" : "the parameters " + join(there)) + ".",
                        "Name the parameters that are to be mapped.");
}

}  // namespace

Algorithm vmap(const Algorithm &f, const Dim &over, const std::vector<std::string> &mapped) {
    check_named(f, mapped);
    refuse_rows(f, "vmap");
    if (f.find_dim(over.name))
        throw UserError("vmap.dim", f.name + ": it has a dim '" + over.name + "' already; its dims are " + join(names_of(f.dims)) + ".",
                        "Map it over a dim of another name.");
    Names names(mapped.begin(), mapped.end());
    if (mapped.empty())
        for (const Tensor &t : f.tensors)
            if (t.role != Role::constant) names.insert(t.name);
    const Algorithm whole = f.rule ? as_a_call(f) : f;
    Mapping mapping(whole, over, names, {f.outputs.begin(), f.outputs.end()});
    mapping.run();
    Algorithm made = mapping.made();
    made.name = f.name + ".vmap";
    for (const Tensor &t : made.tensors)
        if (t.role != Role::constant && t.dims.size() > TESS_MAX_RANK)
            throw UserError("vmap.rank",
                            made.name + ": '" + t.name + "' would have " + std::to_string(t.dims.size()) + " axes; kernels take at most " +
                                std::to_string(TESS_MAX_RANK) + ".",
                            "Join two of its dims before.");
    verify(made);
    return made;
}

}  // namespace tessera
