#include "compiler/lower/reduction_trees.h"

#include <algorithm>

#include "algorithms/text/hash.h"
#include "algorithms/text/print.h"
#include "algorithms/text/shared_text.h"
#include "algorithms/transform/given_extents.h"
#include "compiler/instructions/families.h"
#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/mapping.h"
#include "compiler/lower/context/stage_nest.h"
#include "compiler/lower/extents_used.h"
#include "compiler/lower/kept_calls.h"
#include "compiler/rewrite/split.h"
#include "schedules/knobs/notation.h"
#include "schedules/knobs/pieces.h"
#include "schedules/knobs/reduction_tree.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

namespace {

// One loop of a stage over a dim whose order counts.
struct OrderedLoop {
    std::string dim;
    int64_t tile = 1;            // 1: point by point
    bool leaves_points = false;  // its partial tile goes point by point
    friend bool operator==(const OrderedLoop &, const OrderedLoop &) = default;
};

// Whether a fold of integers is the same in every order: they wrap, so that addition and multiplication are associative.
bool is_exact(const Stage &stage) {
    if (!is_fold(stage)) return false;
    const Monoid &m = monoid_of(stage);
    if (m.parts.size() != 1 || !m.parts[0].dims.empty() || !is_integer(m.parts[0].identity.type)) return false;
    const DType type = m.parts[0].identity.type;
    for (Monoid (*exact)(DType) : {sum_monoid, product_monoid, dot_monoid, max_monoid, min_monoid})
        if (equal(m.step[0], exact(type).step[0])) return true;
    return false;
}

// The dims whose loops meet in one element: those that are folded, and of writes those along which two may go to one place.
std::vector<std::string> ordered_dims(const Stage &stage) {
    if (std::holds_alternative<Reduce>(stage.body)) return is_exact(stage) ? std::vector<std::string>() : reduced_dims(stage);
    std::vector<std::string> dims;
    if (updates(stage))
        for (const std::string &d : stage.dims)
            if (!writes_apart(stage, d)) dims.push_back(d);
    return dims;
}

class Trees {
public:
    Trees(const Algorithm &algorithm, const KnobsByStage &stages) : kept_(kept_calls(algorithm, stages)), declared_(kept_.algorithm) {
        own_ = without_trees(own_, declared_);
        for (const Stage &stage : declared_.stages())
            if (auto k = own_.find(stage.name); k != own_.end() && is_exact(stage)) k->second.split.clear(), k->second.instruction.reset();
        split_ = apply_splits(declared_, own_);
        own_ = with_dims_of(split_, own_);
        lowering_ = std::make_unique<Lowering>(split_, own_, cpu_mapping({}), false);
        take_stages();
        for (const auto &[scope, callee] : kept_.callees) take_callee(scope, reduction_trees(callee.algorithm, callee.stages));
        result_.hash = sha256(semantic_hash(algorithm) + "\n" + to_text(split_) + exceptions_);
        for (const Dim &d : algorithm.dims)
            if (d.kind == DimKind::symbolic && declared_.find_dim(d.name) && is_invariant(d.name)) result_.invariant.insert(d.name);
    }

    ReductionTrees take() { return std::move(result_); }

private:
    KnobsByStage own_;  // before kept_, which takes the knobs of callees out
    KeptCalls kept_;
    const Algorithm &declared_;  // without those calls that a schedule may inline
    Algorithm split_;
    std::unique_ptr<Lowering> lowering_;
    std::map<std::string, std::set<std::string>> invariant_in_;  // by scope of a callee
    std::string exceptions_;                                     // to what the text of split_ says
    ReductionTrees result_;

    // Whether a callee is emitted once changes nothing, so only those that repeat stay.
    KeptCalls kept_calls(const Algorithm &algorithm, const KnobsByStage &stages) {
        own_ = stages;
        for (auto &[name, k] : own_) k.call.reset();
        return keep_calls(algorithm, own_);
    }

    bool is_beside(const Stage &stage, bool in_loop) const {
        const std::optional<Place> &place = lowering_->knobs(stage.name).place;
        return place && place->kind == Place::Kind::beside && place->loop.empty() != in_loop;
    }

    // The stage whose loops it has.
    const Stage &host_of(const Stage &stage) const {
        const Stage *host = &stage;
        for (size_t steps = 0; is_beside(*host, false); steps++) {
            const Stage *next = split_.find_stage(lowering_->knobs(host->name).place->stage);
            if (!next || steps > split_.steps.size())
                throw UserError("schedule.join", stage.name +
                                                     ": what it is placed beside leads to no stage with loops of its own; place "
                                                     "it at root.");
            host = next;
        }
        return *host;
    }

    std::vector<LoopName> loops_of_nest(const Stage &host) const {
        const auto in_place = lowering_->in_place.find(&host);
        const Stage &stage = in_place == lowering_->in_place.end() ? host : in_place->second->step;
        return loops_of(*lowering_, stage, lowering_->knobs(host.name));
    }

    OrderedLoop ordered(const LoopName &loop, const Knobs &k) const {
        const auto tail = k.tail.find(loop.dim);
        const int64_t tile = tile_of(k, loop).value_or(1);
        return {loop.dim, tile, tile > 1 && tail != k.tail.end() && tail->second == Tail::loop};
    }

    // Loops over one dim after the other go on where the last one stopped, unless something stands between them: they are one. Groups
    // of `group` elements begin anew in each tile.
    static std::vector<OrderedLoop> merged(std::vector<OrderedLoop> loops, int64_t group) {
        for (size_t i = 0; i + 1 < loops.size();) {
            const OrderedLoop &outer = loops[i], &inner = loops[i + 1];
            const bool ascends = outer.dim == inner.dim && (inner.tile == 1 || (outer.tile % inner.tile == 0 && !outer.leaves_points));
            const bool keeps_groups = group == 1 || (outer.tile % group == 0 && !outer.leaves_points);
            if (ascends && keeps_groups) loops.erase(loops.begin() + static_cast<ptrdiff_t>(i)), i = i ? i - 1 : 0;
            else i++;
        }
        return loops;
    }

    std::string plain(const std::string &dim) const { return name_in_schedules(dim, split_); }

    std::string text_of(const std::vector<OrderedLoop> &loops) const {
        std::vector<std::string> all;
        for (const OrderedLoop &l : loops) {
            std::string text = plain(l.dim);
            if (l.tile > 1) text += " in tiles of " + std::to_string(l.tile);
            if (l.leaves_points) text += ", what is left point by point";
            all.push_back(text);
        }
        return join(all, "; ");
    }

    const Instruction *family_of(const Stage &host) const {
        const std::optional<std::string> &name = lowering_->knobs(host.name).instruction;
        return name ? find_family(*name) : nullptr;
    }

    // In which order the stage takes its elements, where it is another one than that of its dims; and by which instructions.
    std::string exception_of(const Stage &stage) const {
        const std::vector<std::string> dims = ordered_dims(stage);
        if (dims.empty()) return "";
        const Stage &host = host_of(stage);
        const Knobs &k = lowering_->knobs(host.name);
        const Instruction *family = family_of(host);
        const int64_t group = family ? family->shape.k : 1;
        std::string text = family && !keeps_bits(*family) ? "by " + family->name : "";
        if (family && !family->is_exact) text += ", whose bits are the machine's";
        auto add = [&](const std::string &more) { text += (text.empty() ? "" : ", ") + more; };
        if (dims.size() == 1 && group == 1) return text;
        // The dims that joined stages fold are equal one by one; those of writes may be any of the host's.
        const bool is_told_apart = &host == &stage || std::holds_alternative<Reduce>(stage.body);
        const std::vector<std::string> of_host = &host == &stage ? dims : reduced_dims(host);
        std::vector<OrderedLoop> loops, around;
        for (const LoopName &l : loops_of_nest(host))
            if (!is_told_apart || std::count(of_host.begin(), of_host.end(), l.dim)) loops.push_back(ordered(l, k));
        loops = merged(std::move(loops), group);
        std::vector<OrderedLoop> usual;
        for (const std::string &d : of_host) usual.push_back({d});
        if (loops != usual) add("in the order " + text_of(loops));
        if (is_beside(stage, true) && !(around = loops_around(stage)).empty()) add("a part in each iteration of " + text_of(around));
        return text;
    }

    // The loops of another stage that part what this one folds.
    std::vector<OrderedLoop> loops_around(const Stage &stage) const {
        const Place &place = *lowering_->knobs(stage.name).place;
        const Stage *host = split_.find_stage(place.stage);
        if (!host) return {};
        auto root = [&](const std::string &dim) { return root_of(split_, split_.dim(dim)).name; };
        std::vector<OrderedLoop> around;
        bool parts = false;
        for (const LoopName &l : loops_of_nest(*host)) {
            around.push_back(ordered(l, lowering_->knobs(host->name)));
            for (const std::string &d : reduced_dims(stage)) parts |= root(d) == root(l.dim);
            if (place.loop == l.text()) break;
        }
        return parts ? around : std::vector<OrderedLoop>();
    }

    Expr plain(const Expr &size) const {
        return rewrite(size, [&](const Expr &e) {
            return e.kind() == ExprKind::variable && split_.find_dim(e->name) ? variable(plain(e->name)) : Expr();
        });
    }
    // "K.i < min(64, |K| - K.o*64)"
    std::string range_of(const std::string &name) const {
        const Dim &d = split_.dim(name);
        const std::string size = d.kind == DimKind::fixed     ? std::to_string(d.value)
                                 : d.kind == DimKind::derived ? brief(plain(d.size))
                                                              : "|" + name + "|";
        return plain(name) + " < " + size;
    }
    std::string ranges_of(const std::vector<std::string> &dims) const {
        std::vector<std::string> all;
        for (const std::string &d : dims) all.push_back(range_of(d));
        return join(all, " and ");
    }

    // "acc.partial, for each K.o < (|K| + 63)/64: dot over K.i < min(64, |K| - K.o*64)"
    std::string words_for(const Stage &stage) const {
        std::string text = stage.name;
        std::vector<std::string> pieces;
        for (const std::string &d : stage.dims)
            if (!declared_.find_dim(d)) pieces.push_back(d);
        if (!pieces.empty()) text += ", for each " + ranges_of(pieces);
        text += std::visit(Overloaded{
                               [&](const Map &) { return std::string(": a value at each point"); },
                               [&](const Reduce &r) { return ": " + r.monoid.name + " over " + ranges_of(r.dims); },
                               [&](const Scan &s) { return ": " + s.monoid.name + " scanned along " + range_of(s.dim); },
                           },
                           stage.body);
        if (is_exact(stage)) return text + ", exact in any order";
        const std::string exception = exception_of(stage);
        return exception.empty() ? text : text + ", " + exception;
    }

    // The declared stage that a stage is, or was split from.
    const Stage *origin_of(const Stage &stage) const {
        for (size_t end = stage.name.size(); end != std::string::npos && end > 0; end = stage.name.rfind('.', end - 1))
            if (const Stage *origin = declared_.find_stage(stage.name.substr(0, end))) return origin;
        return nullptr;
    }

    void take_stages() {
        for (const Stage &stage : split_.stages()) {
            if (const std::string exception = exception_of(stage); !exception.empty()) exceptions_ += stage.name + ": " + exception + "\n";
            // The name of a family of several products means what it means today.
            if (const Instruction *family = family_of(stage); family && !family->takes) {
                SharedText text({family->meaning});
                exceptions_ += text.finish("", family->name + ": " + text(family->meaning));
            }
            const Stage *origin = origin_of(stage);
            if (!origin || (!is_fold(*origin) && ordered_dims(*origin).size() < 2)) continue;
            auto tree = std::find_if(result_.folds.begin(), result_.folds.end(), [&](auto &f) { return f.stage == origin->name; });
            if (tree == result_.folds.end()) tree = result_.folds.insert(tree, {origin->name, {}});
            tree->steps.push_back(words_for(stage));
        }
    }

    void take_callee(const std::string &scope, ReductionTrees callee) {
        exceptions_ += scope + " " + callee.hash + "\n";
        for (FoldTree &tree : callee.folds) {
            tree.stage = scope + "." + tree.stage;
            for (std::string &step : tree.steps) step = scope + "." + step;
            result_.folds.push_back(std::move(tree));
        }
        invariant_in_[scope] = std::move(callee.invariant);
    }

    bool is_invariant(const std::string &dim) const {
        const ExtentUses uses(split_, dim);
        if (uses.by_stages()) return false;
        for (const Call &call : split_.calls()) {
            const Callee &callee = kept_.callees.at(call.scope);
            if (uses.by_call(call) || !uses.is_free(callee.dims, callee.algorithm, invariant_in_.at(call.scope))) return false;
        }
        return true;
    }
};

}  // namespace

ReductionTrees reduction_trees(const Algorithm &algorithm, const KnobsByStage &stages) { return Trees(algorithm, stages).take(); }

}  // namespace tessera
