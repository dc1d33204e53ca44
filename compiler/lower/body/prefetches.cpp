#include "compiler/lower/body/prefetches.h"

#include <algorithm>

#include "compiler/lower/context/built.h"
#include "compiler/lower/context/extents.h"
#include "compiler/tile/kinds.h"
#include "support/text/error.h"

namespace tessera {

// The line size of the processors that Tessera is for; asking twice for half a line each is slower only.
static constexpr int64_t line_bytes = 64;
// More in a row would fill the queue of loads before anything is computed.
static constexpr int64_t max_lines = 64;

// Where the stage reads the operand, each index once; where its dims say, if it does not read it.
static std::vector<std::vector<Expr>> indices_of(const Stage &stage, const std::string &operand, const Stored &where) {
    std::vector<std::vector<Expr>> all;
    for (const Expr &root : expressions_of(stage))
        walk(root, [&](const Expr &e) {
            if (e.kind() != ExprKind::load || e->name != operand) return;
            const std::vector<Expr> index = index_along(where, index_of(e));
            auto same = [&](const std::vector<Expr> &other) {
                return std::equal(index.begin(), index.end(), other.begin(), [](const Expr &a, const Expr &b) { return equal(a, b); });
            };
            if (std::none_of(all.begin(), all.end(), same)) all.push_back(index);
        });
    if (!all.empty()) return all;
    std::vector<Expr> index;
    for (const std::string &d : where.dims) index.push_back(variable(d));
    return {index};
}

namespace {

// The prefetches of one operand.
struct OperandLines {
    const Lowering &lowering;
    const Cursor &at;
    const Scope &scope;
    Names &names;
    const std::string &operand;
    const PrefetchRule &rule;

    [[noreturn]] void refuse(const std::string &why) const {
        throw UserError("schedule.prefetch", at.stage().name + ": cannot prefetch '" + operand + "': " + why);
    }
    const Stored &storage() const;
    std::string loop_variable() const;
    TileBody lines(const Stored &where, const std::vector<Expr> &index, const std::string &ahead_of) const;
};

const Stored &OperandLines::storage() const {
    const Stored *where = scope.find(operand);
    if (!where) refuse("it is not there yet, or not any more, where this stage is computed. Delete the prefetch (null).");
    const Space space = where->buffer.space;
    if (!traits_of(space).in_memory)
        refuse(std::string("it is in the ") + name_of(space) + ", which is near already. Delete the prefetch (null).");
    return *where;
}

// The innermost loop that the rule names.
std::string OperandLines::loop_variable() const {
    if (rule.loop.empty()) return "";
    const std::string named = rule.stage + "." + rule.loop;
    std::set<std::string> open;
    for (const OpenLoop *loop = scope.open_loops.get(); loop; loop = loop->outer.get()) {
        if (loop->name == named) return loop->variable;
        open.insert(loop->name);
    }
    refuse("the loop '" + named + "' does not stand around it; those that do are " +
           join(std::vector<std::string>(open.begin(), open.end())) + ". Name one of them.");
}

// The lines of one tile that are read at this index.
TileBody OperandLines::lines(const Stored &where, const std::vector<Expr> &index, const std::string &ahead_of) const {
    Scope inside = scope;
    std::map<std::string, Expr> corner;
    std::vector<std::pair<std::string, int64_t>> steps;
    int64_t lines = 1;
    for (const auto &[dim, piece] : at.pieces) {
        corner[dim] = piece.lo;
        const int64_t size = piece.size.is_constant() ? piece.size->value.integer : 1;
        auto uses_dim = [&, d = dim](const Expr &e) { return uses_variable(e, d); };
        if (std::none_of(index.begin(), index.end(), uses_dim) || size <= 1) continue;
        const Expr next = simplify(substitute(index.back(), {{dim, variable(dim) + Expr(1)}}) - index.back(), inside.facts);
        const bool contiguous = next.is_constant(1) && where.layout.empty() && std::none_of(index.begin(), index.end() - 1, uses_dim);
        const int64_t step = contiguous ? line_bytes / size_of(where.buffer.dtype) : 1, count = (size + step - 1) / step;
        if (count == 1) continue;
        const std::string v = names.unique(lowering.plain(dim) + ".line");
        inside.facts.set(v, Expr(0), Expr(count - 1));
        corner[dim] = piece.lo + variable(v) * Expr(step);
        steps.emplace_back(v, count);
        lines *= count;
    }
    if (lines > max_lines)
        refuse("a tile of it has " + std::to_string(lines) + " cache lines; expected at most " + std::to_string(max_lines) +
               ". Make the register tile smaller, or delete the prefetch (null).");
    std::vector<Expr> axes = locate_at(lowering, inside, where, index, corner);
    bool moves = rule.loop.empty();
    for (Expr &axis : axes) {
        if (has_load(axis)) refuse("its position is loaded from memory. Delete the prefetch (null).");
        if (ahead_of.empty() || !uses_variable(axis, ahead_of)) continue;
        // What is known of the loop's variable is not so of the one ahead.
        axis = simplify(substitute(axis, {{ahead_of, variable(ahead_of) + Expr(rule.ahead)}}),
                        Bounds(lowering.algorithm.dims, lowering.algorithm.parameters));
        moves = true;
    }
    if (!moves) return {};
    TileBody body = {tile_node(Prefetch{where.buffer.name, axes})};
    for (auto it = steps.rbegin(); it != steps.rend(); ++it)
        body = in_loop(it->first, Expr(it->second), LoopKind::unrolled, std::move(body));
    return body;
}

}  // namespace

TileBody prefetches(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    TileBody body;
    // A partial tile is the last one, and asking for it would need its limits.
    if (any_padded(at.pieces)) return body;
    for (const auto &[operand, rule] : at.nest->knobs.prefetch) {
        const OperandLines of{lowering, at, scope, names, operand, rule};
        const Stored &where = of.storage();
        const std::string ahead_of = of.loop_variable();
        for (const std::vector<Expr> &index : indices_of(at.stage(), operand, where)) append(body, of.lines(where, index, ahead_of));
    }
    return body;
}

}  // namespace tessera
