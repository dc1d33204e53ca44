#include "costmodel/profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "compiler/instruction.h"
#include "costmodel/index_value.h"

namespace tessera {

namespace {

constexpr double latency = 8;       // issue slots until a multiply-add's result can be used: 4 cycles of 2
constexpr double slow_slots = 10;   // of a division or a square root
constexpr double line_bytes = 64;
constexpr int64_t typical = 64;     // an extent that data decides

struct Frame {
    std::string variable;
    LoopKind kind = LoopKind::serial;
    int64_t count = 1;
    size_t node = 0;  // of the tree of loops
};

// What is kept of a loop: how often it turns, and its place in the tree.
struct Turns {
    int64_t count = 1;
    size_t node = 0;
};

bool is_inside(LoopKind kind) { return kind == LoopKind::unrolled || kind == LoopKind::vector; }

// One place of the program that touches memory.
struct Access {
    size_t buffer = 0;
    bool store = false;
    double likely = 1;                          // of the conditions around it
    std::vector<Turns> frames;    // around it
    std::vector<double> touched;  // bytes while the frames from one on run, for each and for none
};

// Bytes touched while the frames from one on run; `movement` is by frame and by axis, over all iterations.
std::vector<double> touched_bytes(const std::vector<Turns> &frames, const std::vector<double> &movement, const std::vector<double> &extents, double element) {
    const size_t axes = extents.size();
    std::vector<double> bytes(frames.size() + 1), spans(axes, 1), iterations(axes, 1);
    for (size_t first = frames.size() + 1; first-- > 0;) {
        for (size_t a = 0; a < axes && first < frames.size(); a++)
            if (const double moved = movement[first * axes + a]; moved != 0) spans[a] += moved, iterations[a] *= static_cast<double>(frames[first].count);
        double elements = 1;
        for (size_t a = 0; a < axes; a++) {
            double span = std::min({spans[a], extents[a], iterations[a]});
            if (a + 1 == axes) span = std::max(span, std::min({line_bytes / element, extents[a], spans[a] > iterations[a] ? iterations[a] * line_bytes / element : span}));
            elements *= std::max(span, 1.0);
        }
        bytes[first] = elements * element;
    }
    return bytes;
}

// What one iteration of an innermost loop issues, over all iterations.
struct Bucket {
    double alu = 0, memory = 0, stores = 0, chain = 0, fma = 0, loads = 0, trips = 1, accumulators = 0;
    size_t node = 0;
};

class Profiler {
public:
    Profiler(const Target &target, int threads) : target_(target), threads_(threads) {}

    Profile run(const TileProgram &program, const DimExtents &extents) {
        nodes_.push_back({});
        enter(program, extents);
        finish();
        return out_;
    }

private:
    const Target &target_;
    int threads_;
    Profile out_;
    LoopPositions at_;
    using Mask = uint64_t;  // of frames
    std::unordered_map<std::string, Mask> varies_;  // variable -> the loops that its value depends on
    std::vector<Frame> frames_;
    double likely_ = 1;
    std::map<std::string, size_t> buffer_ids_;
    struct Known {
        Space space = Space::argument;
        std::vector<double> extents;
        double element = 4;
    };
    std::vector<Known> buffers_;
    std::vector<std::vector<size_t>> nodes_;  // of each loop, its accesses; 0 is the whole program
    std::vector<Access> accesses_;
    std::map<size_t, Bucket> buckets_;
    double stack_ = 0, workspace_ = 0;
    const TileProgram *program_ = nullptr;

    void enter(const TileProgram &program, const DimExtents &extents) {
        const TileProgram *outer = std::exchange(program_, &program);
        const LoopPositions saved = at_;
        at_.extents.clear();
        for (const Dim &d : program.dims) at_.extents[d.name] = d.kind == DimKind::fixed ? d.value : typical;
        for (const auto &[name, extent] : extents) at_.extents[name] = extent;
        for (const Dim &d : program.dims)
            if (d.kind == DimKind::symbolic && !d.equals.empty() && at_.extents.count(d.equals)) at_.extents[d.name] = at_.extents[d.equals];
        auto add = [&](const Tensor &t, Space space) {
            std::vector<Expr> e;
            for (const std::string &d : t.dims) e.push_back(extent(d));
            declare({t.name, t.dtype, e, space});
        };
        for (const Argument &a : program.arguments) add(a.tensor, Space::argument);
        for (const Tensor &t : program.constants) add(t, Space::constant);
        visit(program.body);
        at_ = saved;
        program_ = outer;
    }

    void declare(const Buffer &buffer) {
        Known known{buffer.space, {}, static_cast<double>(size_of(buffer.dtype))};
        for (const Expr &e : buffer.extents) known.extents.push_back(static_cast<double>(std::max<int64_t>(1, at_.value(e))));
        buffer_ids_[buffer.name] = buffers_.size();
        buffers_.push_back(known);
    }

    void visit(const TileBody &body) {
        for (const auto &node : body) std::visit([&](const auto &n) { visit(n); }, static_cast<const TileNodeBase &>(*node));
    }
    using TileNodeBase = std::variant<Loop, Compute, Copy, Prefetch, Barrier, Guard, Let, Alloc, Invoke>;

    double executions() const {
        double n = likely_;
        for (const Frame &f : frames_) n *= static_cast<double>(f.count);
        return n;
    }

    void visit(const Loop &loop) {
        const int64_t count = std::max<int64_t>(0, at_.value(loop.count));
        if (count == 0) return;
        if (loop.kind == LoopKind::parallel) {
            out_.regions += executions();
            if (out_.parallel < static_cast<double>(count)) {
                out_.parallel = static_cast<double>(count);
                const double share = std::ceil(out_.parallel / threads_);
                out_.imbalance = share * threads_ / out_.parallel;
            }
        }
        if (!is_inside(loop.kind)) out_.iterations += executions() * static_cast<double>(count);
        frames_.push_back({loop.variable, loop.kind, count, nodes_.size()});
        nodes_.push_back({});
        at_.loops[loop.variable] = (count - 1) / 2;
        varies_[loop.variable] = frames_.size() > 64 ? 0 : Mask{1} << (frames_.size() - 1);
        visit(loop.body);
        varies_.erase(loop.variable);
        at_.loops.erase(loop.variable);
        frames_.pop_back();
    }

    void visit(const Let &let) {
        at_.lets[let.variable] = let.value;
        varies_[let.variable] = loops_of(let.value);
        visit(let.body);
        varies_.erase(let.variable);
        at_.lets.erase(let.variable);
    }

    void visit(const Alloc &alloc) {
        declare(alloc.buffer);
        double bytes = buffers_.back().element;
        for (double e : buffers_.back().extents) bytes *= e;
        const bool stack = alloc.buffer.space == Space::stack || alloc.buffer.space == Space::registers;
        double &sum = stack ? stack_ : workspace_;
        sum += bytes;
        out_.stack_bytes = std::max(out_.stack_bytes, stack_), out_.workspace_bytes = std::max(out_.workspace_bytes, workspace_);
        visit(alloc.body);
        sum -= bytes;
    }

    // How often a condition holds: where each loop that it depends on stands at its middle, or at its end.
    double probability(const Expr &condition) {
        const Mask used = loops_of(condition);
        std::vector<const Frame *> loops;
        for (size_t i = 0; i < frames_.size() && i < 64; i++)
            if ((used >> i & 1) && frames_[i].count > 1 && loops.size() < 5) loops.push_back(&frames_[i]);
        double holds = 0;
        for (size_t corner = 0; corner < size_t{1} << loops.size(); corner++) {
            double weight = 1;
            for (size_t i = 0; i < loops.size(); i++) {
                const double n = static_cast<double>(loops[i]->count);
                const bool last = corner >> i & 1;
                at_.loops[loops[i]->variable] = last ? loops[i]->count - 1 : (loops[i]->count - 1) / 2;
                weight *= last ? 1 / n : (n - 1) / n;
            }
            if (at_.value(condition)) holds += weight;
        }
        for (const Frame *f : loops) at_.loops[f->variable] = (f->count - 1) / 2;
        return holds;
    }

    void visit(const Guard &guard) {
        out_.guards += executions();
        const double holds = probability(guard.condition), before = likely_;
        if (holds > 0 || guard.otherwise.empty()) likely_ = before * std::max(holds, 1e-3), visit(guard.then);
        if (holds < 1 && !guard.otherwise.empty()) likely_ = before * (1 - holds), visit(guard.otherwise);
        likely_ = before;
    }

    void visit(const Prefetch &) {}
    void visit(const Barrier &) {}

    void visit(const Invoke &invoke) {
        for (const TileProgram &callee : program_->programs) {
            if (callee.name != invoke.program) continue;
            DimExtents extents;
            for (const auto &[dim, e] : invoke.extents) extents[dim] = at_.value(e);
            const std::map<std::string, size_t> names = buffer_ids_;
            enter(callee, extents);
            buffer_ids_ = names;
        }
    }

    void visit(const Compute &c) { leaf(c.buffer, c.index, c.value, c.guard, false); }
    void visit(const Copy &c) { leaf(c.buffer, c.index, c.value, c.guard, true); }

    Mask loops_of(const Expr &e) const {
        if (e->variables == 0) return 0;
        if (e.kind() == ExprKind::variable) {
            auto known = varies_.find(e->name);
            return known == varies_.end() ? 0 : known->second;
        }
        Mask mask = 0;
        for (const Expr &arg : e->args) mask |= loops_of(arg);
        return mask;
    }

    // Visits the distinct nodes of a value and counts what each of them issues.
    struct Count {
        AddressMap<Mask> masks;
        Bucket issued;
        bool folds = false;  // reads what it writes
    };

    std::optional<size_t> innermost() const {
        for (size_t i = frames_.size(); i-- > 0;)
            if (!is_inside(frames_[i].kind)) return i;
        return std::nullopt;
    }

    // How many instructions compute what depends on these loops: invariants of the innermost loop are computed before it,
    // and unrolled iterations share what does not vary between them.
    double issues(Mask mask, double element) const {
        double n = likely_;
        const std::optional<size_t> inner = innermost();
        for (size_t i = 0; i < frames_.size(); i++) {
            const bool varies = mask >> i & 1;
            const Frame &f = frames_[i];
            if (f.kind == LoopKind::vector) n *= varies ? std::max(1.0, static_cast<double>(f.count) * element / target_.vector_bytes) : 1;
            else if (f.kind == LoopKind::unrolled) n *= varies ? static_cast<double>(f.count) : 1;
            else if (inner != i || varies) n *= static_cast<double>(f.count);
        }
        return n;
    }

    bool in_lanes(Mask mask) const {
        for (size_t i = 0; i < frames_.size(); i++)
            if (frames_[i].kind == LoopKind::vector && (mask >> i & 1)) return true;
        return false;
    }

    Mask count(const Expr &e, Count &all, const std::string &destination) {
        if (const Mask *known = all.masks.find(e.get())) return *known;
        Mask mask = 0;
        if (e.kind() == ExprKind::variable) mask = loops_of(e);
        else if (e.kind() == ExprKind::load) mask = memory(e->name, {e->args.begin(), e->args.end() - (e->guarded ? 2 : 0)}, false, e->guarded, all, destination);
        if (e.kind() == ExprKind::load && e->guarded) mask |= count(e->args[e->args.size() - 2], all, destination);
        if (e.kind() != ExprKind::load)
            for (const Expr &a : e->args) mask |= count(a, all, destination);
        *all.masks.add(e.get()).first = mask;
        const double element = e.type() == DType::index || e.type() == DType::boolean ? 4 : size_of(e.type());
        if (e.kind() == ExprKind::operation || e.kind() == ExprKind::cast) {
            const double n = issues(mask, element);
            double slots = n;
            if (e.kind() == ExprKind::cast) out_.arithmetic += n;
            else if (!is_float(e.type())) out_.integer += n;
            else if (e->op == Op::fma) out_.fma += n, all.issued.fma += n;
            else if (e->op == Op::div || e->op == Op::sqrt) out_.slow += n, slots = n * slow_slots;
            else out_.arithmetic += n;
            if (e.type() == DType::index) slots = 0;
            if (!in_lanes(mask)) out_.scalar += n;
            all.issued.alu += slots;
        }
        return mask;
    }

    // A load or store; gives the loops that the element varies with.
    Mask memory(const std::string &name, const std::vector<Expr> &index, bool store, bool masked, Count &all, const std::string &destination) {
        Mask mask = 0;
        for (const Expr &i : index) mask |= loops_of(i);
        auto id = buffer_ids_.find(name);
        if (id == buffer_ids_.end()) return mask;
        const Known &buffer = buffers_[id->second];
        if (!store && name == destination) all.folds = true;
        if (buffer.space == Space::registers) return mask;
        const size_t axes = index.size();
        std::vector<Turns> turns;
        std::vector<double> movement(frames_.size() * axes, 0);
        int64_t lane_step = 0;
        for (size_t f = 0; f < frames_.size(); f++) {
            turns.push_back({frames_[f].count, frames_[f].node});
            if (!(mask >> f & 1)) continue;
            int64_t &position = at_.loops[frames_[f].variable];
            const int64_t middle = position;
            for (size_t a = 0; a < axes; a++) {
                position = frames_[f].count - 1;
                const int64_t last = at_.value(index[a]);
                position = 0;
                const int64_t first = at_.value(index[a]);
                movement[f * axes + a] = static_cast<double>(std::abs(last - first));
                if (frames_[f].kind == LoopKind::vector && last != first) lane_step = a + 1 == axes && last - first == frames_[f].count - 1 ? 1 : 2;
            }
            position = middle;
        }
        const double n = issues(store ? ~Mask{0} : mask, buffer.element);
        const double lanes = target_.vector_bytes / buffer.element;
        const bool apart = lane_step == 2;
        (store ? (apart ? out_.scatters : out_.stores) : apart ? out_.gathers : lane_step == 1 || frames_.empty() ? out_.loads : out_.broadcasts) += n;
        (store ? all.issued.stores : all.issued.memory) += apart ? n * lanes : n;
        if (!store) all.issued.loads += n;
        if (masked) out_.masked += n;
        if (!in_lanes(mask)) out_.scalar += n;
        for (const Frame &f : frames_) nodes_[f.node].push_back(accesses_.size());
        nodes_[0].push_back(accesses_.size());
        std::vector<double> touched = touched_bytes(turns, movement, buffer.extents, buffer.element);
        accesses_.push_back({id->second, store, likely_, std::move(turns), std::move(touched)});
        return mask;
    }

    void leaf(const std::string &buffer, const std::vector<Expr> &index, const Expr &value, const Expr &guard, bool copies) {
        Count all;
        const double fma_before = out_.fma;
        count(value, all, buffer);
        for (const Instruction &family : instructions()) {
            if (family.group == 1 || match(family, value).empty()) continue;
            // Its instructions in place of what they mean.
            const double n = issues(~Mask{0}, size_of(family.accumulator));
            out_.grouped += n, out_.fma = fma_before, all.issued.alu = n * instructions_of(family, target_), all.issued.fma = n;
        }
        const bool in_registers = buffers_[buffer_ids_.at(buffer)].space == Space::registers;
        memory(buffer, index, true, guard.defined(), all, "");
        double unrolled = 1, points = likely_, own = 1;
        for (const Frame &f : frames_) {
            if (f.kind == LoopKind::unrolled) unrolled *= static_cast<double>(f.count);
            if (f.kind == LoopKind::vector) own *= std::max(1.0, static_cast<double>(f.count) * buffers_[buffer_ids_.at(buffer)].element / target_.vector_bytes);
            points *= static_cast<double>(f.count);
        }
        out_.statements += unrolled * own;
        if (copies) out_.copied += points;
        if (guard.defined()) out_.partial += points;
        const std::optional<size_t> inner = innermost();
        Bucket &bucket = buckets_[inner ? frames_[*inner].node : 0];
        bucket.node = inner ? frames_[*inner].node : 0;
        bucket.trips = inner ? static_cast<double>(frames_[*inner].count) : 1;
        bucket.alu += all.issued.alu, bucket.memory += all.issued.memory, bucket.stores += all.issued.stores;
        bucket.fma += all.issued.fma, bucket.loads += all.issued.loads;
        if (all.folds && in_registers && inner) {
            Mask moved = 0;
            for (const Expr &i : index) moved |= loops_of(i);
            if (!(moved >> *inner & 1)) {
                double turns = likely_;
                for (const Frame &f : frames_)
                    if (!is_inside(f.kind)) turns *= static_cast<double>(f.count);
                bucket.chain += turns * latency;
                bucket.accumulators += unrolled * own;
            }
        }
    }

    double touched_in(size_t node) const {
        std::map<size_t, double> largest;
        for (size_t a : nodes_[node]) {
            const Access &access = accesses_[a];
            size_t first = 0;
            for (size_t f = 0; f < access.frames.size(); f++)
                if (access.frames[f].node == node) first = f + 1;
            double &bytes = largest[access.buffer];
            bytes = std::max(bytes, access.touched[first]);
        }
        double sum = 0;
        for (const auto &[buffer, bytes] : largest) sum += bytes;
        return sum;
    }

    void finish() {
        std::vector<double> touched(nodes_.size());
        for (size_t n = 0; n < nodes_.size(); n++) touched[n] = touched_in(n);
        const std::array<double, 3> sizes = {static_cast<double>(target_.l1_bytes), static_cast<double>(target_.l2_bytes), static_cast<double>(target_.l3_bytes)};
        for (size_t level = 0; level < sizes.size(); level++) {
            std::map<std::pair<size_t, size_t>, double> brought;  // by buffer and loop
            for (const Access &a : accesses_) {
                size_t first = 0;
                double times = a.likely;
                size_t node = 0;
                if (touched[0] > sizes[level])
                    for (; first < a.frames.size(); first++) {
                        node = a.frames[first].node;
                        if (touched[node] <= sizes[level]) break;
                        times *= static_cast<double>(a.frames[first].count);
                    }
                const double bytes = a.touched[first] * times * (a.store ? 2 : 1);
                double &most = brought[{a.buffer, node}];
                most = std::max(most, bytes);
            }
            for (const auto &[where, bytes] : brought) out_.traffic[level] += bytes;
        }
        std::map<size_t, double> arguments;
        for (const Access &a : accesses_)
            if (buffers_[a.buffer].space == Space::argument) arguments[a.buffer] = std::max(arguments[a.buffer], a.touched[0]);
        for (const auto &[buffer, bytes] : arguments) out_.argument_bytes += bytes;
        const Bucket *hottest = nullptr;
        for (const auto &[node, b] : buckets_) {
            const double busiest = std::max({b.alu, b.memory, 2 * b.stores});
            out_.core_time += std::max(busiest, b.chain);
            if (b.chain > busiest) out_.chained += b.chain - busiest;
            if (!hottest || b.alu > hottest->alu) hottest = &b;
        }
        if (hottest) {
            out_.accumulators = hottest->accumulators;
            out_.loads_per_fma = hottest->loads / std::max(hottest->fma, 1.0);
            out_.inner_trips = hottest->trips;
            out_.inner_bytes = touched[hottest->node];
        }
    }
};

}  // namespace

Profile profile_of(const TileProgram &program, const DimExtents &extents, const Target &target, int threads) {
    return Profiler(target, std::max(threads, 1)).run(program, extents);
}

}  // namespace tessera
