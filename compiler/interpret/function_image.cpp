#include "compiler/interpret/function_image.h"

#include <algorithm>

#include "algorithms/evaluate/in_double.h"
#include "algorithms/functions/functions.h"
#include "support/text/error.h"

namespace tessera {

static constexpr double infinity = std::numeric_limits<double>::infinity();

// A unit in the last place of a double, at least that of the smallest normal.
static double unit_of(double value) {
    const double magnitude = std::max(std::fabs(value), std::numeric_limits<double>::min());
    return std::isfinite(value) ? std::nextafter(magnitude, INFINITY) - magnitude : 0;
}

bool FunctionImages::has_one_definition(const Function &f) {
    auto [it, fresh] = has_one_definition_.try_emplace(&f);
    if (fresh) it->second = equal(in_double(f.in_f32, {}), f.in_f64);
    return it->second;
}

FunctionImages::Prepared &FunctionImages::prepare(const Function &f) {
    auto [it, fresh] = prepared_.try_emplace(&f);
    Prepared &p = it->second;
    if (!fresh) return p;
    const TapeResolver resolver{[](const Expr &leaf) { return leaf->number; }, [](const std::string &) { return 0; }};
    p.tape = Tape({f.in_f64}, resolver, f.arity);
    p.frame.resize(static_cast<size_t>(p.tape.end()));
    p.tape.prepare(p.frame.data());
    p.derivatives = f.facts.derivative.of(DType::f64);
    return p;
}

// The claim holds where results are normal; a flush to zero or an underflow loses less than 2^-1000. A half more is for what the claim, a
// number with three digits, was rounded by.
RealInterval FunctionImages::at(const Function &f, const std::vector<double> &x) {
    Prepared &p = prepare(f);
    for (size_t i = 0; i < x.size(); i++) p.frame[i].f64 = x[i];
    p.tape.run(p.frame.data(), nullptr);
    const double value = p.frame[static_cast<size_t>(p.tape.result(0))].f64;
    if (std::isnan(value)) return RealInterval::whole();
    if (std::isinf(value))
        return {std::min(value, std::numeric_limits<double>::max()), std::max(value, std::numeric_limits<double>::lowest())};
    const double margin = (f.facts.ulp_f64 + 0.5) * unit_of(value) + 0x1p-1000;
    const RealInterval all = {value - margin, value + margin};
    return common({step_down(all.lo), step_up(all.hi)}, {f.facts.least, f.facts.most});
}

RealInterval FunctionImages::corners(const Function &f, const std::vector<RealInterval> &x) {
    RealInterval all;
    for (size_t corner = 0; corner < size_t{1} << x.size(); corner++) {
        std::vector<double> point;
        for (size_t i = 0; i < x.size(); i++) point.push_back(corner >> i & 1 ? x[i].hi : x[i].lo);
        const RealInterval one = at(f, point);
        all = corner == 0 ? one : hull(all, one);
    }
    return all;
}

// f(x) - f(m) = sum of (x_i - m_i) times a value of the derivative by x_i somewhere between.
RealInterval FunctionImages::by_mean_value(const Function &f, const std::vector<RealInterval> &x) {
    const RealInterval range = {f.facts.least, f.facts.most};
    constexpr int most_depth = 4;
    // The angle jumps where the second argument is negative and the first changes its sign.
    if (f.name == "atan2" && x[0].contains(0) && x[1].lo <= 0) return range;
    if (depth_ >= most_depth || prepare(f).derivatives.empty()) return range;
    std::vector<double> middle;
    for (const RealInterval &i : x) {
        if (!i.is_bounded()) return range;
        middle.push_back(i.lo + (i.hi - i.lo) / 2);
    }
    RealInterval sum = at(f, middle);
    depth_++;
    for (size_t i = 0; i < x.size(); i++)
        if (!x[i].is_point()) sum = sum + (x[i] - RealInterval::of(middle[i])) * value(prepare(f).derivatives[i], x);
    depth_--;
    return common(sum, range);
}

RealInterval FunctionImages::image(const Function &f, const std::vector<RealInterval> &x) {
    if (!is_known(f)) return RealInterval::whole();
    const bool is_point = std::all_of(x.begin(), x.end(), [](const RealInterval &i) { return i.is_point(); });
    if (is_point || f.facts.course != Course::any) return corners(f, x);
    // 1 / sqrt falls where it is defined; a power of what is positive goes one way in each argument while the other stays.
    if ((f.name == "rsqrt" || f.name == "pow") && x[0].lo > 0) return corners(f, x);
    return x.size() == 1 ? in_pieces(f, x[0]) : by_mean_value(f, x);
}

// What is nearly straight far from 0, as activations are, is bounded best piece by piece.
static std::vector<RealInterval> pieces_of(const RealInterval &x) {
    std::vector<RealInterval> pieces;
    double from = x.lo;
    for (const double cut : {-64, -16, -8, -4, -2, -1, 0, 1, 2, 4, 8, 16, 64}) {
        if (cut <= from || cut >= x.hi) continue;
        pieces.push_back({from, cut});
        from = cut;
    }
    pieces.push_back({from, x.hi});
    return pieces;
}

RealInterval FunctionImages::in_pieces(const Function &f, const RealInterval &x) {
    RealInterval all = {infinity, -infinity};
    for (const RealInterval &piece : pieces_of(x)) all = hull(all, by_mean_value(f, {piece}));
    return all;
}

RealInterval FunctionImages::slope(const Function &f, const std::vector<RealInterval> &x, size_t of) {
    const std::vector<Expr> known = prepare(f).derivatives;
    if (of >= known.size()) return RealInterval::whole();
    if (x.size() > 1) return value(known[of], x);
    RealInterval all = {infinity, -infinity};
    for (const RealInterval &piece : pieces_of(x[0])) all = hull(all, value(known[of], {piece}));
    return all;
}

// The image of an expression of f64 over the arguments, as derivatives are.
RealInterval FunctionImages::value(const Expr &root, const std::vector<RealInterval> &x) {
    AddressMap<RealInterval> values;
    walk(root, [&](const Expr &e) { *values.add(e.get()).first = value_over(e, x, values); });
    return *values.find(root.get());
}

RealInterval FunctionImages::value_over(const Expr &e, const std::vector<RealInterval> &x, AddressMap<RealInterval> &values) {
    std::vector<RealInterval> args;
    for (const Expr &arg : e->args) args.push_back(arg.type() == DType::f64 ? *values.find(arg.get()) : RealInterval::whole());
    if (e.kind() == ExprKind::input) return x[static_cast<size_t>(e->number)];
    if (e.kind() == ExprKind::constant) return RealInterval::of(e->value.real);
    if (e.kind() == ExprKind::function) return image(*e->function, args);
    if (e.kind() != ExprKind::operation) return RealInterval::whole();
    switch (e->op) {
    case Op::neg: return -args[0];
    case Op::abs: return absolute(args[0]);
    case Op::sqrt: return square_root(args[0]);
    case Op::add: return args[0] + args[1];
    case Op::sub: return args[0] - args[1];
    case Op::mul: return equal(e->args[0], e->args[1]) ? absolute(args[0]) * absolute(args[0]) : args[0] * args[1];
    case Op::div: return args[0] / args[1];
    case Op::fma: return args[0] * args[1] + args[2];
    case Op::select: return hull(args[1], args[2]);
    default: return RealInterval::whole();
    }
}

}  // namespace tessera
