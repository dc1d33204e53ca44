#include "schedules/knobs/condition.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tessera {

// A stretch between two bounds is looked at for two periods of all moduli, within these limits.
static constexpr int64_t longest_period = 1 << 16, fewest = 8;

bool holds(const Condition &c, int64_t extent) {
    const int64_t value = c.modulus ? extent % c.modulus : extent;
    if (c.relation == "<=") return value <= c.bound;
    if (c.relation == "<") return value < c.bound;
    if (c.relation == ">=") return value >= c.bound;
    if (c.relation == ">") return value > c.bound;
    if (c.relation == "==") return value == c.bound;
    return value != c.bound;
}

std::vector<int64_t> telling_extents(const std::vector<Condition> &when, const Dim &dim) {
    if (dim.kind == DimKind::fixed) return {dim.value};
    int64_t period = dim.multiple_of;
    std::set<int64_t> starts = {dim.min};
    for (const Condition &c : when) {
        if (c.dim != dim.name) continue;
        if (c.modulus) period = period > longest_period || c.modulus > longest_period ? longest_period : std::lcm(period, c.modulus);
        else starts.insert({c.bound - 1, c.bound, c.bound + 1});
    }
    period = std::min(std::max(period, fewest * dim.multiple_of), longest_period);
    std::set<int64_t> extents;
    for (int64_t start : starts) {
        const int64_t from = std::max(start, dim.min), first = (from + dim.multiple_of - 1) / dim.multiple_of * dim.multiple_of;
        for (int64_t e = first; e <= dim.max && e - first < 2 * period; e += dim.multiple_of) extents.insert(e);
    }
    return {extents.begin(), extents.end()};
}

static bool all_hold(const std::vector<Condition> &when, const std::string &dim, int64_t extent) {
    return std::all_of(when.begin(), when.end(), [&](const Condition &c) { return c.dim != dim || holds(c, extent); });
}

std::vector<int64_t> extents_that_meet(const std::vector<Condition> &when, const Dim &dim) {
    std::vector<int64_t> extents = telling_extents(when, dim);
    std::erase_if(extents, [&](int64_t e) { return !all_hold(when, dim.name, e); });
    return extents;
}

bool always_hold(const std::vector<Condition> &when, const Dim &dim) {
    const std::vector<int64_t> extents = telling_extents(when, dim);
    return std::all_of(extents.begin(), extents.end(), [&](int64_t e) { return all_hold(when, dim.name, e); });
}

}  // namespace tessera
