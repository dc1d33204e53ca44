#include "autotune/space/sketch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "algorithms/ir/rows.h"
#include "algorithms/transform/inline_calls.h"
#include "autotune/space/knob_decisions.h"
#include "compiler/rewrite/inline_stages.h"
#include "compiler/rewrite/join.h"
#include "compiler/rewrite/split.h"
#include "support/text/error.h"

namespace tessera {

std::string Sketch::ask(const std::string &stage, const std::string &knob, std::vector<Answer> answers, bool ordered) {
    require(knob_made_by(knob).has_value(), "a decision's name begins with a word of knob_decisions.h");
    return answered({stage, knob, std::move(answers), ordered});
}

std::string Sketch::answered(const Decision &asked) const {
    const Decision decision = restricted(asked, space_.restrictions);
    if (decision.answers.size() == 1) return decision.answers[0].value;
    return decision.answers[choose_(decision)].value;
}

bool contains(const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// An extent as far as shape and fixed dims decide it.
static int64_t extent_of(const Algorithm &algorithm, const Extents &extents, const std::string &dim) {
    const Dim *d = algorithm.find_dim(dim);
    if (d && d->kind == DimKind::fixed) return d->value;
    auto given = extents.find(dim);
    if (given != extents.end()) return given->second;
    if (d && !d->equals.empty()) return extent_of(algorithm, extents, d->equals);
    return 64;
}

// Whether the sizes of dims are read off its results, as those of rows of segments. What is known of them is known of a whole scan.
static bool bounds_dims(const Stage &stage, const Algorithm &algorithm) {
    const std::vector<Tensor> results = results_of(stage);
    const auto is_result = [&](const Expr &e) {
        return e.kind() == ExprKind::load &&
               std::any_of(results.begin(), results.end(), [&](const Tensor &t) { return t.name == e->name; });
    };
    bool found = false;
    for (const Dim &d : algorithm.dims)
        if (d.size.defined()) walk(d.size, [&](const Expr &e) { found |= is_result(e); });
    return found;
}

void Sketch::ask_split(const Stage &stage, const Algorithm &algorithm) {
    const StageView view = view_of(stage, algorithm);
    const auto *reduce = std::get_if<Reduce>(&stage.body);
    const bool scans = !view.scanned.empty(), gpu = space_.target.is_gpu();
    if ((!scans && !reduce) || bounds_dims(stage, algorithm)) return;
    const int64_t lanes = std::max<int64_t>(1, space_.target.vector_bytes / size_of(view.dtype));
    double points = 1;
    for (const std::string &d : view.pure) points *= static_cast<double>(std::max<int64_t>(1, extent_of(algorithm, space_.extents, d)));
    for (const std::string &d : scans ? std::vector<std::string>{view.scanned} : view.reduced) {
        if (d.find('.') != std::string::npos && !scans) continue;  // a piece of an earlier split
        const Dim *dim = algorithm.find_dim(d);
        const bool ragged = dim && dim->kind == DimKind::derived && !variables_in(dim->size).empty();
        const int64_t n = extent_of(algorithm, space_.extents, d);
        std::vector<Answer> answers = {{"none", 1}};
        const Monoid &monoid = monoid_of(stage);
        if (view.scatters) {
            // Each thread adds up in copies of the result, where those are small beside what is folded.
            double result = 1;
            for (const std::string &s : stage.dims)
                result *= static_cast<double>(std::max<int64_t>(1, extent_of(algorithm, space_.extents, s)));
            const bool is_small = result * space_.threads < points * static_cast<double>(n);
            if (!gpu && !ragged && space_.threads > 1 && is_small && n >= 64 * space_.threads)
                answers.push_back({"threads:" + std::to_string(std::min(max_tile, (n + space_.threads - 1) / space_.threads)), 2});
        } else if (!scans && monoid.parts.size() > 1 && !monoid.batch.empty() && !ragged) {
            answers[0].prior = 0.1;
            answers.push_back({"passes", 1});
            for (int64_t size : {32, 64, 128, 256, 512})
                if (size < n) answers.push_back({"online:" + std::to_string(size), 0.4});
        } else if (!scans && !ragged) {
            // Lanes along the fold pay where no dim of the stage could run in lanes.
            bool other_dim = false, along = !view.operands.empty();
            for (const std::string &p : view.pure) {
                bool fits = extent_of(algorithm, space_.extents, p) >= lanes;
                for (const Operand &o : view.operands)
                    fits = fits && (stride_of(o, p, space_.extents) != Stride::other || may_be_packed(view, o, space_.extents));
                other_dim |= fits;
            }
            for (const Operand &o : view.operands) along = along && stride_of(o, d, space_.extents) != Stride::other;
            if (along && !reduce->where.defined() && monoid.commutative) {  // lanes take the elements in another order
                if (!other_dim) answers[0].prior = 0.1;
                if (gpu) {
                    for (int64_t size : {32, 64, 128, 256})
                        if (size * 2 <= n) answers.push_back({"team:" + std::to_string(size), other_dim ? 0.02 : 0.5});
                } else {
                    for (int64_t several : {1, 2, 4, 8})
                        if (several * lanes * 2 <= n)
                            answers.push_back({"lanes:" + std::to_string(several * lanes), other_dim ? 0.02 : 0.5});
                }
            }
            if (!gpu && space_.threads > 1 && points < 4 * space_.threads && n >= 64 * space_.threads)
                answers.push_back({"threads:" + std::to_string(std::min(max_tile, (n + space_.threads - 1) / space_.threads)), 0.5});
        } else if (scans && !ragged) {
            for (int64_t size : {64, 256, 1024})
                if (size < n) answers.push_back({"chunks:" + std::to_string(size), 0.05});
            if (!gpu && space_.threads > 1 && points < 4 * space_.threads && n >= 64 * space_.threads)
                answers.push_back({"threads:" + std::to_string(std::min(max_tile, (n + space_.threads - 1) / space_.threads)), 0.5});
        }
        // What two stages split alike has the same pieces.
        if (auto before = splits_.find(d); before != splits_.end())
            std::erase_if(answers, [&](const Answer &a) { return a.value != "none" && a.value != "passes" && a.value != before->second; });
        const std::string how = ask(stage.name, "split." + d, answers);
        if (how == "none") continue;
        if (how != "passes") splits_[d] = how;
        const size_t colon = how.find(':');
        const int64_t number = colon == std::string::npos ? 0 : std::stoll(how.substr(colon + 1));
        auto &splits = stages_[stage.name].split;
        if (how == "passes") splits[d] = {Split::How::passes, 0};
        else if (how.starts_with("online")) splits[d] = {Split::How::online, number};
        else if (how.starts_with("chunks")) splits[d] = {Split::How::chunks, number};
        else if (how.starts_with("threads")) splits[d] = {Split::How::threads, number};
        else {
            // Several vectors of partial results, folded into one, then into a quarter of a vector, then one after the other. Those of a
            // block's threads are folded by a few of them, then by one.
            constexpr int64_t few = 16;
            std::string left = d;
            for (int64_t size :
                 gpu ? std::vector<int64_t>{number, number > 2 * few ? few : 0} : std::vector<int64_t>{number, lanes, lanes / 4}) {
                if (size < 2 || (left != d && size >= splits.rbegin()->second.size)) continue;
                splits[left] = {Split::How::lanes, size};
                left += ".i";
            }
        }
        return;
    }
}

// Splits make stages, whose folds can be split in turn.
Algorithm Sketch::split(const Algorithm &declared) {
    Algorithm algorithm = declared;
    std::vector<std::string> asked;
    for (size_t i = 0; i < algorithm.stages().size(); i++) {
        const Stage &stage = algorithm.stages()[i];
        const std::string name = stage.name;
        if (contains(asked, name)) continue;
        asked.push_back(name);
        ask_split(stage, algorithm);
        auto knobs = stages_.find(name);
        if (knobs == stages_.end() || knobs->second.split.empty()) continue;
        const bool interleaved = knobs->second.split.begin()->second.how == Split::How::lanes;
        std::vector<std::string> before;
        for (const Stage &s : algorithm.stages()) before.push_back(s.name);
        Knobs one;
        one.split = knobs->second.split;
        algorithm = apply_splits(algorithm, {{name, one}});
        if (interleaved)
            for (const Stage &s : algorithm.stages())
                if (!contains(before, s.name)) asked.push_back(s.name);
        i = static_cast<size_t>(-1);
    }
    return algorithm;
}

// What a schedule may join for its own sake: outputs, updates and folds. A map between two stages is inlined or placed.
static bool is_joinable(const Stage &stage, const Algorithm &algorithm) {
    if (scatters(stage)) return false;
    if (updates(stage) || is_fold(stage)) return true;
    const std::vector<Tensor> results = results_of(stage);
    return std::any_of(results.begin(), results.end(), [&](const Tensor &t) { return contains(algorithm.outputs, t.name); });
}

// Whether both read a tensor of which each element is needed at one point alone: what is used again at other points is in a cache.
static bool share_stream(const StageView &a, const StageView &b) {
    const auto is_stream = [](const Operand &o, const StageView &view) {
        std::set<std::string> used;
        for (const Expr &e : o.index) used.merge(variables_in(e));
        const auto is_used = [&](const std::string &d) { return used.count(d) > 0; };
        return std::all_of(view.stage->dims.begin(), view.stage->dims.end(), is_used) &&
               std::all_of(view.reduced.begin(), view.reduced.end(), is_used);
    };
    return std::any_of(a.operands.begin(), a.operands.end(), [&](const Operand &x) {
        return is_stream(x, a) &&
               std::any_of(b.operands.begin(), b.operands.end(), [&](const Operand &y) { return x.tensor == y.tensor && is_stream(y, b); });
    });
}

// Stages of the same loops may be one, which reads what they share once.
Algorithm Sketch::join(const Algorithm &algorithm) {
    KnobsByStage joined;
    const auto with = [&](const std::string &guest, const std::string &host) {
        KnobsByStage all = joined;
        all[guest].place = Place{Place::Kind::beside, host, ""};
        return all;
    };
    KeptApart kept_apart(algorithm);
    const auto can_join = [&](const Stage &guest, const Stage &host) {
        if (!is_joinable(host, algorithm) || kept_apart(guest, host)) return false;
        if (joined.empty() && std::holds_alternative<Reduce>(host.body)) return true;
        KnobsByStage all = with(guest.name, host.name);
        try {
            join_stages(algorithm, all);
            return true;
        } catch (const UserError &) { return false; }
    };
    const auto stages = algorithm.stages();
    for (auto at = stages.begin(); at != stages.end(); ++at) {
        const Stage &guest = *at;
        if (!is_joinable(guest, algorithm)) continue;
        for (auto later = std::next(at); later != stages.end(); ++later) {
            const Stage &host = *later;
            if (!can_join(guest, host)) continue;
            const bool saves_reads = share_stream(view_of(guest, algorithm), view_of(host, algorithm));
            if (ask(guest.name, "beside", {{"none", 1}, {host.name, saves_reads ? 4.0 : 0.25}}) != "none")
                joined = with(guest.name, host.name), stages_[guest.name].place = joined[guest.name].place;
            break;
        }
    }
    if (joined.empty()) return algorithm;
    return join_stages(algorithm, joined);
}

// A Map of few operations that is read about as often as it would be stored is cheaper to compute again.
Algorithm Sketch::inline_maps(const Algorithm &algorithm) {
    const Plan plan(algorithm, space_.extents);
    KnobsByStage inlined;
    std::map<std::string, int64_t> sizes;  // of those
    for (size_t i = 0; i < plan.size(); i++) {
        const PlannedStage &s = plan.stage(i);
        if (!s.view.maps || s.output || s.consumers.empty()) continue;
        double points = 1, reads = 0;
        for (const std::string &d : s.view.stage->dims) points *= static_cast<double>(std::max<int64_t>(1, plan.extent(d)));
        for (size_t c : s.consumers) {
            double all = 1;
            const StageView &v = plan.stage(c).view;
            for (const auto *dims : {&v.stage->dims, &v.reduced})
                for (const std::string &d : *dims) all *= static_cast<double>(std::max<int64_t>(1, plan.extent(d)));
            reads += all;
        }
        const double cost = s.view.operations * reads / points;
        const std::string name = s.view.stage->name;
        std::map<std::string, int64_t> with_it = sizes;
        with_it[name] = whole_size(*s.view.stage, sizes);
        const bool fits = std::all_of(s.consumers.begin(), s.consumers.end(),
                                      [&](size_t c) { return inlined_size(*plan.stage(c).view.stage, with_it) <= max_inlined; });
        std::vector<Answer> answers = {{"no", 1}};
        if (fits) answers.push_back({"yes", 4 / (1 + cost)});
        if (ask(name, "inline", answers) == "no") continue;
        sizes = with_it;
        stages_[name].place = inlined[name].place = Place{Place::Kind::inlined, "", ""};
    }
    return inlined.empty() ? algorithm : inline_stages(algorithm, inlined);
}

// Whether the dim counts the pieces of a split, each of which is computed as a whole.
bool Sketch::runs_over_pieces(const std::string &dim) const {
    if (!dim.ends_with(".o")) return false;
    auto split = splits_.find(dim.substr(0, dim.size() - 2));
    return split != splits_.end() && !split->second.starts_with("lanes") && !split->second.starts_with("team");
}

// The loops of a later stage in which an output may be computed too, of its points those that belong to the iteration.
std::map<std::string, Path> Sketch::paths_beside(size_t i) const {
    const StageView &view = plan_->stage(i).view;
    const std::vector<size_t> &consumers = plan_->stage(i).consumers;
    std::map<std::string, Path> paths;
    if (view.updates || view.scatters) return paths;
    for (size_t h = i + 1; h < plan_->size(); h++) {
        const PlannedStage &host = plan_->stage(h);
        if (!host.place.empty() || host.view.scatters) continue;
        const Knobs &k = stages_.count(host.view.stage->name) ? stages_.at(host.view.stage->name) : Knobs();
        for (size_t n = 0; n < host.loops.size(); n++) {
            const PlannedLoop &loop = host.loops[n];
            const bool is_own = contains(view.pure, loop.dim), is_point = loop.text == loop.dim;
            const bool is_folded =
                consumers.empty() && contains(view.reduced, loop.dim) && !loop.parallel && (is_point || loop.text.starts_with("block."));
            const auto tail = k.tail.find(loop.dim);
            if ((!is_own && !is_folded) || !contains(host.view.pure, loop.dim) || (tail != k.tail.end() && tail->second == Tail::loop))
                break;
            Path &path = paths["beside " + host.view.stage->name + " in " + loop.text];
            for (size_t m = 0; m <= n; m++) path.push_back({h, m});
        }
    }
    return paths;
}

// An output that later loops read, or that reads what they do, is computed in them.
void Sketch::ask_beside(size_t i) {
    PlannedStage &s = plan_->stage(i);
    std::map<std::string, Path> paths = paths_beside(i);
    std::vector<Answer> answers = {{"root", 1}};
    for (const auto &[text, path] : paths) {
        const PlannedStage &host = plan_->stage(path[0].stage);
        const bool is_read = std::find(s.consumers.begin(), s.consumers.end(), path[0].stage) != s.consumers.end();
        answers.push_back({text, is_read || share_stream(s.view, host.view) ? 2.0 : 0.05});
    }
    const std::string name = s.view.stage->name, taken = ask(name, "place", answers);
    s.sizes = plan_->needed(i, {});
    if (taken == "root") return;
    s.place = paths.at(taken), s.is_owned = true;
    s.sizes = plan_->needed(i, s.place);
    const Anchor &a = s.place.back();
    stages_[name].place = Place{Place::Kind::beside, plan_->stage(a.stage).view.stage->name, plan_->loop(a).text};
}

void Sketch::ask_place(size_t i) {
    PlannedStage &s = plan_->stage(i);
    if (s.output) return ask_beside(i);
    // What a scatter computes may be anywhere in its result, and where rows begin is read around all loops.
    if (s.view.scatters || begins_rows(plan_->algorithm(), *s.view.stage) || !plan_->is_read_by_points(i)) {
        s.sizes = plan_->needed(i, {});
        return;
    }
    const Path around = plan_->around_consumers(i);
    double full = 1;
    for (const auto &[dim, extent] : plan_->needed(i, {})) full *= static_cast<double>(std::max<int64_t>(1, extent));
    std::vector<Answer> answers = {{"root", 0.3}};
    std::map<std::string, Path> paths = {{"root", {}}};
    for (size_t depth = 1; depth <= around.size(); depth++) {
        const Path path(around.begin(), around.begin() + static_cast<std::ptrdiff_t>(depth));
        const PlannedStage &host = plan_->stage(path.back().stage);
        const std::string &dim = plan_->loop(path.back()).dim;
        const ScanPlace scans = s.view.scanned.empty() ? ScanPlace::whole : plan_->scan_place(i, path);
        if (scans == ScanPlace::begins_again || (scans == ScanPlace::goes_on && space_.target.is_gpu())) continue;
        const bool reduced = contains(host.view.reduced, dim);
        if (reduced && plan_->loop(path.back()).text == dim && !runs_over_pieces(dim)) continue;  // element by element
        double points = 1;
        for (const auto &[d, extent] : plan_->needed(i, path)) points *= static_cast<double>(std::max<int64_t>(1, extent));
        // What little a block shares is nearer to its threads than what it would read instead.
        const bool shared = s.view.maps && points * size_of(s.view.dtype) <= static_cast<double>(space_.target.shared_bytes) / 2;
        const double again = plan_->repetitions(path) * points / full;
        if (again > 8 && !shared) continue;
        const std::string text = plan_->text(path.back());
        answers.push_back({text, shared ? 1 / std::max(1.0, std::log2(again)) : 1 / std::max(1.0, again)});
        if (scans == ScanPlace::goes_on) answers.back().prior *= 2;  // what is read again at once is never far away
        paths[text] = path;
    }
    // Nearest to the consumers last, where what is stored is least.
    answers.back().prior *= 2;
    const std::string name = s.view.stage->name, taken = ask(name, "place", answers);
    s.place = paths.at(taken);
    s.sizes = plan_->needed(i, s.place);
    if (taken == "root") return;
    const Anchor &a = s.place.back();
    stages_[name].place = Place{Place::Kind::at, plan_->stage(a.stage).view.stage->name, plan_->loop(a).text};
}

KnobsByStage Sketch::run() {
    const Algorithm whole = inline_calls(space_.algorithm);
    plan_ = std::make_unique<Plan>(inline_maps(join(split(whole))), space_.extents);
    for (size_t i = plan_->size(); i-- > 0;) {
        ask_place(i);
        ask_tiles(i);
    }
    for (size_t i = 0; i < plan_->size(); i++) ask_packs(i);
    for (const Mutator &mutator : space_.mutators)
        mutator(
            plan_->algorithm(), plan_->extents(),
            [&](const Decision &decision) {
                check_decision(decision);
                return answered(decision);
            },
            stages_);
    return stages_;
}

bool is_authors(const UserError &error) { return error.id() == "tune.decision" || error.id() == "generator.builder"; }

KnobsByStage realize(const SearchSpace &space, const Choose &choose) { return Sketch(space, choose).run(); }

}  // namespace tessera
