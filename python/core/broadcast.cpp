#include "python/core/broadcast.h"

#include <algorithm>
#include <cstdlib>

namespace tessera::python {

int64_t Shape::elements() const {
    int64_t all = 1;
    for (int i = 0; i < rank; i++) all *= extents[static_cast<size_t>(i)];
    return all;
}

std::string Shape::text() const {
    std::string all = "(";
    for (int i = 0; i < rank; i++) all += (i == 0 ? "" : ",") + std::to_string(extents[static_cast<size_t>(i)]);
    return all + (rank == 1 ? ",)" : ")");
}

bool broadcast(Shape &shape, const Operand &operand) {
    if (operand.rank > shape.rank) {
        const int more = operand.rank - shape.rank;
        std::copy_backward(shape.extents.begin(), shape.extents.begin() + shape.rank, shape.extents.begin() + operand.rank);
        std::fill_n(shape.extents.begin(), more, 1);
        shape.rank = operand.rank;
    }
    for (int i = 0; i < operand.rank; i++) {
        int64_t &extent = shape.extents[static_cast<size_t>(shape.rank - operand.rank + i)];
        if (operand.extents[i] == extent || operand.extents[i] == 1) continue;
        if (extent != 1) return false;
        extent = operand.extents[i];
    }
    return true;
}

bool is_of_shape(const Operand &operand, const Shape &shape) {
    return operand.rank == shape.rank && std::equal(operand.extents, operand.extents + operand.rank, shape.extents.begin());
}

Strides strides_along(const Shape &shape, const Operand &operand) {
    Strides strides;
    const int skipped = shape.rank - operand.rank;
    for (int i = 0; i < shape.rank; i++)
        strides[static_cast<size_t>(i)] = i < skipped || operand.extents[i - skipped] == 1 ? 0 : operand.strides[i - skipped];
    return strides;
}

namespace {

// Whether `inner`, which is further in among the axes, belongs outside of `outer`: 1 yes, 0 no, -1 no operand tells. One that agrees with
// the order of the axes is enough for it.
int belongs_outside(int inner, int outer, const std::vector<Strides> &operands) {
    int told = -1;
    for (const Strides &s : operands) {
        const int64_t in = std::abs(s[static_cast<size_t>(inner)]), out = std::abs(s[static_cast<size_t>(outer)]);
        if (in == 0 || out == 0) continue;
        if (in <= out) return 0;
        told = 1;
    }
    return told;
}

}  // namespace

std::vector<int> axes_by_memory(const Shape &shape, const std::vector<Strides> &operands) {
    std::vector<int> axes;
    for (int axis = 0; axis < shape.rank; axis++) {
        if (shape.extents[static_cast<size_t>(axis)] == 1) continue;
        size_t at = axes.size();
        for (size_t k = axes.size(); k-- > 0;) {
            const int outside = belongs_outside(axis, axes[k], operands);
            if (outside == 0) break;
            if (outside == 1) at = k;
        }
        axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(at), axis);
    }
    return axes;
}

bool is_taken(const Shape &shape, const Operand &operand, const Strides &strides, int innermost, bool is_result) {
    if (reinterpret_cast<uintptr_t>(operand.data) % static_cast<uintptr_t>(operand.item) != 0) return false;
    for (int i = 0; i < shape.rank; i++) {
        const int64_t stride = strides[static_cast<size_t>(i)];
        if (stride % operand.item != 0) return false;
        if (is_result && stride == 0 && shape.extents[static_cast<size_t>(i)] != 1) return false;
    }
    if (innermost < 0) return true;
    const int64_t stride = strides[static_cast<size_t>(innermost)];
    return stride == operand.item || (stride == 0 && !is_result);
}

namespace {

struct Range {
    uintptr_t first, end;
};

Range range_of(const Shape &shape, const Operand &operand, const Strides &strides) {
    int64_t low = 0, high = operand.item;
    for (int i = 0; i < shape.rank; i++) {
        const int64_t reach = strides[static_cast<size_t>(i)] * (shape.extents[static_cast<size_t>(i)] - 1);
        (reach < 0 ? low : high) += reach;
    }
    const auto data = reinterpret_cast<uintptr_t>(operand.data);
    return {data + static_cast<uintptr_t>(low), data + static_cast<uintptr_t>(high)};
}

}  // namespace

bool overlap(const Shape &shape, const Operand &a, const Strides &strides_of_a, const Operand &b, const Strides &strides_of_b) {
    const Range x = range_of(shape, a, strides_of_a), y = range_of(shape, b, strides_of_b);
    return x.first < y.end && y.first < x.end;
}

Walk walk_over(const Shape &shape, const std::vector<int> &axes, const std::vector<Strides> &operands) {
    struct Axis {
        int64_t extent;
        std::vector<int64_t> by;
    };
    std::vector<Axis> all;  // outermost first
    for (const int axis : axes) {
        Axis next{shape.extents[static_cast<size_t>(axis)], {}};
        for (const Strides &s : operands) next.by.push_back(s[static_cast<size_t>(axis)]);
        bool follows = !all.empty();
        for (size_t i = 0; follows && i < operands.size(); i++) follows = all.back().by[i] == next.by[i] * next.extent;
        if (follows) all.back() = {all.back().extent * next.extent, next.by};
        else all.push_back(next);
    }
    Walk walk;
    if (!all.empty()) {
        walk.columns = all.back().extent;
        for (size_t i = 0; i < operands.size(); i++) walk.repeated |= uint32_t{all.back().by[i] == 0} << i;
        all.pop_back();
    }
    for (size_t i = 0; i < operands.size(); i++) walk.row_strides.push_back(all.empty() ? 0 : all.back().by[i]);
    if (!all.empty()) {
        walk.rows = all.back().extent;
        all.pop_back();
    }
    for (Axis &axis : all) walk.loops.push_back(axis.extent), walk.by.push_back(std::move(axis.by));
    return walk;
}

}  // namespace tessera::python
