#include "algorithms/transform/half_bytes.h"

#include <algorithm>

#include "algorithms/functions/conversions.h"
#include "algorithms/index/prove.h"
#include "algorithms/ir/rows.h"
#include "algorithms/transform/inline_calls.h"
#include "support/text/error.h"

namespace tessera {

Dim bytes_along(const Dim &elements) {
    const std::string name = elements.name + ".bytes";
    if (elements.kind == DimKind::fixed) return fixed_dim(name, (elements.value + 1) / 2);
    // Proofs are easier without a byte that is half empty.
    const bool is_even = elements.kind == DimKind::symbolic && elements.multiple_of % 2 == 0;
    return derived_dim(name, (extent(elements.name) + Expr(is_even ? 0 : 1)) / Expr(2));
}

namespace {

Expr k(int64_t value) { return constant_int(DType::i32, value); }

bool is_among(const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Those that a caller of the algorithm passes, by name.
std::map<std::string, Tensor> tensors_of_callers(const Algorithm &a) {
    std::map<std::string, Tensor> all;
    for (const Tensor &t : a.tensors)
        if (is_in_half_bytes(t.dtype)) all.emplace(t.name, t);
    for (const Step &step : a.steps)
        for (const Tensor &t : std::visit([](const auto &s) { return results_of(s); }, step))
            if (is_in_half_bytes(t.dtype) && is_among(a.outputs, t.name)) all.emplace(t.name, t);
    return all;
}

bool passes_halves(const Call &call) {
    const Algorithm &callee = *call.callee;
    for (const Tensor &t : callee.tensors)
        if (is_in_half_bytes(t.dtype) && t.role != Role::constant) return true;
    for (const Tensor &t : results_of(call))
        if (is_in_half_bytes(t.dtype)) return true;
    return std::any_of(callee.calls().begin(), callee.calls().end(), passes_halves);
}

Algorithm with_halves_inlined(const Algorithm &a) {
    std::set<std::string> kept;
    for (const Call &call : a.calls()) {
        if (!passes_halves(call)) kept.insert(call.scope);
        else if (call.repeat)
            throw UserError("half-bytes.call", a.name + ": the call '" + call.scope + "' of " + call.callee->name +
                                                   " repeats, and has tensors of four bits an element; expected tensors of whole bytes "
                                                   "there. Pass their codes as u8.");
    }
    const bool keeps_all = kept.size() == a.calls().size();
    return keeps_all ? a : inline_calls(a, [&](const std::string &scope) {
        return std::any_of(kept.begin(), kept.end(), [&](const std::string &k) { return scope == k || scope.starts_with(k + "."); });
    });
}

class InBytes {
public:
    explicit InBytes(const Algorithm &a) : made_(a), halves_(tensors_of_callers(a)) {}

    Algorithm run() {
        for (const Step &step : made_.steps) {
            for (const Tensor &t : std::visit([](const auto &s) { return results_of(s); }, step)) taken_.insert(t.name);
            if (const auto *stage = std::get_if<Stage>(&step)) taken_.insert(stage->name);
        }
        for (Tensor &t : made_.tensors)
            if (halves_.count(t.name)) t = in_bytes(t);
        std::vector<Step> steps = std::move(made_.steps);
        made_.steps.clear();
        for (Step &step : steps) {
            auto *stage = std::get_if<Stage>(&step);
            if (!stage) {
                made_.steps.push_back(std::move(step));
                continue;
            }
            const std::vector<Tensor> results = results_of(*stage);
            made_.steps.push_back(rewritten(std::move(*stage)));
            for (const Tensor &t : results)
                if (halves_.count(t.name)) made_.steps.push_back(joining(t));
        }
        for (const auto &[name, tensor] : halves_)
            if (tensor.role != Role::constant) made_.half_bytes.emplace(name, HalfBytes{tensor.dtype, tensor.dims});
        return std::move(made_);
    }

private:
    // A name that nothing else has.
    std::string codes_of(const std::string &output) {
        const auto [made, fresh] = codes_.emplace(output, output + ".codes");
        while (fresh && (made_.find_tensor(made->second) || taken_.count(made->second))) made->second += "_";
        return made->second;
    }
    bool is_output(const std::string &name) const { return is_among(made_.outputs, name); }

    // The dim of the bytes along `dim`.
    std::string bytes_along(const std::string &dim) {
        if (const auto known = bytes_.find(dim); known != bytes_.end()) return known->second;
        Dim bytes = tessera::bytes_along(made_.dim(dim));
        while (made_.find_dim(bytes.name)) bytes.name += "_";
        made_.dims.push_back(bytes);
        return bytes_[dim] = bytes.name;
    }

    Tensor in_bytes(const Tensor &t) {
        Tensor bytes = t;
        bytes.dtype = DType::u8;
        if (!t.dims.empty()) bytes.dims.back() = bytes_along(t.dims.back());
        if (t.role == Role::constant) bytes.values = joined(t);
        return bytes;
    }

    std::vector<Scalar> joined(const Tensor &constant) {
        int64_t row = 1;
        if (!constant.dims.empty()) row = made_.dim(constant.dims.back()).value;
        std::vector<Scalar> bytes;
        for (size_t first = 0; first < constant.values.size(); first += static_cast<size_t>(row))
            for (int64_t i = 0; i < row; i += 2) {
                const Scalar *at = &constant.values[first + static_cast<size_t>(i)];
                const uint64_t high = i + 1 < row ? stored_bits(at[1]) << 4 : 0;
                bytes.push_back(Scalar::of_integer(DType::u8, static_cast<int64_t>(stored_bits(at[0]) | high)));
            }
        return bytes;
    }

    Stage rewritten(Stage stage) {
        Bounds inside(made_.dims);
        std::vector<std::string> dims = stage.dims;
        for (const std::string &d : folded_dims(stage)) dims.push_back(d);
        if (is_fold(stage))
            for (const Part &p : monoid_of(stage).parts) dims.insert(dims.end(), p.dims.begin(), p.dims.end());
        for (const std::string &d : dims) inside.set(d, Expr(0), extent(d) - 1);
        std::vector<std::string> results = names_of_results(stage);
        bool renames = false;
        for (std::string &name : results)
            if (halves_.count(name)) name = codes_of(name), renames = true;
        if (halves_.count(stage.name)) stage.name = codes_of(stage.name);
        if (renames) stage.results = results.size() == 1 && results[0] == stage.name ? std::vector<std::string>{} : results;
        return map_expressions(std::move(stage), [&](const Expr &root) {
            return rewrite(root, [&](const Expr &e) -> Expr {
                if (e.kind() == ExprKind::cast && e.type() == DType::i32 && e->args[0].kind() == ExprKind::bitcast &&
                    is_in_half_bytes(e->args[0]->args[0].type()))
                    return code_in(e->args[0]->args[0]);
                if (e.kind() != ExprKind::load || !halves_.count(e->name)) return {};
                if (is_output(e->name)) return load_of(codes_of(e->name), e);
                return half(e, inside);
            });
        });
    }

    // The element that `e` loads, of the byte that has it.
    static Expr half(const Expr &e, const Bounds &inside) {
        Operands index = e->args;
        Expr guard, fill;
        if (e->guarded) {
            fill = index.back(), index.pop_back();
            guard = index.back(), index.pop_back();
        }
        Expr at;
        if (!index.empty()) at = index.back(), index.back() = simplify(at / Expr(2), inside);
        const Expr byte =
            guard.defined() ? load_or(e->name, DType::u8, index, guard, constant_int(DType::u8, 0)) : load(e->name, DType::u8, index);
        Expr code = cast(DType::i32, byte);
        if (at.defined()) code = operation(Op::shr, {code, cast(DType::i32, simplify(at % Expr(2), inside)) * k(4)});
        const Expr value = bitcast(e.type(), cast(DType::u8, operation(Op::bit_and, {code, k(15)})));
        if (!guard.defined() || (fill.is_constant() && stored_bits(fill->value) == 0)) return value;
        return select(guard, value, fill);
    }

    // Two codes of an output to each byte.
    Stage joining(const Tensor &t) {
        Stage stage;
        stage.name = t.name;
        stage.dims = t.dims;
        Operands first;
        for (const std::string &d : t.dims) first.push_back(variable(d));
        auto code = [&](const Expr &of) { return cast(DType::i32, bitcast(DType::u8, of)); };
        if (t.dims.empty()) {
            stage.body = Map(cast(DType::u8, code(load(codes_of(t.name), t.dtype, first))));
            return stage;
        }
        const std::string along = t.dims.back();
        stage.dims.back() = bytes_along(along);
        const Expr low = variable(stage.dims.back()) * Expr(2), high = low + Expr(1);
        first.back() = low;
        Operands second = first;
        second.back() = high;
        const Scalar zero = bitcast(t.dtype, Scalar::of_integer(DType::u8, 0));
        const Expr behind = load_or(codes_of(t.name), t.dtype, second, high < extent(along), constant(zero));
        stage.body = Map(cast(
            DType::u8, operation(Op::bit_or, {code(load(codes_of(t.name), t.dtype, first)), operation(Op::shl, {code(behind), k(4)})})));
        return stage;
    }

    Algorithm made_;
    const std::map<std::string, Tensor> halves_;
    std::set<std::string> taken_;                       // names of stages and results
    std::map<std::string, std::string> codes_, bytes_;  // the names that were made
};

}  // namespace

bool has_half_bytes(const Algorithm &a) {
    return !tensors_of_callers(a).empty() || std::any_of(a.calls().begin(), a.calls().end(), passes_halves);
}

Algorithm in_bytes(const Algorithm &algorithm) {
    if (has_half_bytes(algorithm)) refuse_rows(algorithm, "a form with two elements in a byte");
    return has_half_bytes(algorithm) ? InBytes(with_halves_inlined(algorithm)).run() : algorithm;
}

}  // namespace tessera
