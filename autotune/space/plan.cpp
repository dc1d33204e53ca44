#include "autotune/space/plan.h"

#include <algorithm>

#include "algorithms/index/ascending.h"
#include "costmodel/features/index_value.h"

namespace tessera {

// Whether the size is made of elements of such lists.
static bool is_between(const std::unordered_map<std::string, int64_t> &lists, const Expr &size) {
    bool found = false;
    walk(size, [&](const Expr &e) { found |= e.kind() == ExprKind::load && lists.count(e->name); });
    return found;
}

Plan::Plan(const Algorithm &algorithm, const Extents &extents) : algorithm_(algorithm) {
    Extents symbolic;
    for (const Dim &d : algorithm.dims)
        if (auto given = extents.find(d.name); given != extents.end() && d.kind == DimKind::symbolic) symbolic.insert(*given);
    extents_ = all_extents(algorithm, symbolic);
    note_rows();
    for (const Tensor &t : algorithm.tensors) tensors_[t.name] = t;
    for (const Stage &s : algorithm_.stages()) {
        const size_t position = stages_.size();
        PlannedStage planned;
        planned.view = view_of(s, algorithm_);
        for (const Tensor &t : results_of(s)) {
            defined_by_[t.name] = position, tensors_[t.name] = t;
            planned.output |= std::find(algorithm.outputs.begin(), algorithm.outputs.end(), t.name) != algorithm.outputs.end();
        }
        if (updates(s)) planned.output = true;
        for (const Operand &o : planned.view.operands)
            if (auto from = defined_by_.find(o.tensor); from != defined_by_.end() && from->second != position) {
                std::vector<size_t> &consumers = stages_[from->second].consumers;
                if (std::find(consumers.begin(), consumers.end(), position) == consumers.end()) consumers.push_back(position);
                const PlannedStage &producer = stages_[from->second];
                planned.scanned_before.insert(producer.scanned_before.begin(), producer.scanned_before.end());
                if (!producer.view.scanned.empty()) planned.scanned_before.insert(producer.view.scanned);
            }
        stages_.push_back(std::move(planned));
    }
}

// Rows of segments count as what there is of them on average.
void Plan::note_rows() {
    LoopPositions positions;
    positions.extents.insert(extents_.begin(), extents_.end());
    for (const Ascending &list : ascending_results(algorithm_))
        for (const Stage &s : algorithm_.stages())
            if (results_of(s)[0].name == list.tensor) positions.set_step(list.tensor, extent(s.dims[0]), positions.value(list.most));
    for (const Dim &d : algorithm_.dims)
        if (d.kind == DimKind::derived && !extents_.count(d.name) && is_between(positions.steps, d.size))
            extents_[d.name] = positions.value(d.size);
}

int64_t Plan::extent(const std::string &dim) const {
    constexpr int64_t typical = 64;
    auto known = extents_.find(dim);
    return known == extents_.end() ? typical : known->second;
}

const Tensor *Plan::tensor(const std::string &name) const {
    auto t = tensors_.find(name);
    return t == tensors_.end() ? nullptr : &t->second;
}

const PlannedStage *Plan::producer(const std::string &tensor) const {
    auto from = defined_by_.find(tensor);
    return from == defined_by_.end() ? nullptr : &stages_[from->second];
}

Path Plan::path(size_t stage) const {
    Path path = stages_[stage].place;
    for (size_t i = 0; i < stages_[stage].loops.size(); i++) path.push_back({stage, i});
    return path;
}

Path Plan::around_consumers(size_t stage) const {
    const PlannedStage &s = stages_[stage];
    if (s.output || s.consumers.empty()) return {};
    Path common = path(s.consumers[0]);
    for (size_t c : s.consumers) {
        const Path other = path(c);
        const auto end = std::mismatch(common.begin(), common.end(), other.begin(), other.end()).first;
        common.erase(end, common.end());
    }
    return common;
}

double Plan::repetitions(const Path &path) const {
    double count = 1;
    for (const Anchor &a : path) count *= static_cast<double>(loop(a).count);
    return count;
}

// Sizes of all dims of a stage that runs somewhere inside the path.
const Extents &Plan::sizes_in(size_t stage, const Path &path) const {
    for (auto a = path.rbegin(); a != path.rend(); ++a)
        if (a->stage == stage) return loop(*a).sizes;
    return needed(stage, path);
}

const Extents &Plan::needed(size_t stage, const Path &path) const {
    auto known = needed_.find({stage, path});
    return known != needed_.end() ? known->second : needed_.emplace(std::pair(stage, path), find_needed(stage, path)).first->second;
}

// A load of a stage's result, by the stage's points where it keeps rows.
static Operand at_points(const Stage &maker, const Operand &load) {
    const std::optional<std::vector<Expr>> point = maker.rows.empty() ? std::nullopt : point_of(maker, load.index);
    return point ? Operand{load.tensor, load.dtype, *point} : load;
}

bool Plan::is_read_by_points(size_t stage) const {
    const PlannedStage &s = stages_[stage];
    const Stage &maker = *s.view.stage;
    return maker.rows.empty() || std::all_of(s.consumers.begin(), s.consumers.end(), [&](size_t c) {
               const std::vector<Operand> &operands = stages_[c].view.operands;
               return std::all_of(operands.begin(), operands.end(),
                                  [&](const Operand &o) { return producer(o.tensor) != &s || point_of(maker, o.index); });
           });
}

Extents Plan::find_needed(size_t stage, const Path &path) const {
    const PlannedStage &s = stages_[stage];
    Extents sizes;
    for (const std::string &d : s.view.stage->dims) sizes[d] = path.empty() ? extent(d) : 1;
    for (const auto *dims : {&s.view.reduced, &s.view.extra})
        for (const std::string &d : *dims) sizes[d] = extent(d);
    if (path.empty()) return sizes;
    if (s.is_owned) {
        for (const Anchor &a : path)
            for (const auto &[d, size] : loop(a).sizes)
                if (sizes.count(d) && std::any_of(path.begin(), path.end(), [&, d = d](const Anchor &b) { return loop(b).dim == d; }))
                    sizes[d] = size;
        for (const std::string &d : s.view.stage->dims)
            if (std::none_of(path.begin(), path.end(), [&](const Anchor &b) { return loop(b).dim == d; })) sizes[d] = extent(d);
        return sizes;
    }
    for (size_t c : s.consumers) {
        const Extents &inside = sizes_in(c, path);
        for (const Operand &o : stages_[c].view.operands) {
            auto from = defined_by_.find(o.tensor);
            if (from == defined_by_.end() || from->second != stage) continue;
            const std::vector<std::string> dims = point_dims(*s.view.stage, tensors_.at(o.tensor));
            const std::vector<int64_t> span = spans(at_points(*s.view.stage, o), inside, extents_);
            for (size_t i = 0; i < span.size(); i++)
                if (std::find(s.view.extra.begin(), s.view.extra.end(), dims[i]) == s.view.extra.end())
                    sizes[dims[i]] = std::min(std::max(sizes[dims[i]], span[i]), std::max<int64_t>(extent(dims[i]), 1));
        }
    }
    if (!s.view.scanned.empty() && scan_place(stage, path) != ScanPlace::goes_on) sizes[s.view.scanned] = extent(s.view.scanned);
    return sizes;
}

ScanPlace Plan::scan_place(size_t stage, const Path &path) const {
    const PlannedStage &s = stages_[stage];
    std::vector<Expr> read;  // positions along the scan
    for (size_t c : s.consumers)
        for (const Operand &o : stages_[c].view.operands) {
            if (producer(o.tensor) != &s) continue;
            const std::vector<std::string> dims = point_dims(*s.view.stage, tensors_.at(o.tensor));
            read.push_back(
                at_points(*s.view.stage, o).index[static_cast<size_t>(std::find(dims.begin(), dims.end(), s.view.scanned) - dims.begin())]);
        }
    const auto first = std::find_if(path.begin(), path.end(), [&](const Anchor &a) {
        return std::any_of(read.begin(), read.end(), [&](const Expr &e) { return uses_variable(e, loop(a).dim); });
    });
    if (first == path.end()) return ScanPlace::whole;
    const std::string &dim = loop(*first).dim;
    const bool own_points =
        std::all_of(read.begin(), read.end(), [&](const Expr &e) { return e.kind() == ExprKind::variable && e->name == dim; });
    const bool serial =
        std::all_of(first, path.end(), [&](const Anchor &a) { return a.stage == first->stage && loop(a).dim == dim && !loop(a).parallel; });
    const bool forward = std::get<Scan>(s.view.stage->body).direction == ScanDirection::forward;
    return own_points && serial && forward ? ScanPlace::goes_on : ScanPlace::begins_again;
}

std::vector<int64_t> Plan::needed_of(const std::string &tensor, size_t reader, const Path &path) const {
    const Extents &inside = sizes_in(reader, path);
    const std::vector<std::string> &dims = tensors_.at(tensor).dims;
    std::vector<int64_t> most(dims.size(), 1);
    for (const Operand &o : stages_[reader].view.operands) {
        if (o.tensor != tensor) continue;
        const std::vector<int64_t> span = spans(o, inside, extents_);
        for (size_t i = 0; i < span.size(); i++) most[i] = std::min(std::max(most[i], span[i]), std::max<int64_t>(extent(dims[i]), 1));
    }
    return most;
}

}  // namespace tessera
