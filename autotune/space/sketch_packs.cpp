#include <algorithm>
#include <set>

#include "autotune/space/sketch.h"
#include "compiler/instructions/families.h"

namespace tessera {

// Whether the stage alone reads an operand that its caller may pack once.
bool Sketch::may_pack_ahead(const std::string &tensor) const {
    size_t readers = 0;
    for (size_t i = 0; i < plan_->size(); i++) {
        const std::vector<Operand> &all = plan_->stage(i).view.operands;
        readers += std::any_of(all.begin(), all.end(), [&](const Operand &o) { return o.tensor == tensor; });
    }
    return readers == 1 && std::find(space_.ahead.begin(), space_.ahead.end(), tensor) != space_.ahead.end();
}

// A copy of what a fold reads again and again, in the order in which its register tile reads it.
void Sketch::ask_pack(size_t i, const Operand &operand) {
    PlannedStage &s = plan_->stage(i);
    const Tiles &t = tiles_.at(i);
    const std::string &name = s.view.stage->name;
    Knobs &k = stages_[name];
    const Tensor *tensor = plan_->tensor(operand.tensor);
    std::set<std::string> through;  // dims of the stage that are an axis of the operand
    std::string tiled;              // the one that the register tile cuts; lanes before others
    size_t axis = 0;
    for (size_t a = 0; a < operand.index.size(); a++) {
        if (operand.index[a].kind() != ExprKind::variable) return;
        const std::string &d = operand.index[a]->name;
        if (!through.insert(d).second) return;
        if (k.micro.count(d) && (tiled.empty() || d == t.vector)) tiled = d, axis = a;
    }
    if (tiled.empty()) return;
    const bool grouped = !t.group.empty() && through.count(t.group);
    const bool lanes = tiled == t.vector;
    if (grouped && !lanes && !t.fragments) return;  // groups of the other operand stand together already

    // Where: before everything, or inside any loop around the register tile, as long as little is copied twice.
    double full = 1;
    for (const std::string &d : tensor->dims) full *= static_cast<double>(std::max<int64_t>(1, plan_->extent(d)));
    const bool gathered = lanes && stride_of(operand, tiled, plan_->extents()) == Stride::other;  // element by element, where it lies
    std::vector<Answer> answers = {{"none", grouped || gathered ? 0.01 : 1}, {"root", t.fragments || gathered ? 1 : 0.3}};
    if (may_pack_ahead(operand.tensor)) answers.push_back({"ahead", 1.5});
    std::map<std::string, Path> paths;
    const Path path = plan_->path(i);
    for (size_t depth = 1; depth <= path.size(); depth++) {
        const Path at(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth));
        const PlannedLoop &loop = plan_->loop(at.back());
        if (at.back().stage == i && std::find(s.view.reduced.begin(), s.view.reduced.end(), loop.dim) != s.view.reduced.end() &&
            loop.text == loop.dim)
            continue;
        double points = plan_->repetitions(at);
        for (int64_t extent : plan_->needed_of(operand.tensor, i, at)) points *= static_cast<double>(std::max<int64_t>(1, extent));
        const double again = points / full;
        if (again > 4) continue;
        const std::string text = plan_->text(at.back());
        answers.push_back({text, (lanes ? 0.6 : 0.2) / std::max(1.0, again)});
        paths[text] = at;
    }
    const std::string taken = ask(name, "pack." + operand.tensor, answers);
    if (taken == "none") return;
    Pack pack{taken == "ahead" ? "prepack" : "root", {}};
    const int64_t factor = k.micro.at(tiled);
    const int64_t group = grouped ? find_family(*k.instruction)->shape.k : 1;
    pack.layout.push_back({tensor->dims[axis], factor, false});
    std::vector<LayoutAxis> inner = {{tensor->dims[axis], factor, true}};
    for (size_t a = 0; a < tensor->dims.size(); a++) {
        if (a == axis) continue;
        const bool in_groups = grouped && operand.index[a]->name == t.group;
        pack.layout.push_back({tensor->dims[a], in_groups ? group : 0, false});
        if (in_groups) inner.push_back({tensor->dims[a], group, true});
    }
    pack.layout.insert(pack.layout.end(), inner.begin(), inner.end());
    const std::string packed = name + "." + operand.tensor + ".packed";
    if (paths.count(taken)) {
        const Anchor &a = paths.at(taken).back();
        if (a.stage == i) pack.at = plan_->loop(a).text;
        else stages_[packed].place = Place{Place::Kind::at, plan_->stage(a.stage).view.stage->name, plan_->loop(a).text};
    }
    if (t.fragments) pack.layout.clear();  // the family's own
    if (grouped && !pack.is_ahead() && !t.fragments) {
        const std::string &along = tensor->dims[static_cast<size_t>(
            std::find_if(operand.index.begin(), operand.index.end(), [&](const Expr &e) { return e->name == t.group; }) -
            operand.index.begin())];
        Knobs &copy = stages_[packed];
        copy.micro = {{along, group}, {tensor->dims[axis], t.lanes}};
        copy.loops = {"micro." + along, "micro." + tensor->dims[axis]};
        copy.vector = {{tensor->dims[axis], t.lanes}};
    }
    k.pack[operand.tensor] = pack;
}

void Sketch::ask_packs(size_t i) {
    if (space_.target.is_gpu()) return ask_staging(i);
    const PlannedStage &s = plan_->stage(i);
    if (!tiles_.at(i).reuses) return;
    std::set<std::string> seen;
    for (const Operand &o : s.view.operands) {
        // What is made for the fold alone is made in the fold's order; what is made as a whole may be read in others too.
        const PlannedStage *from = plan_->producer(o.tensor);
        const bool is_whole = from && from->place.empty() && stages_[from->view.stage->name].layout.empty();
        const bool is_gathered = stride_of(o, tiles_.at(i).vector, plan_->extents()) == Stride::other;
        if ((!from || (is_whole && is_gathered)) && seen.insert(o.tensor).second) ask_pack(i, o);
    }
}

}  // namespace tessera
