#include "autotune/space/stage_view.h"

#include <algorithm>
#include <set>

#include "algorithms/functions/conversions.h"
#include "costmodel/features/index_value.h"

namespace tessera {

StageView view_of(const Stage &stage, const Algorithm &algorithm) {
    StageView view;
    view.stage = &stage;
    view.reduced = reduced_dims(stage);
    view.maps = std::holds_alternative<Map>(stage.body);
    view.updates = updates(stage);
    view.scanned = scanned_dim(stage);
    if (std::holds_alternative<Reduce>(stage.body)) view.scatters = scatters(stage), view.folds = !view.scatters;
    for (const std::string &d : ordinary_dims(stage))
        if (d != view.scanned) view.pure.push_back(d);
    const std::vector<Tensor> results = results_of(stage);
    for (const Tensor &t : results)
        for (const std::string &d : point_dims(stage, t))
            if (std::find(stage.dims.begin(), stage.dims.end(), d) == stage.dims.end() &&
                std::find(view.extra.begin(), view.extra.end(), d) == view.extra.end())
                view.extra.push_back(d);
    const auto note_sizes = [&](const std::vector<std::string> &dims) {
        for (const std::string &d : dims)
            if (const Dim *dim = algorithm.find_dim(d); dim && dim->kind == DimKind::derived) view.by_points.merge(variables_in(dim->size));
    };
    note_sizes(stage.dims), note_sizes(view.reduced), note_sizes(view.extra);
    if (!results.empty()) view.dtype = results[0].dtype;
    else if (view.updates) view.dtype = algorithm.find_tensor(writes_of(stage)[0]->state)->dtype;
    for (const Expr &root : expressions_of(stage))
        walk(in_operations(root), [&](const Expr &e) {
            if (e.kind() == ExprKind::operation) view.operations++;
            if (e.kind() != ExprKind::load) return;
            std::vector<Expr> index = e->args;
            if (e->guarded) index.resize(index.size() - 2);
            const bool known = std::any_of(view.operands.begin(), view.operands.end(), [&](const Operand &o) {
                return o.tensor == e->name && std::equal(o.index.begin(), o.index.end(), index.begin(), index.end(),
                                                         [](const Expr &a, const Expr &b) { return equal(a, b); });
            });
            if (!known) view.operands.push_back({e->name, e.type(), index});
        });
    return view;
}

int64_t movement(const Expr &index, const std::string &dim, int64_t size, const Extents &extents) {
    if (!uses_variable(index, dim)) return 0;
    if (index.kind() == ExprKind::variable) return std::max<int64_t>(size, 1) - 1;
    LoopPositions positions;
    positions.extents.insert(extents.begin(), extents.end());
    auto at = [&](int64_t position) {
        positions.loops[dim] = position;
        return positions.value(index);
    };
    return at(std::max<int64_t>(size, 1) - 1) - at(0);
}

std::vector<int64_t> spans(const Operand &operand, const Extents &sizes, const Extents &extents) {
    std::vector<int64_t> all;
    for (const Expr &index : operand.index) {
        int64_t span = 1;
        if (index.kind() == ExprKind::variable) {
            if (auto size = sizes.find(index->name); size != sizes.end()) span = std::max<int64_t>(size->second, 1);
            all.push_back(span);
            continue;
        }
        for (const std::string &dim : variables_in(index))
            if (auto size = sizes.find(dim); size != sizes.end()) span += std::abs(movement(index, dim, size->second, extents));
        all.push_back(span);
    }
    return all;
}

Stride stride_of(const Operand &operand, const std::string &dim, const Extents &extents) {
    Stride stride = Stride::none;
    for (size_t axis = 0; axis < operand.index.size(); axis++) {
        const int64_t step = movement(operand.index[axis], dim, 2, extents);
        if (step == 0 && !uses_variable(operand.index[axis], dim)) continue;
        stride = axis + 1 == operand.index.size() && step == 1 && stride == Stride::none ? Stride::one : Stride::other;
    }
    return stride;
}

bool moves_with(const Operand &operand, const std::string &dim, const Extents &extents) {
    return stride_of(operand, dim, extents) != Stride::none;
}

bool may_be_packed(const StageView &fold, const Operand &operand, const Extents &extents) {
    constexpr int64_t again = 4;  // reads of each element that pay for its copy
    std::set<std::string> axes;
    for (const Expr &index : operand.index)
        if (index.kind() != ExprKind::variable || !axes.insert(index->name).second) return false;
    return fold.folds && std::any_of(fold.pure.begin(), fold.pure.end(), [&](const std::string &d) {
               const auto size = extents.find(d);
               return !axes.count(d) && (size == extents.end() || size->second >= again);
           });
}

}  // namespace tessera
