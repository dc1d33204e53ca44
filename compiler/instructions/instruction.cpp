#include "compiler/instructions/instruction.h"

#include <algorithm>

#include "algorithms/expr/function.h"
#include "algorithms/expr/match.h"
#include "algorithms/functions/conversions.h"
#include "support/containers/contains.h"
#include "support/text/error.h"

namespace tessera {

bool is_on(const Instruction &family, const std::vector<std::string> &features) {
    const std::vector<std::string> &needs = family.features;
    return needs.empty() || std::any_of(needs.begin(), needs.end(), [&](const std::string &f) { return contains(features, f); });
}

bool is_on(const Instruction &family, const Target &target) {
    if (family.scope != ExecutionScope::thread) return target.arch == Arch::cuda;
    return is_on(family, target.features);
}

bool is_emitted(const Instruction &family) { return family.c.native || family.vectors || family.fragments; }

bool has_fragments(const Instruction &family) { return family.shape.m > 1 || family.shape.n > 1; }

int64_t threads_of(ExecutionScope scope) {
    switch (scope) {
    case ExecutionScope::thread: return 1;
    case ExecutionScope::warp: return 32;
    case ExecutionScope::warpgroup: break;
    }
    return 128;
}

std::vector<int64_t> fragment_extents(const Instruction &family, FragmentRole role) {
    if (role == FragmentRole::accumulator) return {family.shape.m, family.shape.n};
    std::vector<int64_t> extents;
    for (const LayoutAxis &axis : role == FragmentRole::a ? family.a : family.b) {
        const int64_t whole = axis.dim == "M" ? family.shape.m : axis.dim == "N" ? family.shape.n : family.shape.k;
        extents.push_back(axis.positions() ? axis.positions() : whole / axis.step());
    }
    return extents;
}

DType fragment_type(const Instruction &family, FragmentRole role) {
    return role == FragmentRole::accumulator ? family.accumulator : role == FragmentRole::a ? family.first : family.second;
}

int64_t elements_of_thread(const Instruction &family, FragmentRole role) {
    int64_t elements = 1;
    for (int64_t extent : fragment_extents(family, role)) elements *= extent;
    return elements / threads_of(family.scope);
}

InstructionCost cost_of(const Instruction &family, const Target &target) { return family.cost ? family.cost(target) : InstructionCost(); }

// One that rounds once is how folds are computed anyway.
bool keeps_bits(const Instruction &family) {
    return family.takes && equal(family.meaning, fma(input(0, DType::f32), input(1, DType::f32), left(0, DType::f32)));
}

bool is_sum_of_products(const Monoid &m) {
    if (m.parts.size() != 1 || !m.parts[0].dims.empty() || m.step.size() != 1) return false;
    const DType type = m.parts[0].identity.type;
    return equal(m.step[0], fma(input(0, type), input(1, type), left(0, type)));
}

// What a family that flushes does to its operands by itself.
static Expr without_flush(const Expr &e) {
    static const Expr named = flush_subnormals(input(0, DType::f32), DType::bf16);
    for (const Expr &form : {definition_of(named), named})
        if (Matcher m; m.match(form, e)) return m.inputs.at(0);
    return e;
}

std::optional<std::vector<Expr>> operands_for(const Instruction &family, const Reduce &reduce) {
    const Monoid &m = reduce.monoid;
    if (m.parts.size() != 1 || !m.parts[0].dims.empty() || m.parts[0].identity.type != family.accumulator) return {};
    const DType type = family.accumulator;
    if (m.step.size() != 1) return {};
    if (is_integer(type) && reduce.inputs.size() == 1 && equal(m.step[0], left(0, type) + input(0, type))) {
        const Expr &e = reduce.inputs[0];
        if (e.kind() != ExprKind::cast) return {};
        if (e->args[0].type() == family.second) return {{constant_int(family.first, 1), e->args[0]}};
        if (e->args[0].type() == family.first) return {{e->args[0], constant_int(family.second, 1)}};
        return {};
    }
    if (!is_sum_of_products(m) || reduce.inputs.size() != 2) return {};
    std::vector<Expr> operands;
    for (const Expr &input : reduce.inputs) {
        const Expr e = family.flushes ? without_flush(input) : input;
        if (e.kind() != ExprKind::cast) return {};
        operands.push_back(e->args[0]);
    }
    if (operands[0].type() != family.first) std::swap(operands[0], operands[1]);
    if (operands[0].type() != family.first || operands[1].type() != family.second) return {};
    return operands;
}

Expr apply(const Instruction &family, const Expr &accumulator, const std::vector<Expr> &operands) {
    require(static_cast<int>(operands.size()) == 2 * family.shape.k, "an instruction has two operands for each element");
    return rewrite(family.meaning, [&](const Expr &n) -> Expr {
        if (n.kind() == ExprKind::left) return accumulator;
        return n.kind() == ExprKind::input ? operands[static_cast<size_t>(n->number)] : Expr();
    });
}

std::vector<Expr> match(const Instruction &family, const Expr &e) {
    Matcher m;
    if (family.shape.k == 1 || has_fragments(family) || !m.match(family.meaning, e)) return {};
    std::vector<Expr> result = {m.lefts.at(0)};
    for (auto &[number, operand] : m.inputs) result.push_back(operand);
    return result;
}

}  // namespace tessera
