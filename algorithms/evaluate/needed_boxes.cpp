#include "algorithms/evaluate/needed_boxes.h"

#include <algorithm>

#include "algorithms/index/prove.h"

namespace tessera {

namespace {

class Needs {
public:
    Needs(const Algorithm &algorithm, const Extents &extents) : a_(algorithm), extents_(extents) {
        for (const Dim &d : a_.dims)
            if (auto e = extents.find(d.name); e != extents.end()) facts_.set_dim(fixed_dim(d.name, e->second));
    }

    void add(const std::string &tensor, const Box &axes) {
        const Stage *stage = defining_stage(a_, tensor);
        if (!stage) return;
        const std::vector<std::string> points = ordinary_dims(*stage);
        Box box(stage->dims.size());
        for (size_t i = 0; i < box.size(); i++)
            if (stage->dims[i] != scanned_dim(*stage) && std::count(points.begin(), points.end(), stage->dims[i])) box[i] = axes[i];
        const auto [known, fresh] = boxes.try_emplace(stage->name, box);
        for (size_t i = 0; !fresh && i < box.size(); i++)
            known->second[i] = {std::min(known->second[i].lo, box[i].lo), std::max(known->second[i].hi, box[i].hi)};
    }

    // What the stage reads over its box.
    void follow(const Stage &stage, const Box &box) {
        Bounds facts = facts_;
        for (const Dim &d : a_.dims) {
            const auto extent = extents_.find(d.name);
            if (extent == extents_.end()) continue;
            const auto axis = std::find(stage.dims.begin(), stage.dims.end(), d.name);
            const Interval whole{0, extent->second - 1};
            const Interval range = axis == stage.dims.end() ? whole : meet(whole, box[static_cast<size_t>(axis - stage.dims.begin())]);
            facts.set(d.name, Expr(range.lo), Expr(range.hi));
        }
        for (const Expr &e : expressions_of(stage)) read(e, facts);
    }

    void read(const Expr &e, const Bounds &facts) {
        walk(e, [&](const Expr &n) {
            if (n.kind() != ExprKind::load || !defining_stage(a_, n->name)) return;
            Box axes;
            for (size_t i = 0; i < n->args.size() - (n->guarded ? 2 : 0); i++) {
                const auto range = constant_range(n->args[i], facts);
                axes.push_back(range ? Interval{range->first, range->second} : Interval{});
            }
            add(n->name, axes);
        });
    }

    const Bounds &facts() const { return facts_; }
    std::map<std::string, Box> boxes;

private:
    const Algorithm &a_;
    const Extents &extents_;
    Bounds facts_;
};

}  // namespace

std::map<std::string, Box> needed_boxes(const Algorithm &algorithm, const Extents &extents, const std::map<std::string, Box> &outputs) {
    Needs needs(algorithm, extents);
    for (const auto &[output, box] : outputs) needs.add(output, box);
    for (const Dim &d : algorithm.dims)
        if (d.kind == DimKind::derived) needs.read(d.size, needs.facts());
    const auto stages = algorithm.stages();
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
        if (auto box = needs.boxes.find(stage->name); box != needs.boxes.end()) needs.follow(*stage, Box(box->second));
    return needs.boxes;
}

}  // namespace tessera
