#include "compiler/tile/chunks.h"

#include "algorithms/index/linear.h"

namespace tessera {

// The index at the first element, where the next ones are its neighbours along the last axis.
static std::optional<std::vector<Expr>> first_of(std::vector<Expr> index, const std::string &lane, const Bounds &facts) {
    if (index.empty()) return {};
    for (size_t i = 0; i + 1 < index.size(); i++)
        if (uses_variable(index[i], lane)) return {};
    const Expr next = substitute(index.back(), {{lane, variable(lane) + 1}});
    if (!simplify(next - index.back(), facts).is_constant(1)) return {};
    for (Expr &e : index) e = simplify(substitute(e, {{lane, Expr(0)}}), facts);
    return index;
}

static bool is_multiple_of(const Expr &e, int64_t factor, const Bounds &facts) {
    try {
        const Linear all = linear_form(e, facts);
        return all.constant % factor == 0 && coefficient_gcd(all) % factor == 0;
    } catch (const LinearOverflow &) { return false; }
}

static void add_parts(const Expr &condition, std::vector<Expr> &parts) {
    if (!condition.is_operation(Op::bit_and)) return parts.push_back(condition);
    for (const Expr &part : condition->args) add_parts(part, parts);
}

std::optional<Chunk> chunk_of(const Loop &loop, const Buffer &to, const Buffer &from, const Bounds &facts) {
    const Copy *copy = only<Copy>(loop.body);
    const int64_t each = size_of(to.dtype);
    if (!copy || !copy->is_asynchronous || copy->guard.defined() || loop.kind != LoopKind::vector || to.space != Space::shared ||
        (from.space != Space::argument && from.space != Space::workspace) || !loop.count.is_constant(chunk_bytes / each) ||
        size_of(from.dtype) != each)
        return {};
    const int64_t elements = chunk_bytes / each;
    const std::string &lane = loop.variable;
    const auto first = first_of(copy->index, lane, facts), source = first_of(index_of(copy->value), lane, facts);
    if (!first || !source) return {};
    Expr position = 0;
    for (size_t i = 0; i < first->size(); i++) position = position * to.extents[i] + (*first)[i];
    if (!is_multiple_of(position, elements, facts) || !is_multiple_of(source->back(), elements, facts)) return {};
    // How many elements conditions hold for, and whether for any.
    Expr there = Expr(elements), all = constant_int(DType::boolean, 1);
    if (copy->value->guarded) {
        const Expr &fill = copy->value->args.back();
        if (!equal(fill, constant(fill.type(), 0))) return {};
        std::vector<Expr> parts;
        add_parts(copy->value->args[copy->value->args.size() - 2], parts);
        for (const Expr &part : parts) {
            if (!uses_variable(part, lane)) {
                all = all && part;
                continue;
            }
            if (!part.is_operation(Op::lt) || uses_variable(part->args[1], lane)) return {};
            const auto begin = first_of({part->args[0]}, lane, facts);
            if (!begin) return {};
            there = min(there, max(simplify(part->args[1] - begin->front(), facts), Expr(0)));
        }
    }
    return Chunk{*first, *source, copy->value->name, select(all, there * Expr(each), Expr(0))};
}

}  // namespace tessera
