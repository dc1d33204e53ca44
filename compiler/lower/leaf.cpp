// The innermost part of a nest: what is computed at each point of a register tile, and how folds step.
#include <algorithm>

#include "compiler/lower/nest_state.h"
#include "compiler/tile/instruction.h"
#include "support/text/error.h"

namespace tessera {

Nests::FoldOrder Nests::fold_order(const Monoid &m) {
    std::vector<std::set<size_t>> reads(m.parts.size());
    for (size_t p = 0; p < m.parts.size(); p++)
        walk(m.step[p], [&](const Expr &n) {
            if (n.kind() == ExprKind::left) reads[p].insert(static_cast<size_t>(n->number));
        });
    FoldOrder order;
    for (size_t p = 0; p < m.parts.size(); p++) order.together.push_back(p);
    while (true) {
        auto next = std::find_if(order.together.begin(), order.together.end(), [&](size_t p) {
            return std::none_of(order.together.begin(), order.together.end(), [&](size_t q) { return q != p && reads[q].count(p); });
        });
        if (next == order.together.end()) return order;
        order.alone.push_back(*next);
        order.together.erase(next);
    }
}

TileBody Nests::fold_begin(const State &before, size_t position) {
    State state = before;
    const std::vector<Part> &parts = monoid_of(*state.stage).parts;
    bool scan = std::holds_alternative<Scan>(state.stage->body);
    Pieces scanned;
    if (scan) {  // the accumulators have no axis along the scanned dim
        const std::string &dim = std::get<Scan>(state.stage->body).dim;
        if (!state.pieces.count(dim)) state.pieces[dim] = whole_at_loop(*state.stage, dim, state.pieces);
        scanned[dim] = state.pieces.at(dim);
        state.pieces[dim] = {Expr(0), Expr(1), Expr(1), false, {}, 0};
    } else if (auto &reduce = std::get<Reduce>(state.stage->body); reduce.where.defined()) {
        state.where = resolve(reduce.where);
    }
    const FoldOrder &order = seen.at(state.stage).order;
    for (size_t p = 0; p < parts.size(); p++) state.accumulators.push_back(tile_buffer(state, p, ".acc"));
    std::vector<Buffer> all = state.accumulators;
    state.accumulators.resize(2 * parts.size());
    for (size_t p : order.together) all.push_back(state.accumulators[parts.size() + p] = tile_buffer(state, p, ".next"));
    state.folding = true;
    auto initial = [&](bool from_result) {
        TileBody body;
        const std::vector<Tensor> &results = results_by(*state.stage);
        for (size_t p = 0; p < parts.size(); p++) {
            bool guarded = from_result && store_is_guarded(results[p]);
            TileBody one = over_tile(state, parts[p].dims, guarded, [&](const Point &point, const Expr &lane) {
                Expr value = constant(parts[p].identity);
                if (from_result) {
                    const Realized &where = realized.at(results[p].name);
                    std::vector<Expr> index;
                    for (const std::string &d : results[p].dims) index.push_back(point.at.at(d));
                    value = load_or(where.buffer.name, results[p].dtype, locate(where, index),
                                    lane.defined() ? lane : constant_int(DType::boolean, 1), value);
                }
                return tile_node(Compute{state.accumulators[p].name, tile_index(state, &parts[p], point), value, Expr()});
            });
            body.insert(body.end(), one.begin(), one.end());
        }
        return body;
    };
    TileBody body;
    if (state.earlier.empty()) {
        body = initial(false);
    } else {
        Expr first = constant_int(DType::boolean, 1);
        for (const Expr &v : state.earlier) first = first && v == Expr(0);
        body = {tile_node(Guard{first, initial(false), initial(true)})};
    }
    State inside = state;
    for (auto &[dim, piece] : scanned) inside.pieces[dim] = piece;
    TileBody loops = emit(inside, position);
    body.insert(body.end(), loops.begin(), loops.end());
    if (!scan) {
        TileBody written = write_parts(state);
        body.insert(body.end(), written.begin(), written.end());
    }
    for (auto it = all.rbegin(); it != all.rend(); ++it) body = {tile_node(Alloc{*it, std::move(body)})};
    return body;
}

TileBody Nests::write_parts(const State &state) {
    const std::vector<Part> &parts = monoid_of(*state.stage).parts;
    const std::vector<Tensor> &results = results_by(*state.stage);
    TileBody body;
    for (size_t p = 0; p < parts.size(); p++) {
        TileBody one = over_tile(state, parts[p].dims, store_is_guarded(results[p]), [&](const Point &point, const Expr &lane) {
            Expr value = load(state.accumulators[p].name, results[p].dtype, tile_index(state, &parts[p], point));
            return store(results[p], point, value, lane);
        });
        body.insert(body.end(), one.begin(), one.end());
    }
    return body;
}

// What a part with dims of its own computes alike for all their points is computed once for each point of the tile: the
// outermost operations of `step` that use none of those dims, each once.
std::vector<Expr> Nests::invariants_of(const Monoid &m, size_t part, const std::vector<Expr> &inputs) {
    const std::vector<std::string> &extra = m.parts[part].dims;
    auto varies = [&](const Expr &root) {
        bool result = false;
        walk(root, [&](const Expr &n) {
            if (n.kind() == ExprKind::left) result |= !m.parts[n->number].dims.empty();
            if (n.kind() == ExprKind::input)
                for (const std::string &d : extra) result |= uses_variable(inputs[n->number], d);
        });
        return result;
    };
    std::vector<Expr> found;
    std::function<void(const Expr &)> search = [&](const Expr &e) {
        if (e.kind() == ExprKind::operation && !varies(e)) {
            bool known = std::any_of(found.begin(), found.end(), [&](const Expr &f) { return equal(e, f); });
            if (!known && !e.is_constant()) found.push_back(e);
            return;
        }
        for (const Expr &arg : e->args) search(arg);
    };
    if (!extra.empty()) search(m.step[part]);
    return found;
}

// acc = the family's meaning of acc and a group of elements.
TileBody Nests::instruction_step(const State &state, const Instruction &family) {
    auto &reduce = std::get<Reduce>(state.stage->body);
    const std::string &dim = state.loops.back().dim;
    std::vector<Expr> pair = *operands_for(family, reduce);
    const Buffer &to = state.accumulators[0];
    return over_tile(state, {}, false, [&](const Point &point, const Expr &) {
        std::vector<Expr> operands, index = tile_index(state, nullptr, point);
        for (int i = 0; i < family.group; i++) {
            Point element = point;
            Expr at = state.pieces.at(dim).lo + Expr(i);
            element.at[dim] = simplify(state.group_limit.defined() ? min(at, state.group_limit - 1) : at, facts);
            for (const Expr &operand : pair) {
                Expr value = evaluate(state, operand, element);
                if (state.group_limit.defined()) value = select(simplify(at < state.group_limit, facts), value, constant(value.type(), 0));
                operands.push_back(value);
            }
        }
        return tile_node(Compute{to.name, index, apply(family, load(to.name, to.dtype, index), operands), Expr()});
    });
}

// acc = step(acc, inputs), all parts from the old values.
TileBody Nests::fold_step(const State &state) {
    const Stage &stage = *state.stage;
    const Monoid &m = monoid_of(stage);
    if (state.group > 1) return instruction_step(state, *instruction_of(state));
    const std::vector<Expr> &inputs = inputs_of(stage);
    const FoldOrder &order = seen.at(&stage).order;
    auto accumulator = [&](size_t p, const Point &point) {
        return load(state.accumulators[p].name, m.parts[p].identity.type, tile_index(state, &m.parts[p], point));
    };
    auto step_at = [&](const Expr &step, const Point &point) {
        return rewrite(step, [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::input) return evaluate(state, inputs[n->number], point);
            return n.kind() == ExprKind::left ? accumulator(n->number, point) : Expr();
        });
    };
    auto append = [](TileBody &to, const TileBody &more) { to.insert(to.end(), more.begin(), more.end()); };
    TileBody body;
    std::vector<Buffer> temporaries;
    auto step_part = [&](size_t p, const Buffer &to) {
        std::vector<std::pair<Expr, Buffer>> invariants;
        for (const Expr &e : seen.at(&stage).invariants[p]) {
            Buffer b{unique(stage.name + ".weight"), e.type(), register_extents(state), Space::registers};
            append(body, over_tile(state, {}, false, [&](const Point &point, const Expr &) {
                       return tile_node(Compute{b.name, tile_index(state, nullptr, point), step_at(e, point), Expr()});
                   }));
            invariants.emplace_back(e, b);
            temporaries.push_back(b);
        }
        append(body, over_tile(state, m.parts[p].dims, false, [&](const Point &point, const Expr &) {
                   // Invariants go in as placeholders: rewriting works from the leaves up and would not meet them whole again.
                   std::function<Expr(const Expr &)> replace = [&](const Expr &e) -> Expr {
                       for (auto &[invariant, b] : invariants)
                           if (equal(e, invariant)) return load(b.name, b.dtype, tile_index(state, nullptr, point));
                       if (e.kind() == ExprKind::operation) {
                           std::vector<Expr> args;
                           for (const Expr &arg : e->args) args.push_back(replace(arg));
                           return operation(e->op, args);
                       }
                       return step_at(e, point);
                   };
                   Expr value = invariants.empty() ? step_at(m.step[p], point) : replace(m.step[p]);
                   if (state.where.defined()) value = select(evaluate(state, state.where, point), value, accumulator(p, point));
                   return tile_node(Compute{to.name, tile_index(state, &m.parts[p], point), value, Expr()});
               }));
    };
    for (size_t p : order.alone) step_part(p, state.accumulators[p]);
    for (size_t p : order.together) step_part(p, state.accumulators[m.parts.size() + p]);
    for (size_t p : order.together)
        append(body, over_tile(state, m.parts[p].dims, false, [&](const Point &point, const Expr &) {
                   std::vector<Expr> index = tile_index(state, &m.parts[p], point);
                   Expr value = load(state.accumulators[m.parts.size() + p].name, m.parts[p].identity.type, index);
                   return tile_node(Compute{state.accumulators[p].name, index, value, Expr()});
               }));
    for (auto it = temporaries.rbegin(); it != temporaries.rend(); ++it) body = {tile_node(Alloc{*it, std::move(body)})};
    return body;
}

// The identity in the place of what a scan has folded, where an element begins a segment.
TileBody Nests::begin_segment(const State &state, const Expr &begins) {
    const std::vector<Part> &parts = monoid_of(*state.stage).parts;
    TileBody body;
    for (size_t p = 0; p < parts.size(); p++) {
        TileBody one = over_tile(state, parts[p].dims, false, [&](const Point &point, const Expr &) {
            const std::string &name = state.accumulators[p].name;
            std::vector<Expr> index = tile_index(state, &parts[p], point);
            Expr folded = load(name, parts[p].identity.type, index);
            return tile_node(Compute{name, index, select(evaluate(state, begins, point), constant(parts[p].identity), folded), Expr()});
        });
        body.insert(body.end(), one.begin(), one.end());
    }
    return body;
}

TileBody Nests::leaf(const State &state) {
    TileBody body = prefetches(state), rest = compute(state);
    body.insert(body.end(), rest.begin(), rest.end());
    return body;
}

TileBody Nests::compute(const State &state) {
    const Stage &stage = *state.stage;
    if (std::holds_alternative<Reduce>(stage.body)) return fold_step(state);
    if (auto *scan = std::get_if<Scan>(&stage.body)) {
        TileBody body = scan->segments.defined() ? begin_segment(state, scan->segments) : TileBody();
        TileBody step = fold_step(state), write = write_parts(state);
        for (const TileBody &part : {scan->inclusive ? step : write, scan->inclusive ? write : step})
            body.insert(body.end(), part.begin(), part.end());
        return body;
    }
    if (auto *update = std::get_if<Update>(&stage.body)) {
        bool padded = std::any_of(state.pieces.begin(), state.pieces.end(), [](auto &p) { return p.second.padded; });
        return over_tile(state, {}, padded, [&](const Point &point, const Expr &lane) {
            const Realized &where = realized.at(update->state);
            std::vector<Expr> index;
            for (const Expr &e : update->index) index.push_back(evaluate(state, e, point));
            return tile_node(Compute{where.buffer.name, locate(where, index), evaluate(state, update->value, point), lane});
        });
    }
    const Tensor &result = results_by(stage)[0];
    return over_tile(state, {}, store_is_guarded(result), [&](const Point &point, const Expr &lane) {
        return store(result, point, evaluate(state, std::get<Map>(stage.body).value, point), lane, true);
    });
}

// A fold with a computed destination: identity everywhere, then one element after the other.
TileBody Nests::scatter(const Stage &stage, const Reduce &reduce) {
    State state;
    state.stage = &stage;
    state.knobs = &knobs_of(stage.name);
    const Monoid &m = reduce.monoid;
    if (m.parts.size() != 1 || !m.parts[0].dims.empty())
        throw UserError("schedule.scatter", stage.name + ": a fold with a computed destination has one part; '" + m.name + "' has " +
                                                std::to_string(m.parts.size()) + ".");
    const Tensor &result = results_by(stage)[0];
    auto loops_over = [&](const std::vector<std::string> &dims, Point &point, const std::function<TileBody()> &inside) {
        std::vector<std::pair<std::string, Expr>> loops;
        for (const std::string &d : dims) {
            Piece p = whole(d, state.pieces);
            if (!p.size.defined())
                throw UserError("schedule.ragged", stage.name + ": dim '" + d + "' is ragged in a dim that comes later.");
            std::string v = loop_variable({"", d});
            facts.set(v, Expr(0), p.size - 1);
            loops.emplace_back(v, p.size);
            state.pieces[d] = {variable(v), Expr(1), Expr(1), false, {}, 0};
            point.at[d] = variable(v);
        }
        TileBody body = inside();
        for (auto it = loops.rbegin(); it != loops.rend(); ++it)
            body = {tile_node(Loop{it->first, it->second, LoopKind::serial, std::move(body)})};
        return body;
    };
    Point everywhere, element;
    TileBody body = loops_over(stage.dims, everywhere,
                               [&]() -> TileBody { return {store(result, everywhere, constant(m.parts[0].identity), Expr())}; });
    state.pieces.clear();
    TileBody fold = loops_over(reduce.dims, element, [&]() -> TileBody {
        Expr inside = reduce.where.defined() ? evaluate(state, reduce.where, element) : constant_int(DType::boolean, 1);
        std::vector<Expr> position;
        for (size_t i = 0; i < stage.dims.size(); i++) {
            position.push_back(evaluate(state, reduce.at[i], element));
            inside = inside && Expr(0) <= position.back() && position.back() < extent_of(stage.dims[i]);
        }
        const Realized &where = realized.at(result.name);
        std::vector<Expr> index = locate(where, position);
        Expr value = rewrite(m.step[0], [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::input) return evaluate(state, reduce.inputs[n->number], element);
            return n.kind() == ExprKind::left ? load(where.buffer.name, result.dtype, index) : Expr();
        });
        return {tile_node(Guard{simplify(inside, facts), {tile_node(Compute{where.buffer.name, index, value, Expr()})}, {}})};
    });
    body.insert(body.end(), fold.begin(), fold.end());
    if (target.is_gpu()) body = {tile_node(Loop{unique("thread"), Expr(1), LoopKind::thread, std::move(body)})};
    return body;
}

}  // namespace tessera
