#include "algorithms/transform/derivatives/fold_terms.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "support/text/error.h"

namespace tessera::differentiation {

namespace {

bool is_left(const Expr &e, size_t part) { return e.kind() == ExprKind::left && static_cast<size_t>(e->number) == part; }

bool has_parts(const Expr &e) {
    bool found = false;
    walk(e, [&](const Expr &n) { found |= n.kind() == ExprKind::left || n.kind() == ExprKind::right; });
    return found;
}

// The operands of a monoid's expression in the place of left, right and input; an undefined one keeps the operand.
struct Places {
    std::function<Expr(size_t)> left, right, input;
};
Expr placed(const Expr &e, const Places &places) {
    return rewrite(e, [&](const Expr &n) -> Expr {
        const auto number = static_cast<size_t>(n->number);
        if (n.kind() == ExprKind::left) return places.left ? places.left(number) : Expr();
        if (n.kind() == ExprKind::right) return places.right ? places.right(number) : Expr();
        if (n.kind() == ExprKind::input) return places.input ? places.input(number) : Expr();
        return {};
    });
}
std::function<Expr(size_t)> one_of(const std::vector<Expr> &values) {
    return [&values](size_t i) { return values[i]; };
}

// The choice of a seed stands outside.
std::pair<std::vector<Expr>, Expr> choice_apart(Expr value) {
    std::vector<Expr> conditions;
    while (value.is_operation(Op::select) && value->args[2].is_constant() && is_float(value.type()) && value->args[2]->value.real == 0) {
        conditions.push_back(value->args[0]);
        value = Expr(value->args[1]);
    }
    return {conditions, value};
}

// A condition that a position lies inside of the dims.
Expr inside(const std::vector<Expr> &at, const std::vector<std::string> &dims) {
    Expr all;
    for (size_t i = 0; i < at.size(); i++) {
        if (at[i].kind() == ExprKind::variable && at[i]->name == dims[i]) continue;
        const Expr is = Expr(0) <= at[i] && at[i] < extent(dims[i]);
        all = all.defined() ? all && is : is;
    }
    return all;
}

class ReduceTerms {
public:
    ReduceTerms(const LinearScope &scope, const Stage &stage, const Reduce &reduce)
        : scope_(scope), stage_(stage), reduce_(reduce), m_(reduce.monoid), names_(names_of_results(stage)) {}

    LinearStage run() {
        if (m_.derivative) by_rule();
        else
            for (size_t p = 0; p < m_.parts.size(); p++) {
                if (!is_wanted(p)) continue;
                const Expr added = summand(m_, p);
                LinearResult result = made(p);
                result.terms = terms_of(request_for(scope_, stage_, added.defined() ? with_inputs(added) : around_element(p)), true);
                add(std::move(result));
            }
        return std::move(linear_);
    }

private:
    const LinearScope &scope_;
    const Stage &stage_;
    const Reduce &reduce_;
    const Monoid &m_;
    std::vector<std::string> names_;
    LinearStage linear_;
    std::vector<Expr> before_, behind_;  // the fold of what stands on either side of an element, by part

    bool is_wanted(size_t p) const { return is_float(m_.parts[p].identity.type) && scope_.active.tensors.count(names_[p]) > 0; }
    Expr with_inputs(const Expr &e) const { return placed(e, {{}, {}, one_of(reduce_.inputs)}); }

    LinearResult made(size_t p) const {
        LinearResult result;
        result.result = result_named(stage_, names_[p]);
        result.points = reduce_.at.empty() ? result.result.dims : ordinary_dims(stage_);
        result.folded = reduce_.dims, result.where = reduce_.where, result.at = reduce_.at;
        return result;
    }
    void add(LinearResult result) {
        if (!result.terms.empty()) linear_.results.push_back(std::move(result));
    }

    // A result at the point that an element goes to.
    Expr finished(const std::string &name) const {
        const Tensor t = result_named(stage_, name);
        if (reduce_.at.empty()) return own_element(t);
        return load_or(t.name, t.dtype, Operands(reduce_.at.begin(), reduce_.at.end()), inside(reduce_.at, stage_.dims),
                       constant(t.dtype, 0));
    }

    Expr at_element(const Expr &e) const {
        return placed(e, {{}, [&](size_t q) { return finished(names_[q]); }, one_of(reduce_.inputs)});
    }

    // How many share a part, as a stage beside the fold.
    Expr shares(const ElementDerivative::Entry &entry, const Expr &weight) {
        const DType type = m_.parts[static_cast<size_t>(entry.part)].identity.type;
        Stage ties{scope_.fresh(names_[static_cast<size_t>(entry.part)] + ".ties"),
                   stage_.dims,
                   Reduce{sum_monoid(type), reduce_.dims, {weight}, reduce_.where, reduce_.at},
                   {},
                   stage_.span};
        linear_.primal.push_back(ties);
        const Tensor t = results_of(linear_.primal.back() = ties)[0];
        if (reduce_.at.empty()) return own_element(t);
        return load_or(t.name, t.dtype, Operands(reduce_.at.begin(), reduce_.at.end()), inside(reduce_.at, stage_.dims),
                       constant(t.dtype, 1));
    }

    void by_rule() {
        const ElementDerivative &rule = *m_.derivative;
        std::set<int> unseen;
        for (const ElementDerivative::Follow &f : rule.follows)
            if (!unseen.count(f.leader) && is_unseen(scope_, stage_, m_, f.leader)) unseen.insert(f.leader);
        for (size_t p = 0; p < m_.parts.size(); p++) {  // leaders first: a leader follows none
            const auto is_of = [&](int part) { return static_cast<size_t>(part) == p; };
            if (!is_wanted(p) || unseen.count(static_cast<int>(p))) continue;
            LinearResult result = made(p);
            for (const ElementDerivative::Entry &entry : rule.entries) {
                if (!is_of(entry.part)) continue;
                const Expr weight = at_element(entry.value);
                CoefficientRequest request = request_for(scope_, stage_, reduce_.inputs[static_cast<size_t>(entry.input)]);
                auto [conditions, seed] = choice_apart(weight);
                request.seed = seed;
                std::vector<Term> terms = terms_of(request, true);
                if (terms.empty()) continue;
                const Expr count = entry.shared ? shares(entry, weight) : Expr();
                for (Term &term : terms) {
                    term.conditions.insert(term.conditions.begin(), conditions.begin(), conditions.end());
                    if (count.defined()) term.coefficient = term.coefficient / count;
                    result.terms.push_back(std::move(term));
                }
            }
            for (const ElementDerivative::Follow &f : rule.follows) {
                if (!is_of(f.part) || unseen.count(f.leader) || !is_wanted(static_cast<size_t>(f.leader))) continue;
                const Tensor leader = result_named(stage_, names_[static_cast<size_t>(f.leader)]);
                result.terms.push_back({false, {}, at_element(f.value), leader.name, variables_of(leader.dims)});
            }
            add(std::move(result));
        }
        // A follower stands behind its leader.
        std::stable_partition(linear_.results.begin(), linear_.results.end(), [&](const LinearResult &r) {
            return std::none_of(rule.follows.begin(), rule.follows.end(),
                                [&](const ElementDerivative::Follow &f) { return names_[static_cast<size_t>(f.part)] == r.result.name; });
        });
    }

    // The fold as combine(combine(before, lift(element)), behind), of which one element is the point's.
    Expr around_element(size_t p) {
        if (before_.empty()) add_sides();
        std::vector<Expr> with_element, whole;
        for (size_t q = 0; q < m_.parts.size(); q++)
            with_element.push_back(placed(m_.combine[q], {one_of(before_), [&](size_t s) { return with_inputs(m_.lift[s]); }, {}}));
        return placed(m_.combine[p], {one_of(with_element), one_of(behind_), {}});
    }

    void add_sides() {
        if (reduce_.dims.size() != 1 || !reduce_.at.empty())
            throw UserError("derivative.fold",
                            scope_.algorithm.name + "." + stage_.name + ": a fold by '" + m_.name + "' " +
                                (reduce_.at.empty() ? "over " + join(reduce_.dims) + " at once" : "at computed positions") +
                                " has no derivative: the monoid does not say one, and adds nothing that its elements alone decide",
                            "Say the monoid's derivative by one element (Monoid::derivative), or fold over one dim at a time.")
                .about(stage_.name, stage_.span);
        // What `where` leaves out is folded as nothing.
        Monoid m = m_;
        m.batch.clear(), m.batch_parts.clear(), m.derivative.reset();
        std::vector<Expr> inputs = reduce_.inputs;
        if (reduce_.where.defined()) {
            const Expr is_there = input(static_cast<int>(m.inputs.size()), DType::boolean);
            m.inputs.push_back(DType::boolean), inputs.push_back(reduce_.where);
            for (size_t p = 0; p < m.parts.size(); p++) {
                m.lift[p] = select(is_there, m.lift[p], constant(m.parts[p].identity));
                m.step[p] = select(is_there, m.step[p], left(static_cast<int>(p), m.parts[p].identity.type));
            }
            m.name += "_where";
        }
        std::vector<std::string> dims = stage_.dims;
        dims.push_back(reduce_.dims[0]);
        for (const ScanDirection direction : {ScanDirection::forward, ScanDirection::backward}) {
            const bool is_before = direction == ScanDirection::forward;
            // From the last element on, what comes later in the fold stands on the left of what was folded.
            Monoid side = m;
            if (!is_before && !m.commutative) {
                for (size_t p = 0; p < m.parts.size(); p++) {
                    const auto part = [&](size_t q) { return left(static_cast<int>(q), m.parts[q].identity.type); };
                    side.combine[p] =
                        placed(m.combine[p], {[&](size_t q) { return right(static_cast<int>(q), m.parts[q].identity.type); }, part, {}});
                    side.step[p] = placed(m.combine[p], {one_of(m.lift), part, {}});
                }
                side.name += "_reversed";
            }
            Stage scan{scope_.fresh(stage_.name + (is_before ? ".before" : ".behind")),
                       dims,
                       Scan{side, reduce_.dims[0], false, inputs, direction, {}},
                       {},
                       stage_.span};
            for (const Tensor &t : results_of(scan)) (is_before ? before_ : behind_).push_back(own_element(t));
            linear_.primal.push_back(std::move(scan));
        }
    }
};

class ScanTerms {
public:
    ScanTerms(const LinearScope &scope, const Stage &stage, const Scan &scan)
        : scope_(scope), stage_(stage), scan_(scan), m_(scan.monoid), names_(names_of_results(stage)) {}

    LinearStage run() {
        for (size_t p = 0; p < m_.parts.size(); p++) {
            if (!is_float(m_.parts[p].identity.type) || !scope_.active.tensors.count(names_[p])) continue;
            parts_.push_back(p);
        }
        LinearStage linear;
        for (const size_t p : parts_) {
            LinearResult result;
            result.result = result_named(stage_, names_[p]);
            result.points = result.result.dims;
            result.scan = Recurrence{scan_.dim, scan_.direction, scan_.inclusive, scan_.segments, {}};
            step_terms(p, result);
            if (!result.terms.empty()) linear.results.push_back(std::move(result));
        }
        return in_order(std::move(linear));
    }

private:
    const LinearScope &scope_;
    const Stage &stage_;
    const Scan &scan_;
    const Monoid &m_;
    std::vector<std::string> names_;
    std::vector<size_t> parts_;

    // A part as it is before the element: of an exclusive scan its result; otherwise that of the element before, and the identity at the
    // beginning.
    Expr before(size_t p) const {
        const Tensor t = result_named(stage_, names_[p]);
        if (!scan_.inclusive) return own_element(t);
        const bool is_forward = scan_.direction == ScanDirection::forward;
        const Expr i = variable(scan_.dim), neighbour = is_forward ? i - 1 : i + 1;
        Operands index;
        for (const std::string &d : t.dims) index.push_back(d == scan_.dim ? neighbour : variable(d));
        const Expr is_there = is_forward ? Expr(1) <= i : neighbour < extent(scan_.dim), identity = constant(m_.parts[p].identity);
        const Expr value = load_or(t.name, t.dtype, index, is_there, identity);
        return scan_.segments.defined() ? select(scan_.segments, identity, value) : value;
    }

    // By inputs, by the part itself (the factor), and by other parts, whose results before the element are terms.
    void step_terms(size_t p, LinearResult &result) {
        std::vector<Expr> lefts;
        for (size_t q = 0; q < m_.parts.size(); q++) lefts.push_back(before(q));
        const auto step =
            placed(m_.step[p], {[&](size_t q) { return changes(q) ? parameter(stand_in(q), m_.parts[q].identity.type) : lefts[q]; },
                                {},
                                one_of(scan_.inputs)});
        CoefficientRequest request = request_for(scope_, stage_, step);
        request.is_active = [&](const Expr &leaf) {
            return leaf->name[0] == '%' ? leaf.kind() == ExprKind::parameter : scope_.active.is_active(leaf);
        };
        const auto without_stand_ins = [&](const Expr &e) {
            return rewrite(e, [&](const Expr &n) -> Expr {
                return n.kind() == ExprKind::parameter && n->name[0] == '%' ? lefts[std::stoul(n->name.substr(1))] : Expr();
            });
        };
        result.scan->factor = constant(m_.parts[p].identity.type, 0);
        for (Term &term : terms_of(request, false)) {
            term.coefficient = without_stand_ins(term.coefficient);
            for (Expr &c : term.conditions) c = without_stand_ins(c);
            if (term.source[0] != '%') {
                result.terms.push_back(std::move(term));
                continue;
            }
            const size_t q = std::stoul(term.source.substr(1));
            if (q == p) {
                const Expr all = all_of(term.conditions), zero = constant(term.coefficient.type(), 0);
                result.scan->factor = all.defined() ? select(all, term.coefficient, zero) : term.coefficient;
                continue;
            }
            const Tensor t = result_named(stage_, names_[q]);
            term.source = t.name, term.index = variables_of(t.dims);
            if (scan_.inclusive) {
                const bool is_forward = scan_.direction == ScanDirection::forward;
                const Expr i = variable(scan_.dim), neighbour = is_forward ? i - 1 : i + 1;
                for (Expr &index : term.index)
                    if (index.kind() == ExprKind::variable && index->name == scan_.dim) index = neighbour;
                term.conditions.push_back(is_forward ? Expr(1) <= i : neighbour < extent(scan_.dim));
            }
            if (scan_.segments.defined()) term.conditions.push_back(!scan_.segments);
            result.terms.push_back(std::move(term));
        }
        const Expr &factor = result.scan->factor;
        if (factor.is_constant() && factor->value.real == 1) result.scan->factor = {};
    }

    bool changes(size_t q) const { return std::count(parts_.begin(), parts_.end(), q) > 0; }
    static std::string stand_in(size_t q) { return "%" + std::to_string(q); }

    // Parts that others follow first.
    LinearStage in_order(LinearStage linear) const {
        std::vector<LinearResult> ordered;
        std::vector<LinearResult> left = std::move(linear.results);
        const auto is_left = [&](const std::string &name) {
            return std::any_of(left.begin(), left.end(), [&](const LinearResult &r) { return r.result.name == name; });
        };
        while (!left.empty()) {
            auto next = std::find_if(left.begin(), left.end(), [&](const LinearResult &r) {
                return std::none_of(r.terms.begin(), r.terms.end(), [&](const Term &t) { return is_left(t.source); });
            });
            if (next == left.end())
                throw UserError("derivative.parts",
                                scope_.algorithm.name + "." + stage_.name + ": parts of the scan by '" + m_.name +
                                    "' change each other, so that its derivative is no recurrence of one number",
                                "Scan by a monoid whose parts each change only themselves and those behind them.")
                    .about(stage_.name, stage_.span);
            ordered.push_back(std::move(*next));
            left.erase(next);
        }
        // Terms of parts that do not change after all.
        for (LinearResult &r : ordered)
            std::erase_if(r.terms, [&](const Term &t) {
                const bool is_own = std::count(names_.begin(), names_.end(), t.source) > 0;
                return is_own &&
                       std::none_of(ordered.begin(), ordered.end(), [&](const LinearResult &o) { return o.result.name == t.source; });
            });
        linear.results = std::move(ordered);
        return linear;
    }
};

// The value with each leaf as a number; undefined where something is left.
Expr at_numbers(const Expr &e, std::mt19937 &random, std::map<std::string, Expr> &numbers) {
    return rewrite(e, [&](const Expr &n) -> Expr {
        const bool is_leaf =
            n.kind() == ExprKind::load || n.kind() == ExprKind::parameter || n.kind() == ExprKind::variable || n.kind() == ExprKind::extent;
        if (n.kind() == ExprKind::bounded) return n->args[0];
        if (!is_leaf) return {};
        auto [it, fresh] = numbers.try_emplace(to_string(n));
        if (fresh) {
            const double real = std::uniform_real_distribution<double>(0.25, 4)(random);
            it->second = is_float(n.type()) ? constant(n.type(), real)
                                            : constant_int(n.type(), n.type() == DType::boolean ? random() % 2 : 1 + random() % 7);
        }
        return it->second;
    });
}

}  // namespace

Expr summand(const Monoid &m, size_t part) {
    const Expr &step = m.step[part];
    Expr added;
    if (step.is_operation(Op::add))
        added = is_left(step->args[0], part) ? step->args[1] : is_left(step->args[1], part) ? step->args[0] : Expr();
    if (step.is_operation(Op::fma) && is_left(step->args[2], part)) added = step->args[0] * step->args[1];
    return added.defined() && !has_parts(added) ? added : Expr();
}

bool is_unseen(const LinearScope &scope, const Stage &stage, const Monoid &m, int leader) {
    const std::vector<std::string> names = names_of_results(stage);
    std::map<std::string, size_t> parts;
    for (size_t p = 0; p < names.size(); p++) parts[names[p]] = p;
    for (const auto &[name, p] : parts)
        if (scope.outputs.count(name)) return false;
    for (const Call &reader : scope.algorithm.calls())
        for (const auto &[own, view] : reader.tensors)
            if (parts.count(view.tensor)) return false;
    std::mt19937 random(1);
    for (const Stage &reader : scope.algorithm.stages()) {
        bool reads = false;
        for (const Expr &e : expressions_of(reader))
            walk(e, [&](const Expr &n) { reads |= n.kind() == ExprKind::load && parts.count(n->name); });
        if (!reads) continue;
        const auto *map = std::get_if<Map>(&reader.body);
        if (!map) return false;
        for (const Expr &value : values_alone(*map)) {
            if (!is_float(value.type())) return false;
            CoefficientRequest request = request_for(scope, reader, value);
            request.is_active = [&](const Expr &leaf) { return parts.count(leaf->name) > 0; };
            Expr change, size;
            // The index at which all are read.
            std::optional<Operands> index;
            for (const Coefficient &c : coefficients(request)) {
                const size_t p = parts.at(c.leaf->name);
                if (c.leaf->guarded) return false;
                const size_t rank = stage.dims.size();
                const Operands own(c.leaf->args.begin(), c.leaf->args.begin() + static_cast<std::ptrdiff_t>(rank));
                if (index && !std::equal(own.begin(), own.end(), index->begin(), index->end(),
                                         [](const Expr &a, const Expr &b) { return equal(a, b); }))
                    return false;
                index = own;
                const DType type = m.parts[p].identity.type;
                Expr along;
                if (static_cast<int>(p) == leader) along = constant(type, 1);
                for (const ElementDerivative::Follow &f : m.derivative->follows)
                    if (f.leader == leader && static_cast<size_t>(f.part) == p)
                        along = placed(f.value, {{},
                                                 [&](size_t q) {
                                                     Operands at = own;
                                                     if (m.parts[q].dims.size() == m.parts[p].dims.size()) at = c.leaf->args;
                                                     return load(names[q], m.parts[q].identity.type, at);
                                                 },
                                                 {}});
                if (!along.defined()) continue;
                const Expr all = all_of(c.conditions), term = product(converted(type, c.value), along);
                const Expr chosen = all.defined() ? select(all, term, constant(type, 0)) : term;
                change = sum(change, chosen), size = sum(size, abs(chosen));
            }
            if (!change.defined()) continue;
            for (int trial = 0; trial < 64; trial++) {
                std::map<std::string, Expr> numbers;
                const Expr is = at_numbers(change, random, numbers), most = at_numbers(size, random, numbers);
                if (!is.is_constant() || !most.is_constant()) return false;
                const double bound = 1e-4 * most->value.real;
                if (!(std::fabs(is->value.real) <= bound)) return false;
            }
        }
    }
    return true;
}

LinearStage linearized_reduce(const LinearScope &scope, const Stage &stage, const Reduce &reduce) {
    return ReduceTerms(scope, stage, reduce).run();
}
LinearStage linearized_scan(const LinearScope &scope, const Stage &stage, const Scan &scan) { return ScanTerms(scope, stage, scan).run(); }

}  // namespace tessera::differentiation
