#include "compiler/interpret/range_analysis.h"

#include <algorithm>
#include <cmath>

#include "algorithms/index/prove.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// What a fold goes over: at most so many elements, all of them or some, and at least one.
struct Points {
    double count = 0;
    bool is_whole = false, is_filled = false;
};

class Analysis {
public:
    Analysis(const Algorithm &algorithm, const Extents &extents, const std::map<std::string, RealInterval> &given)
        : a_(algorithm), values_(algorithm, extents, given) {}
    std::vector<StageRange> run() {
        for (const Stage &s : a_.stages()) stage(s);
        return std::move(result_);
    }

private:
    const Algorithm &a_;
    RangeValues values_;
    std::vector<StageRange> result_;

    void stage(const Stage &s);
    Points points_of(const Stage &s, const Reduce &r) const;
    std::vector<KnownRange> of_map(const Stage &s, const Map &map);
    std::vector<KnownRange> of_fold(const Stage &s, const Monoid &m, const std::vector<Expr> &inputs, const Points &points);
    std::vector<KnownRange> of_softmax(const KnownRange &scores, const KnownRange &values, DType type, const Points &points, const Expr &e);
    KnownRange sum(const Stage &s, DType type, KnownRange term, double size, const Points &points, const Expr &e);
};

std::vector<KnownRange> Analysis::of_map(const Stage &s, const Map &map) {
    std::vector<KnownRange> all;
    for (const Value &v : map.values) values_.add_earlier(all.emplace_back(values_.of(v.value)));
    if (const std::string top = values_.top(); !top.empty() && map.values.size() == 1)
        values_.define_at_top(s.name, top, values_.at_top(map.values[0].value, top));
    return all;
}

// `size`: what bounds the magnitude of a term before it is rounded.
KnownRange Analysis::sum(const Stage &s, DType type, KnownRange term, double size, const Points &points, const Expr &e) {
    if (term.is_lost) return lost_range();
    if (term.has_lowest || term.has_highest) return values_.lose("sums infinities: " + brief(e, 80));
    if (!std::isfinite(points.count)) return values_.lose("sums as many elements as data say: " + brief(e, 80));
    if (!points.is_whole) term.values = hull(term.values, {0, 0});  // some terms may be missing
    const double u = unit_roundoff(type), n = points.count + 1, gamma = is_float(type) ? n * u / (1 - n * u) : 0;
    if (!(gamma >= 0)) return values_.lose("sums more elements than the type's digits can tell: " + brief(e, 80));
    const double off = is_float(type) ? points.count * (gamma * size + least_subnormal(type)) : 0;
    RealInterval all = RealInterval::of(points.count) * term.values;
    // A sum of what is not negative is at least each term, computed too: adding what is not negative never makes less.
    all = {term.values.lo >= 0 ? (points.is_filled && points.is_whole ? term.values.lo : 0) : all.lo - off,
           term.values.hi <= 0 ? 0 : all.hi + off};
    const auto *fold = std::get_if<Reduce>(&s.body);
    if (fold && points.is_whole && points.is_filled && term.values.lo >= 0)
        for (const std::string &top : values_.maxima()) {
            const Stage *maximum = a_.find_stage(top);
            if (!maximum || reduced_dims(*maximum) != fold->dims || fold->inputs.size() != 1) continue;
            const KnownRange one = values_.at_top(fold->inputs[0], top);
            if (!one.is_lost && !is_empty(one.values)) all.lo = std::max(all.lo, std::min(one.values.lo, all.hi));
        }
    if (is_float(type)) return values_.result(type, all, points.count * term.error + off, {}, e);
    const RealInterval range = {static_cast<double>(traits_of(type).lowest), static_cast<double>(traits_of(type).highest)};
    if (range.lo <= all.lo && all.hi <= range.hi) return {all, points.count * term.error};
    return {range, term.error == 0 ? 0 : no_bound};  // it wraps
}

// Parts m, the largest score, l, the sum of exp(score - m), and acc, that sum with values as weights. Each step multiplies by exponentials
// of what is not positive, one of which is exp(0), and rounds four times at most: together a factor within 1 +- 8 n u. A difference d that
// is rounded moves exp(d) by |d| exp(d) u, which is less than u, also along a chain of them, whose differences add up. Scores that are off
// by e each move it by a factor within exp(4 e).
std::vector<KnownRange> Analysis::of_softmax(const KnownRange &scores, const KnownRange &values, DType type, const Points &points,
                                             const Expr &e) {
    const double slack = 8 * points.count * unit_roundoff(type), size = is_empty(values.values) ? 0 : values.values.magnitude();
    if (!(slack < 0.5)) return std::vector<KnownRange>(3, values_.lose("a softmax over so many elements is not followed"));
    if (scores.has_highest || values.has_lowest || values.has_highest)
        return std::vector<KnownRange>(3, values_.lose("infinities are weighted: " + brief(e, 80)));
    KnownRange m = scores;
    const bool may_be_empty = !points.is_filled || scores.has_lowest;
    m.has_lowest = may_be_empty;
    const double off = points.count * (slack + 2 * unit_roundoff(type) + std::expm1(4 * scores.error) * (1 + slack));
    KnownRange l = values_.result(type, {may_be_empty ? 0 : 1 - slack, points.count * (1 + slack)}, off, {}, e);
    l.gap = 1 - slack;
    const double tiny = points.count * least_subnormal(type), most = points.count * size * (1 + slack) + tiny;
    return {m, l, values_.result(type, {-most, most}, off * size + points.count * (1 + slack) * values.error + tiny, {}, e)};
}

std::vector<KnownRange> Analysis::of_fold(const Stage &s, const Monoid &m, const std::vector<Expr> &inputs, const Points &points) {
    std::vector<KnownRange> x;
    for (const Expr &e : inputs) x.push_back(values_.of(e));
    const DType type = m.parts[0].identity.type;
    if (std::any_of(x.begin(), x.end(), [](const KnownRange &k) { return k.is_lost; }))
        return std::vector<KnownRange>(m.parts.size(), lost_range());
    if (is_monoid(m, sum_monoid(type))) return {sum(s, type, x[0], is_empty(x[0].values) ? 0 : x[0].values.magnitude(), points, inputs[0])};
    if (is_monoid(m, dot_monoid(type))) {
        if (x[0].has_lowest || x[0].has_highest || x[1].has_lowest || x[1].has_highest)
            return {values_.lose("sums products of infinities")};
        const RealInterval &r = x[0].values, &q = x[1].values;
        KnownRange term{equal(inputs[0], inputs[1]) ? absolute(r) * absolute(r) : r * q};
        const double size = term.values.magnitude();
        term.error = r.magnitude() * x[1].error + q.magnitude() * x[0].error + x[0].error * x[1].error;
        return {sum(s, type, term, size, points, inputs[0] * inputs[1])};
    }
    const bool is_max = is_monoid(m, max_monoid(type)) || is_monoid(m, max_number_monoid(type));
    if (is_max || is_monoid(m, min_monoid(type))) {
        KnownRange all = x[0];
        // A fold of nothing is the identity.
        if (!points.is_filled) (is_max ? all.has_lowest : all.has_highest) = true;
        return {all};
    }
    const bool has_rest = is_float(type) && is_monoid(m, moments_monoid(type));
    const KnownRange given = x[0];
    if (has_rest) {
        const double largest = is_empty(given.values) ? 0 : given.values.magnitude();
        x[0].values = hull(given.values, RealInterval::of(near_scale(constant(type, largest))->value.real) * given.values);
    }
    if ((has_rest || (is_float(type) && is_monoid(m, welford_monoid(type)))) && std::isfinite(points.count) && !x[0].has_lowest &&
        !x[0].has_highest) {
        const double size = x[0].values.magnitude(), off = 8 * points.count * unit_roundoff(type) * size + least_subnormal(type);
        const double width = x[0].values.width() + 2 * off;
        const RealInterval mean = {std::min(x[0].values.lo - off, points.is_whole ? no_bound : 0),
                                   std::max(x[0].values.hi + off, points.is_whole ? -no_bound : 0)};
        const RealInterval n = points.is_whole ? RealInterval::of(points.count) : RealInterval{0, points.count};
        const RealInterval square = {0, points.count * width * width * (1 + 8 * points.count * unit_roundoff(type))};
        // Around a mean within `off` of that of what is off by x's error. A square of differences counts at most once for each element on
        // each level of a tree of merges (Chan, Golub, LeVeque 1983), and is rounded along the path above it.
        const double d = 2 * (x[0].error + off), levels = 1 + std::log2(points.count + 1);
        const double far = points.count * levels * (2 * width * d + d * d) + 8 * points.count * unit_roundoff(type) * square.hi;
        const std::vector<KnownRange> parts = {KnownRange{n}, values_.result(type, mean, x[0].error + off, {}, inputs[0]),
                                         values_.result(type, square, far, {}, inputs[0])};
        // In exact arithmetic the rest is 0. It is what the mean is off, and what rounding the sum of differences leaves.
        const double rest = 2 * points.count * (x[0].error + off + 8 * points.count * unit_roundoff(type) * width);
        if (!has_rest) return parts;
        KnownRange largest{absolute(given.values), given.error};
        largest.has_lowest = !points.is_filled;
        return {parts[0], largest, parts[1], parts[2], values_.result(type, {-rest, rest}, rest, {}, inputs[0])};
    }
    if (is_float(type) && m.parts.size() == 3 && m.parts[2].dims.size() == 1 &&
        is_monoid(m, online_softmax_monoid(type, m.parts[2].dims[0])))
        return of_softmax(x[0], x[1], type, points, inputs[0]);
    values_.lose("what folds of " + m.name + " give is not followed");
    return std::vector<KnownRange>(m.parts.size(), lost_range());
}

// Some point of a fold is known to count where the first one does.
Points Analysis::points_of(const Stage &s, const Reduce &r) const {
    Points points{1, !r.where.defined() && r.at.empty(), false};
    std::map<std::string, Expr> first;
    for (const std::string &d : r.dims) points.count *= values_.points(d).value_or(no_bound), first[d] = Expr(0);
    Bounds facts(a_.dims, a_.parameters);
    for (const std::string &d : s.dims) facts.set(d, Expr(0), extent(d) - 1);
    points.is_filled =
        points.count >= 1 && std::isfinite(points.count) && r.at.empty() && (points.is_whole || prove(substitute(r.where, first), facts));
    return points;
}

void Analysis::stage(const Stage &s) {
    values_.begin();
    // What rounded values decide may be decided otherwise, and then nothing is known of the error.
    const auto decided = [&](const std::vector<Expr> &by, std::vector<KnownRange> results) {
        for (const Expr &e : by)
            if (values_.of(e).error > 0)
                for (KnownRange &one : results) one.error = no_bound;
        return results;
    };
    const std::vector<KnownRange> all =
        std::visit(Overloaded{[&](const Map &map) { return of_map(s, map); },
                              [&](const Reduce &r) {
                                  std::vector<Expr> deciding = r.at;
                                  if (r.where.defined()) deciding.push_back(r.where);
                                  return decided(deciding, of_fold(s, r.monoid, r.inputs, points_of(s, r)));
                              },
                              [&](const Scan &scan) {
                                  const Points points = {values_.points(scan.dim).value_or(no_bound), false, false};
                                  return decided(scan.segments.defined() ? std::vector<Expr>{scan.segments} : std::vector<Expr>{},
                                                 of_fold(s, scan.monoid, scan.inputs, points));
                              }},
                   s.body);
    const std::vector<std::string> names = names_of_results(s);
    KnownRange whole{no_values};
    for (size_t i = 0; i < all.size(); i++) {
        whole = merged(whole, all[i]);
        if (i < names.size() && !names[i].empty()) values_.define(names[i], all[i]);
    }
    // Later stages may read what was written, or what was there.
    if (const auto *map = std::get_if<Map>(&s.body))
        for (size_t i = 0; i < map->values.size(); i++)
            if (const auto &to = map->values[i].to) values_.define(to->state, merged(values_.known(to->state), all[i]));
    result_.push_back({s.name, whole, values_.trouble()});
}

}  // namespace

std::vector<StageRange> analyse_ranges(const Algorithm &algorithm, const Extents &extents,
                                       const std::map<std::string, RealInterval> &given) {
    return Analysis(algorithm, extents, given).run();
}

}  // namespace tessera
