// What a profile counts is what the tile program's interpreter does: on random programs, whose extents do not divide, and on tiles in
// blocks.
#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "bench/measure/inputs.h"
#include "compiler/compile/specialize.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "costmodel/features/index_value.h"
#include "costmodel/features/profile.h"
#include "support/text/error.h"
#include "tests/compiler/random_case.h"

namespace tessera::test_counts {

struct Counts {
    double fma = 0, arithmetic = 0, slow = 0, integer = 0, reads = 0, writes = 0, masked = 0, scalar = 0, copied = 0, iterations = 0,
           guards = 0, partial = 0;
};

static const std::vector<std::pair<const char *, double Counts::*>> all_counts = {
    {"fma", &Counts::fma},       {"arithmetic", &Counts::arithmetic}, {"slow", &Counts::slow},     {"integer", &Counts::integer},
    {"reads", &Counts::reads},   {"writes", &Counts::writes},         {"masked", &Counts::masked}, {"scalar", &Counts::scalar},
    {"copied", &Counts::copied}, {"iterations", &Counts::iterations}, {"guards", &Counts::guards}, {"partial", &Counts::partial}};

static Counts counts_of(const Profile &p) {
    return {p.fma,    p.arithmetic, p.slow,   p.integer, p.loads + p.broadcasts + p.gathers, p.stores + p.scatters, p.masked, p.scalar,
            p.copied, p.iterations, p.guards, p.partial};
}

// Counts what the interpreter of one program does. What does not vary with the innermost loop is done once for all of its iterations, as is
// what does not vary with an unrolled one; the lanes of a vector are done together.
class Counter {
public:
    Counter(const TileProgram &program, const Extents &extents, const Target &target) : target_(target) {
        for (const auto &[dim, extent] : extents) at_.extents[dim] = extent;
        for (const Argument &a : program.arguments) declare({a.tensor.name, a.tensor.dtype, {}, Space::argument});
        for (const Tensor &t : program.constants) declare({t.name, t.dtype, {}, Space::constant});
        prepare(program.body);
    }

    InterpretOptions options() {
        InterpretOptions options;
        options.checked = false;
        options.on_loop = [this](const Loop &loop, int64_t n) {
            running_[&loop] = static_cast<double>(n);
            if (loop.kind != LoopKind::unrolled && loop.kind != LoopKind::vector) counts_.iterations += static_cast<double>(n);
        };
        options.on_guard = [this](const Guard &, bool) { counts_.guards++; };
        options.on_store = [this](const TileStore &store) { count(leaves_.at(&store.value)); };
        return options;
    }

    const Counts &counts() const { return counts_; }
    double most_in_a_nest() const {
        double most = 0;
        for (const auto &[value, leaf] : leaves_) most = std::max(most, leaf.visits);
        return most;
    }

private:
    using Loops = uint64_t;  // of those around a place
    struct Work {
        std::vector<double Counts::*> fields;
        Loops varies = 0;
        double bytes = 4;  // of an element
        bool is_done_for_each_point = false;
    };
    struct Leaf {
        std::vector<const Loop *> around;
        std::vector<Work> work;
        double visits = 0;
    };
    const Target &target_;
    Counts counts_;
    LoopPositions at_;
    struct Known {
        Space space = Space::argument;
        double bytes = 4;              // of an element
        std::vector<int64_t> strides;  // of what the program allocates
    };
    std::map<std::string, Known> buffers_;
    std::map<const Expr *, Leaf> leaves_;
    std::map<const Loop *, double> running_;
    std::vector<const Loop *> around_;
    std::map<std::string, Loops> varies_;

    void prepare(const TileBody &body) {
        for (const auto &node : body) {
            if (const auto store = store_of(*node)) prepare(*store, std::holds_alternative<Copy>(*node));
            const auto *loop = std::get_if<Loop>(node.get());
            const auto *let = std::get_if<Let>(node.get());
            if (loop) varies_[loop->variable] = Loops{1} << around_.size(), at_.loops[loop->variable] = 0, around_.push_back(loop);
            if (let) varies_[let->variable] = loops_of(let->value), at_.lets[let->variable] = let->value;
            if (const auto *alloc = std::get_if<Alloc>(node.get())) declare(alloc->buffer);
            for (const TileBody *inner : bodies_of(*node)) prepare(*inner);
            if (loop) around_.pop_back();
        }
    }

    void declare(const Buffer &buffer) {
        std::vector<int64_t> strides(buffer.extents.size(), 1);
        for (size_t a = strides.size(); a-- > 1;) strides[a - 1] = strides[a] * std::max<int64_t>(1, at_.value(buffer.extents[a]));
        buffers_[buffer.name] = {buffer.space, static_cast<double>(size_of(buffer.dtype)), strides};
    }

    Loops loops_of(const Expr &e) const {
        Loops all = 0;
        walk(e, [&](const Expr &n) {
            if (const auto known = varies_.find(n->name); n.kind() == ExprKind::variable && known != varies_.end()) all |= known->second;
        });
        return all;
    }

    bool in_lanes(Loops loops) const {
        for (size_t i = 0; i < around_.size(); i++)
            if (around_[i]->kind == LoopKind::vector && (loops >> i & 1)) return true;
        return false;
    }

    // Whether lanes find their elements in one register.
    bool is_register(const std::string &buffer, const std::vector<Expr> &index) {
        const Known &known = buffers_.at(buffer);
        if (known.space != Space::registers) return false;
        int64_t step = 0;
        for (const Loop *loop : around_) {
            if (loop->kind != LoopKind::vector || at_.value(loop->count) == 1) continue;
            for (size_t a = 0; a < index.size(); a++) {
                const int64_t first = at_.value(index[a]);
                at_.loops[loop->variable] = 1;
                step += (at_.value(index[a]) - first) * known.strides[a];
                at_.loops[loop->variable] = 0;
            }
        }
        return step == 0 || step == 1;
    }

    Loops access(const std::string &buffer, const std::vector<Expr> &index, bool writes, bool masked, Leaf &leaf) {
        Loops varies = 0;
        for (const Expr &i : index) varies |= loops_of(i);
        if (is_register(buffer, index)) return varies;
        Work one{{writes ? &Counts::writes : &Counts::reads}, writes ? ~Loops{0} : varies};
        if (masked) one.fields.push_back(&Counts::masked);
        if (!in_lanes(varies)) one.fields.push_back(&Counts::scalar);
        one.bytes = buffers_.at(buffer).bytes;
        leaf.work.push_back(one);
        return varies;
    }

    Loops operations(const Expr &e, Leaf &leaf, std::map<const void *, Loops> &known) {
        if (const auto it = known.find(e.get()); it != known.end()) return it->second;
        Loops varies = 0;
        if (e.kind() == ExprKind::variable) varies = loops_of(e);
        else if (e.kind() == ExprKind::load) {
            const size_t axes = e->args.size() - (e->guarded ? 2 : 0);
            varies = access(e->name, {e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(axes)}, false, e->guarded, leaf);
            if (e->guarded) varies |= operations(e->args[axes], leaf, known);
        } else
            for (const Expr &a : e->args) varies |= operations(a, leaf, known);
        if (e.kind() == ExprKind::operation || e.kind() == ExprKind::cast) {
            const bool is_slow = e.is_operation(Op::div) || e.is_operation(Op::sqrt);
            Work one{{e.kind() == ExprKind::cast ? &Counts::arithmetic
                      : !is_float(e.type())      ? &Counts::integer
                      : e.is_operation(Op::fma)  ? &Counts::fma
                      : is_slow                  ? &Counts::slow
                                                 : &Counts::arithmetic},
                     varies};
            if (!in_lanes(varies)) one.fields.push_back(&Counts::scalar);
            if (e.type() != DType::index && e.type() != DType::boolean) one.bytes = size_of(e.type());
            leaf.work.push_back(one);
        }
        return known[e.get()] = varies;
    }

    void prepare(const TileStore &store, bool copies) {
        Leaf leaf{around_, {}, 0};
        std::map<const void *, Loops> known;
        operations(store.value, leaf, known);
        access(store.buffer, store.index, true, store.guard.defined(), leaf);
        Work points{{}, ~Loops{0}};
        points.is_done_for_each_point = true;
        if (copies) points.fields.push_back(&Counts::copied);
        if (store.guard.defined()) points.fields.push_back(&Counts::partial);
        leaf.work.push_back(points);
        leaves_[&store.value] = leaf;
    }

    void count(Leaf &leaf) {
        leaf.visits++;
        const auto is_inside = [](const Loop *loop) { return loop->kind == LoopKind::unrolled || loop->kind == LoopKind::vector; };
        size_t innermost = leaf.around.size();
        for (size_t i = 0; i < leaf.around.size(); i++)
            if (!is_inside(leaf.around[i])) innermost = i;
        for (const Work &work : leaf.work) {
            double share = 1;  // of an instruction, that this point's is
            for (size_t i = 0; i < leaf.around.size() && !work.is_done_for_each_point; i++) {
                const LoopKind kind = leaf.around[i]->kind;
                const double n = running_.at(leaf.around[i]);
                const bool varies = work.varies >> i & 1;
                if (kind == LoopKind::vector) share *= (varies ? std::max(1.0, n * work.bytes / target_.vector_bytes) : 1) / n;
                else if (!varies && (kind == LoopKind::unrolled || i == innermost)) share /= n;
            }
            for (double Counts::*field : work.fields) counts_.*field += share;
        }
    }
};

// "", or the first count of the profile that is not the interpreter's: exactly, or to a hundredth where a nest has over 10,000 iterations.
static std::string wrong_count(const TileProgram &program, const Extents &given, const Target &target) {
    const Extents extents = all_extents(program, given);
    Counter counter(program, extents, target);
    std::map<std::string, Array> arrays;
    std::map<std::string, TensorView> views;
    for (const Argument &a : program.arguments)
        views[a.tensor.name] =
            arrays.emplace(a.tensor.name, Array(a.tensor.dtype, shape_of(a.tensor, extents))).first->second.view(a.tensor.name);
    interpret(program, views, extents, {}, counter.options());
    const Counts done = counter.counts(), counted = counts_of(profile_of(program, extents, target, 1));
    const double tolerance = counter.most_in_a_nest() > 10000 ? 0.01 : 1e-9;
    for (const auto &[name, count] : all_counts)
        if (!(std::abs(counted.*count - done.*count) <= tolerance * done.*count))
            return fmt::format("{}: {} counted, {} done", name, counted.*count, done.*count);
    return "";
}

// Whether what is computed depends on what is loaded.
static bool data_decides(const TileProgram &program) {
    auto loads = [](const Expr &e) { return e.defined() && e->loads; };
    bool found = false;
    walk(program.body, [&](const TileNode &node) {
        if (const auto *guard = std::get_if<Guard>(&node)) found |= loads(guard->condition);
        if (const auto *loop = std::get_if<Loop>(&node)) found |= loads(loop->count);
        if (const auto store = store_of(node)) found |= loads(store->guard);
    });
    return found;
}

// Counts of random programs, each at its shapes with extents that are so many times larger.
static void check_random(uint32_t seed, int programs, int64_t larger) {
    std::mt19937 random(seed);
    for (int made = 0; made < programs;) {
        const Target target = target_named(made % 2 ? "avx512" : "avx2");
        test::RandomCase c;
        TileProgram program;
        try {
            c = test::random_case("counted", random, target);
            for (Extents &shape : c.shapes)
                for (auto &[dim, extent] : shape) extent *= larger;
            const test::Case built = test::build(c);
            program = lower_variant(built.algorithm, built.when, built.stages, target);
            if (!program.programs.empty() || data_decides(program)) continue;  // the counter knows the nodes of one program
        } catch (const UserError &) { continue; }
        made++;
        for (const Extents &shape : c.shapes) {
            const std::string wrong = wrong_count(program, shape, target);
            if (wrong.empty()) continue;
            c.shapes = {shape};
            FAIL_CHECK(wrong << "\n" << test::to_cpp(c) << to_text(program));
            break;
        }
    }
}

TEST_CASE("a profile counts what the interpreter does: random programs") { check_random(1, 400, 1); }

TEST_CASE("a profile counts what the interpreter does, to a hundredth: random programs at larger extents") { check_random(2, 30, 5); }

TEST_CASE("a profile counts what the interpreter does: a fold in a level of tiles in blocks") {
    Builder f("product", Numerics{});
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Algorithm product = bind_extents(f.output("y", relu(dot(f.input("x", {M, K}), f.input("w", {K, N})).named("acc"))).build(),
                                           {{"M", 64}, {"N", 16}, {"K", 8}});
    const Target target = target_named("avx512");
    for (int64_t b : {8, 12, 16, 20, 24, 32, 40, 48, 56, 64})
        for (int64_t t : {1, 2, 3, 4, 5, 6, 7, 8, 12}) {
            KnobsByStage stages;
            stages["y"].block = {{"M", b}}, stages["y"].levels["tile"] = {{"M", t}}, stages["y"].vector = {{"N", 16}};
            stages["acc"].place = Place{Place::Kind::at, "y", "tile"}, stages["acc"].vector = {{"N", 16}};
            const TileProgram program = lower(product, stages, target);
            INFO("block M=" << b << ", tile M=" << t);
            CHECK(wrong_count(program, {}, target) == "");
            CHECK(profile_of(program, {}, target, 1).fma >= 64 * 16 * 8 / 16);
        }
}

}  // namespace tessera::test_counts
