#include "costmodel/features/iteration_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "algorithms/expr/op_classes.h"
#include "support/containers/address_map.h"

namespace tessera {

namespace {

constexpr double max_evaluations = 10000, max_sampled = 40000;
constexpr double few_samples = 32;
constexpr size_t max_sloped = 3;  // factors of a product whose sum has a formula here

// A value along a loop: v at one iteration, and s more with each further one.
struct Line {
    int64_t v = 0, s = 0;
};

int64_t wrapped(Op op, int64_t a, int64_t b) { return static_cast<int64_t>(integer_value(op, DType::index, a, b, 0)); }
Line sum(Line a, Line b) { return {wrapped(Op::add, a.v, b.v), wrapped(Op::add, a.s, b.s)}; }
Line difference(Line a, Line b) { return {wrapped(Op::sub, a.v, b.v), wrapped(Op::sub, a.s, b.s)}; }
Line times(Line a, int64_t n) { return {wrapped(Op::mul, a.v, n), wrapped(Op::mul, a.s, n)}; }

// For how many iterations a line that begins at 0 or below, or below 0, stays there.
int64_t while_not_above(Line d, int64_t most) { return d.s <= 0 ? most : std::min(most, -d.v / d.s + 1); }
int64_t while_below(Line d, int64_t most) { return while_not_above({d.v + 1, d.s}, most); }

// The value of an operation along a loop; `left`, the iterations for which the operands are lines, shrinks to those for which the
// result is one.
Line value_of(Op op, DType type, Line a, Line b, Line c, int64_t &left) {
    const Line d = difference(a, b);
    const auto otherwise = [&] {
        if (a.s != 0 || b.s != 0) left = 1;
        return Line{static_cast<int64_t>(integer_value(op, type, a.v, b.v, 0)), 0};
    };
    switch (op) {
    case Op::add: return sum(a, b);
    case Op::sub: return d;
    case Op::neg: return times(a, -1);
    case Op::mul: return b.s == 0 ? times(a, b.v) : a.s == 0 ? times(b, a.v) : otherwise();
    case Op::min:
    case Op::max: {
        const bool first = d.v < 0 || (d.v == 0 && d.s <= 0);  // is the smaller one
        left = while_not_above(first ? d : times(d, -1), left);
        return first == (op == Op::min) ? a : b;
    }
    case Op::lt: left = d.v < 0 ? while_below(d, left) : while_not_above(times(d, -1), left); return {d.v < 0, 0};
    case Op::le: left = d.v <= 0 ? while_not_above(d, left) : while_below(times(d, -1), left); return {d.v <= 0, 0};
    case Op::eq:
    case Op::ne:
        if (d.s != 0 && d.v == 0) left = 1;
        if (d.s != 0 && d.v % d.s == 0 && -d.v / d.s > 0) left = std::min(left, -d.v / d.s);
        return {(d.v == 0) == (op == Op::eq), 0};
    case Op::div:
    case Op::mod: {
        if (b.s != 0 || b.v <= 0 || a.s == 0) return otherwise();
        const int64_t rest = wrapped(Op::mod, a.v, b.v), quotient = wrapped(Op::div, a.v, b.v);
        if (a.s % b.v == 0) return op == Op::div ? Line{quotient, a.s / b.v} : Line{rest, 0};
        left = std::min(left, (a.s > 0 ? (b.v - 1 - rest) / a.s : rest / -a.s) + 1);
        return op == Op::div ? Line{quotient, 0} : Line{rest, a.s};
    }
    case Op::select:
        if (a.s != 0) left = 1;
        return a.v ? b : c;
    default: break;
    }
    return classes_of(op).makes_positions ? otherwise() : Line{};
}

// A product of lines, summed over iterations. No more than max_sloped of them may have a slope.
class Product {
public:
    void multiply(Line by) {
        const auto v = static_cast<double>(by.v), s = static_cast<double>(by.s);
        for (size_t i = terms_.size(); i-- > 0;) terms_[i] = terms_[i] * v + (i > 0 ? terms_[i - 1] * s : 0);
    }
    double over(int64_t iterations) const {
        const auto n = static_cast<double>(iterations);
        const double first = n * (n - 1) / 2;  // the sum of the iterations' numbers; then of their squares and cubes
        const std::array<double, max_sloped + 1> powers{n, first, first * (2 * n - 1) / 3, first * first};
        double all = 0;
        for (size_t i = 0; i < terms_.size(); i++) all += terms_[i] * powers[i];
        return all;
    }

private:
    std::array<double, max_sloped + 1> terms_{1};
};

// Where the line of an expression stands, and the loops that it depends on.
struct Value {
    size_t slot = 0;
    LoopMask depends = 0;
};

class Summation {
public:
    Summation(const LoopPositions &at, const std::vector<SummedLoop> &loops, const std::vector<SummedCondition> &conditions, const Expr &e)
        : at_(at), loops_(loops), nodes_(loops.size()) {
        for (size_t n = 0; n < loops.size(); n++) position_[loops[n].loop] = n, nodes_[n].variable = constant(0).slot;
        const Value summed = compile(e);
        plant(conditions, summed.depends);
        for (size_t n = 0; n < loops.size(); n++) {
            const Value count = compile(loops[n].count);
            if (nodes_[n].is_there) nodes_[n].count = count.slot;
            else if (loops[n].is_share) attach(apply(Op::lt, DType::index, constant(0), count));
            else attach(apply(Op::max, DType::index, constant(0), count));
        }
        for (const SummedCondition &c : conditions) {
            const Value holds = compile(c.holds);
            attach(c.otherwise ? apply(Op::logical_not, DType::boolean, holds) : holds);
        }
        find_exports();
        summed_ = summed.slot;
        if (summed.depends == 0) return;
        summed_at_ = &nodes_[deepest(summed.depends)];
        for (size_t n = deepest(summed.depends); n != none; n = nodes_[n].parent) nodes_[n].has_sum = true;
    }

    IterationSum run() {
        const IterationSum all = over_roots();
        if (evaluations_ <= max_evaluations) return all;
        choose_limit();
        return over_roots();
    }

private:
    static constexpr size_t none = SIZE_MAX;
    struct Step {
        Op op;
        DType type;
        size_t a, b, c, target;
    };
    // A loop that something depends on; it stands below those that its iterations are summed apart for.
    struct Node {
        bool is_there = false, has_sum = false;
        size_t parent = none, variable = 0, count = 0;
        std::vector<size_t> children, factors, exports;
        std::vector<Step> steps;
    };
    const LoopPositions &at_;
    const std::vector<SummedLoop> &loops_;
    std::vector<Node> nodes_;  // by position in loops_
    std::array<size_t, 64> position_{};
    std::vector<Line> lines_{Line{}};
    AddressMap<Value> compiled_;
    double product_ = 1;  // of the factors that do not vary
    size_t summed_ = 0;
    const Node *summed_at_ = nullptr;
    int64_t limit_ = INT64_MAX;  // of iterations of a loop around others that are taken
    int64_t samples_ = 0;        // of an innermost loop, where there are too many corners; 0 where all are taken
    double evaluations_ = 0, sampled_ = 0;

    static LoopMask bit(size_t loop) { return LoopMask{1} << loop; }
    size_t deepest(LoopMask loops) const { return position_[static_cast<size_t>(std::bit_width(loops)) - 1]; }

    Value constant(int64_t v) {
        lines_.push_back({v, 0});
        return {lines_.size() - 1, 0};
    }

    Value apply(Op op, DType type, Value a, Value b = {}, Value c = {}) {
        const LoopMask depends = a.depends | b.depends | c.depends;
        int64_t left = 1;
        if (depends == 0) return constant(value_of(op, type, lines_[a.slot], lines_[b.slot], lines_[c.slot], left).v);
        const Value result{constant(0).slot, depends};
        nodes_[deepest(depends)].steps.push_back({op, type, a.slot, b.slot, c.slot, result.slot});
        return result;
    }

    Value compile(const Expr &e) {
        if (const Value *known = compiled_.find(e.get())) return *known;
        const Value value = compile_new(e);
        *compiled_.add(e.get()).first = value;
        return value;
    }

    Value compile_new(const Expr &e) {
        switch (e.kind()) {
        case ExprKind::variable:
            for (size_t n = 0; n < loops_.size(); n++)
                if (loops_[n].variable == e->name) return {nodes_[n].variable, bit(loops_[n].loop)};
            if (const auto let = at_.lets.find(e->name); let != at_.lets.end()) return compile(let->second);
            return constant(at_.value(e));
        case ExprKind::cast: return compile(e->args[0]);
        case ExprKind::bounded: {
            const Value lo = compile(e->args[1]);
            const Value last = apply(Op::sub, DType::index, compile(e->args[2]), constant(1));
            const Value below = apply(Op::min, DType::index, compile(e->args[0]), apply(Op::max, DType::index, lo, last));
            return apply(Op::max, DType::index, lo, below);
        }
        case ExprKind::load:
            if (!LoopPositions::is_position(e)) return constant(0);
            return apply(Op::mul, DType::index, compile(e->args[0]), constant(at_.step_of(e)));
        case ExprKind::operation: {
            const auto argument = [&](size_t i) { return i < e->args.size() ? compile(e->args[i]) : Value(); };
            const Value a = argument(0), b = argument(1), c = argument(2);
            return apply(e->op, e->args[0].type(), a, b, c);
        }
        case ExprKind::constant:
        case ExprKind::extent:
        case ExprKind::parameter:
        case ExprKind::bitcast:
        case ExprKind::left:
        case ExprKind::right:
        case ExprKind::input:
        case ExprKind::function: return constant(at_.value(e));
        }
        return {};
    }

    // The tree of the loops that something depends on. Loops that one count, condition or expression depends on are on one path.
    void plant(const std::vector<SummedCondition> &conditions, LoopMask summed) {
        std::array<LoopMask, 64> beside{};  // by loop: those that it is summed together with
        LoopMask used = summed;
        for (const SummedLoop &l : loops_) used |= l.depends;
        for (const SummedCondition &c : conditions) used |= c.depends;
        const auto join = [&](LoopMask together) {
            for (const SummedLoop &l : loops_)
                if (together & bit(l.loop)) beside[l.loop] |= together;
        };
        join(summed);
        for (const SummedLoop &l : loops_) join(used & bit(l.loop) ? l.depends | bit(l.loop) : l.depends);
        for (const SummedCondition &c : conditions) join(c.depends);
        for (size_t n = loops_.size(); n-- > 0;) {
            const size_t loop = loops_[n].loop;
            nodes_[n].is_there = used & bit(loop);
            const LoopMask around = beside[loop] & (bit(loop) - 1);
            if (!nodes_[n].is_there || around == 0) continue;
            nodes_[n].parent = deepest(around);
            nodes_[nodes_[n].parent].children.push_back(n);
            beside[loops_[nodes_[n].parent].loop] |= around;
        }
    }

    void attach(const Value &factor) {
        if (factor.depends == 0) product_ *= static_cast<double>(lines_[factor.slot].v);
        else nodes_[deepest(factor.depends)].factors.push_back(factor.slot);
    }

    // What a node's iterations change for those below it.
    void find_exports() {
        std::vector<size_t> owners(lines_.size(), none);
        for (size_t n = 0; n < nodes_.size(); n++) {
            owners[nodes_[n].variable] = n;
            for (const Step &s : nodes_[n].steps) owners[s.target] = n;
        }
        const auto use = [&](size_t slot, size_t n) {
            if (owners[slot] != none && owners[slot] != n) nodes_[owners[slot]].exports.push_back(slot);
        };
        for (size_t n = 0; n < nodes_.size(); n++) {
            for (const Step &s : nodes_[n].steps) use(s.a, n), use(s.b, n), use(s.c, n);
            if (nodes_[n].is_there) use(nodes_[n].count, n);
        }
    }

    double expected_evaluations(int64_t limit) const {
        double all = 0;
        for (const Node &node : nodes_) {
            if (!node.is_there || !node.children.empty()) continue;
            double one = 1;
            for (size_t n = node.parent; n != none; n = nodes_[n].parent)
                one *= std::min(std::max(loops_[n].mean, 1.0), static_cast<double>(limit));
            all += one;
        }
        return all;
    }

    void choose_limit() {
        limit_ = static_cast<int64_t>(max_sampled);
        while (limit_ > 3 && expected_evaluations(limit_) > max_sampled) limit_ = std::max<int64_t>(3, limit_ * 3 / 4);
        samples_ = static_cast<int64_t>(std::max(few_samples, max_sampled / std::max(1.0, expected_evaluations(limit_))));
        evaluations_ = 0;
    }

    IterationSum over_roots() {
        IterationSum all{product_, product_};
        bool has_sum = false;
        for (const Node &node : nodes_)
            if (node.is_there && node.parent == none) multiply(all, over(node), node.has_sum), has_sum |= node.has_sum;
        if (!has_sum) all.value *= static_cast<double>(lines_[summed_].v);
        return all;
    }

    static void multiply(IterationSum &all, const IterationSum &by, bool has_sum) {
        all.points *= by.points, all.value *= has_sum ? by.value : by.points;
    }

    // Stands the loop at an iteration. From there on for so many of `most`, which it gives, all values are lines, and those of loops below
    // do not change.
    int64_t stand(const Node &node, int64_t iteration, int64_t most) {
        evaluations_++;
        lines_[node.variable] = {iteration, most > 1};
        for (const Step &s : node.steps) lines_[s.target] = value_of(s.op, s.type, lines_[s.a], lines_[s.b], lines_[s.c], most);
        size_t sloped = &node == summed_at_ && lines_[summed_].s != 0;
        for (size_t f : node.factors) sloped += lines_[f].s != 0;
        const bool changes = std::any_of(node.exports.begin(), node.exports.end(), [&](size_t slot) { return lines_[slot].s != 0; });
        if (sloped <= max_sloped && !changes) return most;
        return stand(node, iteration, 1);
    }

    // With the loops around the node where they stand.
    IterationSum over(const Node &node) {
        const int64_t count = lines_[node.count].v;
        IterationSum all;
        if (count <= 0) return all;
        const auto add = [&](int64_t iterations, double weight) {
            Product points;
            for (size_t f : node.factors) points.multiply(lines_[f]);
            const double own = weight * points.over(iterations);
            if (&node == summed_at_) points.multiply(lines_[summed_]);
            IterationSum one{own, weight * points.over(iterations)};
            if (one.points == 0) return;
            for (size_t child : node.children) multiply(one, over(nodes_[child]), nodes_[child].has_sum);
            all.points += one.points, all.value += one.value;
        };
        const auto sample = [&](int64_t first, int64_t iterations, int64_t samples) {
            each_sample(first, iterations, samples, [&](int64_t at, double weight) { stand(node, at, 1), add(1, weight); });
        };
        if (!node.children.empty() && count > limit_) {
            stand(node, 0, 1), add(1, 1);
            sample(1, count - 2, limit_ - 2);
            stand(node, count - 1, 1), add(1, 1);
        } else {
            for (int64_t i = 0; i < count;) {
                if (evaluations_ > max_evaluations && samples_ == 0) return {};
                if (evaluations_ > max_evaluations && node.children.empty() && count - i > samples_) {
                    sample(i, count - i, samples_);
                    break;
                }
                const int64_t straight = stand(node, i, count - i);
                add(straight, 1);
                i += straight;
            }
        }
        if (loops_[static_cast<size_t>(&node - nodes_.data())].is_share)
            all.points /= static_cast<double>(count), all.value /= static_cast<double>(count);
        return all;
    }

    // Some of so many iterations, each for its share of them, and not in step with what returns regularly.
    void each_sample(int64_t first, int64_t count, int64_t samples, const auto &visit) {
        constexpr double golden = 0.6180339887498949;
        const double apart = static_cast<double>(count) / static_cast<double>(samples);
        for (int64_t i = 0; i < samples; i++) {
            sampled_ = std::fmod(sampled_ + golden, 1.0);
            visit(first + static_cast<int64_t>((static_cast<double>(i) + sampled_) * apart), apart);
        }
    }
};

}  // namespace

IterationSum iteration_sum(const LoopPositions &at, const std::vector<SummedLoop> &loops, const std::vector<SummedCondition> &conditions,
                           const Expr &e) {
    return Summation(at, loops, conditions, e).run();
}

}  // namespace tessera
