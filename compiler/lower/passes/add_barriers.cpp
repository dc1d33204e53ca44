#include "compiler/lower/passes/add_barriers.h"

#include "compiler/check/barriers.h"
#include "support/containers/alternatives.h"

namespace tessera {

namespace {

class AddBarriers {
public:
    AddBarriers(const std::vector<Dim> &dims, const TileBody &body) : team_(dims, body) {}

    // `since`: what has been touched since the last barrier, before the body and after it.
    TileBody visit(const TileBody &body, TouchedBuffers &since) {
        TileBody out;
        for (const auto &node : body) visit(*node, since, out);
        return out;
    }

private:
    TeamAccesses team_;

    template <class Node>
    TileBody visit_within(const Node &node, const TileBody &body, TouchedBuffers &since) {
        TileBody out;
        team_.within(node, [&] { out = visit(body, since); });
        return out;
    }

    static void step(const TouchedBuffers &next, TouchedBuffers &since, TileBody &out) {
        if (since.conflict(next)) out.push_back(tile_node(Barrier{})), since = {};
        since.add(next);
    }

    // What every thread of the block evaluates.
    void uniform(const Expr &expression, TouchedBuffers &since, TileBody &out) const {
        const TouchedBuffers touched = team_.read_by(expression);
        if (!touched.empty()) step(touched, since, out);
    }

    void visit(TileNode node, TouchedBuffers &since, TileBody &out) {
        std::visit(Overloaded{
                       [&](Loop &loop) { visit(loop, since, out); },
                       [&](Guard &guard) {
                           uniform(guard.condition, since, out);
                           TouchedBuffers then = since, otherwise = since;
                           guard.then = visit_within(guard.condition, guard.then, then);
                           guard.otherwise = visit_within(!guard.condition, guard.otherwise, otherwise);
                           since = then;
                           since.add(otherwise);
                       },
                       [&](Let &let) {
                           uniform(let.value, since, out);
                           let.body = visit_within(let, let.body, since);
                       },
                       [&](Alloc &alloc) {
                           team_.enter(alloc);
                           alloc.body = visit(alloc.body, since);
                       },
                       [&](Barrier &) { since = {}; },
                       [&](Await &) { since.add(team_.awaited()); },
                       [](LeafNode auto &) {},
                   },
                   node);
        out.push_back(tile_node(std::move(node)));
    }

    void visit(Loop &loop, TouchedBuffers &since, TileBody &out) {
        if (traits_of(loop.kind).threads > 0) {
            step(team_.touched_in(loop.body), since, out);
        } else if (loop.kind == LoopKind::block) {
            TouchedBuffers none;  // blocks do not wait for one another, and a kernel ends where they end
            loop.body = visit_within(loop, loop.body, none);
        } else {
            uniform(loop.count, since, out);
            repeat(loop, since, out);
        }
    }

    // A loop that all threads of the block run together. Barriers that only its first iteration would need stand before it.
    void repeat(Loop &loop, TouchedBuffers &since, TileBody &out) {
        TouchedBuffers once;
        TileBody alone = visit_within(loop, loop.body, once);
        TouchedBuffers last = team_.carried(loop, once);
        loop.body = last.empty() ? alone : visit_within(loop, loop.body, last);
        const auto missing = [&](TouchedBuffers before) {
            std::string what;
            team_.within(loop, [&] { what = missing_barrier(loop.body, team_, before); });
            return std::pair(what, before);
        };
        if (!missing(since).first.empty()) out.push_back(tile_node(Barrier{})), since = {};
        since.add(missing(since).second.without_slots_of(loop.variable));
    }
};

}  // namespace

TileBody add_barriers(const TileBody &body, const std::vector<Dim> &dims) {
    TouchedBuffers since;
    return AddBarriers(dims, body).visit(body, since);
}

}  // namespace tessera
