#include "costmodel/features/profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "algorithms/expr/op_classes.h"
#include "compiler/instructions/families.h"
#include "compiler/tile/fragments.h"
#include "costmodel/features/loop_nest.h"
#include "costmodel/features/working_set.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// In issue slots, of which a cycle has two.
constexpr double latency = 8;          // until a float operation's result can be used
constexpr double slow_latency = 26;    // of a division or a square root
constexpr double memory_latency = 10;  // from a store to a load of the same place
constexpr double other_latency = 2;    // of an integer's operation, a comparison or a select
constexpr double window = 400;         // instructions that wait for others at one time
constexpr double spill_slots = 4;      // for a use of a vector that has no register
constexpr double found_room = 2;       // vectors more than there are registers that compilers still find room for
constexpr double fragment_slots = 2;   // of a row of a tile unit's step
constexpr double rare = 1e-3;          // how often at least what data decides holds, and how often it does not

using Mask = LoopNest::Mask;

// What one iteration of an innermost loop issues, over all iterations.
struct Bucket {
    double alu = 0, memory = 0, stores = 0, chain = 0, fma = 0, loads = 0, trips = 1, runs = 1;
    bool parallel = false;                         // inside of a parallel loop
    double in_turn = 1, vectors = 0, singles = 0;  // in one iteration, loaded and used several times: vectors, and elements for all lanes
    std::map<std::string, double> sums;            // independent ones, by buffer

    double busiest() const { return std::max({alu, memory, 2 * stores}); }
    // Where little stands between the begins of two chains, the processor works on both at one time.
    double waits() const { return chain * std::min(1.0, (alu + memory + stores) / runs / window); }
    // Vectors that are live in one iteration; what is used once is an operand in memory. Several elements in turn are loaded as one vector,
    // which stays.
    double live() const { return accumulators() + vectors / in_turn + (in_turn > 1 ? singles / in_turn : std::min(singles, 1.0)); }
    double accumulators() const {
        double all = 0;
        for (const auto &[buffer, count] : sums) all += count;
        return all;
    }
    void spill(double registers) {
        if (!sums.empty()) alu += spill_slots * std::max(0.0, live() - registers - found_room) * in_turn * trips * runs;
    }
};

class Profiler {
public:
    Profiler(const Target &target, int threads) : target_(target), threads_(threads) {}

    Profile run(const TileProgram &program, const Extents &extents) {
        programs_ = &program.programs;
        enter(program, extents, nullptr);
        finish();
        return out_;
    }

private:
    const Target &target_;
    int threads_;
    Profile out_;
    LoopNest nest_;
    std::map<std::string, size_t> buffer_ids_;
    struct Known {
        Space space = Space::argument;
        std::vector<double> extents;
        double element = 4;
    };
    std::vector<Known> buffers_;
    std::vector<Access> accesses_;
    std::map<size_t, Bucket> buckets_;
    double stack_ = 0, workspace_ = 0;
    const std::vector<Ascending> *ascending_ = nullptr;   // of the program that is entered
    const std::vector<TileProgram> *programs_ = nullptr;  // that may be called; none of them has any of its own

    // `bound`: the buffers of the caller that are its arguments; without them they are the kernel's own.
    void enter(const TileProgram &program, const Extents &extents, const std::vector<size_t> *bound) {
        const LoopPositions saved = nest_.at;
        Extents known = extents;
        for (const Dim &d : program.dims)
            if (d.kind == DimKind::symbolic && known.count(d.equals)) known[d.name] = known[d.equals];
        known = all_extents(program, known);
        nest_.at.extents = {known.begin(), known.end()};
        for (const Dim &d : program.dims) nest_.at.extents.emplace(d.name, LoopPositions::typical);
        const std::vector<Ascending> *const outer = ascending_;
        ascending_ = &program.ascending;
        auto add = [&](const Tensor &t, Space where) {
            std::vector<Expr> e;
            for (const std::string &d : t.dims) e.push_back(extent(d));
            declare({t.name, t.dtype, e, where});
        };
        for (size_t i = 0; i < program.arguments.size(); i++) {
            const Argument &a = program.arguments[i];
            if (bound) {
                buffer_ids_[a.tensor.name] = (*bound)[i];
                continue;
            }
            add(a.tensor, Space::argument);
            double bytes = buffers_.back().element;
            for (const std::string &d : a.tensor.dims) bytes *= static_cast<double>(nest_.at.value(extent(d)));
            if (a.written && !a.read) out_.written_bytes += bytes;
        }
        for (const Tensor &t : program.constants) add(t, Space::constant);
        visit(program.body);
        nest_.at = saved, ascending_ = outer;
    }

    void declare(const Buffer &buffer) {
        Known known{buffer.space, {}, static_cast<double>(size_of(buffer.dtype))};
        for (const Expr &e : buffer.extents) known.extents.push_back(static_cast<double>(std::max<int64_t>(1, nest_.at.value(e))));
        if (known.extents.size() == 1)
            for (const Ascending &list : *ascending_)
                if (list.tensor == buffer.name)
                    nest_.at.set_step(list.tensor, static_cast<int64_t>(known.extents[0]), nest_.at.value(list.most));
        buffer_ids_[buffer.name] = buffers_.size();
        buffers_.push_back(known);
    }

    void visit(const TileBody &body) {
        for (const auto &node : body) std::visit([&](const auto &n) { visit(n); }, *node);
    }

    void visit(const Loop &loop) {
        const double count = nest_.mean_of(max(loop.count, Expr(0)));
        if (count <= 0) return;  // of this shape nothing reaches it
        if (loop.kind == LoopKind::parallel) {
            out_.regions += nest_.turns();
            if (out_.parallel < count) {
                out_.parallel = count;
                const double share = std::ceil(out_.parallel / threads_);
                out_.imbalance = share * threads_ / out_.parallel;
            }
        }
        nest_.enter(loop, count);
        if (!nest_.frames().back().is_inside()) out_.iterations += nest_.turns();
        visit(loop.body);
        nest_.leave();
    }

    void visit(const Let &let) {
        nest_.bind(let);
        visit(let.body);
        nest_.unbind(let);
    }

    void visit(const Alloc &alloc) {
        declare(alloc.buffer);
        double bytes = buffers_.back().element;
        for (double e : buffers_.back().extents) bytes *= e;
        const bool stack = traits_of(alloc.buffer.space).of_thread;
        double &sum = stack ? stack_ : workspace_;
        sum += bytes;
        out_.stack_bytes = std::max(out_.stack_bytes, stack_), out_.workspace_bytes = std::max(out_.workspace_bytes, workspace_);
        visit(alloc.body);
        sum -= bytes;
    }

    void visit(const Guard &guard) {
        out_.guards += nest_.turns();
        double holds = nest_.mean_of(guard.condition);
        if (guard.condition->loads) holds = std::clamp(holds, rare, 1 - rare);
        if (holds > 0) visit(guard.then, guard.condition, true, holds);
        if (holds < 1 && !guard.otherwise.empty()) visit(guard.otherwise, guard.condition, false, 1 - holds);
    }

    void visit(const TileBody &branch, const Expr &condition, bool holds, double part) {
        nest_.suppose(condition, holds, part);
        visit(branch);
        nest_.forget();
    }

    void visit(const Prefetch &) {}
    void visit(const WaitNode auto &) {}

    // The bucket of the loop around the place.
    Bucket &bucket_here() {
        const std::optional<size_t> inner = nest_.innermost();
        Bucket &bucket = buckets_[inner ? nest_.frames()[*inner].node : 0];
        bucket.runs = nest_.turns_without(inner && *inner < 64 ? Mask{1} << *inner : 0);
        bucket.trips = inner ? nest_.frames()[*inner].count : 1;
        for (const LoopNest::Frame &f : nest_.frames()) bucket.parallel |= f.kind == LoopKind::parallel && f.count > 1;
        return bucket;
    }

    void visit(const Fragment &step) {
        const double vectors = nest_.turns() * find_family(step.family)->shape.m;
        bucket_here().alu += vectors * fragment_slots, out_.grouped += vectors, out_.statements++;
    }

    void visit(const Move &move) {
        if (!move.from) return;
        Bucket &bucket = bucket_here();
        const double rows = nest_.turns() * static_cast<double>(move.box[0]);
        move_box(*move.from, move.box, false), move_box(move.to, move.box, true);
        (buffers_[buffer_ids_.at(move.to.buffer)].space == Space::fragment ? bucket.memory : bucket.stores) += rows;
        out_.statements++;
    }

    // What of memory a box touches.
    void move_box(const BufferView &view, const std::vector<int64_t> &box, bool is_store) {
        const size_t id = buffer_ids_.at(view.buffer);
        if (buffers_[id].space == Space::fragment) return;
        std::vector<Expr> at;
        for (size_t axis = 0; axis < box.size(); axis++) {
            const std::string name = "%" + std::to_string(axis);
            nest_.enter({name, Expr(box[axis]), LoopKind::serial, {}}, static_cast<double>(box[axis]));
            at.push_back(variable(name));
        }
        const std::vector<Expr> index = element_of(view, at);
        const Walk walk = walk_of(index, loops_of(index), buffers_[id]).first;
        accesses_.push_back(
            {id, is_store, nest_.likely(), buffers_[id].element * offset(index, buffers_[id].extents), walk.loops, touched_by(walk)});
        for (size_t axis = 0; axis < box.size(); axis++) nest_.leave();
    }

    void visit(const Invoke &invoke) {
        for (const TileProgram &callee : *programs_) {
            if (callee.name != invoke.program) continue;
            Extents extents;
            for (const auto &[dim, e] : invoke.extents) extents[dim] = nest_.at.value(e);
            const std::map<std::string, size_t> names = buffer_ids_;
            std::vector<size_t> bound;
            for (size_t i = 0; i < invoke.arguments.size(); i++) bound.push_back(passed(invoke.arguments[i], callee.arguments[i], extents));
            enter(callee, extents, &bound);
            buffer_ids_ = names;
        }
    }

    // The buffer that is bound to an argument. A part of one is another buffer here, with the argument's own axes.
    size_t passed(const BufferView &view, const Argument &argument, const Extents &extents) {
        const size_t whole = buffer_ids_.at(view.buffer);
        if (view.is_whole()) return whole;
        Known part{buffers_[whole].space, {}, buffers_[whole].element};
        for (size_t i = 0; i < argument.tensor.dims.size(); i++) {
            auto extent = extents.find(argument.tensor.dims[i]);
            part.extents.push_back(extent != extents.end() ? static_cast<double>(std::max<int64_t>(1, extent->second))
                                                           : buffers_[whole].extents[view.axes[i].of]);
        }
        buffers_.push_back(part);
        return buffers_.size() - 1;
    }

    void visit(const Compute &c) { leaf(c.buffer, c.index, c.value, c.guard, false); }
    void visit(const Copy &c) { leaf(c.buffer, c.index, c.value, c.guard, true); }

    // Visits the distinct nodes of a value and counts what each of them issues.
    struct Term {
        Mask mask = 0;      // the loops that its value depends on
        double chain = -1;  // issue slots from what the destination held until it is there; below 0: it does not depend on that
    };
    struct Count {
        const std::string &destination;
        AddressMap<Term> terms = {};
        Bucket issued = {};
    };

    double issues(Mask mask, double element) const { return nest_.issues(mask, element, target_.vector_bytes); }

    Term count(const Expr &e, Count &all) {
        if (const Term *known = all.terms.find(e.get())) return *known;
        Term term;
        auto depend = [&](const Term &other) { term.mask |= other.mask, term.chain = std::max(term.chain, other.chain); };
        if (e.kind() == ExprKind::variable) term.mask = nest_.loops_of(e);
        else if (e.kind() == ExprKind::load) depend(load(e, {}, all));
        else
            for (const Expr &a : e->args) depend(count(a, all));
        if (e.kind() == ExprKind::operation || e.kind() == ExprKind::cast) operate(e, term, all);
        *all.terms.add(e.get()).first = term;
        return term;
    }

    void operate(const Expr &e, Term &term, Count &all) {
        const double n = issues(term.mask, e.type() == DType::index || e.type() == DType::boolean ? 4 : size_of(e.type()));
        const OpUnit unit = e.kind() == ExprKind::operation ? classes_of(e->op).unit : OpUnit::simple;
        const bool is_slow = is_float(e.type()) && unit == OpUnit::slow;
        if (e.kind() == ExprKind::cast) out_.arithmetic += n;
        else if (!is_float(e.type())) out_.integer += n;
        else if (unit == OpUnit::fma) out_.fma += n, all.issued.fma += n;
        else if (is_slow) out_.slow += n;
        else out_.arithmetic += n;
        if (!nest_.in_lanes(term.mask)) out_.scalar += n;
        if (e.type() != DType::index) all.issued.alu += is_slow ? n * slow_slots : n;
        const bool is_short = !is_float(e.type()) || unit == OpUnit::choice;
        if (term.chain >= 0) term.chain += is_slow ? slow_latency : is_short ? other_latency : latency;
    }

    // Elements that one instruction of a family takes together: so many, so far apart.
    struct Group {
        double size = 1, apart = 1;
    };

    Term load(const Expr &e, const Group &group, Count &all) {
        Term term{memory(e->name, index_of(e), false, e->guarded, group, all)};
        if (e->guarded) term.mask |= count(e->args[e->args.size() - 2], all).mask;
        if (e->name == all.destination) term.chain = buffers_[buffer_ids_.at(e->name)].space == Space::registers ? 0 : memory_latency;
        return term;
    }

    // Elements from the begin of the buffer.
    double offset(const std::vector<Expr> &index, const std::vector<double> &extents) const {
        double all = 0;
        for (size_t a = 0; a < index.size(); a++) all = all * extents[a] + static_cast<double>(nest_.at.value(index[a]));
        return all;
    }

    Mask loops_of(const std::vector<Expr> &index) const {
        Mask mask = 0;
        for (const Expr &i : index) mask |= nest_.loops_of(i);
        return mask;
    }

    // Where it goes, and how many elements there are from one lane to the next: 0 where lanes share one, nothing where that is not always
    // the same.
    std::pair<Walk, std::optional<double>> walk_of(const std::vector<Expr> &index, Mask mask, const Known &buffer) {
        const std::vector<LoopNest::Frame> &frames = nest_.frames();
        Mask wraps = 0;
        for (const Expr &i : index) wraps |= nest_.wraps(i);
        Walk walk{{}, std::vector<double>(frames.size() * index.size(), 0), buffer.extents, buffer.element};
        std::optional<double> step = 0;
        for (size_t f = 0; f < frames.size(); f++) {
            walk.loops.push_back({frames[f].count, frames[f].node});
            if (!LoopNest::has(mask, f)) continue;
            double all = 0;
            for (size_t a = 0; a < index.size(); a++) {
                const double moved = static_cast<double>(nest_.moved(index[a], f));
                walk.movement[f * index.size() + a] = std::abs(moved);
                all = all * buffer.extents[a] + moved;
            }
            if (frames[f].kind != LoopKind::vector || frames[f].last == 0) continue;
            if (LoopNest::has(wraps, f)) step.reset();
            else if (step && all != 0) step = all / static_cast<double>(frames[f].last);
        }
        return {std::move(walk), step};
    }

    // A load or store; gives the loops that the element varies with.
    Mask memory(const std::string &name, const std::vector<Expr> &index, bool store, bool masked, const Group &group, Count &all) {
        const Mask mask = loops_of(index);
        auto id = buffer_ids_.find(name);
        if (id == buffer_ids_.end()) return mask;
        const Known &buffer = buffers_[id->second];
        const auto [walk, step] = walk_of(index, mask, buffer);
        const bool together = group.size == 1 || group.apart == 1;
        const bool apart = !together || !step || (*step != 0 && *step != group.size);
        const bool one = step == 0 && !nest_.frames().empty();
        if (buffer.space == Space::registers && !apart) return mask;
        const double n = issues(store ? ~Mask{0} : mask, buffer.element * group.size);
        const double each = apart ? std::min(target_.vector_bytes / buffer.element, nest_.lanes() * group.size) : 1;
        (store ? (apart ? out_.scatters : out_.stores) : apart ? out_.gathers : one ? out_.broadcasts : out_.loads) += n;
        (store ? all.issued.stores : all.issued.memory) += n * each;
        if (!store) all.issued.loads += n;
        if (!store && nest_.is_shared(mask)) (one ? all.issued.singles : all.issued.vectors) += n;
        if (masked) out_.masked += n;
        if (!nest_.in_lanes(mask)) out_.scalar += n;
        if (buffer.space != Space::registers)
            accesses_.push_back(
                {id->second, store, nest_.likely(), buffer.element * offset(index, buffer.extents), walk.loops, touched_by(walk)});
        return mask;
    }

    // The operands of a family's instruction, in place of what it means.
    Term count_groups(const Instruction &family, const std::vector<Expr> &matched, Count &all) {
        Term term = count(matched[0], all);
        for (size_t side = 0; side < 2; side++) {
            const Expr &first = matched[1 + side], &second = matched[3 + side];
            if (first.kind() == ExprKind::load && second.kind() == ExprKind::load && first->name == second->name &&
                buffer_ids_.count(first->name)) {
                const std::vector<double> &extents = buffers_[buffer_ids_.at(first->name)].extents;
                term.mask |=
                    load(first, {static_cast<double>(family.shape.k), offset(index_of(second), extents) - offset(index_of(first), extents)},
                         all)
                        .mask;
            } else {
                for (int i = 0; i < family.shape.k; i++) term.mask |= count(matched[1 + 2 * static_cast<size_t>(i) + side], all).mask;
            }
        }
        const double n = issues(~Mask{0}, size_of(family.accumulator));
        const InstructionCost cost = cost_of(family, target_);
        out_.grouped += n, all.issued.fma += n, all.issued.alu += n * cost.instructions * cost.slots;
        if (term.chain >= 0) term.chain += latency * cost.instructions;
        return term;
    }

    Term count_value(const Expr &value, Count &all) {
        for (const Instruction &family : families())
            if (const std::vector<Expr> matched = is_emitted(family) ? match(family, value) : std::vector<Expr>(); !matched.empty())
                return count_groups(family, matched, all);
        return count(value, all);
    }

    void leaf(const std::string &buffer, const std::vector<Expr> &index, const Expr &value, const Expr &guard, bool copies) {
        Count all{buffer};
        const double chain = count_value(value, all).chain;
        const Known &known = buffers_[buffer_ids_.at(buffer)];
        const Mask moved = memory(buffer, index, true, guard.defined(), {}, all);
        const std::vector<LoopNest::Frame> &frames = nest_.frames();
        const std::optional<size_t> inner = nest_.innermost();
        bool parallel = false;
        double unrolled = 1, own = 1, in_turn = 1;
        Mask inside = 0;
        for (size_t i = 0; i < frames.size(); i++) {
            const LoopNest::Frame &f = frames[i];
            const double n = f.count;
            if (f.kind == LoopKind::parallel && n > 1) parallel = true;  // one iteration is one thread's
            if (f.kind == LoopKind::unrolled) unrolled *= n;
            if (f.kind == LoopKind::unrolled && !LoopNest::has(moved, i)) in_turn *= n;
            if (f.kind == LoopKind::vector) own *= std::max(1.0, n * known.element / target_.vector_bytes);
            if ((f.is_inside() || i == inner) && i < 64) inside |= Mask{1} << i;
        }
        const double points = nest_.turns(), runs = nest_.turns_without(inside);
        out_.statements += unrolled * own;
        if (copies) out_.copied += points;
        if (guard.defined()) out_.partial += points;
        const size_t node = inner ? frames[*inner].node : 0;
        Bucket &bucket = buckets_[node];
        bucket.runs = runs, bucket.parallel = parallel;
        bucket.trips = inner ? frames[*inner].count : 1;
        bucket.alu += all.issued.alu, bucket.memory += all.issued.memory, bucket.stores += all.issued.stores;
        bucket.fma += all.issued.fma, bucket.loads += all.issued.loads;
        if (inner)
            bucket.vectors += all.issued.vectors / (runs * bucket.trips), bucket.singles += all.issued.singles / (runs * bucket.trips);
        if (chain >= 0 && inner && !LoopNest::has(moved, *inner)) {
            bucket.chain = std::max(bucket.chain, runs * bucket.trips * in_turn * chain);
            double &sums = bucket.sums[buffer];
            sums = std::max(sums, unrolled / in_turn * own), bucket.in_turn = std::max(bucket.in_turn, in_turn);
        }
    }

    void finish() {
        const WorkingSets sets(accesses_, nest_.nodes(), target_);
        out_.traffic = sets.traffic(), out_.translations = sets.translations();
        std::map<size_t, double> arguments;
        for (const Access &a : accesses_)
            if (buffers_[a.buffer].space == Space::argument) arguments[a.buffer] = std::max(arguments[a.buffer], a.touched[0].bytes);
        for (const auto &[buffer, bytes] : arguments) out_.argument_bytes += bytes;
        const Bucket *hottest = nullptr;
        size_t loop = 0;  // its node
        for (auto &[node, b] : buckets_) {
            b.spill(target_.vector_registers);
            const double busiest = b.busiest(), waits = b.waits();
            out_.core_time += std::max(busiest, waits);
            if (!b.parallel) out_.alone += std::max(busiest, waits);
            if (waits > busiest) out_.chained += waits - busiest;
            if (!hottest || b.alu > hottest->alu) hottest = &b, loop = node;
        }
        if (hottest) {
            out_.accumulators = hottest->accumulators(), out_.in_turn = hottest->in_turn;
            out_.loads_per_fma = hottest->loads / std::max(hottest->fma, 1.0);
            out_.inner_trips = hottest->trips;
            out_.inner_bytes = sets.bytes_in(loop), out_.inner_rows = sets.rows_in(loop);
            out_.inner_loads = hottest->vectors, out_.live = hottest->live();
        }
    }
};

}  // namespace

Profile profile_of(const TileProgram &program, const Extents &extents, const Target &target, int threads) {
    return Profiler(target, std::max(threads, 1)).run(program, extents);
}

}  // namespace tessera
