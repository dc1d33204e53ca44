#include "algorithms/evaluate/rule_laws.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>

#include "algorithms/evaluate/reference.h"
#include "algorithms/ir/derivative_rule.h"
#include "algorithms/transform/given_extents.h"
#include "algorithms/verify/verify_rule.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr double step = 0x1p-12, tolerance = 1e-4;
constexpr int points = 8;

using Arrays = std::map<std::string, Array>;

struct Point {
    Arrays tensors;
    std::map<std::string, Scalar> parameters;
};

std::string short_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

class RuleLaws {
public:
    explicit RuleLaws(const Algorithm &f) : f_(f), rule_(*f.rule), reach_(reach_of(f)), extents_(small_extents()) {}

    std::optional<std::string> broken() {
        std::mt19937 random(1);
        int counted = 0;
        const bool is_compared = !rule_.differs && !has_narrow_inputs();
        for (int n = 0; n < points; n++) {
            const Point x = point(random);
            const Arrays values = run(f_, x);
            if (rule_.forward)
                if (const auto law = broken_forward(x, values)) return law;
            if (!is_compared) continue;
            const Arrays v = directions(random);
            const auto changes = differences(x, v);
            if (!changes) continue;
            counted++;
            if (rule_.jvp)
                if (const auto law = broken_jvp(x, values, v, *changes)) return law;
            if (rule_.backward)
                if (const auto law = broken_backward(x, values, v, *changes, random)) return law;
        }
        if (counted == 0 && is_compared)
            return "at none of " + std::to_string(points) +
                   " points differences of it are finite and smooth, so nothing tells whether its rule is its derivative. State where its "
                   "inputs lie (state_range), or say that the rule differs on purpose";
        return std::nullopt;
    }

private:
    const Algorithm &f_;
    const DerivativeRule &rule_;
    RuleReach reach_;
    Extents extents_;  // of all dims that no data decides

    // Steps of such are lost in rounding.
    bool has_narrow_inputs() const {
        return std::any_of(f_.tensors.begin(), f_.tensors.end(),
                           [](const Tensor &t) { return t.role != Role::constant && is_float(t.dtype) && size_of(t.dtype) < 4; });
    }

    // 3, 4, 5, ... or what constraints ask for.
    Extents small_extents() const {
        Extents extents;
        int64_t next = 3;
        for (const Dim &d : f_.dims) {
            if (d.kind != DimKind::symbolic || !d.equals.empty()) continue;
            const int64_t least = std::max<int64_t>(d.min, 1);
            int64_t n = std::max(least, std::min(next++, d.max));
            n = (n + d.multiple_of - 1) / d.multiple_of * d.multiple_of;
            extents[d.name] = n <= d.max ? n : d.max / d.multiple_of * d.multiple_of;
        }
        return given_extents(f_, extents);
    }

    int64_t extent(const std::string &dim) const {
        const Dim &d = f_.dim(dim);
        if (d.kind == DimKind::fixed) return d.value;
        if (const auto known = extents_.find(dim); known != extents_.end()) return known->second;
        const Expr size =
            rewrite(d.size, [&](const Expr &e) -> Expr { return e.kind() == ExprKind::extent ? Expr(int(extent(e->name))) : Expr(); });
        return size.is_constant() ? std::max<int64_t>(0, size->value.integer) : 1;
    }

    // Multiples of 1/8: with steps of it by h they are exact in f32 up to 256.
    static double few_bits(std::mt19937 &random, double lowest, double highest) {
        const double at = static_cast<double>(random() % 385) / 384;
        return std::clamp(std::round((lowest + at * (highest - lowest)) * 8) / 8, lowest, highest);
    }

    Array floats(DType type, const std::vector<std::string> &dims, std::mt19937 &random, double lowest = -1.5, double highest = 1.5) const {
        std::vector<int64_t> shape;
        int64_t size = 1;
        for (const std::string &d : dims) shape.push_back(extent(d)), size *= shape.back();
        std::vector<double> values;
        for (int64_t i = 0; i < size; i++) values.push_back(few_bits(random, lowest, highest));
        return Array(type, shape, values);
    }

    Point point(std::mt19937 &random) const {
        Point x;
        for (const Tensor &t : f_.tensors) {
            if (t.role == Role::constant) continue;
            const auto range = f_.stated_ranges.find(t.name);
            const double lowest = range == f_.stated_ranges.end() ? -1.5 : std::max(range->second.first, -256.);
            const double highest = range == f_.stated_ranges.end() ? 1.5 : std::min(range->second.second, 256.);
            x.tensors[t.name] = floats(t.dtype, t.dims, random, is_float(t.dtype) ? lowest : 0, is_float(t.dtype) ? highest : 1);
        }
        for (const Parameter &p : f_.parameters) {
            double value = is_float(p.dtype) ? few_bits(random, 0.25, 1.25) : 1;
            if (p.range && p.range->has_least()) value = std::max(value, to_double(p.range->least) + (p.range->above ? 0.25 : 0));
            if (p.range && p.range->has_most()) value = std::min(value, to_double(p.range->most) - (p.range->below ? 0.25 : 0));
            x.parameters[p.name] =
                is_float(p.dtype) ? Scalar::of_real(p.dtype, value) : Scalar::of_integer(p.dtype, static_cast<int64_t>(value));
        }
        return x;
    }
    static double to_double(const Scalar &s) { return is_float(s.type) ? s.real : static_cast<double>(s.integer); }

    // What an algorithm takes of these.
    Arrays run(const Algorithm &a, const Point &x, const Arrays &more = {}, const Arrays &others = {}) const {
        Point taken;
        for (const Tensor &t : a.tensors)
            for (const Arrays *all : {&x.tensors, &more, &others})
                if (const auto it = all->find(t.name); it != all->end() && t.role != Role::constant)
                    taken.tensors.emplace(t.name, it->second);
        for (const Parameter &p : a.parameters) taken.parameters[p.name] = x.parameters.at(p.name);
        for (const Tensor &t : a.tensors)  // as it is stored: results in f64 are of a wider type
            if (const auto it = taken.tensors.find(t.name); it != taken.tensors.end() && it->second.dtype != t.dtype)
                it->second = Array(t.dtype, it->second.extents, it->second.values());
        EvaluationOptions options;
        options.precision = Precision::f64;
        for (const Dim &d : a.dims)
            if (const auto known = extents_.find(d.name); known != extents_.end() && d.kind == DimKind::symbolic)
                options.extents.insert(*known);
        return evaluate(a, taken.tensors, taken.parameters, options);
    }

    // By all inputs, states and parameters: one without a derivative counts as constant, and that too must be right.
    Arrays directions(std::mt19937 &random) const {
        Arrays v;
        for (const Tensor &t : f_.tensors)
            if (t.role != Role::constant && is_float(t.dtype)) v[t.name] = floats(derivative_type(t.dtype), t.dims, random);
        for (const Parameter &p : f_.parameters)
            if (is_float(p.dtype)) v[p.name] = floats(p.dtype, {}, random);
        return v;
    }

    Point moved(const Point &x, const Arrays &v, double by) const {
        Point result = x;
        for (const auto &[name, direction] : v) {
            const std::vector<double> d = direction.values();
            if (const auto p = result.parameters.find(name); p != result.parameters.end()) {
                p->second.real += by * d[0];
                continue;
            }
            Array &t = result.tensors.at(name);
            std::vector<double> values = t.values();
            for (size_t i = 0; i < values.size(); i++) values[i] += by * d[i];
            t = Array(t.dtype, t.extents, values);
        }
        return result;
    }

    // How the outputs of floats change along v; nothing where differences of two step sizes disagree.
    std::optional<std::map<std::string, std::vector<double>>> differences(const Point &x, const Arrays &v) const {
        const auto along = [&](double h) {
            const Arrays up = run(f_, moved(x, v, h)), down = run(f_, moved(x, v, -h));
            std::map<std::string, std::vector<double>> change;
            for (const auto &[name, value] : up) {
                if (!is_float(value.dtype)) continue;
                const std::vector<double> a = value.values(), b = down.at(name).values();
                for (size_t i = 0; i < a.size(); i++) change[name].push_back((a[i] - b[i]) / (2 * h));
            }
            return change;
        };
        auto near = along(step);
        const auto far = along(2 * step);
        for (auto &[name, change] : near)
            for (size_t i = 0; i < change.size(); i++) {
                const double a = change[i], b = far.at(name)[i];
                if (!(std::fabs(a - b) <= 1e-3 * (1 + std::fabs(a)))) return std::nullopt;
                change[i] = a + (a - b) / 3;  // what is left is of the fourth power of the step
            }
        return near;
    }

    std::optional<std::string> broken_forward(const Point &x, const Arrays &values) const {
        const Arrays made = run(*rule_.forward, x);
        for (const std::string &y : f_.outputs) {
            const std::vector<double> a = values.at(y).values(), b = made.at(y).values();
            for (size_t i = 0; i < a.size(); i++)
                if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                      std::fabs(a[i] - b[i]) <= tolerance * (1 + std::fabs(a[i]))))
                    return "forward of its rule, " + rule_.forward->name + ", gives " + short_text(b[i]) + " as element " +
                           std::to_string(i) + " of '" + y + "', where the algorithm gives " + short_text(a[i]) + ". Correct it";
        }
        return std::nullopt;
    }

    std::optional<std::string> broken_jvp(const Point &x, const Arrays &values, const Arrays &v,
                                          const std::map<std::string, std::vector<double>> &changes) const {
        Arrays tangents;
        for (const std::string &name : reach_.by) tangents[name + ".tangent"] = v.at(name);
        const Arrays made = run(*rule_.jvp, x, tangents, values);
        for (const auto &[y, change] : changes) {
            const auto it = made.find(y + ".tangent");
            const std::vector<double> said = it == made.end() ? std::vector<double>(change.size(), 0) : it->second.values();
            for (size_t i = 0; i < change.size(); i++)
                if (!(std::fabs(said[i] - change[i]) <= tolerance * (1 + std::fabs(change[i]))))
                    return "jvp of its rule, " + rule_.jvp->name + ", says that element " + std::to_string(i) + " of '" + y +
                           "' changes by " + short_text(said[i]) + (it == made.end() ? " (it has no " + y + ".tangent)" : "") +
                           ", and by differences it is " + short_text(change[i]) + remedy();
        }
        return std::nullopt;
    }

    std::optional<std::string> broken_backward(const Point &x, const Arrays &values, const Arrays &v,
                                               const std::map<std::string, std::vector<double>> &changes, std::mt19937 &random) const {
        Arrays seen = rule_.forward ? run(*rule_.forward, x) : values;
        Arrays weights;
        double expected = 0, got = 0, size = 1;
        for (const auto &[y, change] : changes) {
            std::vector<double> all;
            for (size_t i = 0; i < change.size(); i++) all.push_back(few_bits(random, -1.5, 1.5));
            for (size_t i = 0; i < change.size(); i++) expected += all[i] * change[i], size += std::fabs(all[i] * change[i]);
            weights[y + ".grad"] = Array(values.at(y).dtype, values.at(y).extents, all);
        }
        const Arrays made = run(*rule_.backward, x, weights, seen);
        for (const std::string &name : reach_.by) {
            const std::vector<double> gradient = made.at(name + ".grad").values(), direction = v.at(name).values();
            for (size_t i = 0; i < gradient.size(); i++) got += gradient[i] * direction[i], size += std::fabs(gradient[i] * direction[i]);
        }
        if (std::fabs(got - expected) <= tolerance * size) return std::nullopt;
        std::vector<std::string> by(reach_.by.begin(), reach_.by.end());
        return "backward of its rule, " + rule_.backward->name + ", has gradients by " + (by.empty() ? "nothing" : join(by)) +
               " that say a change of " + short_text(got) + " along a direction of all float inputs, and by differences it is " +
               short_text(expected) + remedy();
    }

    static std::string remedy() { return ". Correct it, or say that it differs on purpose"; }
};

void check(const Algorithm &a, std::set<const Algorithm *> &seen) {
    if (!seen.insert(&a).second) return;
    for (const Call &call : a.calls()) check(*call.callee, seen);
    if (!a.rule) return;
    verify_rule(a);
    for (const auto &part : {a.rule->jvp, a.rule->forward, a.rule->backward})
        if (part) check(*part, seen);
    if (const auto law = broken_rule_law(a)) throw UserError("algorithm.rule-law", a.name + ": " + *law + ".");
}

}  // namespace

std::optional<std::string> broken_rule_law(const Algorithm &algorithm) { return RuleLaws(algorithm).broken(); }

void check_rule_laws(const Algorithm &algorithm) {
    std::set<const Algorithm *> seen;
    check(algorithm, seen);
}

}  // namespace tessera
