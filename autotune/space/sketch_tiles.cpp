#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "autotune/space/sketch.h"
#include "compiler/instructions/families.h"
#include "compiler/rewrite/fragments.h"

namespace tessera {

namespace {

int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// All orders of up to three dims; of more, those that bring one dim to the front.
std::vector<std::vector<std::string>> orders_of(const std::vector<std::string> &dims) {
    std::vector<std::vector<std::string>> all;
    if (dims.size() <= 3) {
        std::vector<size_t> at;
        for (size_t i = 0; i < dims.size(); i++) at.push_back(i);
        do {
            std::vector<std::string> order;
            for (size_t i : at) order.push_back(dims[i]);
            all.push_back(order);
        } while (std::next_permutation(at.begin(), at.end()));
        return all;
    }
    for (size_t first = 0; first < dims.size(); first++) {
        std::vector<std::string> order = dims;
        std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first),
                    order.begin() + static_cast<std::ptrdiff_t>(first) + 1);
        all.push_back(order);
    }
    return all;
}

std::vector<std::string> words_in(const std::string &list) {
    std::vector<std::string> words;
    for (size_t at = 0; at <= list.size();) {
        const size_t colon = std::min(list.find(':', at), list.size());
        words.push_back(list.substr(at, colon - at));
        at = colon + 1;
    }
    return words;
}

std::string list_of(const std::vector<std::string> &words) {
    std::string list;
    for (const std::string &w : words) list += (list.empty() ? "" : ":") + w;
    return list;
}

}  // namespace

int64_t Sketch::lanes_of(const PlannedStage &s) const { return std::max<int64_t>(1, space_.target.vector_bytes / size_of(s.view.dtype)); }

// Some operand is the same along one dim of the stage, and another one along another.
bool Sketch::reuses(const PlannedStage &s, const Extents &extents) {
    if (!s.view.folds || s.view.operands.size() < 2) return false;
    for (const std::string &d : s.view.pure) {
        if (s.sizes.at(d) < 2) continue;
        bool moving = false, still = false;
        for (const Operand &o : s.view.operands) (moves_with(o, d, extents) ? moving : still) = true;
        if (moving && still) return true;
    }
    return false;
}

// Whether where a scatter's elements go depends on the dim: lanes along it would go apart.
static bool decides_destination(const Stage &scatter, const std::string &dim) {
    const auto &reduce = std::get<Reduce>(scatter.body);
    const std::vector<std::string> ordinary = ordinary_dims(scatter);
    for (size_t i = 0; i < reduce.at.size(); i++)
        if (!contains(ordinary, scatter.dims[i]) && uses_variable(reduce.at[i], dim)) return true;
    return reduce.where.defined() && uses_variable(reduce.where, dim);
}

void Sketch::ask_vector(PlannedStage &s, Tiles &t, Knobs &k) {
    const int64_t full = t.lanes = lanes_of(s);
    if (full < 2 || (s.view.scatters && s.view.pure.empty())) return;
    // A dim that is too short for a whole vector runs in a part of one: what is left of a fold over lanes is a quarter.
    auto lanes_along = [&](const std::string &d) {
        int64_t lanes = full;
        if (s.sizes.at(d) * 2 < full)
            while (lanes > 1 && s.sizes.at(d) < lanes) lanes /= 2;
        return lanes;
    };
    const std::string &name = s.view.stage->name;
    // Lanes along a scan keep it from going on row by row.
    const std::set<std::string> &scanned = s.scanned_before;
    const bool along_scan = std::any_of(s.view.pure.begin(), s.view.pure.end(), [&](const auto &d) { return scanned.count(d) > 0; });
    std::vector<Answer> answers = {{"none", along_scan ? 0.3 : 0.01}};
    for (const std::string &d : s.view.pure) {
        if (s.view.by_points.count(d)) continue;
        const bool part = lanes_along(d) < full;
        if (part && lanes_along(d) < 4) continue;
        if (s.view.scatters && decides_destination(*s.view.stage, d)) continue;
        double prior = part ? 0.5 : 1;
        for (const Operand &o : s.view.operands) {
            const Stride stride = stride_of(o, d, plan_->extents());
            const PlannedStage *from = plan_->producer(o.tensor);
            // What is made here can be stored along any dim, and what is read again and again be copied so.
            const bool any_stride = (from && !from->output) || may_be_packed(s.view, o, plan_->extents());
            if (stride == Stride::other) prior *= any_stride ? 0.7 : 0.1;
        }
        // Results of the kernel are where they are; its readers say how others are read.
        if (s.output && d != s.view.stage->dims.back()) prior *= 0.02;
        for (size_t c : s.consumers)
            for (const Operand &o : plan_->stage(c).view.operands)
                if (plan_->producer(o.tensor) == &s && !tiles_[c].vector.empty())
                    prior *= stride_of(o, tiles_[c].vector, plan_->extents()) != Stride::none &&
                                     moves_with(o, tiles_[c].vector, plan_->extents()) &&
                                     uses_variable(o.index.back(), tiles_[c].vector) == (d == s.view.stage->dims.back())
                                 ? 1.5
                                 : 1;
        answers.push_back({d, prior});
    }
    // Whoever allows fragments alone has their columns along this dim.
    if (const std::vector<const Instruction *> families = only_fragments(s); !families.empty())
        std::erase_if(answers, [&](const Answer &a) {
            return std::none_of(families.begin(), families.end(), [&](const Instruction *family) {
                const auto fold = fragment_fold(*family, *s.view.stage, {});
                return fold && fold->columns == a.value;
            });
        });
    t.vector = ask(name, "vector", answers);
    if (t.vector == "none") t.vector.clear();
    if (!t.vector.empty()) k.vector[t.vector] = t.lanes = lanes_along(t.vector);
    for (const std::string &d : s.view.extra)
        if (plan_->extent(d) >= full && ask(name, "vector." + d, {{"yes", 1}, {"no", 0.1}}) == "yes") k.vector[d] = full;
    const std::vector<std::string> &dims = s.view.stage->dims;
    const bool is_flat = !s.view.stage->rows.empty();  // its elements have other axes than its points
    if (!s.output && !is_flat && !s.view.scatters && s.view.extra.empty() && !t.vector.empty() && t.vector != dims.back()) {
        for (const std::string &d : dims)
            if (d != t.vector) k.layout.push_back({d, 0, false});
        k.layout.push_back({t.vector, 0, false});
    }
}

// Whether the target's instructions are the family's, and the policy lets it flush what it flushes and round as nobody publishes.
static bool is_usable(const Instruction &family, const Algorithm &algorithm, const Target &target) {
    const bool may_flush = algorithm.numerics.denormals != Denormals::gradual;
    const bool is_promised = family.is_exact || algorithm.numerics.products == Products::machine;
    return is_emitted(family) && is_on(family, target) && (may_flush || !family.flushes) && is_promised;
}

// The families that compute the fold on the target.
std::vector<const Instruction *> Sketch::families_for(const Reduce &fold) const {
    std::vector<const Instruction *> usable;
    for (const Instruction &family : families())
        if (is_usable(family, space_.algorithm, space_.target) && operands_for(family, fold)) usable.push_back(&family);
    return usable;
}

// The families that the stage's sum of products is restricted to, where all of them have fragments.
std::vector<const Instruction *> Sketch::only_fragments(const PlannedStage &s) const {
    const auto *reduce = std::get_if<Reduce>(&s.view.stage->body);
    if (!reduce || space_.restrictions.empty()) return {};
    Decision instruction{s.view.stage->name, "instruction", {{usual_family, 1}}};
    for (const Instruction *family : families_for(*reduce)) instruction.answers.push_back({family->name, 1});
    std::vector<const Instruction *> allowed;
    for (const Answer &a : restricted(instruction, space_.restrictions).answers) {
        const Instruction *family = find_family(a.value);
        if (!family || !has_fragments(*family)) return {};
        allowed.push_back(family);
    }
    return allowed;
}

void Sketch::ask_instruction(PlannedStage &s, Tiles &t, Knobs &k) {
    auto *reduce = std::get_if<Reduce>(&s.view.stage->body);
    if (!reduce || !reduce->at.empty() || reduce->where.defined() || t.vector.empty() || s.view.reduced.size() != 1) return;
    std::vector<Answer> answers = {{usual_family, 0.1}};
    for (const Instruction *usable : families_for(*reduce)) {
        const Instruction &family = *usable;
        const auto [instructions, slots] = cost_of(family, space_.target);
        const double products = family.shape.k / (instructions * slots);
        if (!has_fragments(family)) answers.push_back({family.name, products >= 1 ? 1 : 0.1});
        else if (const auto fold = fragment_fold(family, *s.view.stage, k); fold && fold->columns == t.vector)
            answers.push_back({family.name, products});
    }
    const std::string taken = ask(s.view.stage->name, "instruction", answers);
    if (taken == usual_family) return;
    k.instruction = taken;
    t.group = s.view.reduced[0];
    const Instruction &family = *find_family(taken);
    if (!has_fragments(family)) return;
    t.fragments = &family, t.rows = family.shape.m, t.lanes = family.shape.n;
    k.vector.clear();
}

// The family of fragments that the target computes the fold by fastest, or nothing.
const Instruction *Sketch::best_fragments(const PlannedStage &s) const {
    auto *reduce = std::get_if<Reduce>(&s.view.stage->body);
    const Instruction *best = nullptr;
    if (!reduce) return best;
    for (const Instruction *family : families_for(*reduce))
        if (has_fragments(*family) && fragment_fold(*family, *s.view.stage, {}) && (!best || family->shape.k > best->shape.k))
            best = family;
    return best;
}

// A grid of fragments, as many as there are registers for beside the operands of the shorter side and one of the longer.
void Sketch::ask_fragment_tile(PlannedStage &s, const Tiles &t, Knobs &k) {
    const InstructionShape &shape = t.fragments->shape;
    const std::string rows = fragment_fold(*t.fragments, *s.view.stage, k)->rows;
    const auto ask_along = [&](const std::string &dim, int unit, int64_t most, const std::function<bool(int64_t)> &fits) {
        const int64_t size = s.sizes.at(dim);
        std::vector<Answer> answers;
        for (int64_t several = 1; several <= most && fits(several); several++) {
            if (several > 1 && (several - 1) * unit >= size) break;
            const double waste = static_cast<double>(rounded_up(size, several * unit)) / static_cast<double>(size);
            answers.push_back({std::to_string(several * unit), (several == 2 ? 1 : 0.2) / (waste * waste)});
        }
        k.micro[dim] = std::stoll(ask(s.view.stage->name, "micro." + dim, answers, true));
        return k.micro[dim] / unit;
    };
    const int64_t columns = ask_along(t.vector, shape.n, 4, [](int64_t) { return true; });
    ask_along(rows, shape.m, 3, [&](int64_t several) { return registers_of_tile(several, columns) <= t.fragments->registers; });
}

// micro: as many accumulators as registers hold, beside what one step reads.
void Sketch::ask_register_tile(PlannedStage &s, const Tiles &t, Knobs &k) {
    const std::string &name = s.view.stage->name;
    const int64_t registers = space_.target.vector_registers;
    const int64_t most = registers - registers / 8;
    int64_t accumulators = 1;
    if (!t.vector.empty()) {
        const int64_t size = s.sizes.at(t.vector);
        std::vector<Answer> answers;
        for (int64_t several : {1, 2, 3, 4, 5, 6, 8}) {
            const int64_t extent = several * t.lanes;
            if (several > 1 && extent - t.lanes >= size) break;
            const double waste = static_cast<double>(rounded_up(size, extent)) / static_cast<double>(size);
            answers.push_back({std::to_string(extent), (several <= 4 ? 1.0 : 0.3) / (waste * waste)});
        }
        const int64_t extent = std::stoll(ask(name, "micro." + t.vector, answers, true));
        k.micro[t.vector] = extent, accumulators = extent / t.lanes;
    }
    if (!s.view.scanned.empty()) {
        // Several scans side by side: each waits for its own last result only.
        for (const std::string &d : s.view.pure) {
            if (d == t.vector || s.view.by_points.count(d) || s.sizes.at(d) < 2) continue;
            std::vector<Answer> answers = {{"1", 0.3}};
            for (int64_t extent : {2, 4, 8, 16})
                if (extent <= s.sizes.at(d) && accumulators * extent <= most)
                    answers.push_back({std::to_string(extent), t.vector.empty() ? 1.0 : 0.3});
            const int64_t extent = std::stoll(ask(name, "micro." + d, answers, true));
            if (extent > 1) k.micro[d] = extent, accumulators *= extent;
        }
        return;
    }
    if (!t.reuses) {
        // The few values that are left of a fold over lanes, each in a register of its own.
        for (const std::string &d : s.view.pure)
            if (const int64_t size = s.sizes.at(d); t.vector.empty() && d.ends_with(".i") && size > 1 && size <= most / 2)
                if (ask(name, "micro." + d, {{"1", 1}, {std::to_string(size), 1}}) != "1") k.micro[d] = size;
        return;
    }
    for (const std::string &d : s.view.pure) {
        if (d == t.vector || s.view.by_points.count(d) || s.sizes.at(d) < 2) continue;
        const int64_t size = s.sizes.at(d);
        std::vector<Answer> answers = {{"1", 0.2}};
        for (int64_t extent = 2; extent <= std::min<int64_t>(size, 24); extent++) {
            if (accumulators * extent > most) break;
            if (extent > 8 && extent % 2 != 0 && extent != size) continue;
            const double waste = static_cast<double>(rounded_up(size, extent)) / static_cast<double>(size);
            const double used = static_cast<double>(accumulators * extent) / static_cast<double>(most);
            answers.push_back({std::to_string(extent), used * used / (waste * waste * waste)});
        }
        const int64_t extent = std::stoll(ask(name, "micro." + d, answers, true));
        if (extent > 1) k.micro[d] = extent, accumulators *= extent;
    }
}

void Sketch::ask_levels(PlannedStage &s, const Tiles &t, Knobs &k) {
    const std::string &name = s.view.stage->name;
    auto unit_of = [&](const std::string &d) {
        auto micro = k.micro.find(d);
        return micro == k.micro.end() ? 1 : micro->second;
    };
    for (const std::string &d : s.view.pure) {
        const int64_t size = s.sizes.at(d);
        if (t.around_folds && !s.view.by_points.count(d) && d != t.vector && size > 1) {
            std::vector<Answer> answers = {{"none", 0.2}};
            for (int64_t extent : {2, 3, 4, 6, 7, 8, 12, 14, 16, 24, 32, 48, 64})
                if (extent <= size)
                    answers.push_back({std::to_string(extent), extent % t.rows ? 0.2 : t.rows > 1 && extent == 2 * t.rows ? 2 : 1});
            const std::string tile = ask(name, "tile." + d, answers, true);
            if (tile != "none") k.levels["tile"][d] = std::stoll(tile);
        }
        const int64_t unit = std::max(unit_of(d), k.levels.count("tile") && k.levels["tile"].count(d) ? k.levels["tile"][d] : 1);
        std::vector<Answer> answers = {{"none", s.place.empty() ? 1.0 : 6.0}};
        for (int64_t extent : {8, 12, 14, 16, 24, 28, 32, 48, 56, 64, 96, 128, 192, 256, 384, 512, 1024}) {
            const int64_t whole = unit == 1 ? extent : rounded_up(extent, unit);
            // Where tiles within tiles do not divide the dim, races between blocks cannot be disproved.
            if (unit > 1 && size % whole != 0) continue;
            if (whole <= unit || whole >= size || (answers.size() > 1 && std::to_string(whole) == answers.back().value)) continue;
            answers.push_back({std::to_string(whole), 0.12});
        }
        const std::string block = ask(name, "block." + d, answers, true);
        if (block != "none") k.block[d] = std::stoll(block);
    }
    if (t.fragments) {
        std::vector<Answer> answers = {{"none", 1}};
        for (int64_t extent : {256, 512})
            if (extent * 3 / 2 <= plan_->extent(t.group)) answers.push_back({std::to_string(extent), 0.06});
        const std::string slice = ask(name, "k." + t.group, answers, true);
        if (slice != "none") k.k[t.group] = std::stoll(slice);
    }
    if (!t.group.empty()) return;
    for (const std::string &d : s.view.reduced) {
        std::vector<Answer> answers = {{"none", 1}};
        // Where few points use an element, what counts is the order in which memory is read: a few rows of the operand at a time.
        const bool is_streamed = std::any_of(s.view.operands.begin(), s.view.operands.end(), [&](const Operand &o) {
            return moves_with(o, d, plan_->extents()) && std::any_of(s.view.pure.begin(), s.view.pure.end(), [&](const std::string &p) {
                       return s.sizes.at(p) <= 8 && !moves_with(o, p, plan_->extents());
                   });
        });
        if (!t.reuses && !is_streamed) continue;
        for (int64_t extent : {4, 8, 16, 32, 64})
            if (is_streamed && extent * 3 / 2 <= plan_->extent(d)) answers.push_back({std::to_string(extent), 0.06});
        for (int64_t extent : {128, 256, 384, 512, 1024})
            if (extent * 3 / 2 <= plan_->extent(d)) answers.push_back({std::to_string(extent), 0.06});
        const std::string slice = ask(name, "k." + d, answers, true);
        if (slice != "none") k.k[d] = std::stoll(slice);
    }
}

std::vector<std::string> Sketch::ask_order(const std::string &stage, const std::string &level, const std::vector<std::string> &dims) {
    if (dims.size() < 2) return dims;
    std::vector<Answer> answers;
    for (const auto &order : orders_of(dims)) answers.push_back({list_of(order), answers.empty() ? 1 : 0.7});
    return words_in(ask(stage, "order." + level, answers));
}

// A dim that no level cuts and along which a scan runs may stand inside the tiles of the others: the scan then goes on in registers.
std::string Sketch::ask_scan_inside(const PlannedStage &s, const std::vector<std::string> &free, const std::vector<std::string> &tiled) {
    const std::set<std::string> &scanned = s.scanned_before;
    for (const std::string &d : free)
        if (scanned.count(d) && !tiled.empty() && s.sizes.at(d) > 1)
            return ask(s.view.stage->name, "order.scan", {{"outside:" + d, 1}, {"inside:" + d, 1}}).starts_with("inside") ? d : "";
    return "";
}

// Outermost the dims that no level cuts, then the levels; what is left of each dim comes point by point inside.
void Sketch::ask_loops(PlannedStage &s, const Tiles &t, Knobs &k) {
    const std::string &name = s.view.stage->name;
    std::vector<std::string> free, tiled;
    auto is_tiled = [&](const std::string &d) {
        return k.micro.count(d) || k.block.count(d) || (k.levels.count("tile") && k.levels.at("tile").count(d));
    };
    for (const std::string &d : s.view.pure) {
        if (is_tiled(d)) tiled.push_back(d);
        else if (d != t.vector) free.push_back(d);
    }
    const std::string along = ask_scan_inside(s, free, tiled);
    std::erase(free, along);
    std::vector<std::string> blocked;
    for (const std::string &d : tiled)
        if (k.block.count(d)) blocked.push_back(d);
    std::vector<std::pair<std::string, std::string>> loops;  // level, dim
    for (const std::string &d : free) loops.push_back({"", d});
    for (const std::string &d : ask_order(name, "block", blocked)) loops.push_back({"block", d});
    for (const std::string &d : s.view.by_points)  // the sizes of what is inside depend on them
        if (std::erase(tiled, d)) loops.push_back({"", d});
    for (const std::string &d : s.view.reduced)
        if (k.k.count(d)) loops.push_back({"k", d});
    for (const std::string &d : ask_order(name, "micro", tiled)) {
        const bool tile = k.levels.count("tile") && k.levels.at("tile").count(d);
        if (tile) loops.push_back({"tile", d});
        if (k.micro.count(d)) loops.push_back({"micro", d});
        if (!tile && !k.micro.count(d)) loops.push_back({"", d});
    }
    if (!along.empty()) loops.push_back({"", along});
    // A fold over pieces encloses what each piece is made of.
    for (const std::string &d : s.view.reduced)
        if (runs_over_pieces(d)) loops.push_back({"", d});
    Extents sizes = s.sizes;
    for (const auto &[level, d] : loops) {
        const int64_t tile = level.empty()      ? 1
                             : level == "block" ? k.block.at(d)
                             : level == "k"     ? k.k.at(d)
                             : level == "micro" ? k.micro.at(d)
                                                : k.levels.at("tile").at(d);
        PlannedLoop loop{level.empty() ? d : level + "." + d, d, 1, {}};
        loop.count = std::max<int64_t>(1, rounded_up(sizes[d], tile) / tile);
        sizes[d] = std::min(sizes[d], tile);
        loop.sizes = sizes;
        s.loops.push_back(loop);
        k.loops.push_back(loop.text);
    }
}

void Sketch::ask_parallel(PlannedStage &s, Knobs &k) {
    if (!s.place.empty()) return;
    if (s.view.scatters) {
        // Points of an ordinary dim run outside of the fold, and each has a part of the result.
        const auto outer = std::find_if(s.view.pure.begin(), s.view.pure.end(), [&](const std::string &d) { return !k.vector.count(d); });
        if (outer != s.view.pure.end() && ask(s.view.stage->name, "parallel", {{"0", 0.3}, {"1", 1}}) == "1") k.parallel = {*outer};
        return;
    }
    // On one thread a parallel loop costs nothing, and whoever has more is glad of it; an update may race.
    std::vector<Answer> answers;
    const double wanted = 8.0 * std::max(space_.threads, 2);
    double count = 1;
    bool enough = false;
    for (size_t n = 0; n < s.loops.size() && n < 4; n++) {
        const PlannedLoop &loop = s.loops[n];
        if (!contains(s.view.pure, loop.dim) || loop.text.starts_with("tile.")) break;
        count *= static_cast<double>(loop.count);
        answers.push_back({std::to_string(n + 1), enough ? 0.1 : 1});
        enough |= count >= wanted;
    }
    // A scan goes on with a serial loop only.
    const bool scans = !s.loops.empty() && s.scanned_before.count(s.loops[0].dim) > 0;
    if (answers.empty() || s.view.updates || scans) answers.insert(answers.begin(), {"0", scans ? 1 : 0.1});
    const size_t outermost = static_cast<size_t>(std::stoll(ask(s.view.stage->name, "parallel", answers)));
    for (size_t n = 0; n < outermost; n++) k.parallel.push_back(s.loops[n].text), s.loops[n].parallel = true;
}

// Row by row, inside another stage or by itself: later rows of what it reads, and where rows go that are written later.
void Sketch::ask_prefetches(PlannedStage &s, const Tiles &t, Knobs &k) {
    const bool placed = !s.place.empty();
    if ((!placed && s.loops.empty()) || t.vector.empty() || s.view.scatters) return;
    const PlannedStage &host = placed ? plan_->stage(s.place.back().stage) : s;
    const PlannedLoop &row = placed ? plan_->loop(s.place.back()) : s.loops.front();
    if (row.text != row.dim || row.dim == t.vector || !contains(host.view.pure, row.dim)) return;
    const std::string &name = s.view.stage->name;
    auto ask_rows = [&](const std::string &tensor, std::vector<Answer> answers) {
        for (const char *ahead : {"1", "2", "3"}) answers.push_back({ahead, 0.1});
        const std::string rows = ask(name, "prefetch." + tensor, answers);
        if (rows == "0") k.prefetch[tensor] = {};
        else if (rows != "none") k.prefetch[tensor] = {host.view.stage->name, row.text, std::stoll(rows)};
    };
    std::set<std::string> seen;
    for (const Operand &o : s.view.operands) {
        if (std::any_of(o.index.begin(), o.index.end(), has_load)) continue;
        const bool moves = moves_with(o, row.dim, plan_->extents()) && stride_of(o, t.vector, plan_->extents()) == Stride::one;
        if (!plan_->producer(o.tensor) && moves && seen.insert(o.tensor).second) ask_rows(o.tensor, {{"none", 1}});
    }
    if (!host.output || t.vector != s.view.stage->dims.back()) return;
    const auto streams = stages_.find(host.view.stage->name);
    if (streams != stages_.end() && streams->second.stream) return;
    for (const Tensor &result : results_of(*host.view.stage))
        if (result.dims == s.view.stage->dims)
            ask_rows(result.name, placed ? std::vector<Answer>{{"none", 1}, {"0", 0.2}} : std::vector<Answer>{{"none", 1}});
}

// For an output that no cache holds: rows, or tiles of rows, that go past the caches.
void Sketch::ask_stream(const PlannedStage &s, const Tiles &t, Knobs &k) {
    const std::vector<std::string> &dims = s.view.stage->dims;
    if (!s.view.stage->rows.empty() || !s.output || !s.place.empty() || !s.view.maps || s.view.updates || dims.empty() ||
        t.vector != dims.back())
        return;
    double bytes = 0;
    for (const Tensor &result : results_of(*s.view.stage)) {
        double all = static_cast<double>(size_of(result.dtype));
        for (const std::string &d : result.dims)
            if (auto n = plan_->extents().find(d); n != plan_->extents().end()) all *= static_cast<double>(n->second);
        bytes += all;
    }
    if (bytes <= static_cast<double>(space_.target.l3_bytes)) return;
    std::vector<Answer> answers = {{"none", 1}};
    for (size_t i = 0; i < s.loops.size(); i++) {
        if (i + 1 < s.loops.size() && s.loops[i + 1].parallel) continue;
        const bool is_innermost = i + 1 == s.loops.size() || s.loops[i].text.starts_with("micro.");
        if (!is_innermost) answers.push_back({s.loops[i].text, 0.3});
    }
    if (answers.size() == 1) return;
    const std::string loop = ask(s.view.stage->name, "stream", answers);
    if (loop != "none") k.stream = loop;
}

void Sketch::ask_tiles(size_t i) {
    if (space_.target.is_gpu()) return ask_threads(i);
    PlannedStage &s = plan_->stage(i);
    Tiles &t = tiles_[i];
    Knobs &k = stages_[s.view.stage->name];
    t.reuses = reuses(s, plan_->extents());
    if (s.view.maps)
        for (const Operand &o : s.view.operands)
            if (const PlannedStage *from = plan_->producer(o.tensor); from && from->view.folds && from->view.operands.size() > 1) {
                PlannedStage whole = *from;
                whole.sizes = plan_->needed(static_cast<size_t>(from - &plan_->stage(0)), {});
                t.around_folds |= reuses(whole, plan_->extents());
                if (const Instruction *family = best_fragments(*from)) t.rows = family->shape.m;
            }
    ask_vector(s, t, k);
    ask_instruction(s, t, k);
    if (!s.view.scatters) {
        if (t.fragments) ask_fragment_tile(s, t, k);
        else ask_register_tile(s, t, k);
        ask_levels(s, t, k);
        ask_loops(s, t, k);
        if (!t.fragments) ask_unrolled(s, t, k);
        ask_tails(s, t, k);
    }
    ask_parallel(s, k);
    if (t.fragments) return;
    ask_stream(s, t, k);
    ask_prefetches(s, t, k);
}

}  // namespace tessera
