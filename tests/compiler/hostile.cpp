#include "tests/compiler/hostile.h"

#include <catch2/catch.hpp>

namespace tessera::test {

void check_hostile(const std::vector<Case> &cases, const Target &target, const Build &build, const HostileInputs &inputs,
                   const std::function<std::vector<Layout>(uint32_t number)> &layouts) {
    std::vector<TileProgram> programs;
    for (const Case &c : cases) programs.push_back(lowered(c, target));
    const Loaded code(programs, target, build);
    for (size_t i = 0; i < cases.size(); i++) {
        uint32_t seed = 0;
        for (const Extents &shape : cases[i].shapes) {
            INFO(target.name << " " << build.compiler << " " << cases[i].name << " " << Catch::Detail::stringify(shape));
            const Arrays given = inputs(cases[i].algorithm, shape, seed++), expected = run_interpreter(programs[i], shape, given, {});
            CHECK(differ_in_bits(expected, run_reference(cases[i].algorithm, shape, given, {})) == "");
            for (const Layout &layout : layouts(seed))
                CHECK(differ_in_bits(code.run(programs[i], shape, given, {}, layout), expected) == "");
        }
    }
}

}  // namespace tessera::test
