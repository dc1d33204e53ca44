#include "compiler/lower/context/loop.h"

#include <cctype>

#include "algorithms/index/prove.h"
#include "compiler/lower/context/mapping.h"

namespace tessera {

std::string loop_variable(const Lowering &lowering, const LoopName &loop, Names &names) {
    std::string name = lowering.plain(loop.dim);
    for (char &c : name) c = static_cast<char>(std::tolower(c));
    return names.unique(loop.level.empty() ? name : name + "." + loop.level);
}

static std::string name_in_schedules(const Cursor &at) { return at.stage().name + "." + at.loop().text(); }

std::string open_loop(const Lowering &lowering, const Cursor &at, Scope &scope, Names &names) {
    const std::string variable = loop_variable(lowering, at.loop(), names);
    scope.open_loop(name_in_schedules(at), variable);
    return variable;
}

Scope after_loop(const Cursor &at, const Scope &scope) {
    Scope rest = scope;
    rest.open_loop(name_in_schedules(at), "");
    return rest;
}

LoopKind kind_at(const Lowering &lowering, const Cursor &at) {
    return at.position < at.nest->parallel ? lowering.mapping->parallel_kind() : LoopKind::serial;
}

Built loop_of(const std::string &variable, const Expr &count, LoopKind kind, Built body) {
    if (count.is_constant(1)) return body;
    return in_loop(variable, count, kind, std::move(body));
}

Expr inhabited(const Expr &size) {
    if (size.is_operation(Op::max))
        for (int i = 0; i < 2; i++)
            if (size->args[i].is_constant(0)) return size->args[1 - i];
    return size;
}

Expr limit_in(const Piece &piece, const Bounds &facts) {
    Expr end = simplify(piece.lo + inhabited(piece.size), facts);
    return piece.padded ? simplify(min(piece.limit, end), facts) : end;
}

bool is_multiple(const Expr &size, int64_t tile, const Bounds &facts) { return simplify(size % Expr(tile), facts).is_constant(0); }

Built repeat(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const Expr &first, const Expr &count,
             LoopKind kind, const std::function<Built(const Expr &index, const Scope &inside)> &body) {
    auto run = [&](const Expr &from, const Expr &n, int64_t unrolled) -> Built {
        if (n.is_constant() && n->value.integer <= 0) return {};
        Scope inside = scope;
        const std::string v = open_loop(lowering, at, inside, names);
        const bool once = n.is_constant(1);
        inside.facts.set(v, Expr(0), once ? Expr(0) : n - 1);
        const Expr index = once ? Expr(0) : variable(v);
        if (unrolled == 1) return loop_of(v, n, kind, body(from + index, inside));
        const std::string u = names.unique(v + ".u");
        inside.facts.set(u, Expr(0), Expr(unrolled - 1));
        Built written_out = body(from + index * Expr(unrolled) + variable(u), inside);
        return loop_of(v, n, kind, in_loop(u, Expr(unrolled), LoopKind::unrolled, std::move(written_out)));
    };
    const auto stated = at.nest->knobs.unroll.find(at.loop().dim);
    // With every point's guards and addresses side by side, registers would not do.
    const bool is_written_out = stated != at.nest->knobs.unroll.end() && !(at.at_border && !is_spatial(at.stage(), at.loop().dim));
    const int64_t unrolled = is_written_out ? stated->second : 1;
    if (unrolled == 1) return run(first, count, 1);
    const Expr groups = simplify(count / Expr(unrolled), scope.facts);
    Built built = run(first, groups, unrolled);
    built += run(simplify(first + groups * Expr(unrolled), scope.facts), simplify(count % Expr(unrolled), scope.facts), 1);
    return built;
}

}  // namespace tessera
