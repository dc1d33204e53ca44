#include "costmodel/features/limiters.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "algorithms/index/prove.h"
#include "costmodel/features/roofline.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Around = std::function<TileBody(TileBody)>;

// The program's loop nests, each alone in the loops, conditions, values and buffers around it.
class Nests {
public:
    std::vector<TileBody> found;

    void cut(const TileBody &body, const Around &around) {
        for (const auto &node : body) {
            const Loop *loop = std::get_if<Loop>(node.get());
            const bool is_whole = bodies_of(*node).empty() || (loop && traits_of(loop->kind).written_out) || !has_several(*node);
            if (is_whole) {
                found.push_back(around({node}));
                continue;
            }
            std::visit(
                Overloaded{
                    [&](const Guard &n) {
                        cut(n.then, [&](TileBody part) { return around({tile_node(Guard{n.condition, std::move(part), {}})}); });
                        cut(n.otherwise, [&](TileBody part) { return around({tile_node(Guard{n.condition, {}, std::move(part)})}); });
                    },
                    [&](const auto &) {
                        for (const TileBody *inner : bodies_of(*node))
                            cut(*inner, [&](TileBody part) {
                                return around({tile_node(map_bodies(*node, [&](const TileBody &) { return part; }))});
                            });
                    },
                },
                *node);
        }
    }

private:
    // Whether anything inside has parts of its own: two stores in one vector loop belong together.
    static bool has_several(const TileNode &node) {
        const Loop *loop = std::get_if<Loop>(&node);
        if (loop && traits_of(loop->kind).written_out) return false;
        if (std::holds_alternative<Guard>(node)) return true;
        for (const TileBody *body : bodies_of(node)) {
            if (body->size() > 1) return true;
            for (const auto &inner : *body)
                if (has_several(*inner)) return true;
        }
        return false;
    }
};

std::vector<std::string> stored_in(const TileBody &body) {
    std::vector<std::string> all;
    const auto say = [&](const std::string &what) {
        if (std::find(all.begin(), all.end(), what) == all.end()) all.push_back(what);
    };
    walk(body, [&](const TileNode &node) {
        if (auto store = store_of(node)) say(store->buffer);
        if (auto *move = std::get_if<Move>(&node)) say(move->to.buffer);
        if (auto *invoke = std::get_if<Invoke>(&node)) say("call of " + invoke->program);
    });
    return all;
}

// What lanes do not find side by side, as texts; and whether there are lanes.
struct Lanes {
    bool any = false;
    int64_t conditions = 0;               // tested inside of them, or in a loop without any
    std::vector<std::string> apart = {};  // "x[m, n] is 768 elements apart"
};

class LaneWalk {
public:
    LaneWalk(const std::vector<TileProgram> &programs) : programs_(programs) {}
    Lanes lanes;

    void visit(const TileBody &body) {
        for (const auto &node : body) visit(*node);
    }

private:
    const std::vector<TileProgram> &programs_;  // that may be invoked
    std::vector<std::string> around_;           // variables of vector loops
    std::map<std::string, Expr> values_;        // of Lets
    std::map<std::string, Buffer> buffers_;     // allocated

    void visit(const TileNode &node) {
        if (const auto *loop = std::get_if<Loop>(&node)) {
            const bool is_vector = loop->kind == LoopKind::vector;
            if (is_vector) lanes.any = true, around_.push_back(loop->variable);
            visit(loop->body);
            if (is_vector) around_.pop_back();
            return;
        }
        if (std::holds_alternative<Fragment>(node)) lanes.any = true;
        if (const auto *invoke = std::get_if<Invoke>(&node))
            for (const TileProgram &callee : programs_)
                if (callee.name == invoke->program) visit_callee(callee.body);
        if (const auto *let = std::get_if<Let>(&node)) values_[let->variable] = substitute(let->value, values_);
        if (const auto *alloc = std::get_if<Alloc>(&node)) buffers_[alloc->buffer.name] = alloc->buffer;
        if (const auto *guard = std::get_if<Guard>(&node))
            for (const std::string &v : around_) lanes.conditions += uses_variable(substitute(guard->condition, values_), v);
        if (const auto store = store_of(node)) {
            access(store->buffer, store->index, "stored");
            walk(store->value, [&](const Expr &e) {
                if (e.kind() == ExprKind::load) access(e->name, index_of(e), "loaded");
            });
        }
        for (const TileBody *body : bodies_of(node)) visit(*body);
    }

    // Whose names are its own.
    void visit_callee(const TileBody &body) {
        LaneWalk inside(programs_);
        inside.visit(body);
        lanes.any |= inside.lanes.any, lanes.conditions += inside.lanes.conditions;
        for (const std::string &text : inside.lanes.apart) say_apart(text);
    }

    void say_apart(const std::string &text) {
        if (std::find(lanes.apart.begin(), lanes.apart.end(), text) == lanes.apart.end()) lanes.apart.push_back(text);
    }

    void access(const std::string &buffer, const std::vector<Expr> &index, const char *how) {
        if (const auto own = buffers_.find(buffer); own != buffers_.end() && own->second.space == Space::registers) return;
        for (const std::string &lane : around_) {
            std::string why;
            for (size_t i = 0; i < index.size(); i++) {
                const Expr at = substitute(index[i], values_);
                if (!uses_variable(at, lane)) continue;
                const Expr step = simplify(substitute(at, {{lane, variable(lane) + Expr(1)}}) - at, Bounds());
                if (!step.is_constant()) why = "at computed positions";
                else if (step->value.integer == 0) continue;
                else if (i + 1 < index.size()) why = "rows apart";
                else if (step->value.integer != 1) why = std::to_string(step->value.integer) + " elements apart";
            }
            if (why.empty()) continue;
            std::vector<std::string> at;
            for (const Expr &e : index) at.push_back(brief(e));
            say_apart(buffer + "[" + join(at) + "] is " + how + " " + why);
        }
    }
};

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::vector<Limiter> limiters_of(const TileBody &body, const TileProgram &program, const Profile &p, const Target &target, int threads) {
    std::vector<Limiter> all;
    const Rates rates = rates_of(target);
    LaneWalk walk(program.programs);
    walk.visit(body);
    const double core = std::max(p.core_time, 1e-12), accesses = p.loads + p.broadcasts + p.gathers + p.stores + p.scatters;
    const double stored = p.stores + p.scatters, lanes = target.vector_bytes / 4;
    if (!walk.lanes.any && accesses > 0 && p.statements > 0 && target.vector_bytes > 8)
        all.push_back({"no-lanes", "elements are computed one by one; state 'vector' along a dim whose elements lie side by side"});
    if (walk.lanes.any && (p.gathers + p.scatters) * lanes > 0.2 * core && !walk.lanes.apart.empty()) {
        const size_t shown = std::min<size_t>(3, walk.lanes.apart.size());
        const std::string more =
            walk.lanes.apart.size() > shown ? fmt::format(", and {} more", walk.lanes.apart.size() - shown) : std::string();
        all.push_back(
            {"apart", "lanes take elements one at a time: " +
                          join(std::vector(walk.lanes.apart.begin(), walk.lanes.apart.begin() + static_cast<std::ptrdiff_t>(shown))) +
                          more + "; state 'vector' along another dim, or 'pack' the operand"});
    }
    if (p.slow * slow_slots > core / 3)
        all.push_back({"divisions", fmt::format("divisions and roots take {} of the core's time; the word reciprocals of a policy makes "
                                                "products of them (docs/dial.md)",
                                                percent(std::min(1.0, p.slow * slow_slots / core)))});
    const double each = (p.fma + p.arithmetic + p.slow) / std::max(stored, 1e-12);
    if (stored > 0 && p.accumulators == 0 && each >= 12)
        all.push_back({"functions", fmt::format("an element takes {:.0f} operations; if these are exponentials and the like, the word "
                                                "functions of a policy has them with fewer bits (docs/dial.md)",
                                                each)});
    if (p.chained > 0.5 * core)
        all.push_back({"chain", fmt::format("{} of the core's time additions wait for one another; they want about 8 independent sums, and "
                                            "have {:.0f}: larger 'micro', or 'lanes' and 'split' of what is folded",
                                            percent(p.chained / core), std::max(1.0, p.accumulators))});
    if (p.live > target.vector_registers + 2)
        all.push_back(
            {"registers", fmt::format("{:.0f} vectors are live in the hottest loop, and there are {} registers; make 'micro' smaller",
                                      p.live, target.vector_registers)});
    const char *levels[] = {"the first cache", "the second cache", "all caches"};
    double slowest = core / rates.fma;
    int level = -1;
    for (int i = 0; i < 3; i++)
        if (p.traffic[static_cast<size_t>(i)] / rates.read[i] > slowest)
            slowest = p.traffic[static_cast<size_t>(i)] / rates.read[i], level = i;
    if (level >= 0)
        all.push_back(
            {"memory", fmt::format("{:.3g} MB come from beyond {}, which takes {:.3g} us where the core works for {:.3g}; keep slices in "
                                   "caches by 'block' and 'place', or store fewer bytes",
                                   p.traffic[static_cast<size_t>(level)] / 1e6, levels[level], 1e6 * slowest, 1e6 * core / rates.fma)});
    if (walk.lanes.any && p.masked > 0.5 * accesses)
        all.push_back({"masked", fmt::format("{} of the loads and stores have lanes that may be off; choose tiles that divide the extents, "
                                             "or 'tail'",
                                             percent(p.masked / accesses))});
    if (walk.lanes.conditions > 0)
        all.push_back({"branches", fmt::format("{} conditions are tested for each lane by itself", walk.lanes.conditions)});
    const double points = p.partial + p.copied;
    if (p.partial > 0.1 * std::max(points, stored * lanes))
        all.push_back({"waste", "points are computed in tiles that run past an end; choose tiles that divide the extents, or 'narrow'"});
    if (threads > 1 && p.alone > 0.2 * core)
        all.push_back({"one-thread", percent(p.alone / core) + " of the work is outside of parallel loops; state 'parallel'"});
    if (threads > 1 && p.imbalance > 1.25 && p.alone < 0.5 * core)
        all.push_back({"imbalance", fmt::format("the busiest thread has {:.2f} times the mean; make blocks smaller", p.imbalance)});
    return all;
}

}  // namespace

std::vector<PartOfProgram> parts_of(const TileProgram &program, const Extents &extents, const Target &target, int threads) {
    Nests nests;
    nests.cut(program.body, [](TileBody part) { return part; });
    std::vector<PartOfProgram> parts;
    std::vector<std::pair<double, TileBody>> slowest;  // of each part
    double sum = 0;
    TileProgram alone = program;
    for (const TileBody &body : nests.found) {
        alone.body = body;
        const Profile profile = profile_of(alone, extents, target, threads);
        if (profile.statements == 0) continue;  // nothing reaches it at these extents
        const double seconds = predicted_seconds(profile, rates_of(target), threads);
        const std::vector<std::string> stores = stored_in(body);
        if (stores.empty()) continue;  // it fetches ahead for others
        size_t i = 0;
        while (i < parts.size() && parts[i].stores != stores) i++;
        if (i == parts.size()) parts.push_back({stores, 0, 0, {}, {}}), slowest.emplace_back(-1, TileBody());
        parts[i].seconds += seconds, sum += seconds;
        if (seconds > slowest[i].first) slowest[i] = {seconds, body}, parts[i].profile = profile;
    }
    constexpr double least_share = 0.02;
    for (size_t i = 0; i < parts.size(); i++) {
        parts[i].share = sum > 0 ? parts[i].seconds / sum : 0;
        if (parts[i].share >= least_share) parts[i].limiters = limiters_of(slowest[i].second, program, parts[i].profile, target, threads);
    }
    std::stable_sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.seconds > b.seconds; });
    return parts;
}

}  // namespace tessera
