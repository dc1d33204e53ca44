#include "bench/measure/work.h"

#include <set>

#include "algorithms/expr/value_numbering.h"
#include "algorithms/transform/inline_calls.h"
#include "compiler/instructions/families.h"
#include "support/containers/alternatives.h"

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
    explicit StageWork(const Extents &extents) : extents_(extents) {}

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
        if (e.kind() == ExprKind::operation && is_float(e.type()) && e->op != Op::select) add(e->op == Op::fma ? 2 : 1, dims, e.type());
        return dims;
    }

    // The steps of a fold, or its passes over the whole of `reduced`, whose results then have the dims that remain. `family` is the one of
    // grouped steps that fits it, if any.
    void fold(const Monoid &m, const std::vector<Expr> &inputs, const Dims &kept, const Dims &reduced,
              const Instruction *family = nullptr) {
        for (const Expr &e : inputs) inputs_.push_back(count(e));
        grouped_ = family;
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
            const StandardMonoid *by = find_pass_monoid(pass.monoid);
            if (by && !values.empty())
                add(by->operations, united(result, reduced), pass.values[0].type());  // a sum of ones needs no additions
            elements_.push_back(result);
        }
    }

    // With no bytes.
    const Work &work() const { return work_; }

private:
    void add(double each, const Dims &dims, DType type) {
        for (const std::string &d : dims) {
            auto extent = extents_.find(d);
            if (extent == extents_.end()) return work_.operations.reset();
            each *= static_cast<double>(extent->second);
        }
        if (work_.operations) *work_.operations += each;
        if (grouped_) work_.by_family[grouped_->name] += each;
        else if (type == DType::f64) work_.f64 += each;
    }

    const Extents &extents_;
    ValueNumbering table_;
    std::map<int, Dims> dims_;
    std::vector<Dims> inputs_, elements_;
    Work work_ = {.operations = 0};
    const Instruction *grouped_ = nullptr;  // of the fold whose steps are counted
};

const Instruction *family_of(const Reduce &reduce) {
    for (const Instruction &family : families())
        if (family.shape.k > 1 && operands_for(family, reduce)) return &family;
    return nullptr;
}

Work work_of(const Stage &stage, const Extents &extents) {
    StageWork work(extents);
    for (const Expr &e : expressions_of(stage)) work.count(e);
    std::visit(Overloaded{
                   [](const Map &) {},
                   [&](const Reduce &b) { work.fold(b.monoid, b.inputs, set_of(stage.dims), set_of(b.dims), family_of(b)); },
                   [&](const Scan &b) { work.fold(b.monoid, b.inputs, set_of(stage.dims), {b.dim}); },
               },
               stage.body);
    return work.work();
}

}  // namespace

Work work_of(const Algorithm &algorithm, const TileProgram &program, const Extents &extents) {
    Work work;
    work.operations = 0;
    const Algorithm inlined = expanded(inline_calls(algorithm));
    for (const Stage &stage : inlined.stages()) {
        const Work own = work_of(stage, extents);
        if (!own.operations) work.operations.reset();
        if (work.operations) *work.operations += *own.operations;
        work.f64 += own.f64;
        for (const auto &[family, operations] : own.by_family) work.by_family[family] += operations;
    }
    const Extents all = all_extents(program, extents);
    for (const Argument &a : program.arguments) {
        double bytes = size_of(a.tensor.dtype);
        for (int64_t n : shape_of(a.tensor, all)) bytes *= static_cast<double>(n);
        work.bytes += bytes * (int{a.read} + int{a.written});
    }
    return work;
}

}  // namespace tessera
