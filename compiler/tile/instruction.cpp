#include "compiler/tile/instruction.h"

#include <algorithm>

#include "algorithms/expr/function.h"
#include "algorithms/expr/match.h"
#include "algorithms/functions/conversions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

Expr dot2() {
    auto element = [](int i) { return cast(DType::f32, input(i, DType::bf16)); };
    auto step = [&](int i, const Expr &sum) { return flushed_fma(element(2 * i), element(2 * i + 1), sum); };
    return expand_functions(step(0, step(1, left(0, DType::f32))));
}

Expr dot4() {
    Expr sum = left(0, DType::i32);
    for (int i = 0; i < 4; i++) sum = fma(cast(DType::i32, input(2 * i, DType::u8)), cast(DType::i32, input(2 * i + 1, DType::i8)), sum);
    return sum;
}

}  // namespace

static Instruction made(InstructionFamily family) {
    const std::string name = name_of(family);
    switch (family) {
    case InstructionFamily::fma:
    case InstructionFamily::mul_add: return {family, name, 1, DType::f32, DType::f32, DType::f32, Expr(), {}, false};
    case InstructionFamily::dot2: return {family, name, 2, DType::f32, DType::bf16, DType::bf16, dot2(), {"avx512_bf16"}, true};
    case InstructionFamily::dot4:
        return {family, name, 4, DType::i32, DType::u8, DType::i8, dot4(), {"avx2", "avx512_vnni", "asimddp"}, false};
    }
    throw InternalError("an instruction family without a meaning");
}

const std::vector<Instruction> &instructions() {
    static const std::vector<Instruction> all = [] {
        std::vector<Instruction> made_of;
        for (size_t i = 0; i < instruction_family_names.size(); i++) made_of.push_back(made(static_cast<InstructionFamily>(i)));
        return made_of;
    }();
    return all;
}

const Instruction &instruction_of(InstructionFamily family) { return instructions()[static_cast<size_t>(family)]; }

const Instruction *find_instruction(const std::string &name) {
    for (const Instruction &i : instructions())
        if (i.name == name) return &i;
    return nullptr;
}

bool is_on(const Instruction &family, const Target &target) {
    return family.features.empty() || std::any_of(family.features.begin(), family.features.end(), [&](auto &f) { return target.has(f); });
}

int instructions_of(const Instruction &family, const Target &target) {
    const bool of_words = family.family == InstructionFamily::dot4 && !target.has("avx512_vnni") && !target.has("asimddp");
    return of_words ? 4 : 1;  // two products of words, and two sums
}

bool is_sum_of_products(const Monoid &m) {
    if (m.parts.size() != 1 || !m.parts[0].dims.empty() || m.step.size() != 1) return false;
    const DType type = m.parts[0].identity.type;
    return equal(m.step[0], fma(input(0, type), input(1, type), left(0, type)));
}

Algorithm with_mul_add(Algorithm a, const KnobsByStage &stages) {
    for (Stage &stage : a.stages()) {
        auto it = stages.find(stage.name);
        if (it == stages.end() || it->second.instruction != name_of(InstructionFamily::mul_add)) continue;
        auto *reduce = std::get_if<Reduce>(&stage.body);
        if (!reduce || !is_sum_of_products(reduce->monoid) || !is_float(reduce->monoid.parts[0].identity.type))
            throw UserError("schedule.instruction",
                            stage.name +
                                ": the instruction family mul_add sums products of floats, each product and each sum with a "
                                "rounding; this stage is no such sum. Delete the knob (null).");
        const DType type = reduce->monoid.parts[0].identity.type;
        reduce->monoid.step = {left(0, type) + input(0, type) * input(1, type)};
    }
    return a;
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
    require(static_cast<int>(operands.size()) == 2 * family.group, "an instruction has two operands for each element");
    return rewrite(family.meaning, [&](const Expr &n) -> Expr {
        if (n.kind() == ExprKind::left) return accumulator;
        return n.kind() == ExprKind::input ? operands[static_cast<size_t>(n->number)] : Expr();
    });
}

std::vector<Expr> match(const Instruction &family, const Expr &e) {
    Matcher m;
    if (!family.meaning.defined() || !m.match(family.meaning, e)) return {};
    std::vector<Expr> result = {m.lefts.at(0)};
    for (auto &[number, operand] : m.inputs) result.push_back(operand);
    return result;
}

}  // namespace tessera
