#include "generators/work.h"

#include <set>

namespace tessera {

static double operations_in(const Expr &e) {
    double count = 0;
    walk(e, [&](const Expr &n) {
        if (n.kind() == ExprKind::operation && is_float(n.type()) && n->op != Op::select) count += n->op == Op::fma ? 2 : 1;
    });
    return count;
}

static double per_point(const Stage &stage) {
    double count = 0;
    const Monoid *monoid = nullptr;
    if (auto *reduce = std::get_if<Reduce>(&stage.body)) monoid = &reduce->monoid;
    if (auto *scan = std::get_if<Scan>(&stage.body)) monoid = &scan->monoid;
    for (const Expr &e : expressions_of(stage)) count += operations_in(e);
    if (!monoid) return count;
    for (const Expr &e : monoid->step) count += operations_in(e);
    return count;
}

Work work_of(const Algorithm &algorithm, const TileProgram &program, const DimExtents &extents) {
    Work work;
    work.operations = 0;
    for (const Stage &stage : inline_calls(algorithm).stages) {
        std::set<std::string> dims(stage.dims.begin(), stage.dims.end());
        for (const std::string &d : reduced_dims(stage)) dims.insert(d);
        if (auto *reduce = std::get_if<Reduce>(&stage.body))
            for (const Part &part : reduce->monoid.parts) dims.insert(part.dims.begin(), part.dims.end());
        double points = 1;
        for (const std::string &d : dims) {
            auto extent = extents.find(d);
            if (extent == extents.end()) work.operations.reset();
            else points *= static_cast<double>(extent->second);
        }
        if (work.operations) *work.operations += points * per_point(stage);
    }
    for (const Argument &a : program.arguments) {
        double bytes = size_of(a.tensor.dtype);
        for (int64_t n : shape_of(a.tensor, extents)) bytes *= static_cast<double>(n);
        work.bytes += bytes * (int{a.read} + int{a.written});
    }
    return work;
}

}  // namespace tessera
