#include "autotune/search/shape_cases.h"

#include <algorithm>
#include <cmath>

#include "bench/measure/inputs.h"
#include "support/text/error.h"

namespace tessera {

namespace {

struct Cut {
    std::string dim;
    int64_t bound = 0;  // the lower part ends there
    double ratio = 0;
};

Cut widest_cut(const std::vector<Extents> &shapes, const std::vector<size_t> &members) {
    Cut widest;
    for (const auto &[dim, extent] : shapes[members[0]]) {
        std::vector<int64_t> sorted;
        for (size_t m : members) sorted.push_back(shapes[m].at(dim));
        std::sort(sorted.begin(), sorted.end());
        for (size_t i = 0; i + 1 < sorted.size(); i++) {
            const int64_t low = sorted[i], high = sorted[i + 1];
            const double ratio = static_cast<double>(high) / static_cast<double>(std::max<int64_t>(low, 1));
            if (low == high || ratio <= widest.ratio) continue;
            const auto mean = static_cast<int64_t>(std::sqrt(static_cast<double>(low) * static_cast<double>(high)));
            widest = {dim, std::clamp(mean, low, high - 1), ratio};
        }
    }
    require(!widest.dim.empty(), "no two shapes are equal");
    return widest;
}

// A condition of the same dim that the cut contains says it already.
void add(std::vector<Condition> &when, const Cut &cut) {
    const bool said = std::any_of(when.begin(), when.end(), [&](const Condition &c) { return c.dim == cut.dim && c.bound <= cut.bound; });
    if (!said) when.insert(when.begin(), Condition{cut.dim, "", 0, "<=", cut.bound});
}

std::vector<ShapeCase> cases_of(const std::vector<Extents> &shapes, const std::vector<size_t> &members) {
    if (members.size() == 1) return {{{}, members[0]}};
    const Cut cut = widest_cut(shapes, members);
    std::vector<size_t> low, high;
    for (size_t m : members) (shapes[m].at(cut.dim) <= cut.bound ? low : high).push_back(m);
    std::vector<ShapeCase> cases = cases_of(shapes, low);
    for (ShapeCase &c : cases) add(c.when, cut);
    for (const ShapeCase &c : cases_of(shapes, high)) cases.push_back(c);
    return cases;
}

bool implies(const std::vector<Condition> &a, const std::vector<Condition> &b) {
    return std::all_of(b.begin(), b.end(), [&](const Condition &wanted) {
        return std::any_of(a.begin(), a.end(), [&](const Condition &c) { return c.dim == wanted.dim && c.bound <= wanted.bound; });
    });
}

}  // namespace

std::vector<ShapeCase> shape_cases(const std::vector<Extents> &shapes, const std::function<bool(size_t, size_t)> &alike) {
    std::vector<size_t> all;
    for (size_t i = 0; i < shapes.size(); i++) all.push_back(i);
    std::vector<ShapeCase> cases = cases_of(shapes, all);
    for (size_t i = cases.size() - 1; i-- > 0;)
        if (alike(cases[i].shape, cases[i + 1].shape) && implies(cases[i].when, cases[i + 1].when))
            cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(i));
    return cases;
}

std::vector<ShapeBox> shape_boxes(const std::vector<Extents> &shapes, double reach) {
    std::vector<ShapeBox> boxes;
    for (const Extents &shape : shapes) {
        ShapeBox &box = boxes.emplace_back();
        for (const auto &[dim, extent] : shape) {
            const auto e = static_cast<double>(extent);
            box.low[dim] = static_cast<int64_t>(std::ceil(e / reach)), box.high[dim] = static_cast<int64_t>(std::floor(e * reach));
        }
    }
    for (size_t i = 0; i < shapes.size(); i++)
        for (size_t j = 0; j < shapes.size(); j++) {
            if (i == j) continue;
            const Cut cut = widest_cut(shapes, {i, j});
            if (shapes[i].at(cut.dim) <= cut.bound) boxes[i].high[cut.dim] = std::min(boxes[i].high[cut.dim], cut.bound);
            else boxes[i].low[cut.dim] = std::max(boxes[i].low[cut.dim], cut.bound + 1);
        }
    return boxes;
}

std::vector<Condition> conditions_of(const ShapeBox &box) {
    std::vector<Condition> all;
    for (const auto &[dim, low] : box.low) {
        const int64_t high = box.high.at(dim);
        if (low == high) {
            all.push_back({dim, "", 0, "==", low});
            continue;
        }
        if (low > 1) all.push_back({dim, "", 0, ">=", low});
        all.push_back({dim, "", 0, "<=", high});
    }
    return all;
}

std::vector<Extents> probes_of(const ShapeBox &box, const Extents &shape, int inside) {
    constexpr int64_t lanes = 16;  // of the widest vectors
    Extents odd_low = box.low, odd_high = box.high, round_low = box.low, round_high = box.high;
    for (const auto &[dim, extent] : shape) {
        const int64_t low = box.low.at(dim), high = box.high.at(dim);
        if (low % 2 == 0 && low + 1 < extent) odd_low[dim]++;
        if (high % 2 == 0 && high - 1 > extent) odd_high[dim]--;
        round_low[dim] = std::min((low + lanes - 1) / lanes * lanes, extent);
        round_high[dim] = std::max(high / lanes * lanes, extent);
    }
    std::vector<Extents> all;
    const auto add = [&](const Extents &probe) {
        if (probe != shape && std::find(all.begin(), all.end(), probe) == all.end()) all.push_back(probe);
    };
    const auto ends = {&odd_low, &round_low, &odd_high, &round_high};
    for (const auto &[dim, extent] : shape)
        for (const Extents *end : ends) {
            Extents one = shape;
            one[dim] = end->at(dim);
            add(one);
        }
    for (const Extents *end : ends) add(*end);
    RandomNumbers random(1);
    for (int i = 0; i < inside; i++) {
        Extents one;
        for (const auto &[dim, low] : box.low) one[dim] = low + random.below(box.high.at(dim) - low + 1);
        add(one);
    }
    return all;
}

ShapeBox shrunk(ShapeBox box, const Extents &shape, const Extents &slow) {
    constexpr double near = 1.15;  // times the shape's extent
    for (const auto &[dim, extent] : slow) {
        const int64_t own = shape.at(dim);
        if (extent == own) continue;
        int64_t &end = extent < own ? box.low.at(dim) : box.high.at(dim);
        const double mean = std::sqrt(static_cast<double>(end) * static_cast<double>(own));
        const double ratio = mean / static_cast<double>(own);
        const bool is_near = end == own || (ratio < near && ratio > 1 / near);
        end = is_near ? own : static_cast<int64_t>(extent < own ? std::ceil(mean) : std::floor(mean));
    }
    return box;
}

}  // namespace tessera
