// Operators whose results have an extent that elements decide: of constants, when the model is imported.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

const Array &constant_of(const Context &c, size_t input) {
    const Value &x = c.in(input);
    if (!x.is_constant())
        c.refuse("the extent of its result follows from elements of '" + x.name + "', which are computed from data.",
                 "Do it in your own code after the model (--until), or give its input as a constant (--bind).", "onnx.unknown");
    return *x.constant;
}

Array of_integers(const std::vector<int64_t> &values, const std::vector<int64_t> &extents) {
    Array made(DType::i64, extents);
    for (size_t i = 0; i < values.size(); i++) made.set(static_cast<int64_t>(i), Scalar::of_integer(DType::i64, values[i]));
    return made;
}

std::vector<Value> non_zero(Context &c) {
    const Array &x = constant_of(c, 0);
    std::vector<std::vector<int64_t>> places(x.extents.size());
    int64_t count = 0;
    for (int64_t i = 0; i < x.size(); i++) {
        const Scalar s = x.get(i);
        if (is_float(s.type) ? s.real == 0 : s.integer == 0) continue;
        count++;
        int64_t rest = i;
        for (size_t a = x.extents.size(); a-- > 0;) places[a].push_back(rest % x.extents[a]), rest /= x.extents[a];
    }
    std::vector<int64_t> all;
    for (const auto &axis : places) all.insert(all.end(), axis.begin(), axis.end());
    return {c.constant(of_integers(all, {static_cast<int64_t>(places.size()), count}))};
}

// NaN above all, and equal to itself.
int order_of(const Scalar &a, const Scalar &b) {
    if (!is_float(a.type)) return a.integer < b.integer ? -1 : a.integer > b.integer;
    if (std::isnan(a.real) || std::isnan(b.real)) return static_cast<int>(std::isnan(a.real)) - static_cast<int>(std::isnan(b.real));
    return a.real < b.real ? -1 : a.real > b.real;
}

// Slices along an axis, or all elements: each once, where it is first, which each is, and how many are of it.
std::vector<Value> unique(Context &c) {
    const Array &x = constant_of(c, 0);
    const bool is_flat = !c.node.find("axis");
    const size_t axis = is_flat ? 0 : static_cast<size_t>(c.axis(c.node.integer("axis"), static_cast<int64_t>(x.extents.size())));
    const std::vector<int64_t> extents = is_flat ? std::vector<int64_t>{x.size()} : x.extents;
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < extents.size(); i++)
        if (i != axis) (i < axis ? outer : inner) *= extents[i];
    const int64_t n = extents[axis];
    auto element = [&](int64_t slice, int64_t o, int64_t i) { return x.get((o * n + slice) * inner + i); };
    auto compared = [&](int64_t a, int64_t b) {
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++)
                if (const int order = order_of(element(a, o, i), element(b, o, i))) return order;
        return 0;
    };
    std::vector<int64_t> sorted(static_cast<size_t>(n));
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) { return compared(a, b) < 0; });
    struct Group {
        int64_t first, count;
        std::vector<int64_t> members;
    };
    std::vector<Group> groups;
    for (int64_t s : sorted) {
        if (groups.empty() || compared(groups.back().first, s) != 0) groups.push_back({s, 0, {}});
        groups.back().count++, groups.back().members.push_back(s);
    }
    if (c.node.integer("sorted", 1) == 0)
        std::sort(groups.begin(), groups.end(), [](const Group &a, const Group &b) { return a.first < b.first; });
    const auto count = static_cast<int64_t>(groups.size());
    std::vector<int64_t> result = extents, first, counts, inverse(static_cast<size_t>(n));
    result[axis] = count;
    Array y(x.dtype, result);
    for (int64_t g = 0; g < count; g++) {
        const Group &group = groups[static_cast<size_t>(g)];
        first.push_back(group.first), counts.push_back(group.count);
        for (int64_t m : group.members) inverse[static_cast<size_t>(m)] = g;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++) y.set((o * count + g) * inner + i, element(group.first, o, i));
    }
    return {c.constant(std::move(y)), c.constant(of_integers(first, {count})), c.constant(of_integers(inverse, {n})),
            c.constant(of_integers(counts, {count}))};
}

}  // namespace

std::vector<Operator> known_operators() {
    return {
        {"NonZero", non_zero},
        {"Unique", unique},
    };
}

}  // namespace tessera::onnx
