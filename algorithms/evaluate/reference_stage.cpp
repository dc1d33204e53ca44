#include "algorithms/evaluate/reference_stage.h"

#include <algorithm>

#include "support/text/error.h"

namespace tessera {

static constexpr int max_parts = 32;

StageRunner::StageRunner(const Algorithm &algorithm, const Extents &extents, const std::map<std::string, Scalar> &parameters)
    : a_(algorithm) {
    auto registers = [&](int count) {
        first_ += count;
        return first_ - count;
    };
    for (const Dim &d : a_.dims) dims_[d.name] = registers(2);
    for (const Parameter &p : a_.parameters) parameters_[p.name] = registers(1);
    left_ = registers(max_parts);
    frame_.resize(static_cast<size_t>(first_));
    for (const auto &[name, value] : extents) frame_[static_cast<size_t>(dims_.at(name)) + 1].integer = value;
    for (const auto &[name, slot] : parameters_) frame_[static_cast<size_t>(slot)] = to_register(parameters.at(name));
}

void StageRunner::add(const std::string &name, Array array) {
    Array &mine = arrays_[name] = std::move(array);
    ids_[name] = static_cast<int>(views_.size());
    views_.push_back(mine.view(name));
}

void StageRunner::add_constant(const Tensor &tensor) {
    std::vector<int64_t> extents;
    for (const std::string &d : tensor.dims) extents.push_back(points({d}));
    Array array(tensor.dtype, extents);
    require(static_cast<int64_t>(tensor.values.size()) == array.size(), "the constant " + tensor.name + " is not full");
    for (size_t i = 0; i < tensor.values.size(); i++) array.set(static_cast<int64_t>(i), tensor.values[i]);
    add(tensor.name, std::move(array));
}

int64_t StageRunner::extent_of(const std::string &dim) {
    evaluate_sizes();
    return points({dim});
}

void StageRunner::set_index(const std::string &dim, int64_t index) { frame_[static_cast<size_t>(dims_.at(dim))].integer = index; }

std::map<std::string, Array> StageRunner::take() { return std::move(arrays_); }

// An extent that varies with an index is that of the point, whether or not a loop over the dim is open.
Expr StageRunner::with_sizes(const Expr &root) const {
    return rewrite(root, [&](const Expr &e) -> Expr {
        const Dim *d = e.kind() == ExprKind::extent ? a_.find_dim(e->name) : nullptr;
        return d && d->size.defined() && !variables_in(d->size).empty() ? max(with_sizes(d->size), Expr(0)) : Expr();
    });
}

Tape StageRunner::compile(const std::vector<Expr> &declared) {
    std::vector<Expr> roots;
    for (const Expr &e : declared) roots.push_back(with_sizes(e));
    TapeResolver resolver;
    resolver.slot = [&](const Expr &leaf) {
        switch (leaf.kind()) {
        case ExprKind::variable: return dims_.at(leaf->name);
        case ExprKind::extent: return dims_.at(leaf->name) + 1;
        case ExprKind::parameter: return parameters_.at(leaf->name);
        case ExprKind::left: return left_ + leaf->number;
        case ExprKind::constant:
        case ExprKind::load:
        case ExprKind::bounded:
        case ExprKind::operation:
        case ExprKind::function:
        case ExprKind::bitcast:
        case ExprKind::cast:
        case ExprKind::right:
        case ExprKind::input: break;
        }
        throw InternalError("the reference interpreter meets " + brief(leaf));
    };
    resolver.tensor = [&](const std::string &name) {
        auto it = ids_.find(name);
        require(it != ids_.end(), name + " is loaded before it is computed");
        return it->second;
    };
    Tape tape(roots, resolver, first_);
    first_ = tape.end();
    frame_.resize(static_cast<size_t>(first_));
    tape.prepare(frame_.data());
    return tape;
}

StageRunner::Loops StageRunner::loops_of(const std::vector<std::string> &dims) {
    Loops loops;
    for (const std::string &name : dims) {
        Loop loop{dims_.at(name), dims_.at(name) + 1, -1};
        if (auto it = size_of_dim_.find(name); it != size_of_dim_.end()) loop.size = static_cast<int>(it->second);
        loops.push_back(loop);
    }
    return loops;
}

StageRunner::Loops StageRunner::points_of(const Stage &stage, const std::string &but) {
    Loops loops;
    const auto box = boxes_.find(stage.name);
    for (size_t i = 0; i < stage.dims.size(); i++) {
        if (stage.dims[i] == but) continue;
        loops.push_back(loops_of({stage.dims[i]})[0]);
        if (box != boxes_.end()) loops.back().only = box->second[i];
    }
    return loops;
}

Interval StageRunner::range_of(const Loop &loop) const {
    const int64_t extent = frame_[static_cast<size_t>(loop.extent)].integer;
    return {std::max<int64_t>(loop.only.lo, 0), std::min(loop.only.hi, extent - 1)};
}

void StageRunner::limit(std::map<std::string, Box> boxes) { is_limited_ = true, boxes_ = std::move(boxes); }

int64_t StageRunner::enter(const Loop &loop) {
    Register &extent = frame_[static_cast<size_t>(loop.extent)];
    if (loop.size >= 0) {
        const Tape &size = sizes_[static_cast<size_t>(loop.size)];
        size.run(frame_.data(), views_.data());
        extent.integer = std::max<int64_t>(frame_[static_cast<size_t>(size.result(0))].integer, 0);
    }
    return extent.integer;
}

template <typename Body>
void StageRunner::each(const Loops &loops, size_t depth, const Body &body) {
    if (depth == loops.size()) return body();
    enter(loops[depth]);
    const Interval range = range_of(loops[depth]);
    for (int64_t i = range.lo; i <= range.hi; i++) {
        frame_[static_cast<size_t>(loops[depth].index)].integer = i;
        each(loops, depth + 1, body);
    }
}

int64_t StageRunner::position(const Loops &loops) {
    int64_t p = 0;
    for (const Loop &l : loops) {
        const Interval range = range_of(l);
        p = p * (range.hi - range.lo + 1) + frame_[static_cast<size_t>(l.index)].integer - range.lo;
    }
    return p;
}

void StageRunner::keep_rows(const Stage &stage) {
    axes_.clear(), firsts_.reset();
    if (stage.rows.empty()) return;
    const std::set<std::string> parents = parents_of(stage);
    std::vector<Expr> firsts;
    for (const std::string &d : stage.dims) {
        if (parents.count(d)) continue;
        const Rows *rows = rows_of(stage, d);
        axes_.push_back({dims_.at(d), dims_.at(rows ? rows->flat : d) + 1, rows ? static_cast<int>(firsts.size()) : -1});
        if (rows) firsts.push_back(rows->first);
    }
    firsts_ = compile(firsts);
}

int64_t StageRunner::element(const Loops &points) {
    if (!firsts_) return position(points);
    firsts_->run(frame_.data(), views_.data());
    int64_t p = 0;
    for (const Axis &axis : axes_) {
        const int64_t first = axis.first < 0 ? 0 : frame_[static_cast<size_t>(firsts_->result(static_cast<size_t>(axis.first)))].integer;
        p = p * frame_[static_cast<size_t>(axis.extent)].integer + first + frame_[static_cast<size_t>(axis.index)].integer;
    }
    return p;
}

int64_t StageRunner::points(const std::vector<std::string> &dims) {
    int64_t n = 1;
    for (const std::string &d : dims) n *= frame_[static_cast<size_t>(dims_.at(d)) + 1].integer;
    return n;
}

// Sizes of derived dims, of those whose tensors are there. One that varies with an index is evaluated by its loop; the
// others here, as often as one may depend on another.
void StageRunner::evaluate_sizes() {
    std::vector<std::string> constant_ones;
    for (const Dim &d : a_.dims) {
        if (d.kind != DimKind::derived) continue;
        bool ready = true, varies = false;
        walk(d.size, [&](const Expr &e) {
            ready &= e.kind() != ExprKind::load || ids_.count(e->name) > 0;
            varies |= e.kind() == ExprKind::variable;
        });
        if (!ready) continue;
        if (!size_of_dim_.count(d.name)) {
            sizes_.push_back(compile({d.size}));
            size_of_dim_[d.name] = sizes_.size() - 1;
        }
        if (!varies) constant_ones.push_back(d.name);
    }
    for (size_t round = 0; round < constant_ones.size(); round++)
        for (const Loop &loop : loops_of(constant_ones)) enter(loop);
}

void StageRunner::check_shapes() {
    evaluate_sizes();
    for (const Tensor &t : a_.tensors) {
        if (!arrays_.count(t.name)) continue;  // a round leaves it
        for (size_t i = 0; i < t.dims.size(); i++) {
            int64_t expected = points({t.dims[i]}), got = arrays_.at(t.name).extents[i];
            if (size_of_dim_.count(t.dims[i]) && expected != got)
                throw UserError("reference.extent", a_.name + "." + t.dims[i] + ": the size " + to_string(a_.dim(t.dims[i]).size) + " is " +
                                                        std::to_string(expected) + ", but " + std::to_string(got) + " in " + t.name + ".");
        }
    }
}

StageRunner::Fold StageRunner::make_fold(const Monoid &monoid, const std::vector<Expr> &inputs) {
    require(monoid.parts.size() <= max_parts, "a monoid of more than 32 parts");
    monoid_ = &monoid;
    Fold fold;
    for (size_t p = 0; p < monoid.parts.size(); p++) {
        auto same = [&](const Group &g) { return g.dims == monoid.parts[p].dims; };
        auto it = std::find_if(fold.groups.begin(), fold.groups.end(), same);
        if (it == fold.groups.end()) {
            fold.groups.emplace_back();
            it = fold.groups.end() - 1;
            it->dims = monoid.parts[p].dims;
        }
        it->parts.push_back(p);
    }
    std::stable_partition(fold.groups.begin(), fold.groups.end(), [](const Group &g) { return !g.dims.empty(); });
    for (Group &g : fold.groups) {
        std::vector<Expr> steps;
        for (size_t p : g.parts)
            steps.push_back(rewrite(monoid.step[p], [&](const Expr &e) {
                return e.kind() == ExprKind::input ? inputs[static_cast<size_t>(e->number)] : Expr();
            }));
        g.step = compile(steps);
        g.loops = loops_of(g.dims);
        g.points = points(g.dims);
    }
    fold.values.resize(monoid.parts.size());
    return fold;
}

void StageRunner::reset(Fold &fold, int64_t places) {
    for (const Group &g : fold.groups)
        for (size_t p : g.parts) fold.values[p].assign(static_cast<size_t>(g.points * places), to_register(monoid_->parts[p].identity));
}

void StageRunner::absorb(Fold &fold, int64_t place) {
    auto take = [&](const Group &g, int64_t at) {
        for (size_t p : g.parts) frame_[static_cast<size_t>(left_) + p] = fold.values[p][static_cast<size_t>(at)];
    };
    auto step = [&](const Group &g, int64_t at) {
        g.step.run(frame_.data(), views_.data());
        for (size_t i = 0; i < g.parts.size(); i++)
            fold.values[g.parts[i]][static_cast<size_t>(at)] = frame_[static_cast<size_t>(g.step.result(i))];
    };
    if (fold.groups.back().dims.empty()) take(fold.groups.back(), place);
    for (const Group &g : fold.groups) {
        if (g.dims.empty()) {
            step(g, place);
            continue;
        }
        int64_t at = place * g.points;
        each(g.loops, 0, [&] {
            take(g, at);
            step(g, at++);
        });
    }
}

void StageRunner::store(const Fold &fold, int64_t place, int64_t row) {
    for (const Group &g : fold.groups)
        for (size_t p : g.parts) {
            Array &result = *results_[p];
            for (int64_t i = 0; i < g.points; i++)
                store_register(result.dtype, result.data.data() + (row * g.points + i) * size_of(result.dtype),
                               fold.values[p][static_cast<size_t>(place * g.points + i)]);
        }
}

void StageRunner::run(const Stage &stage, const Reduce &reduce) {
    std::vector<Expr> tests;
    if (reduce.where.defined()) tests.push_back(reduce.where);
    Tape where = compile(tests), at = compile(reduce.at);
    Fold fold = make_fold(reduce.monoid, reduce.inputs);
    Loops outer = points_of(stage), inner = loops_of(reduce.dims);
    auto holds = [&] {
        if (tests.empty()) return true;
        where.run(frame_.data(), views_.data());
        return frame_[static_cast<size_t>(where.result(0))].integer != 0;
    };
    if (!scatters(stage)) {
        int64_t row = 0;
        each(outer, 0, [&] {
            reset(fold, 1);
            each(inner, 0, [&] {
                if (holds()) absorb(fold, 0);
            });
            store(fold, 0, firsts_ ? element(outer) : row++);
        });
        return;
    }
    int64_t places = points(stage.dims);
    reset(fold, places);
    std::vector<std::string> all = ordinary_dims(stage);
    all.insert(all.end(), reduce.dims.begin(), reduce.dims.end());
    each(loops_of(all), 0, [&] {
        if (!holds()) return;
        at.run(frame_.data(), views_.data());
        int64_t place = 0;
        for (size_t i = 0; i < outer.size(); i++) {
            int64_t index = frame_[static_cast<size_t>(at.result(i))].integer;
            int64_t extent = frame_[static_cast<size_t>(outer[i].extent)].integer;
            if (index < 0 || index >= extent) return;
            place = place * extent + index;
        }
        absorb(fold, place);
    });
    for (int64_t place = 0; place < places; place++) store(fold, place, place);
}

void StageRunner::run(const Stage &stage, const Scan &scan) {
    std::vector<Expr> tests;
    if (scan.segments.defined()) tests.push_back(scan.segments);
    Tape begins = compile(tests);
    Fold fold = make_fold(scan.monoid, scan.inputs);
    Loops all = points_of(stage), along = loops_of({scan.dim});
    each(points_of(stage, scan.dim), 0, [&] {
        reset(fold, 1);
        int64_t extent = enter(along[0]);
        for (int64_t i = 0; i < extent; i++) {
            bool forward = scan.direction == ScanDirection::forward;
            frame_[static_cast<size_t>(along[0].index)].integer = forward ? i : extent - 1 - i;
            if (!tests.empty()) begins.run(frame_.data(), views_.data());
            if (!tests.empty() && frame_[static_cast<size_t>(begins.result(0))].integer) reset(fold, 1);
            if (!scan.inclusive) store(fold, 0, element(all));
            absorb(fold, 0);
            if (scan.inclusive) store(fold, 0, element(all));
        }
    });
}

namespace {

// Where a value of a Map goes: the next element of a result, or an element of a state.
struct Destination {
    std::byte *next = nullptr;  // of a result, whose first it is where rows are kept; null: there is none
    TensorView state;
    std::vector<int64_t> index;
};

}  // namespace

void StageRunner::run(const Stage &stage, const Map &map) {
    const std::vector<std::string> names = names_of_results(stage);
    std::vector<Tape> tapes;
    std::vector<Destination> targets(map.values.size());
    std::map<std::string, Array> before;
    for (size_t i = 0; i < map.values.size(); i++) {
        std::vector<Expr> roots = {map.values[i].value};
        if (const std::optional<Write> &to = map.values[i].to) {
            roots.insert(roots.end(), to->index.begin(), to->index.end());
            targets[i].state = arrays_.at(to->state).view(to->state), targets[i].index.resize(to->index.size());
            before.emplace(to->state, arrays_.at(to->state));
        } else if (!names[i].empty()) {
            targets[i].next = arrays_.at(names[i]).data.data();
        }
        tapes.push_back(compile(roots));
    }
    // What is read of a state is as it was before the first point.
    for (auto &[state, array] : before) views_[static_cast<size_t>(ids_.at(state))].data = array.data.data();
    const Loops points = points_of(stage);
    each(points, 0, [&] {
        const int64_t row = firsts_ ? element(points) : 0;
        for (size_t i = 0; i < tapes.size(); i++) {
            tapes[i].run(frame_.data(), views_.data());
            const Register value = frame_[static_cast<size_t>(left_) + i] = frame_[static_cast<size_t>(tapes[i].result(0))];
            Destination &target = targets[i];
            const DType type = map.values[i].value.type();
            if (target.next) {
                store_register(type, target.next + row * size_of(type), value);
                if (!firsts_) target.next += size_of(type);
            }
            if (!map.values[i].to) continue;
            for (size_t d = 0; d < target.index.size(); d++) target.index[d] = frame_[static_cast<size_t>(tapes[i].result(d + 1))].integer;
            store_register(target.state.dtype, target.state.address(target.index.data()), value);
        }
    });
    for (auto &[state, array] : before) views_[static_cast<size_t>(ids_.at(state))].data = arrays_.at(state).view(state).data;
}

// The memory is of its box; the view shows all of it, as if the rest were there.
void StageRunner::add_result(const Stage &stage, const Tensor &result) {
    const Loops points = points_of(stage);
    std::vector<int64_t> extents, first, end;
    for (size_t i = 0; i < result.dims.size(); i++) {
        const bool is_of_box = i < points.size() && stage.rows.empty();
        const Interval range = is_of_box ? range_of(points[i]) : Interval{0, this->points({result.dims[i]}) - 1};
        first.push_back(range.lo), end.push_back(range.hi + 1), extents.push_back(std::max<int64_t>(range.hi - range.lo + 1, 0));
    }
    add(result.name, Array(result.dtype, extents));
    if (!is_limited_) return;
    TensorView &view = views_.back();
    for (size_t i = 0; i < first.size(); i++) view.data -= first[i] * view.strides[i] * size_of(result.dtype);
    view.extents = end;
}

void StageRunner::run(const Stage &stage) {
    evaluate_sizes();
    results_.clear();
    if (is_limited_ && !boxes_.count(stage.name)) return;
    for (const Tensor &t : results_of(stage)) {
        add_result(stage, t);
        results_.push_back(&arrays_.at(t.name));
    }
    keep_rows(stage);
    std::visit([&](const auto &body) { run(stage, body); }, stage.body);
}

}  // namespace tessera
