#include "compiler/check/barriers.h"

#include "support/containers/alternatives.h"

namespace tessera {

namespace {

class Barriers {
public:
    explicit Barriers(TeamAccesses &team) : team_(team) {}

    void visit(const TileBody &body, TouchedBuffers &since) {
        for (const auto &node : body) visit(*node, since);
    }
    std::string missing;

private:
    TeamAccesses &team_;

    void step(const TouchedBuffers &next, TouchedBuffers &since) {
        const std::string *buffer = since.conflict(next);
        if (buffer && missing.empty()) missing = "threads may meet in " + *buffer + " without a barrier between them";
        since.add(next);
    }

    // What every thread of the block evaluates.
    void uniform(const Expr &expression, TouchedBuffers &since) {
        const TouchedBuffers touched = team_.read_by(expression);
        if (!touched.empty()) step(touched, since);
    }

    void visit(const TileNode &node, TouchedBuffers &since) {
        std::visit(Overloaded{
                       [&](const Loop &loop) { visit(loop, since); },
                       [&](const Guard &guard) {
                           uniform(guard.condition, since);
                           TouchedBuffers then = since, otherwise = since;
                           team_.within(guard.condition, [&] { visit(guard.then, then); });
                           team_.within(!guard.condition, [&] { visit(guard.otherwise, otherwise); });
                           since = then;
                           since.add(otherwise);
                       },
                       [&](const Let &let) {
                           uniform(let.value, since);
                           team_.within(let, [&] { visit(let.body, since); });
                       },
                       [&](const Alloc &alloc) {
                           team_.enter(alloc);
                           visit(alloc.body, since);
                       },
                       [&](const Barrier &) { since = {}; },
                       [&](const Await &) { since.add(team_.awaited()); },
                       [](const LeafNode auto &) {},
                   },
                   node);
    }

    void visit(const Loop &loop, TouchedBuffers &since) {
        if (traits_of(loop.kind).threads > 0) {
            step(team_.touched_in(loop.body), since);
        } else if (loop.kind == LoopKind::block) {
            TouchedBuffers none;  // blocks do not wait for one another, and a kernel ends where they end
            team_.within(loop, [&] { visit(loop.body, none); });
        } else {
            uniform(loop.count, since);
            TouchedBuffers once;
            team_.within(loop, [&] { visit(loop.body, once); });
            since.add(team_.carried(loop, once));
            team_.within(loop, [&] { visit(loop.body, since); });
            since = since.without_slots_of(loop.variable);
        }
    }
};

}  // namespace

std::string missing_barrier(const TileBody &body, TeamAccesses &team, TouchedBuffers &since) {
    Barriers check(team);
    check.visit(body, since);
    return check.missing;
}

std::string missing_barrier(const TileBody &body, const std::vector<Dim> &dims) {
    TeamAccesses team(dims, body);
    TouchedBuffers since;
    return missing_barrier(body, team, since);
}

}  // namespace tessera
