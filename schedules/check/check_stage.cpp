#include "schedules/check/check_stage.h"

#include <algorithm>
#include <functional>

#include "schedules/check/check_effect.h"
#include "schedules/knobs/directives.h"
#include "schedules/knobs/knob.h"
#include "schedules/knobs/notation.h"
#include "support/containers/contains.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Names = std::vector<std::string>;

constexpr int64_t max_register_tile = 4096;

// What of a stage a schedule can address.
struct Addressable {
    std::string name;
    Names dims, reduced;  // of the loops
    Names extra;          // of a monoid's parts
    std::string scanned;  // a scan's dim, or ""
    std::vector<Tensor> results;
    size_t position = 0;           // in the algorithm
    const Stage *stage = nullptr;  // null for what a pack adds

    Names looped() const {
        Names all = dims;
        all.insert(all.end(), reduced.begin(), reduced.end());
        return all;
    }
    Names all() const {
        Names all = looped();
        all.insert(all.end(), extra.begin(), extra.end());
        return all;
    }
};

using Levels = std::map<std::string, Extents>;

Levels levels_of(const Knobs &k) {
    Levels levels = k.levels;
    levels["block"] = k.block, levels["k"] = k.k, levels["micro"] = k.micro;
    return levels;
}

Names loops_of(const Addressable &stage, const Knobs &k) {
    Names loops;
    for (const auto &[level, extents] : levels_of(k))
        for (const auto &[dim, extent] : extents) loops.push_back(level + "." + dim);
    for (const std::string &dim : stage.looped()) loops.push_back(dim);
    return loops;
}

class StageCheck {
public:
    StageCheck(const KnobsByStage &stages, const Algorithm &algorithm) : stages_(stages), algorithm_(algorithm) {}

    void run(const std::string &name, const FieldPlace &where) const {
        const std::optional<Addressable> found = find(name);
        if (!found) {
            const Knobs &k = stages_.at(name);
            const bool passes =
                std::any_of(k.split.begin(), k.split.end(), [](const auto &s) { return s.second.how == Split::How::passes; });
            unknown_stage(name,
                          passes                  ? " The split into passes took its place: schedule the passes."
                          : is_packed_ahead(name) ? " What is packed ahead of time has a schedule of its own: delete this one with null."
                                                  : "",
                          where);
        }
        const Addressable &stage = *found;
        for (size_t i = 0; i < stages_.at(name).directives.size(); i++)
            check_loop(stage, stages_.at(name), stages_.at(name).directives[i].loop, where / "directives" / std::to_string(i) / "loop");
        const Knobs k = with_directives(
            stages_.at(name), [&](const std::string &d) { return contains(stage.all(), d); },
            [&](size_t i, const std::string &id, const std::string &why) {
                (where / "directives" / std::to_string(i)).fail(id, subject(stage) + ": " + why);
            });
        for (const KnobRule &rule : knob_rules) check_knob(rule.knob, stage, k, where / rule.name);
        check_tiles_are_looped(stage, k, where);
        check_register_tile(stage, k, where / "micro");
        check_effect(stage.stage ? *stage.stage : Stage{name, stage.dims, Map(constant(stage.results[0].dtype, 0))}, k, algorithm_, where);
    }

private:
    const KnobsByStage &stages_;
    const Algorithm &algorithm_;

    std::string subject(const Addressable &stage) const { return algorithm_.name + "." + stage.name; }

    std::optional<Tensor> tensor(const std::string &name) const {
        if (const Tensor *t = algorithm_.find_tensor(name)) return *t;
        for (const Stage &stage : algorithm_.stages())
            for (const Tensor &t : results_of(stage))
                if (t.name == name) return t;
        return std::nullopt;
    }

    std::optional<Addressable> find(const std::string &name) const {
        const auto stages = algorithm_.stages();
        for (size_t i = 0; i < stages.size(); i++) {
            const Stage &stage = stages[i];
            if (stage.name == name) {
                Addressable found{name, stage.dims, reduced_dims(stage), {}, scanned_dim(stage), results_of(stage), i, &stage};
                for (const Tensor &result : found.results)
                    for (const std::string &dim : point_dims(stage, result))
                        if (!contains(found.all(), dim)) found.extra.push_back(dim);
                return found;
            }
            auto knobs = stages_.find(stage.name);
            if (knobs == stages_.end()) continue;
            for (const auto &[operand, pack] : knobs->second.pack) {
                const std::optional<Tensor> packed = tensor(operand);
                if (packed && !pack.is_ahead() && stage.name + "." + operand + ".packed" == name)
                    return Addressable{name, packed->dims, {}, {}, "", {*packed}, i, nullptr};
            }
        }
        return std::nullopt;
    }

    bool is_packed_ahead(const std::string &name) const {
        for (const auto &[stage, knobs] : stages_)
            for (const auto &[operand, pack] : knobs.pack)
                if (pack.is_ahead() && stage + "." + operand + ".packed" == name) return true;
        return false;
    }

    [[noreturn]] void unknown_stage(const std::string &name, const std::string &why, const FieldPlace &where) const {
        Names names;
        for (const Stage &stage : algorithm_.stages()) names.push_back(stage.name);
        where.fail("schedule.unknown-stage",
                   algorithm_.name + " has no stage '" + name + "'; its stages are " + join(names) + "." + why + did_you_mean(name, names));
    }

    [[noreturn]] void unknown_dim(const std::string &subject, const std::string &dim, const Names &dims, const FieldPlace &where) const {
        where.fail("schedule.unknown-dim",
                   subject + " has no dim '" + dim + "'; its dims are " + join(dims) + "." + did_you_mean(dim, dims));
    }

    template <typename Value>
    void check_dims(const Addressable &stage, const std::map<std::string, Value> &knob, const Names &dims, const FieldPlace &where) const {
        for (const auto &[dim, value] : knob)
            if (!contains(dims, dim)) unknown_dim(subject(stage), dim, dims, where / dim);
    }

    // Whether what the knob names is there.
    void check_knob(Knob knob, const Addressable &stage, const Knobs &k, const FieldPlace &at) const {
        switch (knob) {
        case Knob::place:
            if (k.place && k.place->kind == Place::Kind::at) check_place(stage, *k.place, at);
            if (k.place && k.place->kind == Place::Kind::beside) check_beside(stage, *k.place, at);
            break;
        case Knob::block: check_tiles(stage, k.block, at); break;
        case Knob::k: check_tiles(stage, k.k, at); break;
        case Knob::micro: check_tiles(stage, k.micro, at); break;
        case Knob::levels:
            for (const auto &[level, extents] : k.levels) check_tiles(stage, extents, at / level);
            break;
        case Knob::loops: check_loops(stage, k, k.loops, at); break;
        case Knob::vector:
            check_dims(stage, k.vector, stage.all(), at);
            check_one_dim_has_lanes(stage, k, at);
            break;
        case Knob::unroll: check_dims(stage, k.unroll, stage.all(), at); break;
        case Knob::parallel: check_loops(stage, k, k.parallel, at); break;
        case Knob::pack:
            for (const auto &[operand, pack] : k.pack) check_pack(stage, k, operand, pack, at / operand);
            break;
        case Knob::prefetch:
            for (const auto &[operand, when] : k.prefetch) check_prefetch(stage, operand, when, at / operand);
            break;
        case Knob::stream:
            if (k.stream) check_loop(stage, k, *k.stream, at);
            break;
        case Knob::layout:
            for (Tensor result : stage.results) {  // in a loop, rows of segments are stored by their points
                if (stage.stage && k.place && k.place->kind == Place::Kind::at) result.dims = point_dims(*stage.stage, result);
                check_layout(k.layout, result, at);
            }
            break;
        case Knob::tail: check_dims(stage, k.tail, stage.looped(), at); break;
        case Knob::split:
        case Knob::call:
        case Knob::use: break;  // of the algorithm as declared: check.cpp
        case Knob::instruction:
        case Knob::warps: break;       // name nothing of the algorithm
        case Knob::directives: break;  // written into other knobs
        }
    }

    void check_one_dim_has_lanes(const Addressable &stage, const Knobs &k, const FieldPlace &where) const {
        Names lanes;
        for (const auto &[dim, count] : k.vector)
            if (contains(stage.dims, dim)) lanes.push_back(dim);
        if (lanes.size() > 1)
            where.fail("schedule.lanes", "expected lanes along one dim of " + algorithm_.name + "." + stage.name + "; got " + join(lanes) +
                                             ". Delete the others with null.");
    }

    void check_tiles(const Addressable &stage, const Extents &tiles, const FieldPlace &where) const {
        check_dims(stage, tiles, stage.looped(), where);
        if (tiles.count(stage.scanned))
            (where / stage.scanned)
                .fail("schedule.loops",
                      subject(stage) + " scans along '" + stage.scanned + "' in order, so it cannot be tiled. Split it instead.");
    }

    // Without `loops`, block and micro run over the stage's dims and k over the reduced ones.
    void check_tiles_are_looped(const Addressable &stage, const Knobs &k, const FieldPlace &where) const {
        for (const auto &[level, extents] : levels_of(k)) {
            const FieldPlace at = k.levels.count(level) ? where / "levels" / level : where / level;
            for (const auto &[dim, extent] : extents) {
                const std::string loop = level + "." + dim;
                if (!k.loops.empty()) {
                    const bool of_thread = level == "micro" && contains(k.loops, "block." + dim);  // on a GPU; lowering knows the target
                    if (!contains(k.loops, loop) && !of_thread)
                        (where / "loops")
                            .fail("schedule.loops", "the tile '" + loop + "' is in no loop; the loops are " + join(k.loops) +
                                                        ". Add it to them, or delete the tile.");
                } else if (!k.levels.count(level) && contains(level == "k" ? stage.dims : stage.reduced, dim)) {
                    const bool reduced = level != "k";
                    (at / dim).fail("schedule.loops", subject(stage) + (reduced ? " reduces over '" : " does not reduce over '") + dim +
                                                          "', and unless 'loops' lists '" + loop + "', " +
                                                          (reduced ? level + " runs over the other dims only. Use k"
                                                                   : "k runs over reduced dims only. Use block") +
                                                          ", or list the loops.");
                }
            }
        }
    }

    void check_loop(const Addressable &stage, const Knobs &k, const std::string &loop, const FieldPlace &where) const {
        const Names loops = loops_of(stage, k);
        if (!contains(loops, loop))
            where.fail("schedule.unknown-loop", subject(stage) + " has no loop '" + loop + "'; its loops are " + join(loops) +
                                                    ". A tile makes a loop: " + "state one, or name another." + did_you_mean(loop, loops));
    }

    void check_loops(const Addressable &stage, const Knobs &k, const Names &names, const FieldPlace &where) const {
        for (size_t i = 0; i < names.size(); i++) check_loop(stage, k, names[i], where / std::to_string(i));
    }

    // A loop, or a level that has one.
    void check_place_in(const Addressable &stage, const Knobs &k, const std::string &loop, const FieldPlace &where) const {
        const Levels levels = levels_of(k);
        auto level = levels.find(loop);
        if (level == levels.end() || level->second.empty()) check_loop(stage, k, loop, where);
    }

    void check_place(const Addressable &stage, const Place &place, const FieldPlace &where) const {
        const std::optional<Addressable> consumer = find(place.stage);
        if (!consumer) unknown_stage(place.stage, "", where);
        if (consumer->position < stage.position || place.stage == stage.name)
            where.fail("schedule.place", subject(stage) + " is placed at a loop of '" + place.stage +
                                             "', which does not come after it. Place it at a stage that loads it.");
        static const Knobs none;
        auto knobs = stages_.find(place.stage);
        if (knobs != stages_.end() && knobs->second.place && knobs->second.place->kind == Place::Kind::beside &&
            knobs->second.place->loop.empty())
            where.fail("schedule.place", subject(stage) + " is placed at a loop of '" + place.stage + "', which is beside '" +
                                             knobs->second.place->stage + "' and has that stage's loops. Place it at one of those.");
        check_place_in(*consumer, knobs == stages_.end() ? none : knobs->second, place.loop, where);
    }

    void check_beside(const Addressable &stage, const Place &place, const FieldPlace &where) const {
        if (!find(place.stage)) unknown_stage(place.stage, "", where);
        if (place.stage == stage.name)
            where.fail("schedule.place", subject(stage) + " is beside itself. Name the stage whose loops it shares.");
        if (place.loop.empty()) return;
        static const Knobs none;
        auto knobs = stages_.find(place.stage);
        if (knobs != stages_.end() && knobs->second.place && knobs->second.place->kind != Place::Kind::root)
            where.fail("schedule.place", subject(stage) + " is in a loop of '" + place.stage + "', which is placed at '" +
                                             to_string(*knobs->second.place) +
                                             "'. Only a stage at root has loops that another stands beside.");
        check_place_in(*find(place.stage), knobs == stages_.end() ? none : knobs->second, place.loop, where);
    }

    // What the stage loads, through the stages that are inlined into it as well.
    Names operands(const Stage &stage) const {
        Names names;
        std::function<void(const Stage &)> collect = [&](const Stage &s) {
            for (const Expr &root : expressions_of(s))
                walk(root, [&](const Expr &e) {
                    if (e.kind() != ExprKind::load || contains(names, e->name)) return;
                    names.push_back(e->name);
                    auto knobs = stages_.find(e->name);
                    const Stage *producer = algorithm_.find_stage(e->name);
                    if (producer && knobs != stages_.end() && knobs->second.place && knobs->second.place->kind == Place::Kind::inlined)
                        collect(*producer);
                });
        };
        collect(stage);
        return names;
    }

    void check_pack(const Addressable &stage, const Knobs &k, const std::string &operand, const Pack &pack, const FieldPlace &where) const {
        const Names names = stage.stage ? operands(*stage.stage) : Names{};
        if (!contains(names, operand))
            where.fail("schedule.unknown-operand", subject(stage) + " has no operand '" + operand + "'; its operands are " + join(names) +
                                                       "." + did_you_mean(operand, names));
        if (pack.at != "root" && !pack.is_ahead()) check_place_in(stage, k, pack.at, where / "at");
        if (const std::optional<Tensor> t = tensor(operand)) check_layout(pack.layout, *t, where / "layout");
        if (pack.stages > 1 && (pack.at == "root" || pack.is_ahead()))
            (where / "stages")
                .fail("schedule.pack", "expected a pack at a loop of " + subject(stage) + ", slice by slice; got one at '" + pack.at +
                                           "', which has no slices. Delete 'stages' (null), or name a loop.");
    }

    void check_prefetch(const Addressable &stage, const std::string &operand, const PrefetchRule &when, const FieldPlace &where) const {
        Names names = stage.stage ? operands(*stage.stage) : Names{};
        const Names dims = stage.all();
        auto indexed = [&](const Tensor &t) {
            const bool all = std::all_of(t.dims.begin(), t.dims.end(), [&](const std::string &d) { return contains(dims, d); });
            if (all && !contains(names, t.name)) names.push_back(t.name);
        };
        for (const Tensor &t : algorithm_.tensors) indexed(t);
        for (const Stage &s : algorithm_.stages())
            for (const Tensor &t : results_of(s)) indexed(t);
        if (!contains(names, operand))
            where.fail("schedule.unknown-operand", subject(stage) + " neither loads '" + operand +
                                                       "' nor do its dims index such a tensor; it can prefetch " + join(names) + "." +
                                                       did_you_mean(operand, names));
        if (when.loop.empty()) return;
        const std::optional<Addressable> around = find(when.stage);
        if (!around) unknown_stage(when.stage, "", where / "loop");
        static const Knobs none;
        auto knobs = stages_.find(when.stage);
        check_loop(*around, knobs == stages_.end() ? none : knobs->second, when.loop, where / "loop");
    }

    // Every dim stands there once: whole, or digit by digit.
    void check_layout(const std::vector<LayoutAxis> &layout, const Tensor &tensor, const FieldPlace &where) const {
        if (layout.empty()) return;
        for (size_t i = 0; i < layout.size(); i++)
            if (!contains(tensor.dims, layout[i].dim))
                unknown_dim("'" + tensor.name + "'", layout[i].dim, tensor.dims, where / std::to_string(i));
        for (const std::string &dim : tensor.dims) {
            std::vector<LayoutAxis> axes;
            std::copy_if(layout.begin(), layout.end(), std::back_inserter(axes), [&](const LayoutAxis &a) { return a.dim == dim; });
            if (!hold_each_index_once(axes))
                where.fail("schedule.layout", "the layout does not hold each element of '" + tensor.name + "' once: dim '" + dim +
                                                  "' must stand there whole (\"" + dim + "\"), in two parts of one factor (\"" + dim +
                                                  "/16\", \"" + dim + "%16\") or in more digits (\"" + dim + "/32\", \"" + dim +
                                                  "%32/2\", \"" + dim + "%2\"). Its dims are " + join(tensor.dims) + ".");
        }
    }

    void check_register_tile(const Addressable &stage, const Knobs &k, const FieldPlace &where) const {
        Extents unrolled = k.micro;
        for (const auto &[dim, count] : k.unroll) unrolled.emplace(dim, count);
        int64_t elements = 1;
        std::string product;
        for (const auto &[dim, count] : unrolled) {
            elements = elements > max_register_tile ? elements : elements * count;
            product += (product.empty() ? "" : " * ") + std::to_string(count) + " of " + dim;
        }
        if (elements > max_register_tile)
            where.fail("schedule.register-tile", subject(stage) + " unrolls " + product + "; expected at most " +
                                                     std::to_string(max_register_tile) + " elements in all. Make micro or unroll smaller.");
    }
};

}  // namespace

void check_stage(const std::string &name, const KnobsByStage &stages, const Algorithm &algorithm, const FieldPlace &where) {
    StageCheck(stages, algorithm).run(name, where);
}

}  // namespace tessera
