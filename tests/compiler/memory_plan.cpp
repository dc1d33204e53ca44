// Buffers of the workspace that share bytes: nobody writes over what somebody still needs, and code gives the bits all the same.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/abi/memory_plan.h"
#include "tests/compiler/cases.h"

namespace tessera::test_memory_plan {

using namespace tessera::test;

// Stages at root, each of which reads the last one backwards, so that none runs in another's place: sums of rows in between.
static Algorithm chain() {
    Builder f("chain");
    const Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    const std::vector<DType> types = {DType::bf16, DType::f32, DType::i64, DType::f64, DType::u8, DType::f32};
    for (size_t i = 0; i < types.size(); i++) {
        const Tile back = x.at({{"M", extent("M") - 1 - variable("M")}, {"N", variable("N")}}, {"M", "N"});
        x = cast(types[i], cast(DType::f32, back) + f.scalar(DType::f32, 1)).named("s" + std::to_string(i));
    }
    return f.output("y", cast(DType::f32, x) + sum(cast(DType::f32, x), N)).build();
}

static KnobsByStage at_root(const Algorithm &a) {
    KnobsByStage stages;
    for (const Stage &s : a.stages())
        if (s.name[0] == 's') stages[s.name].place = Place{Place::Kind::root, "", ""}, stages[s.name].parallel = {"M"};
    return stages;
}

// Part by part, what a buffer holds must be its own from its first use to its last. "" or what is wrong.
static std::string broken(const TileProgram &program, const Extents &extents) {
    const MemoryPlan plan = plan_memory(program);
    const MemoryLayout layout = layout_of(plan, program, extents);
    struct Owned {
        int64_t begin, end;
        std::string buffer;
    };
    std::vector<Owned> owned;
    std::set<std::string> begun;
    for (size_t part = 0; part < plan.parts.size(); part++) {
        const std::set<std::string> used = buffers_used({plan.parts[part]});
        for (size_t b = 0; b < plan.buffers.size(); b++) {
            const std::string &name = plan.buffers[b].buffer.name;
            const int64_t begin = layout.begins[b], end = begin + layout.bytes[b];
            if (end > layout.total) return name + " ends behind the workspace";
            if (!used.count(name) || !begun.insert(name).second) continue;
            std::erase_if(owned, [&](const Owned &o) { return o.begin < end && begin < o.end; });
            if (end > begin) owned.push_back({begin, end, name});
        }
        for (size_t b = 0; b < plan.buffers.size(); b++) {
            const std::string &name = plan.buffers[b].buffer.name;
            const bool is_there = std::any_of(owned.begin(), owned.end(), [&](const Owned &o) { return o.buffer == name; });
            if (used.count(name) && layout.bytes[b] > 0 && !is_there) return name + " is overwritten before part " + std::to_string(part);
        }
    }
    return "";
}

TEST_CASE("a chain of stages has two places in turn") {
    const Algorithm a = chain();
    const TileProgram p = lowered("chain", a, at_root(a), target_named("x86-64"));
    const MemoryPlan plan = plan_memory(p);
    CHECK(plan.shares);
    REQUIRE(plan.buffers.size() >= 6);
    for (const Extents &extents :
         std::vector<Extents>{{{"M", 64}, {"N", 64}}, {{"M", 1}, {"N", 1}}, {{"M", 0}, {"N", 3}}, {{"M", 70000}, {"N", 5}}}) {
        const MemoryLayout layout = layout_of(plan, p, extents);
        CHECK(layout.largest_live <= layout.total);
        CHECK(broken(p, extents).empty());
    }
    const MemoryLayout typical = layout_of(plan, p);
    CHECK(static_cast<double>(typical.total) <= 1.1 * static_cast<double>(typical.largest_live));
    const MemoryPlan again = plan_memory(p);
    for (size_t b = 0; b < plan.buffers.size(); b++) CHECK(again.buffers[b].buffer.name == plan.buffers[b].buffer.name);
}

TEST_CASE("no plan lets a buffer be overwritten while it lives") {
    size_t sharing = 0;
    for (const Target &target : {target_named("avx2"), target_named("opencl")})
        for (const Case &c : target.is_gpu() ? gpu_cases() : library_cases(8)) {
            const TileProgram p = lowered(c, target);
            INFO(c.name);
            std::vector<Extents> shapes = c.shapes;
            shapes.push_back({});
            sharing += plan_memory(p).shares;
            for (const Extents &shape : shapes) CHECK(broken(p, shape).empty());
            for (const TileProgram &callee : p.programs) CHECK(broken(callee, {}).empty());
        }
    CHECK(sharing >= 4);
}

TEST_CASE("what shares bytes gives the bits of what does not, whatever its types") {
    const Algorithm a = chain();
    const Case c{"chain", a, at_root(a), {{{"M", 33}, {"N", 17}}, {{"M", 1}, {"N", 1}}, {{"M", 0}, {"N", 4}}}};
    std::vector<Build> builds = c_builds("-O2");
    builds.push_back({});
    for (const Target &target : targets()) {
        const TileProgram p = lowered(c, target);
        REQUIRE(plan_memory(p).shares);
        for (const Build &build : builds) {
            const Loaded code({p}, target, build);
            INFO(target.name << " " << build.compiler);
            for (const Extents &shape : c.shapes)
                for (int threads : {1, 3}) {
                    const Arrays inputs = make_inputs(a, shape, 5);
                    CHECK(differ_in_bits(code.run(p, shape, inputs, {}, Layout{true, 0, 0, threads}),
                                         run_interpreter(p, shape, inputs, {})) == "");
                }
            const Loaded::Room room = code.workspace(p, {{"M", 64}, {"N", 64}});
            CHECK(room.status == TESS_OK);
            CHECK(room.bytes / 64 == static_cast<uint64_t>(layout_of(plan_memory(p), p, {{"M", 64}, {"N", 64}}).total) / 64);
        }
    }
}

TEST_CASE("kernels of a GPU share workspace in turn") {
    if (!has_opencl()) return;
    const Algorithm a = chain();
    const Target target = target_named("opencl");
    const Case c{"chain", a, for_gpu(at_root(a)), {{{"M", 33}, {"N", 17}}, {{"M", 0}, {"N", 4}}}};
    const TileProgram p = lowered(c, target);
    REQUIRE(plan_memory(p).shares);
    const Loaded code({p}, target);
    for (const Extents &shape : c.shapes) {
        const Arrays inputs = make_inputs(a, shape, 5);
        CHECK(differ_in_bits(code.run(p, shape, inputs, {}, {}), run_interpreter(p, shape, inputs, {})) == "");
    }
    const Loaded::Room room = code.workspace(p, {{"M", 64}, {"N", 64}});
    CHECK(room.bytes / 64 == static_cast<uint64_t>(layout_of(plan_memory(p), p, {{"M", 64}, {"N", 64}}).total) / 64);
}

}  // namespace tessera::test_memory_plan
