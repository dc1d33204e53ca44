#include "autotune/search/shape_cases.h"

#include <algorithm>
#include <cmath>

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

}  // namespace tessera
