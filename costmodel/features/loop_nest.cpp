#include "costmodel/features/loop_nest.h"

#include <algorithm>
#include <cmath>

namespace tessera {

namespace {

constexpr double few_points = 64;        // of which a mean takes all
constexpr double max_iterations = 4e18;  // that an integer counts
constexpr size_t max_loops = 5;          // that a mean is taken over; the others stand at their middle

}  // namespace

void LoopNest::enter(const Loop &loop, double count) {
    frames_.push_back({loop.variable, loop.kind, std::max<int64_t>(1, std::llround(std::min(count, max_iterations))) - 1, count, nodes_++});
    at.loops[loop.variable] = frames_.back().last / 2;
    varies_[loop.variable] = {frames_.size() > 64 ? 0 : Mask{1} << (frames_.size() - 1), 0};
}

void LoopNest::leave() {
    varies_.erase(frames_.back().variable);
    at.loops.erase(frames_.back().variable);
    frames_.pop_back();
}

void LoopNest::bind(const Let &let) {
    at.lets[let.variable] = let.value;
    varies_[let.variable] = reach_of(let.value);
}

void LoopNest::unbind(const Let &let) {
    varies_.erase(let.variable);
    at.lets.erase(let.variable);
}

std::optional<size_t> LoopNest::innermost() const {
    for (size_t i = frames_.size(); i-- > 0;)
        if (!frames_[i].is_inside()) return i;
    return std::nullopt;
}

double LoopNest::turns() const {
    double n = likely;
    for (const Frame &f : frames_) n *= f.count;
    return n;
}

double LoopNest::issues(Mask mask, double element, double vector_bytes) const {
    double n = likely;
    const std::optional<size_t> inner = innermost();
    for (size_t i = 0; i < frames_.size(); i++) {
        const bool varies = has(mask, i);
        const Frame &f = frames_[i];
        if (f.kind == LoopKind::vector) n *= varies ? std::max(1.0, f.count * element / vector_bytes) : 1;
        else if (f.kind == LoopKind::unrolled) n *= varies ? f.count : 1;
        else if (inner != i || varies) n *= f.count;
    }
    return n;
}

double LoopNest::lanes() const {
    double n = 1;
    for (const Frame &f : frames_)
        if (f.kind == LoopKind::vector) n *= f.count;
    return n;
}

bool LoopNest::in_lanes(Mask mask) const {
    for (size_t i = 0; i < frames_.size(); i++)
        if (frames_[i].kind == LoopKind::vector && has(mask, i)) return true;
    return false;
}

bool LoopNest::is_shared(Mask mask) const {
    for (size_t i = 0; i < frames_.size(); i++)
        if (frames_[i].kind == LoopKind::unrolled && frames_[i].last > 0 && !has(mask, i)) return true;
    return false;
}

LoopNest::Reach LoopNest::reach_of(const Expr &e) const {
    if (e->variables == 0) return {};
    if (e.kind() == ExprKind::variable) {
        auto known = varies_.find(e->name);
        return known == varies_.end() ? Reach{} : known->second;
    }
    Reach all;
    for (const Expr &arg : e->args) {
        const Reach one = reach_of(arg);
        all.depends |= one.depends, all.wraps |= one.wraps;
    }
    if (e.kind() == ExprKind::operation && (e->op == Op::div || e->op == Op::mod)) all.wraps |= all.depends;
    return all;
}

LoopNest::Mask LoopNest::loops_of(const Expr &e) const { return reach_of(e).depends; }

LoopNest::Mask LoopNest::wraps(const Expr &e) const { return reach_of(e).wraps; }

double LoopNest::mean_of(const Expr &e) {
    const Mask used = loops_of(e);
    std::vector<size_t> loops;
    double points = 1;
    for (size_t i = 0; i < frames_.size() && loops.size() < max_loops; i++)
        if (has(used, i) && frames_[i].last > 0) loops.push_back(i), points *= static_cast<double>(frames_[i].last + 1);
    const double mean = mean_over(e, loops, 0,
                                  points <= few_points ? static_cast<int64_t>(few_points)
                                  : loops.size() == 1  ? 32
                                  : loops.size() == 2  ? 8
                                                       : 3);
    for (size_t i : loops) at.loops[frames_[i].variable] = frames_[i].last / 2;
    return mean;
}

double LoopNest::mean_over(const Expr &e, const std::vector<size_t> &loops, size_t first, int64_t most) {
    if (first == loops.size()) return static_cast<double>(at.value(e));
    const Frame &frame = frames_[loops[first]];
    auto mean_at = [&](int64_t iteration) {
        at.loops[frame.variable] = iteration;
        return mean_over(e, loops, first + 1, most);
    };
    double sum = 0;
    if (frame.last < most) {
        for (int64_t i = 0; i <= frame.last; i++) sum += mean_at(i);
        return sum / static_cast<double>(frame.last + 1);
    }
    const int64_t samples = most - 2;
    const double between = static_cast<double>(frame.last - 1);
    for (int64_t i = 0; i < samples; i++)
        sum += mean_at(1 + static_cast<int64_t>((static_cast<double>(i) + 0.5) * between / static_cast<double>(samples)));
    return (mean_at(0) + sum / static_cast<double>(samples) * between + mean_at(frame.last)) / (between + 2);
}

int64_t LoopNest::moved(const Expr &e, size_t frame) {
    int64_t &position = at.loops[frames_[frame].variable];
    position = frames_[frame].last;
    const int64_t last = at.value(e);
    position = 0;
    const int64_t first = at.value(e);
    position = frames_[frame].last / 2;
    return last - first;
}

}  // namespace tessera
