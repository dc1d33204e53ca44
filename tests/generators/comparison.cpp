#include "generators/certify/comparison.h"

#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "tests/generators/harness.h"

namespace tessera::test_comparison {

using namespace tessera::test;

static PreparedKernel prepared(const std::string &algorithm) {
    KernelOptions options;
    options.algorithm = algorithm, options.schedule = "none", options.target = "avx2";
    return prepare(sample_registry(), options);
}

TEST_CASE("a kernel equals its tile program, with parameters, states and ragged dims") {
    for (const auto &[name, extents] : {std::pair<std::string, Extents>{"layernorm", {{"M", 3}, {"N", 17}}},
                                        {"ring_append", {{"B", 2}, {"W", 5}, {"T", 3}, {"D", 4}}},
                                        {"segmented_sum", {{"B", 4}, {"T", 20}, {"N", 3}}},
                                        {"matmul", {{"M", 0}, {"N", 3}, {"K", 4}}}}) {
        const TemporaryFolder folder;
        const PreparedKernel p = prepared(name);
        const LoadedKernels kernel(library_to_load(p, {}, folder), p);
        const Comparison result = compare(p, kernel, extents, 3, {1, 2});
        INFO(name);
        CHECK(result.difference == "");
        CHECK(result.error <= 1e-5);
    }
}

TEST_CASE("a kernel that computes something else is found out") {
    const TemporaryFolder folder;
    PreparedKernel p = prepared("cumulative_sum");
    const LoadedKernels kernel(library_to_load(p, {}, folder), p);
    Algorithm twice = p.request.bound;
    std::get<Scan>(twice.stages()[0].body).inputs[0] =
        std::get<Scan>(twice.stages()[0].body).inputs[0] + std::get<Scan>(twice.stages()[0].body).inputs[0];

    PreparedKernel other = p;
    other.compiled.kernel.variants[0].program = lower(twice, {}, p.request.target);
    CHECK_THAT(compare(other, kernel, {{"M", 2}, {"N", 3}}, 3, {1, 2}).difference,
               Catch::Contains("y[0, 0]: the tile program gives ") && Catch::Contains(", the kernel ") && Catch::EndsWith("(1 thread)"));
    other = p;
    other.request.elements = twice;
    CHECK_THAT(compare(other, kernel, {{"M", 2}, {"N", 3}}, 3, {1}).difference,
               Catch::Contains("the exact result is ") && Catch::Contains("; the declared order of operations errs by at most "));
}

static std::string difference(const Registry &registry, const std::string &algorithm, const Schedule &schedule, const Extents &extents) {
    const TemporaryFolder folder;
    const auto file = folder.path() / "schedule.json";
    write_file(file, schedule.text());
    KernelOptions options;
    options.algorithm = algorithm, options.schedule = file.string(), options.target = "avx2";
    return difference_from_algorithm(prepare(registry, options), extents);
}

TEST_CASE("a tile program is compared with its algorithm at some points, for large extents too") {
    const Schedule lanes = Schedule("lanes").stage("count", StageKnobs().split("K", Split::How::lanes, 8));
    for (const int64_t rows : {3, 4000}) {  // all points, and some
        CHECK(difference(miscounting_registry(1000), "count", lanes, {{"M", rows}, {"K", 296}}) == "");
        CHECK_THAT(difference(miscounting_registry(37), "count", lanes, {{"M", rows}, {"K", 296}}),
                   Catch::StartsWith("count[") && Catch::Contains("]: the exact result is 296, the tile program gives 304; "));
        CHECK(difference(miscounting_registry(37), "count", lanes, {{"M", rows}, {"K", 297}}) != "");
        CHECK(difference(miscounting_registry(37), "count", Schedule("plain"), {{"M", rows}, {"K", 296}}) == "");
    }
    const Schedule tiles = Schedule("tiles").stage("y", StageKnobs().micro({{"M", 4}, {"N", 8}}).vector({{"N", 8}}));
    CHECK(difference(sample_registry(), "matmul", tiles, {{"M", 500}, {"N", 700}, {"K", 300}}) == "");
    CHECK(difference(sample_registry(), "matmul", tiles, {{"M", 1}, {"N", 1}, {"K", 70000}}) == "");
    const Schedule packed =
        Schedule("packed").stage("y", StageKnobs().micro({{"N", 8}}).vector({{"N", 4}}).pack("w", "prepack", {"N/8", "K", "N%8"}));
    CHECK(difference(sample_registry(), "matmul", packed, {{"M", 300}, {"N", 100}, {"K", 200}}) == "");
    for (const auto &[name, extents] : {std::pair<std::string, Extents>{"layernorm", {{"M", 3000}, {"N", 170}}},
                                        {"ring_append", {{"B", 2}, {"W", 5}, {"T", 3}, {"D", 4}}},
                                        {"cumulative_sum", {{"M", 700}, {"N", 500}}},
                                        {"segmented_sum", {{"B", 400}, {"T", 2000}, {"N", 30}}},
                                        {"matmul", {{"M", 0}, {"N", 3}, {"K", 4}}}}) {
        INFO(name);
        CHECK(difference(sample_registry(), name, Schedule("plain"), extents) == "");
    }
}

TEST_CASE("shapes in words") {
    CHECK(to_string(Extents{{"N", 4}, {"M", 0}}) == "M=0 N=4");
    CHECK(to_string(Extents{}) == "its only shape");
}

}  // namespace tessera::test_comparison
