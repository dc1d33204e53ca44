#include "compiler/interpret/range_values.h"

#include <algorithm>
#include <set>
#include <utility>

#include "algorithms/expr/function.h"
#include "support/text/error.h"

namespace tessera {

double unit_roundoff(DType type) { return std::ldexp(1, -traits_of(type).mantissa - 1); }
double least_subnormal(DType type) { return std::ldexp(1, 1 - traits_of(type).bias - traits_of(type).mantissa); }

namespace {

double highest_finite(DType type) { return tessera::highest_finite(traits_of(type)); }
// For a result of that size.
double rounding(DType type, double magnitude) { return magnitude * unit_roundoff(type) + least_subnormal(type); }

// Between which values of the type results lie that are rounded from these.
RealInterval rounded(DType type, RealInterval exact) {
    if (is_empty(exact)) return exact;
    auto outwards = [&](double end, double sign) {
        if (Scalar::of_real(type, end).real == end) return end;
        return end + sign * (std::fabs(end) * 2 * unit_roundoff(type) + least_subnormal(type));
    };
    return {outwards(exact.lo, -1), outwards(exact.hi, 1)};
}

KnownRange of_constant(const Scalar &v) {
    if (!is_float(v.type)) return {RealInterval::of(static_cast<double>(v.integer))};
    if (std::isnan(v.real)) return lost_range();
    if (std::isinf(v.real)) return {no_values, 0, v.real<0, v.real> 0};
    return {RealInterval::of(v.real)};
}

}  // namespace

KnownRange lost_range() { return {RealInterval::whole(), no_bound, true, true, true}; }

KnownRange merged(const KnownRange &a, const KnownRange &b) {
    return {hull(a.values, b.values), std::max(a.error, b.error), a.has_lowest || b.has_lowest, a.has_highest || b.has_highest,
            a.is_lost || b.is_lost};
}

bool is_monoid(const Monoid &m, const Monoid &known) {
    return std::equal(m.step.begin(), m.step.end(), known.step.begin(), known.step.end(), equal);
}

RangeValues::RangeValues(const Algorithm &algorithm, const Extents &extents, const std::map<std::string, RealInterval> &given)
    : a_(algorithm), extents_(extents), given_(given) {
    for (const Tensor &t : a_.tensors) known_[t.name] = of_tensor(t);
}

KnownRange RangeValues::of_type(const std::string &name, DType type) const {
    if (auto it = given_.find(name); it != given_.end()) return {it->second};
    if (is_float(type)) return {{-highest_finite(type), highest_finite(type)}};
    return {{static_cast<double>(traits_of(type).lowest), static_cast<double>(traits_of(type).highest)}};
}

KnownRange RangeValues::of_tensor(const Tensor &t) const {
    if (t.role != Role::constant) return of_type(t.name, t.dtype);
    KnownRange all{no_values};
    for (const Scalar &v : t.values) all = merged(all, of_constant(v));
    return all;
}

std::optional<double> RangeValues::points(const std::string &dim) const {
    if (auto it = extents_.find(dim); it != extents_.end()) return static_cast<double>(it->second);
    const Dim &d = a_.dim(dim);
    if (d.kind == DimKind::fixed) return static_cast<double>(d.value);
    return d.equals.empty() ? std::nullopt : points(d.equals);
}

KnownRange RangeValues::lose(const std::string &what) {
    if (trouble_.empty()) trouble_ = what;
    return lost_range();
}

KnownRange RangeValues::result(DType type, const RealInterval &exact, double error, const KnownRange &flags, const Expr &e) {
    if (is_empty(exact)) return {exact, 0, flags.has_lowest, flags.has_highest};
    const RealInterval values = rounded(type, exact);
    if (!(values.magnitude() <= highest_finite(type))) return lose("may overflow " + std::string(name_of(type)) + ": " + brief(e, 80));
    if (std::isnan(error)) error = no_bound;  // 0 times no bound
    return {values, step_up(error), flags.has_lowest, flags.has_highest};
}

KnownRange RangeValues::of(const Expr &e) {
    done_.clear(), definitions_.clear();
    return value(e);
}

KnownRange RangeValues::at_top(const Expr &e, const std::string &maximum) {
    const std::string before = trouble_;  // the same was looked at as a whole
    at_top_of_ = &maximum;
    const KnownRange range = of(e);
    at_top_of_ = nullptr;
    trouble_ = before;
    return range;
}

std::vector<std::string> RangeValues::maxima() const {
    std::set<std::string> all;
    for (const auto &[tensor, top] : tops_) all.insert(top.of);
    return {all.begin(), all.end()};
}

KnownRange RangeValues::value(const Expr &e) {
    if (assumed_ && equal(assumed_->first, e)) return assumed_->second;
    if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
    return done_[e.get()] = make(e);
}

// Whether it is a function that gives its first argument bit for bit, as stop_gradient does.
static bool is_argument(const Expr &e) {
    if (e.kind() != ExprKind::function || !e->function->facts.rounds) return false;
    return e->function->facts.rounds->relative == 0 && e->function->facts.rounds->absolute == 0;
}

// Whether it is x - m where m is a maximum over all x of its stage's points.
bool RangeValues::is_below_maximum(const Expr &e) {
    const Expr &m = is_argument(e->args[1]) ? e->args[1]->args[0] : e->args[1];
    if (m.kind() != ExprKind::load || m->guarded) return false;
    const Stage *top = defining_stage(a_, m->name);
    const Reduce *fold = top ? std::get_if<Reduce>(&top->body) : nullptr;
    const auto folds_by = [&](const Monoid &known) { return fold && is_monoid(fold->monoid, known); };
    if (!(folds_by(max_monoid(e.type())) || folds_by(max_number_monoid(e.type()))) || fold->where.defined() || !fold->at.empty() ||
        !equal(fold->inputs[0], e->args[0]))
        return false;
    for (size_t i = 0; i < top->dims.size(); i++)
        if (!equal(m->args[i], variable(top->dims[i]))) return false;
    found_top_ = top->name;
    return true;
}

KnownRange RangeValues::float_operation(const Expr &e, const std::vector<KnownRange> &x) {
    const DType type = e->args[0].type();
    const KnownRange &a = x[0], none{}, &b = x.size() > 1 ? x[1] : none;
    const RealInterval &r = a.values, &q = b.values;
    KnownRange flags;
    const bool some = a.has_lowest || a.has_highest || b.has_lowest || b.has_highest;
    const auto size = [](const RealInterval &i) { return is_empty(i) ? 0 : i.magnitude(); };
    const auto product_error = [&] { return size(r) * b.error + size(q) * a.error + a.error * b.error; };
    switch (e->op) {
    case Op::neg: return {is_empty(r) ? r : -r, a.error, a.has_highest, a.has_lowest};
    case Op::abs: return {is_empty(r) ? r : absolute(r), a.error, false, a.has_lowest || a.has_highest};
    case Op::min:
    case Op::max: {
        const bool is_max = e->op == Op::max;
        RealInterval all =
            is_max ? RealInterval{std::max(r.lo, q.lo), std::max(r.hi, q.hi)} : RealInterval{std::min(r.lo, q.lo), std::min(r.hi, q.hi)};
        // An infinity that loses leaves the other value.
        if (is_empty(r) || is_empty(q)) all = hull(r, q);
        if (is_max ? a.has_lowest : a.has_highest) all = hull(all, q);
        if (is_max ? b.has_lowest : b.has_highest) all = hull(all, r);
        return {all, std::max(a.error, b.error), is_max ? a.has_lowest && b.has_lowest : a.has_lowest || b.has_lowest,
                is_max ? a.has_highest || b.has_highest : a.has_highest && b.has_highest};
    }
    case Op::add:
    case Op::sub: {
        const bool below = e->op == Op::sub && is_below_maximum(e);
        const bool lowest = e->op == Op::add ? b.has_lowest : b.has_highest, highest = e->op == Op::add ? b.has_highest : b.has_lowest;
        flags.has_lowest = a.has_lowest || lowest, flags.has_highest = a.has_highest || highest;
        if ((a.has_lowest && highest) || (a.has_highest && lowest)) {
            lose("may be no number, inf - inf: " + brief(e, 80));
            if (!below) return lost_range();
            flags.has_highest = false;
        }
        if (is_empty(r) || is_empty(q)) return {no_values, 0, flags.has_lowest, flags.has_highest};
        RealInterval sum = e->op == Op::add ? r + q : r - q;
        if (below) sum = at_top_of_ && *at_top_of_ == found_top_ ? RealInterval{} : RealInterval{std::min(sum.lo, 0.0), 0};
        if (below && at_top_of_) flags = {};
        return result(type, sum, a.error + b.error + rounding(type, sum.magnitude()), flags, e);
    }
    case Op::mul:
        if (some) return lose("an infinity is multiplied: " + brief(e, 80));
        return result(type, equal(e->args[0], e->args[1]) ? absolute(r) * absolute(r) : r * q,
                      product_error() + rounding(type, size(r * q)), flags, e);
    case Op::fma: {
        const KnownRange &c = x[2];
        if (some || c.has_lowest || c.has_highest) return lose("an infinity is multiplied or added: " + brief(e, 80));
        const RealInterval product = equal(e->args[0], e->args[1]) ? absolute(r) * absolute(r) : r * q, all = product + c.values;
        return result(type, all, product_error() + c.error + rounding(type, all.magnitude()), flags, e);
    }
    case Op::div: {
        if (some) return lose("an infinity is divided, or divides: " + brief(e, 80));
        const RealInterval divisor = absolute(q);
        if (q.contains(0)) return lose("may divide by 0: " + brief(e, 80));
        const RealInterval all = r / q;
        const double nearest = step_down(divisor.lo - b.error);
        const double error = nearest > 0 ? (a.error + all.magnitude() * b.error) / nearest : no_bound;
        return result(type, all, error + rounding(type, all.magnitude()), flags, e);
    }
    case Op::sqrt: {
        if (some || r.lo < 0) return lose("may be the root of what is negative: " + brief(e, 80));
        const RealInterval all = square_root(r);
        return result(type, all, std::sqrt(a.error) + rounding(type, all.magnitude()), flags, e);
    }
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
        if (is_empty(r)) return a;
        return {{real_value(e->op, r.lo, 0.0, 0.0), real_value(e->op, r.hi, 0.0, 0.0)},
                a.error > 0 ? a.error + 1 : 0,
                a.has_lowest,
                a.has_highest};
    case Op::logical_not:
    case Op::mod:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shl:
    case Op::shr:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select: break;
    }
    undefined_on(e->op, "floats");
}

// Exact; a distance is kept by those that go with their operands.
KnownRange RangeValues::integer_operation(const Expr &e, const std::vector<KnownRange> &x) {
    const DTypeTraits &t = traits_of(e.type());
    RealInterval all = {static_cast<double>(t.lowest), static_cast<double>(t.highest)};
    const bool is_exact = std::all_of(x.begin(), x.end(), [](const KnownRange &k) { return k.error == 0; });
    double error = is_exact ? 0 : no_bound;
    RealInterval some = RealInterval::whole();
    if (e->op == Op::add) some = x[0].values + x[1].values, error = x[0].error + x[1].error;
    if (e->op == Op::sub) some = x[0].values - x[1].values, error = x[0].error + x[1].error;
    if (e->op == Op::mul) some = x[0].values * x[1].values;
    if (e->op == Op::neg) some = -x[0].values, error = x[0].error;
    if (all.lo <= some.lo && some.hi <= all.hi) all = some;
    else if (error > 0) error = no_bound;
    return {all, error};
}

// A choice between 0 and what is divided by something that is 0 then: where it is not, it is at least its gap.
KnownRange RangeValues::selection(const Expr &e) {
    const Expr &condition = e->args[0];
    const KnownRange of_condition = value(condition);
    if (of_condition.values.lo == of_condition.values.hi && of_condition.error == 0)
        return value(e->args[of_condition.values.lo != 0 ? 1 : 2]);
    const KnownRange first = value(e->args[1]);
    KnownRange second;
    const bool is_zero_test = condition.is_operation(Op::eq) && condition->args[1].is_constant() && condition->args[1]->value.real == 0 &&
                              is_float(condition->args[1].type());
    const KnownRange tested = is_zero_test ? value(condition->args[0]) : KnownRange{};
    if (tested.gap > 0 && !assumed_) {
        assumed_ = {condition->args[0], tested};
        assumed_->second.values.lo = std::max(tested.values.lo, tested.gap);
        const auto before = std::exchange(done_, {});
        second = value(e->args[2]);
        done_ = before, assumed_.reset();
    } else {
        second = value(e->args[2]);
    }
    KnownRange both = merged(first, second);
    if (both.is_lost) return lost_range();
    // Where the condition may come out otherwise, the other value is meant.
    if (of_condition.error > 0) both.error += is_empty(both.values) ? 0 : both.values.width();
    return both;
}

static KnownRange comparison(Op op, const KnownRange &a, const KnownRange &b) {
    const bool is_known = !a.is_lost && !b.is_lost && !is_empty(a.values) && !is_empty(b.values);
    if (is_known && op == Op::lt) {
        const double error = a.error + b.error;
        if (!a.has_highest && !b.has_lowest && a.values.hi + error < b.values.lo) return {{1, 1}};
        if (!a.has_lowest && !b.has_highest && b.values.hi + error < a.values.lo) return {{0, 0}};
    }
    return {{0, 1}, a.error == 0 && b.error == 0 ? 0.0 : 1.0};
}

KnownRange RangeValues::operation(const Expr &e) {
    if (e->op == Op::select) return selection(e);
    std::vector<KnownRange> x;
    for (const Expr &arg : e->args) x.push_back(value(arg));
    if (is_comparison(e->op)) return comparison(e->op, x[0], x[1]);
    if (std::any_of(x.begin(), x.end(), [](const KnownRange &k) { return k.is_lost; })) return lost_range();
    return is_float(e.type()) ? float_operation(e, x) : integer_operation(e, x);
}

KnownRange RangeValues::rounded_by_function(const Expr &e) {
    const RoundingFacts &rounds = *e->function->facts.rounds;
    const KnownRange x = value(e->args[0]);
    if (x.is_lost || is_empty(x.values) || is_argument(e)) return x;
    const auto off = [&](double end) { return step_up(std::fabs(end) * rounds.relative + rounds.absolute); };
    const auto [lo, hi] = std::pair(x.values.lo, x.values.hi);
    const RealInterval all = {lo < 0 ? lo - off(lo) : std::max(lo - off(lo), 0.0), hi > 0 ? hi + off(hi) : std::min(hi + off(hi), 0.0)};
    return result(e.type(), all, x.error + off(x.values.magnitude()), x, e);
}

KnownRange RangeValues::function(const Expr &e) {
    const Function &f = *e->function;
    if (f.facts.rounds) return rounded_by_function(e);
    std::vector<RealInterval> x;
    double error = 0;
    KnownRange limits{no_values};
    for (const Expr &arg : e->args) {
        const KnownRange k = value(arg);
        if (k.is_lost) return lost_range();
        if ((k.has_lowest || k.has_highest) && f.arity > 1) return lose("an infinity is an argument of " + f.name + ": " + brief(e, 80));
        if (k.has_lowest) limits.values = hull(limits.values, images_.image(f, {RealInterval::of(-no_bound)}));
        if (k.has_highest) limits.values = hull(limits.values, images_.image(f, {RealInterval::of(no_bound)}));
        x.push_back(k.values);
    }
    if (!FunctionImages::is_known(f)) {
        KnownRange defined = value(definitions_.emplace_back(definition_of(e)));
        if (!images_.has_one_definition(f)) defined.error = no_bound;
        return defined;
    }
    RealInterval all = std::any_of(x.begin(), x.end(), is_empty) ? no_values : images_.image(f, x);
    for (size_t i = 0; i < x.size(); i++)
        if (const double off = value(e->args[i]).error; off > 0 && !is_empty(x[i])) {
            std::vector<RealInterval> wide = x;  // where the exact arguments are
            for (size_t k = 0; k < x.size(); k++) wide[k] = {x[k].lo - value(e->args[k]).error, x[k].hi + value(e->args[k]).error};
            error += images_.slope(f, wide, i).magnitude() * off;
        }
    all = hull(all, limits.values);
    if (std::isnan(error)) error = no_bound;
    if (!all.is_bounded()) return lose("may overflow, or be no number: " + brief(e, 80));
    // A flush to zero loses less than twice the least normal.
    const bool is_double = e.type() == DType::f64;
    const double claim = is_double ? f.facts.ulp_f64 : f.facts.ulp_f32;
    if (claim == 0) return value(definitions_.emplace_back(definition_of(e)));
    const double least =
        (is_double ? 0 : f.facts.absolute_f32) + std::ldexp(1, traits_of(e.type()).mantissa + 2) * least_subnormal(e.type());
    const auto off = [&](double end) { return (claim + 0.5) * 2 * rounding(e.type(), std::fabs(end)) + least; };
    // Results lie no further outside of their bounds than a unit in the last place.
    const RealInterval limits_of_f = rounded(e.type(), {f.facts.least, f.facts.most});
    const RealInterval computed = {std::max(all.lo - off(all.lo), std::min(limits_of_f.lo, all.lo)),
                                   std::min(all.hi + off(all.hi), std::max(limits_of_f.hi, all.hi))};
    return result(e.type(), computed, error + off(all.magnitude()), {}, e);
}

KnownRange RangeValues::conversion(const Expr &e) {
    const DType from = e->args[0].type(), to = e.type();
    KnownRange x = value(e->args[0]);
    if (x.is_lost) return lost_range();
    if (is_float(to)) {
        const bool is_wider =
            is_float(from) && traits_of(to).mantissa >= traits_of(from).mantissa && traits_of(to).exponent >= traits_of(from).exponent;
        if (is_wider || is_empty(x.values)) return x;
        if (!traits_of(to).has_zero && !(x.values.lo > 0))
            return lose("may be no number of " + std::string(name_of(to)) + ": " + brief(e, 80));
        // A directed rounding loses up to a whole unit, and saturation what lies beyond.
        const double lost = (e->rounding == Rounding::nearest_even ? 1 : 2) * rounding(to, x.values.magnitude());
        // So do formats without infinity, and roundings that do not lead there.
        const double highest = highest_finite(to);
        const bool always = e->saturate || traits_of(to).specials == Specials::none || e->rounding == Rounding::toward_zero;
        const double least = always || e->rounding == Rounding::up ? -highest : -no_bound;
        const double most = always || e->rounding == Rounding::down ? highest : no_bound;
        const double beyond = std::max({x.values.hi - most, least - x.values.lo, 0.0});
        if (beyond > 0) x.values = {std::clamp(x.values.lo, least, most), std::clamp(x.values.hi, least, most)};
        return result(to, x.values, x.error + lost + beyond, x, e);
    }
    const DTypeTraits &t = traits_of(to);
    const auto lowest = static_cast<double>(t.lowest), highest = static_cast<double>(t.highest);
    if (is_float(from)) x.error = x.error > 0 ? x.error + 1 : 0;
    if (is_empty(x.values) || x.has_lowest || x.has_highest || x.values.lo < lowest || x.values.hi > highest)
        return {{lowest, highest}, e->saturate || x.error == 0 ? x.error : no_bound};
    return {{std::floor(x.values.lo), std::ceil(x.values.hi)}, x.error};
}

KnownRange RangeValues::make(const Expr &e) {
    switch (e.kind()) {
    case ExprKind::constant: return of_constant(e->value);
    case ExprKind::variable: return {{0, std::max(points(e->name).value_or(traits_of(DType::index).highest) - 1, 0.0)}};
    case ExprKind::extent: {
        const auto n = points(e->name);
        return n ? KnownRange{RealInterval::of(*n)} : KnownRange{{0, static_cast<double>(traits_of(DType::index).highest)}};
    }
    case ExprKind::parameter: return of_type(e->name, e.type());
    case ExprKind::load: {
        KnownRange x = known_.at(e->name);
        if (at_top_of_)
            if (auto top = tops_.find(e->name); top != tops_.end() && top->second.of == *at_top_of_) x = top->second.range;
        // Another element, where rounded values decide which.
        for (size_t i = 0; i < e->args.size() - (e->guarded ? 1 : 0); i++)
            if (value(e->args[i]).error > 0) x.error = no_bound;
        return e->guarded ? merged(x, value(e->args.back())) : x;
    }
    case ExprKind::bounded: return {{0, static_cast<double>(traits_of(DType::index).highest)}, value(e->args[0]).error};
    case ExprKind::operation: return operation(e);
    case ExprKind::function: return function(e);
    case ExprKind::cast: return conversion(e);
    case ExprKind::bitcast: {
        const KnownRange x = value(e->args[0]);
        const DTypeTraits &t = traits_of(e.type());
        if (is_float(e.type()) && t.specials == Specials::none && is_coded(e.type()))  // all codes are numbers
            return {{-highest_finite(t), highest_finite(t)}, x.error == 0 ? 0 : no_bound};
        if (is_float(e.type())) return lose("bits become a float: " + brief(e, 80));
        return {{static_cast<double>(t.lowest), static_cast<double>(t.highest)}, x.error == 0 ? 0 : no_bound};
    }
    case ExprKind::left: return earlier_.at(static_cast<size_t>(e->number));
    case ExprKind::right:
    case ExprKind::input: break;
    }
    throw InternalError("an operand of a monoid stands in a stage");
}

}  // namespace tessera
