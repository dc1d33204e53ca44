// What is asked of a stage on a GPU: how the threads of a block share its tile, and what is staged in shared memory.
#include <algorithm>
#include <set>

#include "autotune/space/sketch.h"

namespace tessera {

namespace {

constexpr int64_t max_points = 64;      // of one thread: registers for its sums
constexpr int64_t usual_threads = 256;  // that a block has at most, as a rule

}  // namespace

// One access of a thread's to several elements.
void Sketch::ask_access(PlannedStage &s, Tiles &t, Knobs &k) {
    const int64_t full = lanes_of(s);
    std::vector<Answer> answers = {{"none", 1}};
    for (const std::string &d : s.view.pure) {
        if (full < 2 || s.sizes.at(d) < full) continue;
        bool together = s.output && d == s.view.stage->dims.back(), apart = false;
        for (const Operand &o : s.view.operands) {
            const Stride stride = stride_of(o, d, plan_->extents());
            together |= stride == Stride::one, apart |= stride == Stride::other;
        }
        if (together) answers.push_back({d, apart ? 0.1 : t.reuses ? 2 : 0.5});
    }
    const std::string taken = ask(s.view.stage->name, "vector", answers);
    if (taken == "none") return;
    t.vector = taken;
    k.vector[taken] = t.lanes = full;
}

// A thread's part of a tile, and then the tile: as many threads as it has parts. Neighbours along the last dim touch
// neighbouring memory, so that dim has its share first.
void Sketch::ask_team(PlannedStage &s, const Tiles &t, Knobs &k) {
    const std::string &name = s.view.stage->name;
    int64_t points = 1, threads = 1;
    for (const std::string &d : s.view.pure) {
        const int64_t size = s.sizes.at(d), lanes = d == t.vector ? t.lanes : 1;
        if (size < 2) continue;
        std::vector<Answer> answers;
        for (int64_t several : {1, 2, 4, 8}) {
            const int64_t extent = several * lanes;
            if (several > 1 && (extent > size || points * extent > max_points)) break;
            answers.push_back({std::to_string(extent), t.reuses ? (several == 1 ? 0.3 : several == 8 ? 0.3 : 1) : several == 1 ? 1 : 0.05});
        }
        const int64_t extent = std::stoll(ask(name, "micro." + d, answers, true));
        if (extent > 1) k.micro[d] = extent, points *= extent;
    }
    for (auto dim = s.view.pure.rbegin(); dim != s.view.pure.rend(); ++dim) {
        const std::string &d = *dim;
        const int64_t size = s.sizes.at(d);
        if (size < 2) continue;
        const int64_t unit = k.micro.count(d) ? k.micro.at(d) : 1;
        // Partial results are mostly read all at one time: what a smaller tile reads last is not always shown to be there.
        const bool together = d.ends_with(".i") && threads * size <= space_.target.max_threads * unit;
        const int64_t least = together ? size / unit : unit == 1 ? 2 : 1;
        std::vector<Answer> answers;
        if (unit == 1) answers.push_back({"none", together ? 0.02 : threads > 1 || !s.place.empty() ? 1 : 0.3});
        for (int64_t n = least; threads * n <= space_.target.max_threads && (n == least || n / 2 * unit < size); n *= 2)
            answers.push_back({std::to_string(n * unit), n == 1 || threads * n > usual_threads ? 0.1 : n >= 8 && n <= 64 ? 1 : 0.4});
        const std::string tile = ask(name, "block." + d, answers, true);
        if (tile == "none") continue;
        k.block[d] = std::stoll(tile);
        threads *= k.block[d] / unit;
    }
    const bool hosts = std::any_of(s.view.operands.begin(), s.view.operands.end(),
                                   [&](const Operand &o) { return plan_->producer(o.tensor) && plan_->producer(o.tensor) != &s; });
    if (!s.place.empty() || !k.block.empty() || !hosts) return;
    // Without tiles of its own it is what is placed inside that the threads are for.
    const std::string warps = ask(name, "warps", {{"1", 1}, {"2", 1}, {"4", 1}, {"8", 1}}, true);
    if (warps != "1") k.warps = std::stoll(warps);
}

// Blocks, slices of a fold and its points. The tile of a placed stage is all that is needed of it unless it has one of its own.
void Sketch::ask_team_loops(PlannedStage &s, const Tiles &t, Knobs &k) {
    const std::string &name = s.view.stage->name;
    const bool tiled = !k.block.empty();
    if (t.reuses && tiled)
        for (const std::string &d : s.view.reduced) {
            std::vector<Answer> answers = {{"none", 0.3}};
            for (int64_t extent : {4, 8, 16, 32, 64})
                if (extent < plan_->extent(d)) answers.push_back({std::to_string(extent), extent == 8 || extent == 16 ? 1 : 0.4});
            const std::string slice = ask(name, "k." + d, answers, true);
            if (slice != "none") k.k[d] = std::stoll(slice);
        }
    std::vector<std::pair<std::string, std::string>> loops;  // level, dim
    std::vector<std::string> blocked, points;
    for (const std::string &d : s.view.pure) {
        if (k.block.count(d)) blocked.push_back(d);
        else if (tiled || s.place.empty()) loops.push_back({"", d});
    }
    for (const std::string &d : ask_order(name, "block", blocked)) loops.push_back({"block", d});
    for (const std::string &d : s.view.reduced)
        if (!k.k.count(d) && !runs_over_pieces(d)) points.push_back(d);
    if (!k.k.empty() && !points.empty() && ask(name, "order.k", {{"slices", 0.5}, {"points", 1}}) == "points")
        for (const std::string &d : points) loops.push_back({"", d});
    for (const std::string &d : s.view.reduced) {
        if (k.k.count(d)) loops.push_back({"k", d});
        else if (runs_over_pieces(d)) loops.push_back({"", d});
    }
    Extents sizes = s.sizes;
    for (const auto &[level, d] : loops) {
        const int64_t tile = level.empty() ? 1 : level == "block" ? k.block.at(d) : k.k.at(d);
        PlannedLoop loop{level.empty() ? d : level + "." + d, d, 1, {}};
        loop.count = std::max<int64_t>(1, (sizes[d] + tile - 1) / tile);
        sizes[d] = std::min(sizes[d], tile);
        loop.sizes = sizes;
        s.loops.push_back(loop);
        if (tiled) k.loops.push_back(loop.text);
    }
}

void Sketch::ask_threads(size_t i) {
    PlannedStage &s = plan_->stage(i);
    Tiles &t = tiles_[i];
    Knobs &k = stages_[s.view.stage->name];
    t.reuses = reuses(s, plan_->extents());
    if (s.view.scatters) return;
    ask_access(s, t, k);
    ask_team(s, t, k);
    ask_team_loops(s, t, k);
    ask_unrolled(s, t, k);
    const std::vector<std::string> &dims = s.view.stage->dims;
    if (s.output || dims.size() < 2 || !s.view.extra.empty()) return;
    std::vector<Answer> answers = {{dims.back(), 1}};
    for (const std::string &d : dims)
        if (d != dims.back() && s.sizes.at(d) > 1) answers.push_back({d, 0.3});
    const std::string last = ask(s.view.stage->name, "layout", answers);
    if (last == dims.back()) return;
    for (const std::string &d : dims)
        if (d != last) k.layout.push_back({d, 0, false});
    k.layout.push_back({last, 0, false});
}

// A copy in shared memory of what a block reads again and again, with the dim that neighbouring threads share last.
void Sketch::ask_staging(size_t i) {
    const PlannedStage &s = plan_->stage(i);
    Knobs &k = stages_[s.view.stage->name];
    if (!tiles_.at(i).reuses || k.block.empty()) return;
    std::set<std::string> seen;
    for (const Operand &o : s.view.operands) {
        if (!seen.insert(o.tensor).second || plan_->producer(o.tensor)) continue;
        const bool plain = std::all_of(o.index.begin(), o.index.end(), [](const Expr &e) { return e.kind() == ExprKind::variable; });
        const auto blocked = std::find_if(o.index.rbegin(), o.index.rend(),
                                          [&](const Expr &e) { return e.kind() == ExprKind::variable && k.block.count(e->name); });
        if (!plain || blocked == o.index.rend()) continue;
        std::vector<Answer> answers = {{"none", 0.5}};
        std::map<std::string, std::string> loops;
        const Path path = plan_->path(i);
        for (size_t depth = 1; depth <= path.size(); depth++) {
            const Path at(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth));
            const PlannedLoop &loop = plan_->loop(at.back());
            if (at.back().stage != i || (contains(s.view.reduced, loop.dim) && loop.text == loop.dim)) continue;
            int64_t bytes = size_of(o.dtype);
            for (int64_t extent : plan_->needed_of(o.tensor, i, at)) bytes *= extent;
            if (bytes > space_.target.shared_bytes) continue;
            const std::string text = plan_->text(at.back());
            answers.push_back({text, loop.text.starts_with("k.") ? 1.5 : 0.3});
            loops[text] = loop.text;
        }
        const std::string taken = ask(s.view.stage->name, "pack." + o.tensor, answers);
        if (taken == "none") continue;
        const std::vector<std::string> &dims = plan_->tensor(o.tensor)->dims;
        const size_t last = static_cast<size_t>(o.index.rend() - blocked) - 1;
        Pack pack{loops.at(taken), {}};
        for (size_t a = 0; a < dims.size(); a++)
            if (a != last) pack.layout.push_back({dims[a], 0, false});
        pack.layout.push_back({dims[last], 0, false});
        k.pack[o.tensor] = pack;
    }
}

}  // namespace tessera
