// Schedules that ship, for targets that only an emulator can run here: under each, emitted code equals the tile program.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "tests/compiler/cases.h"
#include "tests/support/thorough.h"

namespace tessera::test_shipped {

using namespace tessera::test;

struct Shipped {
    Case c;
    TileProgram program;
    bool with_fma = true;  // where the algorithm has it
};

static Shipped scheduled(const Case &c, const std::string &schedule, const Library &library, const Target &target) {
    ResolvedSchedule resolved = resolve(library.find(schedule), library);
    check_requires(resolved, target);
    REQUIRE(resolved.variants.empty());
    const bool with_fma =
        std::none_of(resolved.stages.begin(), resolved.stages.end(), [](const auto &s) { return s.second.instruction == "mul_add"; });
    return {c, lowered(c.algorithm.name, c.algorithm, resolved.stages, target), with_fma};
}

// One for each algorithm in f32 that has a schedule <algorithm>/<target>.
static std::vector<Shipped> shipped(const Target &target, const Library &library) {
    const std::vector<std::string> names = library.names();
    std::set<std::string> seen;
    std::vector<Shipped> all;
    for (const Case &c : library_cases(4)) {
        const std::string schedule = c.algorithm.name + "/" + target.name;
        if (c.algorithm.numerics.name != "f32" || !std::count(names.begin(), names.end(), schedule) || !seen.insert(schedule).second)
            continue;
        all.push_back(scheduled(c, schedule, library, target));
    }
    return all;
}

// The avx2 schedule, which does the same operations in the same order, gives the same bits too.
static void check_shipped(const Target &target, size_t least, size_t min_with_fma) {
    if (!can_emulate(target)) return;
    Library library;
    library.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    const std::vector<Shipped> all = shipped(target, library);
    CHECK(all.size() >= least);
    CHECK(static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const Shipped &s) { return s.with_fma; })) >= min_with_fma);
    std::vector<TileProgram> programs;
    std::vector<Shipped> run;  // the suite takes a share
    for (size_t i = 0; i < all.size(); i += every(3)) run.push_back(all[i]), programs.push_back(all[i].program);
    const Loaded loaded(programs, target);
    for (const Shipped &s : run) {
        const TileProgram avx2 = scheduled(s.c, s.c.algorithm.name + "/avx2", library, target_named("avx2")).program;
        uint32_t seed = 0;
        for (const Extents &shape : s.c.shapes) {
            INFO(s.c.algorithm.name << " " << Catch::Detail::stringify(shape));
            const Parameters parameters = make_parameters(s.c.algorithm, ++seed);
            const Arrays inputs = make_inputs(s.c.algorithm, shape, seed, seed % 3 == 0);
            const Arrays expected = run_interpreter(s.program, shape, inputs, parameters);
            for (const Layout &layout : {Layout{true, 0, 0, 1}, Layout{false, 1, 3, 2}})
                CHECK(differ_in_bits(loaded.run(s.program, shape, inputs, parameters, layout), expected) == "");
            if (s.with_fma) CHECK(differ_in_bits(run_interpreter(avx2, shape, inputs, parameters), expected) == "");
        }
    }
}

TEST_CASE("schedules for arm64: emitted code equals the tile program", "[.][arm64]") { check_shipped(target_named("arm64"), 7, 7); }
TEST_CASE("schedules for wasm32: emitted code equals the tile program", "[.][wasm32]") { check_shipped(target_named("wasm32"), 7, 2); }

}  // namespace tessera::test_shipped
