#include "compiler/tile/fragments.h"

#include <algorithm>
#include <set>

#include "support/text/error.h"

namespace tessera {

static Expr digit_of(const LayoutAxis &axis, Expr e) {
    if (axis.within) e = e % Expr(axis.within);
    if (axis.factor == 0) return e;
    return axis.remainder ? e % Expr(axis.factor) : e / Expr(axis.factor);
}

static TileBody in_loops(const std::vector<std::string> &variables, const std::vector<int64_t> &counts, TileBody body) {
    for (size_t i = counts.size(); i-- > 0;) body = {tile_node(Loop{variables[i], Expr(counts[i]), LoopKind::serial, std::move(body)})};
    return body;
}

static const Instruction &family_of(const Fragment &step) {
    const Instruction *family = find_family(step.family);
    require(family && has_fragments(*family), "a Fragment is of a family that has some");
    return *family;
}

std::vector<Expr> element_of(const BufferView &view, const std::vector<Expr> &at) {
    if (view.is_whole()) return at;
    std::vector<Expr> index = view.first;
    for (size_t i = 0; i < at.size(); i++) index[view.axes[i].of] = index[view.axes[i].of] + view.axes[i].step * at[i];
    return index;
}

std::vector<Expr> element_of(const Instruction &family, FragmentRole role, const Expr &row_or_column, const Expr &k) {
    std::vector<Expr> index;
    for (const LayoutAxis &axis : role == FragmentRole::a ? family.a : family.b)
        index.push_back(digit_of(axis, axis.dim == "K" ? k : row_or_column));
    return index;
}

bool has_whole_rows(const BufferView &view, const std::vector<int64_t> &box, const Buffer &buffer, bool is_dense) {
    // Elements from one index of an axis to the next, as far as that is constant.
    std::vector<std::optional<int64_t>> strides(buffer.extents.size());
    std::optional<int64_t> stride = 1;
    for (size_t i = strides.size(); i-- > 0;) {
        strides[i] = stride;
        stride = is_dense && stride && buffer.extents[i].is_constant() ? std::optional(*stride * buffer.extents[i]->value.integer)
                                                                       : std::nullopt;
    }
    int64_t elements = 1;
    for (size_t axis = box.size(); axis-- > 1;) {
        const BufferView::Axis &moved = view.axes[axis];
        if (!moved.step.is_constant() || !strides[moved.of] || moved.step->value.integer * *strides[moved.of] != elements) return false;
        elements *= box[axis];
    }
    return true;
}

BufferView fragment_of_warp(const std::string &buffer, const Expr &warp) {
    return {buffer, {warp, Expr(0), Expr(0)}, {{1, Expr(1)}, {2, Expr(1)}}};
}

std::vector<std::string> buffers_of(const Move &move) {
    std::vector<std::string> all = {move.to.buffer};
    if (move.from) all.push_back(move.from->buffer);
    return all;
}

std::vector<std::string> buffers_of(const Fragment &step) { return {step.accumulator, step.a, step.b}; }

TileBody expand(const Move &move, DType type) {
    std::vector<std::string> variables;
    std::vector<Expr> at;
    for (size_t i = 0; i < move.box.size(); i++) variables.push_back("%" + std::to_string(i)), at.push_back(variable(variables.back()));
    const std::vector<Expr> to = element_of(move.to, at);
    if (!move.from) return in_loops(variables, move.box, {tile_node(Compute{move.to.buffer, to, constant(type, 0), Expr()})});
    return in_loops(variables, move.box,
                    {tile_node(Copy{move.to.buffer, to, load(move.from->buffer, type, element_of(*move.from, at)), Expr()})});
}

TileBody expand(const Fragment &step) {
    const Instruction &family = family_of(step);
    const Expr m = variable("%m"), n = variable("%n");
    std::vector<Expr> operands;
    for (int k = 0; k < family.shape.k; k++) {
        operands.push_back(load(step.a, family.first, element_of(family, FragmentRole::a, m, Expr(k))));
        operands.push_back(load(step.b, family.second, element_of(family, FragmentRole::b, n, Expr(k))));
    }
    std::vector<Expr> at = {m, n};
    if (step.warp.defined()) at.insert(at.begin(), step.warp);
    const Expr sum = load(step.accumulator, family.accumulator, at);
    return in_loops({"%m", "%n"}, {family.shape.m, family.shape.n},
                    {tile_node(Compute{step.accumulator, at, apply(family, sum, operands), Expr()})});
}

FragmentCode &operator+=(FragmentCode &sum, const FragmentCode &more) {
    sum.steps += more.steps, sum.zeros += more.zeros, sum.loads += more.loads, sum.stores += more.stores, sum.tasks += more.tasks;
    return sum;
}

static void add_code(const TileBody &body, const std::set<std::string> &fragments, int64_t copies, FragmentCode &code) {
    for (const auto &node : body) {
        if (std::holds_alternative<Fragment>(*node)) code.steps += copies;
        if (auto *move = std::get_if<Move>(node.get()))
            (!move->from ? code.zeros : fragments.count(move->to.buffer) ? code.loads : code.stores) += copies;
        const Loop *loop = std::get_if<Loop>(node.get());
        const bool is_written_out = loop && loop->kind == LoopKind::unrolled && loop->count.is_constant();
        if (loop && loop->kind == LoopKind::parallel) code.tasks += has_fragments(loop->body);
        for (const TileBody *inner : bodies_of(*node))
            add_code(*inner, fragments, is_written_out ? copies * loop->count->value.integer : copies, code);
    }
}

FragmentCode fragment_code_of(const TileBody &body) {
    std::set<std::string> fragments;
    walk(body, [&](const TileNode &node) {
        auto *alloc = std::get_if<Alloc>(&node);
        if (alloc && alloc->buffer.space == Space::fragment) fragments.insert(alloc->buffer.name);
    });
    FragmentCode code;
    code.tasks = has_fragments(body);
    add_code(body, fragments, 1, code);
    return code;
}

bool has_fragments(const TileBody &body) {
    return std::any_of(body.begin(), body.end(), [](const auto &node) {
        if (std::holds_alternative<Fragment>(*node)) return true;
        const Loop *loop = std::get_if<Loop>(node.get());
        if (loop && loop->kind == LoopKind::parallel) return false;
        const std::vector<const TileBody *> inner = bodies_of(*node);
        return std::any_of(inner.begin(), inner.end(), [](const TileBody *b) { return has_fragments(*b); });
    });
}

bool has_calls(const TileBody &body) {
    bool found = false;
    walk(body, [&](const TileNode &node) {
        const Loop *loop = std::get_if<Loop>(&node);
        found |= std::holds_alternative<Invoke>(node) || (loop && loop->kind == LoopKind::parallel);
    });
    return found;
}

}  // namespace tessera
