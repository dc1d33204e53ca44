#include "autotune/measure/sampled.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "compiler/tile/fragments.h"
#include "compiler/tile/kinds.h"
#include "costmodel/features/index_value.h"
#include "support/containers/alternatives.h"

namespace tessera {

namespace {

std::set<std::string> loads_in(const std::vector<Expr> &all) {
    std::set<std::string> names;
    for (const Expr &e : all)
        if (e.defined())
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load) names.insert(n->name);
            });
    return names;
}

struct Touched {
    std::set<std::string> stored, allocated;
    std::map<std::string, int> loads;  // nodes that load it
    bool invokes = false;
};

Touched touched_by(const TileBody &body) {
    Touched all;
    walk(body, [&](const TileNode &node) {
        if (auto store = store_of(node)) all.stored.insert(store->buffer);
        if (auto *alloc = std::get_if<Alloc>(&node)) all.allocated.insert(alloc->buffer.name);
        all.invokes |= std::holds_alternative<Invoke>(node);
        if (auto *move = std::get_if<Move>(&node)) {
            all.stored.insert(move->to.buffer);
            if (move->from) all.loads[move->from->buffer]++;
        }
        if (auto *step = std::get_if<Fragment>(&node)) {
            all.stored.insert(step->accumulator);
            for (const std::string &name : buffers_of(*step)) all.loads[name]++;
        }
        for (const std::string &name : loads_in(expressions_of(node))) all.loads[name]++;
    });
    return all;
}

class Sampler {
public:
    Sampler(const TileProgram &program, const Extents &extents, uint64_t seed) : whole_(touched_by(program.body)), random_(seed) {
        for (const Dim &d : program.dims)
            if (d.kind == DimKind::fixed) at_.extents[d.name] = d.value;
        for (const auto &[name, extent] : extents) at_.extents[name] = extent;
        for (const Argument &a : program.arguments)
            if (a.written && !a.read) outputs_.insert(a.tensor.name);
    }

    TileBody body(const TileBody &nodes, bool outermost) {
        TileBody all;
        for (const auto &n : nodes) all.push_back(tile_node(node(*n, outermost)));
        return all;
    }

private:
    Touched whole_;
    RandomNumbers random_;
    LoopPositions at_;
    std::set<std::string> outputs_;

    TileNode node(const TileNode &n, bool outermost) {
        if (auto *loop = std::get_if<Loop>(&n); loop && may_skip(*loop)) return some_of(*loop, outermost);
        return map_bodies(n, [&](const TileBody &inner) { return body(inner, outermost); });
    }

    bool may_skip(const Loop &loop) const {
        if (!traits_of(loop.kind).of_parts) return false;
        if (!variables_in(loop.count).empty() || !loads_in({loop.count}).empty()) return false;
        const Touched inside = touched_by(loop.body);
        if (inside.invokes) return false;
        for (const std::string &name : inside.stored) {
            if (inside.allocated.count(name)) continue;
            const auto of = [&](const Touched &t) {
                auto loads = t.loads.find(name);
                return loads == t.loads.end() ? 0 : loads->second;
            };
            if (!outputs_.count(name) || of(inside) != of(whole_)) return false;
            // What it reads may be an earlier iteration's.
            if (of(inside) > 0 && loop.kind == LoopKind::serial && !apart(loop, name)) return false;
        }
        return true;
    }

    // Whether two neighbouring iterations of the loop touch different elements of a buffer: along some axis, no index of
    // the one is within the range of the other's.
    bool apart(const Loop &loop, const std::string &buffer) const {
        struct Range {
            int64_t lo = INT64_MAX, hi = INT64_MIN;
        };
        std::vector<Range> first, second;
        LoopPositions at = at_;
        auto widen = [&](const std::vector<Expr> &index, const std::vector<std::pair<std::string, int64_t>> &inner, int64_t iteration,
                         std::vector<Range> &ranges) {
            ranges.resize(index.size());
            at.loops[loop.variable] = iteration;
            for (size_t a = 0; a < index.size(); a++)
                for (bool last : {false, true}) {
                    for (const auto &[variable, count] : inner) at.loops[variable] = last ? count - 1 : 0;
                    const int64_t v = at.value(index[a]);
                    ranges[a].lo = std::min(ranges[a].lo, v), ranges[a].hi = std::max(ranges[a].hi, v);
                }
        };
        std::function<void(const TileBody &, std::vector<std::pair<std::string, int64_t>>)> visit =
            [&](const TileBody &body, std::vector<std::pair<std::string, int64_t>> inner) {
                for (const auto &n : body) {
                    auto touch = [&](const std::vector<Expr> &index) { widen(index, inner, 0, first), widen(index, inner, 1, second); };
                    if (auto store = store_of(*n); store && store->buffer == buffer) touch(store->index);
                    for (const Expr &root : expressions_of(*n))
                        if (root.defined())
                            walk(root, [&](const Expr &e) {
                                if (e.kind() == ExprKind::load && e->name == buffer) touch(index_of(e));
                            });
                    std::visit(Overloaded{
                                   [&](const Loop &l) {
                                       auto within = inner;
                                       within.emplace_back(l.variable, std::max<int64_t>(1, at.value(l.count)));
                                       visit(l.body, within);
                                   },
                                   [&](const Let &l) {
                                       at.lets[l.variable] = l.value;
                                       visit(l.body, inner);
                                   },
                                   [&](const Guard &g) { visit(g.then, inner), visit(g.otherwise, inner); },
                                   [&](const Alloc &a) { visit(a.body, inner); },
                                   [&](const Move &m) { visit(expand(m, DType::f32), inner); },
                                   [](const LeafNode auto &) {},
                               },
                               *n);
                }
            };
        visit(loop.body, {});
        for (size_t a = 0; a < first.size(); a++)
            if (first[a].hi < second[a].lo || second[a].hi < first[a].lo) return true;
        return false;
    }

    TileNode some_of(const Loop &loop, bool outermost) {
        const int64_t count = at_.value(loop.count);
        Loop some = loop;
        some.body = body(loop.body, false);
        if (count < 3) return some;
        const int64_t any = random_.below(count - 1), last = count - 1;  // never one twice: it may accumulate
        const std::string which = loop.variable + ".sample";
        const bool both = outermost;
        const Expr pick = both ? select(variable(which) == Expr(0), Expr(any), Expr(last)) : Expr(random_.below(3) == 0 ? last : any);
        some.variable = which, some.count = Expr(both ? 2 : 1);
        some.body = {tile_node(Let{loop.variable, pick, std::move(some.body)})};
        return some;
    }
};

}  // namespace

static double steps_in(const TileBody &body, LoopPositions &at) {
    double steps = 0;
    for (const auto &n : body)
        std::visit(Overloaded{
                       [&](const StoreNode auto &) {
                           for (const Expr &e : expressions_of(*n))
                               if (e.defined()) walk(e, [&](const Expr &) { steps++; });
                       },
                       [&](const Loop &l) {
                           const double count = static_cast<double>(std::max<int64_t>(0, at.value(l.count)));
                           steps += count > 0 ? count * steps_in(l.body, at) : 0;
                       },
                       [&](const Guard &g) { steps += std::max(steps_in(g.then, at), steps_in(g.otherwise, at)); },
                       [&](const Let &l) {
                           at.lets[l.variable] = l.value;
                           steps += steps_in(l.body, at);
                       },
                       [&](const Alloc &a) { steps += steps_in(a.body, at); },
                       [&](const Move &m) { steps += steps_in(expand(m, DType::f32), at); },
                       [&](const Fragment &f) { steps += steps_in(expand(f), at); },
                       [](const LeafNode auto &) {},
                   },
                   *n);
    return steps;
}

double steps_of(const TileProgram &program, const Extents &extents) {
    LoopPositions at;
    for (const Dim &d : program.dims)
        if (d.kind == DimKind::fixed) at.extents[d.name] = d.value;
    for (const auto &[name, extent] : extents) at.extents[name] = extent;
    double steps = steps_in(program.body, at);
    for (const TileProgram &callee : program.programs) steps += steps_of(callee, extents);
    return steps;
}

TileProgram sampled(const TileProgram &program, const Extents &extents, uint64_t seed) {
    TileProgram some = program;
    some.body = Sampler(program, extents, seed).body(program.body, true);
    return some;
}

}  // namespace tessera
