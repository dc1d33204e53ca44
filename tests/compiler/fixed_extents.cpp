// Extents that are fixed to 0 and to 1: every algorithm of the library lowers with each of its dims fixed, under plain loops, under the
// schedules of its cases and under the one that ships, and computes what it computes where the dim is open.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "compiler/check/verify_tiles.h"
#include "algorithms/transform/bind_extents.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"

namespace tessera::test_fixed_extents {

using namespace tessera::test;

namespace {

// What is wrong with the algorithm where these extents are fixed; nothing where a caller is told that they cannot be.
std::string wrong_with(const Case &c, const KnobsByStage &stages, const Extents &fixed, const Target &target) {
    Algorithm bound;
    try {
        bound = bind_extents(c.algorithm, fixed);
    } catch (const UserError &e) {
        return e.id() == "shape.constraint" ? "" : e.what();
    }
    try {
        const TileProgram program = lowered(c.name, bound, stages, target);
        if (const std::vector<std::string> assumed = verify(program); !assumed.empty()) return assumed[0];
        Extents shape = c.shapes[0];
        for (const auto &[dim, extent] : fixed) shape[dim] = extent;
        for (const Dim &d : c.algorithm.dims)
            if (fixed.count(d.equals)) shape[d.name] = fixed.at(d.equals);
        const Parameters parameters = make_parameters(c.algorithm, 5);
        const Arrays inputs = make_inputs(c.algorithm, shape, 5);
        const Arrays expected = run_reference(c.algorithm, shape, inputs, parameters);
        return differ(run_interpreter(program, shape, inputs, parameters), expected, 1e-2);
    } catch (const std::exception &e) { return e.what(); }
}

std::vector<Extents> zeros_and_ones(const Algorithm &a, bool with_pairs) {
    std::vector<std::string> dims;
    for (const Dim &d : a.dims)
        if (d.kind == DimKind::symbolic && d.equals.empty()) dims.push_back(d.name);
    std::vector<Extents> all;
    for (size_t i = 0; i < dims.size(); i++)
        for (int64_t extent : {0, 1}) {
            all.push_back({{dims[i], extent}});
            for (size_t j = i + 1; j < dims.size() && with_pairs; j++)
                for (int64_t other : {0, 1}) all.push_back({{dims[i], extent}, {dims[j], other}});
        }
    return all;
}

// Every so many-th of the library's cases.
void check_fixed(size_t first, size_t each, bool with_pairs) {
    Library library;
    library.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    const std::vector<std::string> names = library.names();
    const std::vector<Case> cases = library_cases(8);
    const Target target = target_named("avx2");
    std::set<std::string> plain, shipped;
    std::set<std::string> wrong;
    auto check = [&](const Case &c, const KnobsByStage &stages, const std::string &schedule, bool pairs) {
        for (const Extents &fixed : zeros_and_ones(c.algorithm, pairs))
            if (const std::string what = wrong_with(c, stages, fixed, target); !what.empty())
                wrong.insert(c.name + ", " + schedule + ", " + Catch::Detail::stringify(fixed) + ": " + what);
    };
    for (size_t i = first; i < cases.size(); i += each) {
        const Case &c = cases[i];
        const std::string own = c.algorithm.name + "/avx2", kind = c.algorithm.name + "/" + c.algorithm.numerics.name;
        check(c, c.stages, "its own", false);
        if (plain.insert(kind).second) check(c, {}, "none", with_pairs);
        const bool has_calls = !c.algorithm.calls().empty();  // a callee has a schedule of its own
        if (!has_calls && c.algorithm.numerics.name == "f32" && std::count(names.begin(), names.end(), own) && shipped.insert(kind).second)
            check(c, resolve(library.find(own), library).stages, own, false);
    }
    for (const std::string &what : wrong) UNSCOPED_INFO(what);
    CHECK(wrong.empty());
}

}  // namespace

TEST_CASE("extents fixed to 0 and 1") { check_fixed(0, 12, false); }

// ctest runs a part; `test_compiler "[extents]"` runs all.
TEST_CASE("extents fixed to 0 and 1: all, and pairs", "[.][extents]") { check_fixed(0, 1, true); }

}  // namespace tessera::test_fixed_extents
