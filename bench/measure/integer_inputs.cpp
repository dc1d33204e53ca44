#include "bench/measure/integer_inputs.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <variant>
#include <vector>

#include "bench/measure/inputs.h"

namespace tessera {

namespace {

using Names = std::set<std::string>;

bool may_be_index(DType type) { return type == DType::i32 || type == DType::i64; }

// What stands for the same number: casts, and what keeps it inside.
const Expr &bare(const Expr &e) {
    const bool same = e.kind() == ExprKind::cast || e.kind() == ExprKind::bounded;
    return same ? bare(e->args[0]) : e;
}

// Whether the sizes of ragged dims are the distances of its elements, or of what is made of them.
bool has_offsets(const Algorithm &algorithm, const std::string &tensor) {
    const std::vector<Ascending> made = ascending_results(algorithm);
    if (std::any_of(made.begin(), made.end(), [&](const Ascending &a) { return a.given == tensor; })) return true;
    return std::any_of(algorithm.dims.begin(), algorithm.dims.end(), [&](const Dim &d) {
        int loads = 0;
        if (d.kind == DimKind::derived) walk(d.size, [&](const Expr &e) { loads += e.kind() == ExprKind::load && e->name == tensor; });
        return loads > 1;
    });
}

class Reader {
public:
    explicit Reader(const Algorithm &algorithm) : algorithm_(algorithm) {
        for (const Tensor &t : algorithm.tensors) {
            axes_[t.name] = t.dims;
            if (t.role != Role::constant && may_be_index(t.dtype) && !has_offsets(algorithm, t.name)) sources_[t.name] = {t.name};
        }
    }

    std::map<std::string, IntegerMeaning> read() {
        for (const Dim &d : algorithm_.dims)
            if (d.kind == DimKind::derived) read(d.size);
        for (const Step &step : algorithm_.steps) std::visit([&](const auto &s) { read(s); }, step);
        return meanings_;
    }

private:
    const Algorithm &algorithm_;
    std::map<std::string, std::vector<std::string>> axes_;  // of tensors and results
    std::map<std::string, Names> sources_;                  // of what an integer is computed
    std::map<std::string, IntegerMeaning> meanings_;

    void mean(const Names &tensors, IntegerMeaning::Kind kind, const std::string &dim) {
        for (const std::string &t : tensors) {
            const auto [it, is_first] = meanings_.emplace(t, IntegerMeaning{kind, dim});
            if (!is_first && it->second.kind > kind) it->second = {kind, dim};
        }
    }

    Names sources_in(const Expr &e) const {
        Names all;
        walk(e, [&](const Expr &n) {
            if (n.kind() != ExprKind::load) return;
            if (const auto it = sources_.find(n->name); it != sources_.end()) all.insert(it->second.begin(), it->second.end());
        });
        return all;
    }

    // An index along an axis. What is inside of a load of it is an index of that load's.
    void read_index(const Expr &index, const std::string &dim) {
        const Expr &e = bare(index);
        if (e.kind() == ExprKind::load) {
            const auto it = sources_.find(e->name);
            if (it != sources_.end()) mean(it->second, IntegerMeaning::Kind::positions, dim);
            return;
        }
        if (e.kind() == ExprKind::operation)
            for (const Expr &arg : e->args) {
                const Expr &part = bare(arg);
                if (part.kind() == ExprKind::operation) read_index(part, dim);
                if (part.kind() == ExprKind::load && sources_.count(part->name))
                    mean(sources_.at(part->name), IntegerMeaning::Kind::lengths, dim);
            }
    }

    void read_comparison(const Expr &e) {
        for (int side : {0, 1}) {
            const Expr &index = e->args[side], &other = e->args[1 - side];
            const Expr &variable = bare(index);
            const Names tensors = sources_in(other);
            if (tensors.empty()) continue;
            const bool is_equality =
                e.is_operation(Op::eq) && variable.kind() == ExprKind::variable && bare(other).kind() == ExprKind::load;
            for (const std::string &d : variables_in(index))
                if (algorithm_.find_dim(d) && sources_in(index).empty())
                    mean(tensors, is_equality ? IntegerMeaning::Kind::positions : IntegerMeaning::Kind::lengths, d);
        }
    }

    void read(const Expr &expression) {
        walk(expression, [&](const Expr &e) {
            if (e.kind() == ExprKind::load) {
                const auto axes = axes_.find(e->name);
                if (axes == axes_.end()) return;
                for (size_t a = 0; a < axes->second.size() && a < e->args.size(); a++) read_index(e->args[a], axes->second[a]);
            }
            if (e.is_operation(Op::le) || e.is_operation(Op::lt) || e.is_operation(Op::eq)) read_comparison(e);
        });
    }

    void read(const Stage &stage) {
        Names all;
        for (const Expr &e : expressions_of(stage)) {
            read(e);
            if (!is_float(e.type())) all.merge(sources_in(e));
        }
        for (const Write *w : writes_of(stage))
            for (size_t a = 0; a < w->index.size(); a++) read_index(w->index[a], axes_.at(w->state)[a]);
        if (const auto *reduce = std::get_if<Reduce>(&stage.body))
            for (size_t a = 0; a < reduce->at.size(); a++) read_index(reduce->at[a], stage.dims[a]);
        for (const Tensor &result : results_of(stage)) {
            axes_[result.name] = result.dims;
            if (may_be_index(result.dtype) || result.dtype == DType::index) sources_[result.name] = all;
        }
    }

    void read(const Call &call) {
        for (const auto &[own, meaning] : integer_meanings(*call.callee)) {
            const auto bound = call.tensors.find(own);
            const auto dim = call.dims.find(meaning.dim);
            if (bound == call.tensors.end() || dim == call.dims.end()) continue;
            if (const auto it = sources_.find(bound->second.tensor); it != sources_.end()) mean(it->second, meaning.kind, dim->second);
        }
        for (const Tensor &result : results_of(call)) axes_[result.name] = result.dims;
    }
};

}  // namespace

std::map<std::string, IntegerMeaning> integer_meanings(const Algorithm &algorithm) { return Reader(algorithm).read(); }

StatedInputs with_integer_inputs(const Algorithm &algorithm, const Extents &extents, StatedInputs stated, uint64_t seed) {
    constexpr int64_t most = int64_t{1} << 26;  // elements; what has more stays as it is
    RandomNumbers seeds(seed);
    for (const auto &[name, meaning] : integer_meanings(algorithm)) {
        RandomNumbers random(seeds.next());
        const Tensor &tensor = *algorithm.find_tensor(name);
        const auto extent = extents.find(meaning.dim);
        if (stated.arrays.count(name) || stated.range_of(name, tensor.dtype) || extent == extents.end() || extent->second < 1) continue;
        const std::vector<int64_t> shape = shape_of(tensor, extents);
        int64_t count = 1;
        for (int64_t n : shape) count = n == 0 ? 0 : std::min(most + 1, count * n);
        if (count > most || extent->second > most) continue;
        Array array(tensor.dtype, shape);
        std::vector<int64_t> order(meaning.kind == IntegerMeaning::Kind::positions ? static_cast<size_t>(extent->second) : 0);
        std::iota(order.begin(), order.end(), 0);
        for (int64_t i = 0; i < count; i++) {
            int64_t value;
            if (order.empty()) {
                value = random.below(extent->second + 1);
            } else {
                const auto at = static_cast<size_t>(i) % order.size();
                std::swap(order[at], order[at + static_cast<size_t>(random.below(static_cast<int64_t>(order.size() - at)))]);
                value = order[at];
            }
            array.set(i, Scalar::of_integer(tensor.dtype, value));
        }
        stated.arrays.emplace(name, std::move(array));
    }
    return stated;
}

}  // namespace tessera
