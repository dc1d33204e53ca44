#include "compiler/instructions/families.h"

#include <algorithm>
#include <cctype>

#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera {

static std::deque<Instruction> &table() {
    static std::deque<Instruction> all = {built_in_families::fma(),      built_in_families::mul_add(),  built_in_families::dot2(),
                                          built_in_families::dot4(),     built_in_families::amx_bf16(), built_in_families::amx_u8s8(),
                                          built_in_families::amx_s8s8(), built_in_families::smmla(),    built_in_families::usmmla(),
                                          built_in_families::bfmmla(),   built_in_families::mma_bf16(), built_in_families::mma_f16(),
                                          built_in_families::mma_s8(),   built_in_families::mma_u8s8()};
    return all;
}

const std::deque<Instruction> &families() { return table(); }

const Instruction *find_family(const std::string &name) {
    for (const Instruction &family : table())
        if (family.name == name) return &family;
    return nullptr;
}

std::vector<std::string> family_names() {
    std::vector<std::string> names;
    for (const Instruction &family : table()) names.push_back(family.name);
    return names;
}

static void check_meaning(const Instruction &family, const std::function<void(const std::string &)> &refuse) {
    if (!family.meaning.defined() || family.meaning.type() != family.accumulator)
        refuse("expected a meaning that is a value of the accumulator's type, " + std::string(name_of(family.accumulator)) + "; got " +
               (family.meaning.defined() ? name_of(family.meaning.type()) : "none") + ". State it over left(0) and input(0), input(1), …");
    std::vector<bool> seen(static_cast<size_t>(2 * family.shape.k) + 1);
    walk(family.meaning, [&](const Expr &e) {
        if (e.kind() == ExprKind::constant || e.kind() == ExprKind::operation || e.kind() == ExprKind::cast) return;
        const bool is_sum = e.kind() == ExprKind::left && e->number == 0 && e.type() == family.accumulator;
        const bool is_operand = e.kind() == ExprKind::input && e->number >= 0 && e->number < 2 * family.shape.k &&
                                e.type() == (e->number % 2 ? family.second : family.first);
        if (!is_sum && !is_operand)
            refuse("expected a meaning over left(0) of " + std::string(name_of(family.accumulator)) + " and, of each of " +
                   std::to_string(family.shape.k) + " products, input(2 * i) of " + name_of(family.first) + " and input(2 * i + 1) of " +
                   name_of(family.second) + ", in operations; it has " + to_string(e) + ". Expand functions (expand_functions).");
        seen[is_sum ? 0 : static_cast<size_t>(e->number) + 1] = true;
    });
    if (std::find(seen.begin(), seen.end(), false) != seen.end())
        refuse("expected a meaning that uses its accumulator and both elements of each of its " + std::to_string(family.shape.k) +
               " products; one of them is missing.");
}

// Whether it is the layout of an operand with rows or columns along `dim`, and products.
static bool is_layout(const std::vector<LayoutAxis> &layout, const std::string &dim, int extent, int products) {
    std::vector<LayoutAxis> own, folded;
    for (const LayoutAxis &axis : layout) {
        if (axis.dim != dim && axis.dim != "K") return false;
        (axis.dim == dim ? own : folded).push_back(axis);
        if ((axis.dim == dim ? extent : products) % std::max<int64_t>(1, std::max(axis.factor, axis.within))) return false;
    }
    return hold_each_index_once(own) && hold_each_index_once(folded);
}

void add_family(Instruction family) {
    const auto refuse = [&](const std::string &why) {
        throw UserError("instruction.family", "instruction family '" + family.name + "': " + why);
    };
    const auto is_of_names = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (family.name.empty() || !std::all_of(family.name.begin(), family.name.end(), is_of_names))
        refuse("expected a name of letters, digits and '_'. Give it such a name.");
    if (find_family(family.name)) {
        std::vector<std::string> names;
        for (const Instruction &other : table()) names.push_back(other.name);
        refuse("expected a name that no other has; there are " + join(names) + ". Give it another name.");
    }
    const InstructionShape &s = family.shape;
    const std::string shape = std::to_string(s.m) + "×" + std::to_string(s.n) + "×" + std::to_string(s.k);
    if (s.m < 1 || s.n < 1 || s.k < 2 || family.scope != ExecutionScope::thread || family.takes)
        refuse("expected accumulators of one thread and at least 2 products for each, of stated types; got " + shape +
               ". Another step for one product is another algorithm.");
    if (has_fragments(family) && (!is_layout(family.a, "M", s.m, s.k) || !is_layout(family.b, "N", s.n, s.k) || family.registers < 3))
        refuse("expected, of " + shape +
               ", a layout of a by digits of M and K, one of b by digits of N and K, and at least 3 registers; got " +
               std::to_string(family.registers) + ". State a, b and registers.");
    check_meaning(family, refuse);
    if (!family.c.portable.empty() && s.k * size_of(family.first) != 4)
        refuse("expected 32 bits of elements for each accumulator where C is stated; got " + std::to_string(s.k) + " of " +
               name_of(family.first) + ". Leave the C out: its meaning is emitted.");
    table().push_back(std::move(family));
}

Algorithm with_steps_of_families(Algorithm a, const KnobsByStage &stages) {
    for (Stage &stage : a.stages()) {
        auto it = stages.find(stage.name);
        const Instruction *family = it == stages.end() || !it->second.instruction ? nullptr : find_family(*it->second.instruction);
        if (!family || !family->takes || keeps_bits(*family)) continue;
        auto *reduce = std::get_if<Reduce>(&stage.body);
        if (!reduce || !is_sum_of_products(reduce->monoid) || !family->takes(reduce->monoid.parts[0].identity.type))
            throw UserError("schedule.instruction", stage.name + ": the instruction family " + family->name + " " + family->says +
                                                        "; this stage is no such sum. Delete the knob (null).");
        const DType type = reduce->monoid.parts[0].identity.type;
        reduce->monoid.step = {rewrite(family->meaning, [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::left) return left(n->number, type);
            return n.kind() == ExprKind::input ? input(n->number, type) : Expr();
        })};
    }
    return a;
}

}  // namespace tessera
