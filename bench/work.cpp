#include "bench/work.h"

#include <set>

#include "algorithms/value_numbering.h"

namespace tessera {

namespace {

using Dims = std::set<std::string>;

Dims set_of(const std::vector<std::string> &names) { return {names.begin(), names.end()}; }

Dims united(Dims a, const Dims &b) {
    a.insert(b.begin(), b.end());
    return a;
}

// The operations of one stage. Its expressions share one table, so equal ones are one row.
class StageWork {
public:
    explicit StageWork(const DimExtents &extents) : extents_(extents) {}

    // Counts what `e` needs and is not counted yet; gives the dims that its value depends on, as a dim's index or as an
    // element of what `elements` names: inputs by position, parts and passes by number.
    Dims count(const Expr &e) {
        const int n = table_.number(e);
        if (auto it = dims_.find(n); it != dims_.end()) return it->second;
        Dims dims;
        if (e.kind() == ExprKind::variable) dims = {e->name};
        if (e.kind() == ExprKind::input) dims = inputs_.at(static_cast<size_t>(e->number));
        if (e.kind() == ExprKind::left || e.kind() == ExprKind::right) dims = elements_.at(static_cast<size_t>(e->number));
        for (const Expr &operand : e->args) dims = united(dims, count(operand));
        dims_[n] = dims;
        if (e.kind() == ExprKind::operation && is_float(e.type()) && e->op != Op::select) add(e->op == Op::fma ? 2 : 1, dims);
        return dims;
    }

    // The steps of a fold, or its passes over the whole of `reduced`, whose results then have the dims that remain.
    void fold(const Monoid &m, const std::vector<Expr> &inputs, const Dims &kept, const Dims &reduced) {
        for (const Expr &e : inputs) inputs_.push_back(count(e));
        const Dims all = united(kept, reduced);
        if (m.batch.empty()) {
            for (const Part &part : m.parts) elements_.push_back(united(all, set_of(part.dims)));
            for (const Expr &e : m.step) count(e);
            return;
        }
        for (const BatchPass &pass : m.batch) {
            Dims values;
            for (const Expr &e : pass.values) values = united(values, count(e));
            const Dims result = united(set_of(pass.dims), pass.monoid.empty() ? all : kept);
            const bool folds = !pass.monoid.empty() && pass.monoid != "each";
            if (folds && !values.empty()) add(pass.monoid == "dot" ? 2 : 1, united(result, reduced));  // a sum of ones needs no additions
            elements_.push_back(result);
        }
    }

    std::optional<double> operations() const { return operations_; }

private:
    void add(double each, const Dims &dims) {
        for (const std::string &d : dims) {
            auto extent = extents_.find(d);
            if (extent == extents_.end()) return operations_.reset();
            each *= static_cast<double>(extent->second);
        }
        if (operations_) *operations_ += each;
    }

    const DimExtents &extents_;
    ValueNumbering table_;
    std::map<int, Dims> dims_;
    std::vector<Dims> inputs_, elements_;
    std::optional<double> operations_ = 0.0;
};

std::optional<double> operations_of(const Stage &stage, const DimExtents &extents) {
    StageWork work(extents);
    for (const Expr &e : expressions_of(stage)) work.count(e);
    if (auto *reduce = std::get_if<Reduce>(&stage.body)) work.fold(reduce->monoid, reduce->inputs, set_of(stage.dims), set_of(reduce->dims));
    if (auto *scan = std::get_if<Scan>(&stage.body)) work.fold(scan->monoid, scan->inputs, set_of(stage.dims), {scan->dim});
    return work.operations();
}

}  // namespace

Work work_of(const Algorithm &algorithm, const TileProgram &program, const DimExtents &extents) {
    Work work;
    work.operations = 0;
    for (const Stage &stage : inline_calls(algorithm).stages) {
        const std::optional<double> operations = operations_of(stage, extents);
        if (!operations) work.operations.reset();
        if (work.operations) *work.operations += *operations;
    }
    const DimExtents all = all_extents(program, extents);
    for (const Argument &a : program.arguments) {
        double bytes = size_of(a.tensor.dtype);
        for (int64_t n : shape_of(a.tensor, all)) bytes *= static_cast<double>(n);
        work.bytes += bytes * (int{a.read} + int{a.written});
    }
    return work;
}

}  // namespace tessera
