// Programs for GPUs in lock step: what ships meets nowhere, and what is broken on purpose is found.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "algorithms/library/library.h"
#include "compiler/check/verify_tiles.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"
#include "tests/support/thorough.h"

namespace tessera::test_lockstep {

using namespace tessera::test;

// ---- programs broken on purpose

struct Mutant {
    std::string what;
    TileProgram program;
};

// What becomes of a node: nothing for one that stays, no nodes for one that goes.
using Change = std::function<std::optional<TileBody>(const TileNode &)>;

static TileBody changed(const TileBody &body, const Change &change) {
    TileBody all;
    for (const auto &node : body) {
        if (const std::optional<TileBody> instead = change(*node)) all.insert(all.end(), instead->begin(), instead->end());
        else all.push_back(tile_node(map_bodies(*node, [&](const TileBody &inner) { return changed(inner, change); })));
    }
    return all;
}

// One mutant for each node that `change` changes.
static void each(const TileProgram &program, const std::string &what, const Change &change, std::vector<Mutant> &all) {
    for (size_t n = 0;; n++) {
        size_t at = 0;
        TileProgram mutant = program;
        mutant.body = changed(program.body, [&](const TileNode &node) -> std::optional<TileBody> {
            std::optional<TileBody> instead = change(node);
            return instead && at++ == n ? instead : std::nullopt;
        });
        if (at <= n) return;
        all.push_back({what + " " + std::to_string(n), std::move(mutant)});
    }
}

static bool copies_ahead(const TileBody &body) {
    bool found = false;
    walk(body, [&](const TileNode &n) {
        const auto *copy = std::get_if<Copy>(&n);
        found |= copy && copy->is_asynchronous;
    });
    return found;
}

static std::vector<Mutant> mutants_of(const TileProgram &program) {
    std::set<std::string> shared;
    std::map<std::string, Expr> slots;  // where they are rings
    walk(program.body, [&](const TileNode &n) {
        const auto *alloc = std::get_if<Alloc>(&n);
        if (!alloc || alloc->buffer.space != Space::shared) return;
        shared.insert(alloc->buffer.name);
        if (!alloc->buffer.extents.empty()) slots[alloc->buffer.name] = alloc->buffer.extents[0];
    });
    std::vector<Mutant> all;
    each(
        program, "lost barrier",
        [](const TileNode &n) { return std::holds_alternative<Barrier>(n) ? std::optional(TileBody{}) : std::nullopt; }, all);
    each(
        program, "lost await",
        [](const TileNode &n) { return std::holds_alternative<Await>(n) ? std::optional(TileBody{}) : std::nullopt; }, all);
    each(
        program, "short await",
        [](const TileNode &n) -> std::optional<TileBody> {
            const auto *await = std::get_if<Await>(&n);
            if (!await) return {};
            return TileBody{tile_node(Await{await->pending + 1})};
        },
        all);
    each(
        program, "lost commit",
        [](const TileNode &n) { return std::holds_alternative<Commit>(n) ? std::optional(TileBody{}) : std::nullopt; }, all);
    each(
        program, "overwritten slot",
        [&](const TileNode &n) -> std::optional<TileBody> {
            const auto *copy = std::get_if<Copy>(&n);
            if (!copy || !copy->is_asynchronous) return {};
            Copy other = *copy;
            other.index[0] = (other.index[0] + 1) % slots.at(copy->buffer);
            return TileBody{tile_node(other)};
        },
        all);
    each(
        program, "shifted store",
        [&](const TileNode &n) -> std::optional<TileBody> {
            const auto store = store_of(n);
            if (!store || !shared.count(store->buffer)) return {};
            std::vector<Expr> index = store->index;
            index.back() = index.back() + 1;
            return TileBody{tile_node(Compute{store->buffer, index, store->value, store->guard})};
        },
        all);
    each(
        program, "shifted read",
        [&](const TileNode &n) -> std::optional<TileBody> {
            const auto store = store_of(n);
            if (!store) return {};
            bool found = false;
            const Expr value = rewrite(store->value, [&](const Expr &e) -> Expr {
                if (found || e.kind() != ExprKind::load || e->guarded || !shared.count(e->name)) return {};
                found = true;
                std::vector<Expr> index = index_of(e);
                index.back() = index.back() + 1;
                return load(e->name, e.type(), index);
            });
            if (!found) return {};
            return TileBody{tile_node(Compute{store->buffer, store->index, value, store->guard})};
        },
        all);
    each(
        program, "dropped condition",
        [](const TileNode &n) -> std::optional<TileBody> {
            // Without its condition a slice past the last one is copied ahead: zeros, which nobody uses.
            const auto *guard = std::get_if<Guard>(&n);
            if (!guard || copies_ahead(guard->then)) return {};
            return guard->then;
        },
        all);
    each(
        program, "dropped guard of a store",
        [](const TileNode &n) -> std::optional<TileBody> {
            const auto store = store_of(n);
            if (!store || !store->guard.defined()) return {};
            return TileBody{tile_node(Compute{store->buffer, store->index, store->value, {}})};
        },
        all);
    return all;
}

// ---- what ships

static std::vector<Case> shipped_cases() {
    std::vector<Case> all = gpu_cases();
    std::erase_if(all, [](const Case &c) { return c.name.find("_shipped") == std::string::npos; });
    return all;
}

static TileProgram fast_matmul() {
    Library schedules;
    schedules.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    const Algorithm algorithm = library::matmul(Numerics{});
    return lowered("matmul_cuda", algorithm, resolve(schedules.find("matmul/cuda-sm80"), schedules).stages, target_named("cuda-sm80"));
}

// Products by tensor cores, whose warps go over several blocks and slices.
static std::vector<std::pair<Case, TileProgram>> by_warps() {
    Library schedules;
    schedules.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    std::vector<std::pair<Case, TileProgram>> all;
    // More slices than slots.
    const auto add = [&](const std::string &name, const Algorithm &algorithm, int64_t K) {
        const Case c{
            name, algorithm, {}, {{{"M", 3}, {"N", 5}, {"K", 0}}, {{"M", 67}, {"N", 12}, {"K", 20}}, {{"M", 40}, {"N", 40}, {"K", K}}}};
        all.emplace_back(c, lowered("by_warps", algorithm, resolve(schedules.find(name), schedules).stages, target_named("cuda-sm80")));
    };
    for (const std::string policy : {"bf16_machine", "f16_machine"}) {
        add("matmul/" + policy + "/cuda-sm80", library::matmul(numerics_named(policy)), 100);
        add("linear/" + policy + "/cuda-sm80", library::linear(numerics_named(policy)), 100);
    }
    add("matmul_s8s8/cuda-sm80", library::matmul_s8s8({}), 200);
    return all;
}

// What is wrong, in words; the last shape is the largest, and comes first.
static std::string found_in(const Case &c, const TileProgram &program, const TileProgram *original = nullptr) {
    for (size_t i = c.shapes.size(); i-- > 0;) {
        const Extents &shape = c.shapes[i];
        const auto seed = static_cast<uint32_t>(i + 1);
        const Parameters parameters = make_parameters(c.algorithm, seed);
        const Arrays inputs = make_inputs(c.algorithm, shape, seed);
        LockstepReport report;
        const Arrays got = run_lockstep(program, shape, inputs, parameters, {1, false, false}, report);
        if (!report.hazards.empty()) return report.hazards[0];
        if (!original) continue;
        const std::string difference = differ_in_bits(got, run_interpreter(*original, shape, inputs, parameters));
        if (!difference.empty()) return difference;
    }
    return "";
}

static std::string refused(const TileProgram &program) {
    try {
        verify(program);
        return "";
    } catch (const std::exception &e) { return e.what(); }
}

// Threads and blocks in their order and from the last to the first.
static void check_clean(const Case &c, const TileProgram &program) {
    for (size_t i = 0; i < c.shapes.size(); i++) {
        const auto seed = static_cast<uint32_t>(i + 1);
        const Parameters parameters = make_parameters(c.algorithm, seed);
        const Arrays inputs = make_inputs(c.algorithm, c.shapes[i], seed);
        const Arrays expected = run_interpreter(program, c.shapes[i], inputs, parameters);
        for (bool backwards : {false, true}) {
            if (backwards && i + 2 < c.shapes.size()) continue;
            LockstepReport report;
            const Arrays got = run_lockstep(program, c.shapes[i], inputs, parameters, {8, false, backwards}, report);
            INFO(c.name << " " << Catch::Detail::stringify(c.shapes[i]) << "\n" << to_text(report));
            CHECK(report.hazards.empty());
            CHECK(differ_in_bits(got, expected) == "");
        }
    }
}

TEST_CASE("in lock step, kernels for GPUs meet nowhere, in any order of threads and blocks") {
    const Target target = target_named("opencl");
    const std::vector<Case> cases = gpu_cases();
    std::set<std::string> covered = {"matmul/cuda-sm80"};
    for (size_t i = 0; i < cases.size(); i++) {
        const std::string &name = cases[i].name;
        const bool ships = name.find("_shipped") != std::string::npos;
        if (ships) covered.insert(name.substr(0, name.find("_shipped")) + "/opencl");
        if (ships || i % every(3) == 0) check_clean(cases[i], lowered(cases[i], target));
    }
    Case fast{"matmul_cuda", library::matmul(Numerics{}), {}, {{{"M", 1}, {"N", 1}, {"K", 1}}, {{"M", 131}, {"N", 140}, {"K", 18}}}};
    check_clean(fast, fast_matmul());
    for (const auto &[c, program] : by_warps()) check_clean(c, program), covered.insert(c.name);
    Library schedules;
    schedules.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    for (const std::string &name : schedules.names())
        if (name.ends_with("/opencl") || name.find("/cuda") != std::string::npos) {
            INFO(name);
            CHECK(covered.count(name) == 1);
        }
}

// Barriers where each thread meets itself alone: the same thread stores and reads an element, or there is but one. The verifier, which
// knows buffers and not who touches which element of them, asks for them. And sums of a real transform's upper half, which nothing reads.
static const std::map<std::string, std::set<std::string>> equivalent = {
    {"fft_shipped8192", {"lost barrier 3"}},
    {"linear_shipped", {"lost barrier 2"}},
    {"linear_gelu_shipped", {"lost barrier 2"}},
    {"layernorm_shipped", {"lost barrier 4", "lost barrier 5", "lost barrier 11", "lost barrier 12"}},
    {"residual_layernorm_shipped", {"lost barrier 4", "lost barrier 5", "lost barrier 11", "lost barrier 12"}},
    {"rmsnorm_shipped", {"lost barrier 2"}},
    {"ring_append_shipped", {"lost barrier 0"}},
    {"attention_shipped", {"lost barrier 4"}},
    {"attention_causal_shipped", {"lost barrier 4"}},
    {"conv2d_bias_relu_nhwc_shipped", {"lost barrier 2"}},
    {"average_pool2d_nhwc_shipped", {"lost barrier 0"}},
    {"rfft_shipped15",
     {"shifted store 8", "shifted store 9", "shifted store 10", "shifted store 11", "shifted store 12", "shifted store 13",
      "shifted store 23", "shifted store 24", "shifted store 25", "shifted store 26", "shifted store 27", "shifted store 28"}},
};

static bool is_lost_barrier(const Mutant &m) { return m.what.starts_with("lost barrier"); }
static bool is_of_ring(const Mutant &m) {
    const auto begins = [&](const char *what) { return m.what.starts_with(what); };
    return begins("lost await") || begins("short await") || begins("lost commit") || begins("overwritten slot");
}

TEST_CASE("in lock step, whatever is broken in a kernel that ships is found") {
    const Target target = target_named("opencl");
    size_t barriers = 0, of_rings = 0, others = 0;
    std::vector<std::pair<Case, TileProgram>> all;
    for (const Case &c : shipped_cases()) all.emplace_back(c, lowered(c, target));
    all.emplace_back(Case{"matmul_cuda", library::matmul(Numerics{}), {}, {{{"M", 131}, {"N", 140}, {"K", 18}}}}, fast_matmul());
    for (auto &shipped : by_warps()) all.push_back(std::move(shipped));
    for (const auto &[c, program] : all) {
        const auto known = equivalent.find(c.name);
        for (const Mutant &m : mutants_of(program)) {
            INFO(c.name << ", " << m.what);
            const std::string found = found_in(c, m.program, &program);
            CHECK(found.empty() == (known != equivalent.end() && known->second.count(m.what) == 1));
            if (is_lost_barrier(m)) CHECK(refused(m.program).find("without a barrier between them") != std::string::npos);
            if (is_of_ring(m)) CHECK(refused(m.program) != "");
            (is_lost_barrier(m) ? barriers : is_of_ring(m) ? of_rings : others)++;
        }
    }
    CHECK(barriers >= 60);
    CHECK(of_rings >= 20);
    CHECK(others >= 300);
}

TEST_CASE("what is found in lock step, the verifier refuses") {
    const Target target = target_named("opencl");
    const std::vector<Case> cases = gpu_cases();
    size_t count = 0;
    for (size_t i = 0; i < cases.size(); i += every(3)) {
        if (cases[i].name.find("_shipped") != std::string::npos) continue;
        for (const Mutant &m : mutants_of(lowered(cases[i], target))) {
            if (!is_lost_barrier(m)) continue;
            INFO(cases[i].name << ", " << m.what);
            const std::string found = found_in(cases[i], m.program);
            INFO(found);
            CHECK((found.empty() || !refused(m.program).empty()));
            count += !found.empty();
        }
    }
    CHECK(count >= (is_thorough() ? 20 : 4));
}

// ---- by hand

static const Expr t = variable("t"), u = variable("u"), b = variable("b");

static std::shared_ptr<const TileNode> threads(const std::string &v, TileBody body, int64_t count = 8) {
    return tile_node(Loop{v, count, LoopKind::thread, std::move(body)});
}
static std::shared_ptr<const TileNode> set(const std::string &buffer, std::vector<Expr> index, const Expr &value, const Expr &guard = {}) {
    return tile_node(Compute{buffer, std::move(index), value, guard});
}
static Expr at(const std::string &buffer, const Expr &index) { return load(buffer, DType::f32, {index}); }

// `blocks` blocks over f32 x[64] to f32 y[64] with s[32] in shared memory.
static LockstepReport run(TileBody body, int64_t blocks = 1, const LockstepOptions &options = {}) {
    TileProgram p;
    p.name = "by_hand", p.target = "opencl";
    p.dims = {fixed_dim("N", 64)};
    for (const char *name : {"x", "y"}) {
        Argument a;
        a.tensor.name = name, a.tensor.dims = {"N"};
        a.read = *name == 'x', a.written = *name == 'y';
        p.arguments.push_back(a);
    }
    // The rest of y, so that all of it is written.
    const TileBody rest = {
        tile_node(Loop{"c", 64, LoopKind::block, {threads("d", {set("y", {variable("c")}, constant(DType::f32, 0))}, 1)}})};
    body = {tile_node(Alloc{{"s", DType::f32, {Expr(32)}, Space::shared}, std::move(body)})};
    p.body = rest;
    p.body.push_back(tile_node(Loop{"b", blocks, LoopKind::block, std::move(body)}));
    std::vector<float> x(64, 1), y(64);
    const auto view = [](std::vector<float> &v) { return TensorView{"", DType::f32, reinterpret_cast<std::byte *>(v.data()), {64}, {1}}; };
    return run_in_lockstep(p, {{"x", view(x)}, {"y", view(y)}}, {}, {}, options);
}

static std::string hazard(TileBody body, int64_t blocks = 1) {
    const LockstepReport report = run(std::move(body), blocks);
    return report.hazards.empty() ? "" : report.hazards[0];
}

TEST_CASE("in lock step, errors say kernel, element, threads and what they do") {
    const auto fill = threads("t", {set("s", {t}, at("x", t))}), turn = threads("u", {set("y", {u}, at("s", Expr(7) - u))});
    const auto barrier = tile_node(Barrier{});
    CHECK(hazard({fill, barrier, turn}) == "");
    CHECK(hazard({fill, turn}) ==
          "kernel b, block 0: threads meet in s[7] with no barrier between them: thread 7 stores s[t], thread 0 reads s for y[u]");
    CHECK(hazard({fill, threads("u", {set("y", {u}, at("s", u))})}) == "");
    CHECK(hazard({threads("t", {set("s", {Expr(3)}, at("x", t))})}) ==
          "kernel b, block 0: threads meet in s[3] with no barrier between them: thread 0 stores s[3], thread 1 stores s[3]");
    CHECK(hazard({fill, threads("u", {set("y", {u}, at("s", u + 1))})}) != "");
    CHECK(hazard({turn}).find("s[7] is read before it is written") != std::string::npos);
    CHECK(hazard({threads("t", {set("y", {t}, at("x", t))})}, 2) ==
          "kernel b: blocks meet in y[0]: thread 0 of block 1 stores y[t], thread 0 of another block stores y[t]");
    CHECK(hazard({threads("t", {set("y", {b * 8 + t}, at("x", t))})}, 8) == "");
    // What all threads look at together.
    CHECK(hazard({fill, tile_node(Guard{at("s", 2) < constant(DType::f32, 2), {}, {}})}).find("every thread reads s for a condition") !=
          std::string::npos);
    CHECK(hazard({set("s", {Expr(0)}, constant(DType::f32, 1)), fill}).find("every thread stores s[0]") != std::string::npos);
    // Threads that never get to the barrier where the others wait.
    CHECK(hazard({threads("t", {tile_node(Guard{t < 5, {barrier}, {}})})}) ==
          "kernel b, block 0: 5 of 8 threads reach a barrier in the loop over threads t; the others never do");
    CHECK(hazard({threads("t", {barrier})}).find("whose threads take it as one step") != std::string::npos);
    const auto keep = [&](const Expr &row) {
        return TileBody{tile_node(Alloc{{"r", DType::f32, {Expr(8)}, Space::registers}, {threads("t", {set("r", {row}, at("x", t))})}})};
    };
    CHECK(hazard(keep(t)) == "");
    CHECK(hazard(keep(Expr(7) - t)).find("thread 0 stores r[7 - t] r[7], which is in registers of thread 7") != std::string::npos);
    // A buffer that begins anew in each turn of a loop is at the same place as before.
    const auto turns = [&](TileBody body) {
        return TileBody{
            tile_node(Loop{"k", 2, LoopKind::serial, {tile_node(Alloc{{"z", DType::f32, {Expr(8)}, Space::shared}, std::move(body)})}})};
    };
    const auto fill_z = threads("t", {set("z", {t}, at("x", t))}), turn_z = threads("u", {set("y", {u}, at("z", Expr(7) - u))});
    CHECK(hazard(turns({fill_z, barrier, turn_z, barrier})) == "");
    CHECK(hazard(turns({fill_z, barrier, turn_z})).find("threads meet in z[") != std::string::npos);
}

TEST_CASE("turns of banks and sectors are counted for each warp") {
    const auto counts = [](const Expr &shared, const Expr &global) {
        const LockstepReport report = run(
            {threads("t", {set("s", {t}, at("x", global))}, 32), tile_node(Barrier{}), threads("u", {set("y", {u}, at("s", shared))}, 32)});
        CHECK(report.hazards.empty());
        REQUIRE(report.kernels.size() == 2);
        return report.kernels[1];
    };
    const auto reads = [&](const Expr &shared) { return counts(shared, t).shared_reads; };
    CHECK(reads(u).turns == 1);
    CHECK(reads(Expr(31) - u).turns == 1);
    CHECK(reads(Expr(5)).turns == 1);  // one word for all
    CHECK(reads(u).accesses == 1);
    CHECK(counts(u, t).global_reads.turns == 4);
    CHECK(counts(u, t * 2).global_reads.turns == 8);
    CHECK(counts(u, t * 2).global_reads.least == 4);
    CHECK(counts(u, Expr(0)).global_reads.turns == 1);
    CHECK(counts(u, t).global_stores.turns == 4);
    CHECK(counts(u, t).threads == 32);
    CHECK(counts(u, t).shared_bytes == 128);
    CHECK(counts(u, t).barriers == 1);
}

TEST_CASE("in lock step, what is copied ahead is in flight until it is awaited") {
    const auto copy = [](const Expr &slot) {
        Copy c{"s", {slot * 8 + t}, at("x", t), {}};
        c.is_asynchronous = true;
        return threads("t", {tile_node(c)});
    };
    const auto turn = threads("u", {set("y", {u}, at("s", Expr(7) - u))}), own = threads("u", {set("y", {u}, at("s", u))});
    const auto barrier = tile_node(Barrier{}), commit = tile_node(Commit{});
    const auto await = [](int pending) { return tile_node(Await{pending}); };
    CHECK(hazard({copy(0), commit, await(0), barrier, turn}) == "");
    CHECK(hazard({copy(0), commit, await(0), own}) == "");  // each thread waited for its own
    CHECK(hazard({copy(0), commit, await(0), turn}).find("threads meet in s[7] with no barrier between them: thread 7 stores s[") !=
          std::string::npos);
    CHECK(hazard({copy(0), commit, barrier, turn, await(0)}) ==
          "kernel b, block 0: the asynchronous copy to s[7] by thread 7 is in flight where thread 0 reads s for y[u]");
    CHECK(hazard({copy(0), await(0), barrier, turn}).find("an await of all but 0 groups waits for nothing: 0 were issued") !=
          std::string::npos);
    CHECK(hazard({copy(0), commit, copy(1), commit, await(1), barrier, turn, await(0)}) == "");
    CHECK(hazard({copy(1), commit, copy(0), commit, await(1), barrier, turn, await(0)}).find("is in flight") != std::string::npos);
    CHECK(hazard({copy(0), commit, copy(0), commit, await(0), barrier, turn}).find("is in flight where thread 0 stores") !=
          std::string::npos);
    CHECK(hazard({copy(0), commit}).find("it ends where 1 groups of asynchronous copies are not awaited, and 0 bytes in none") !=
          std::string::npos);
    CHECK(hazard({copy(0)}).find("0 groups of asynchronous copies are not awaited, and 32 bytes in none") != std::string::npos);
}

// By hand: a warp reads 2 words of the one operand, and of the other one 16 words that are 4 apart: two for each of 8 banks.
TEST_CASE("conflicts of banks in a matmul that ships") {
    const std::vector<Case> cases = gpu_cases();
    const auto c = std::find_if(cases.begin(), cases.end(), [](const Case &one) { return one.name == "matmul_shipped"; });
    const Extents shape = {{"M", 64}, {"N", 64}, {"K", 16}};
    LockstepReport report;
    run_lockstep(lowered(*c, target_named("opencl")), shape, make_inputs(c->algorithm, shape, 1), {}, {}, report);
    REQUIRE(report.kernels.size() == 1);
    const KernelCounts &k = report.kernels[0];
    CHECK(k.shared_bytes == 2 * 16 * 64 * 4);
    // 16 products, 8 warps, 4 rows by 4 columns, which lowering leaves as a load for each accumulator of a thread.
    CHECK(k.shared_reads.accesses == 16 * 8 * 16 * 2);
    CHECK(k.shared_reads.turns == 16 * 8 * 16 * (1 + 2));
    CHECK(k.shared_stores.accesses == 2 * 8 * 4);
    CHECK(k.global_stores.accesses == 8 * 16);
    INFO(to_text(report));
    CHECK(to_text(report).find("no hazards") != std::string::npos);
}

// Rows of x have 64 bytes and 8 are loaded at once: every second one lies in the same banks. Rows of w have 128 bytes: all do.
TEST_CASE("rows of fragments meet in no bank where their chunks are in another order") {
    const auto [c, program] = by_warps()[0];
    const Extents shape = {{"M", 64}, {"N", 64}, {"K", 96}};
    const auto turns = [&](const std::set<std::string> &in_order) {
        TileProgram p = program;
        p.body = changed(program.body, [&](const TileNode &n) -> std::optional<TileBody> {
            const auto *alloc = std::get_if<Alloc>(&n);
            if (!alloc || !in_order.count(alloc->buffer.name)) return {};
            Alloc plain = *alloc;
            CHECK(plain.buffer.swizzle.has_value());
            plain.buffer.swizzle.reset();
            plain.body = changed(alloc->body, [&](const TileNode &inner) -> std::optional<TileBody> {
                const auto *other = std::get_if<Alloc>(&inner);
                if (!other || !in_order.count(other->buffer.name)) return {};
                Alloc also = *other;
                also.buffer.swizzle.reset();
                return TileBody{tile_node(also)};
            });
            return TileBody{tile_node(plain)};
        });
        LockstepReport report;
        run_lockstep(p, shape, make_inputs(c.algorithm, shape, 1), {}, {}, report);
        INFO(to_text(report));
        CHECK(report.hazards.empty());
        REQUIRE(report.kernels.size() == 1);
        return report.kernels[0];
    };
    const KernelCounts own = turns({}), x = turns({"dot.x.packed.tile"}), w = turns({"dot.w.packed.tile"});
    // By each of 4 warps in 6 steps: x is 2 loads of 4 times 8 rows, w 4 loads of 2 times 8.
    const int64_t of_x = 4 * 6 * 2 * 4, of_w = 4 * 6 * 4 * 2;
    CHECK(x.shared_reads.turns - own.shared_reads.turns == of_x * (4 - 1));
    CHECK(w.shared_reads.turns - own.shared_reads.turns == of_w * (8 - 1));
    // The copies to shared memory, 16 bytes of each thread, meet nowhere either.
    CHECK(own.shared_stores.turns - own.shared_stores.least == x.shared_stores.turns - x.shared_stores.least);
    CHECK(own.awaits == 3 + 1);
    CHECK(own.bytes_in_flight == 2 * (64 * 32 + 32 * 64) * 2);
}

}  // namespace tessera::test_lockstep
