// Cache lines that a stage asks for before it computes a tile.
#include "compiler/lower/nest_state.h"
#include "support/text/error.h"

namespace tessera {

// Of the processors that Tessera is for; asking twice for half a line each is slower only.
static constexpr int64_t line_bytes = 64;
// More in a row would fill the queue of loads before anything is computed.
static constexpr int64_t max_lines = 64;

// Where the stage reads the operand, each index once; where its dims say, if it does not read it.
static std::vector<std::vector<Expr>> indices_of(const Stage &stage, const std::string &operand, const std::vector<std::string> &dims) {
    std::vector<std::vector<Expr>> all;
    for (const Expr &root : expressions_of(stage))
        walk(root, [&](const Expr &e) {
            if (e.kind() != ExprKind::load || e->name != operand) return;
            const std::vector<Expr> index(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(dims.size()));
            auto same = [&](const std::vector<Expr> &other) {
                return std::equal(index.begin(), index.end(), other.begin(), [](const Expr &a, const Expr &b) { return equal(a, b); });
            };
            if (std::none_of(all.begin(), all.end(), same)) all.push_back(index);
        });
    if (!all.empty()) return all;
    std::vector<Expr> index;
    for (const std::string &d : dims) index.push_back(variable(d));
    return {index};
}

// The lines of one tile, those of a partial one aside: it is the last, and asking for it would need its limits.
TileBody Nests::prefetches(const State &state) {
    const Stage &stage = *state.stage;
    TileBody body;
    if (std::any_of(state.pieces.begin(), state.pieces.end(), [](const auto &p) { return p.second.padded; })) return body;
    for (const auto &[operand, rule] : state.knobs->prefetch) {
        auto refuse = [&, name = operand](const std::string &why) {
            throw UserError("schedule.prefetch", stage.name + ": cannot prefetch '" + name + "': " + why);
        };
        auto found = realized.find(operand);
        if (found == realized.end())
            refuse("it is not there yet, or not any more, where this stage is computed. Delete the prefetch (null).");
        const Realized &where = found->second;
        if (where.buffer.space != Space::argument && where.buffer.space != Space::constant && where.buffer.space != Space::workspace)
            refuse(std::string("it is in the ") + name_of(where.buffer.space) + ", which is near already. Delete the prefetch (null).");
        std::string loop;
        if (!rule.loop.empty()) {
            const std::string named = rule.stage + "." + rule.loop;
            auto open = std::find_if(around.rbegin(), around.rend(), [&](const auto &loop) { return loop.first == named; });
            if (open == around.rend()) {
                std::set<std::string> all;
                for (const auto &[name, variable] : around) all.insert(name);
                const std::vector<std::string> loops(all.begin(), all.end());
                refuse("the loop '" + rule.stage + "." + rule.loop + "' does not stand around it; those that do are " + join(loops) +
                       ". Name one of them.");
            }
            loop = open->second;
        }
        for (const std::vector<Expr> &index : indices_of(stage, operand, where.dims)) {
            std::map<std::string, Expr> at;
            std::vector<std::pair<std::string, int64_t>> steps;
            int64_t lines = 1;
            for (const auto &[dim, piece] : state.pieces) {
                at[dim] = piece.lo;
                const int64_t size = piece.size.is_constant() ? piece.size->value.integer : 1;
                const bool used = std::any_of(index.begin(), index.end(), [&, d = dim](const Expr &e) { return uses_variable(e, d); });
                if (!used || size <= 1) continue;
                const Expr next = simplify(substitute(index.back(), {{dim, variable(dim) + Expr(1)}}) - index.back(), facts);
                const bool contiguous =
                    next.is_constant(1) && where.layout.empty() &&
                    std::none_of(index.begin(), index.end() - 1, [&, d = dim](const Expr &e) { return uses_variable(e, d); });
                const int64_t step = contiguous ? line_bytes / size_of(where.buffer.dtype) : 1, count = (size + step - 1) / step;
                if (count == 1) continue;
                const std::string v = unique(plain(dim) + ".line");
                facts.set(v, Expr(0), Expr(count - 1));
                at[dim] = piece.lo + variable(v) * Expr(step);
                steps.emplace_back(v, count);
                lines *= count;
            }
            if (lines > max_lines)
                refuse("a tile of it has " + std::to_string(lines) + " cache lines; expected at most " + std::to_string(max_lines) +
                       ". Make the register tile smaller, or delete the prefetch (null).");
            std::vector<Expr> axes = locate_at(where, index, at);
            bool moves = loop.empty();
            for (Expr &axis : axes) {
                if (has_load(axis)) refuse("its position is loaded from memory. Delete the prefetch (null).");
                if (loop.empty() || !uses_variable(axis, loop)) continue;
                // What is known of the loop's variable is not so of the one ahead.
                axis = simplify(substitute(axis, {{loop, variable(loop) + Expr(rule.ahead)}}), Bounds(algorithm.dims));
                moves = true;
            }
            if (!moves) continue;
            TileBody one = {tile_node(Prefetch{where.buffer.name, axes})};
            for (auto it = steps.rbegin(); it != steps.rend(); ++it)
                one = {tile_node(Loop{it->first, Expr(it->second), LoopKind::unrolled, std::move(one)})};
            body.insert(body.end(), one.begin(), one.end());
        }
    }
    return body;
}

}  // namespace tessera
