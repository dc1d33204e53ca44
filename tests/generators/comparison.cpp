#include "generators/kernel/comparison.h"

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
        const LoadedKernels kernel(link_kernel(p, {}, folder), p);
        const Comparison result = compare(p, kernel, extents, 3, {1, 2});
        INFO(name);
        CHECK(result.difference == "");
        CHECK(result.error <= 1e-5);
    }
}

TEST_CASE("a kernel that computes something else is found out") {
    const TemporaryFolder folder;
    PreparedKernel p = prepared("cumulative_sum");
    const LoadedKernels kernel(link_kernel(p, {}, folder), p);
    Algorithm twice = p.bound;
    std::get<Scan>(twice.stages[0].body).inputs[0] =
        std::get<Scan>(twice.stages[0].body).inputs[0] + std::get<Scan>(twice.stages[0].body).inputs[0];

    PreparedKernel other = p;
    other.kernel.variants[0].program = lower(twice, {}, p.target);
    CHECK_THAT(compare(other, kernel, {{"M", 2}, {"N", 3}}, 3, {1, 2}).difference,
               Catch::Contains("y[0, 0]: the tile program gives ") && Catch::Contains(", the kernel ") && Catch::EndsWith("(1 thread)"));
    other = p;
    other.bound = twice;
    CHECK_THAT(compare(other, kernel, {{"M", 2}, {"N", 3}}, 3, {1}).difference,
               Catch::Contains("the exact result is ") && Catch::Contains("; the declared order of operations errs by at most "));
}

TEST_CASE("shapes in words") {
    CHECK(to_string(Extents{{"N", 4}, {"M", 0}}) == "M=0 N=4");
    CHECK(to_string(Extents{}) == "its only shape");
}

}  // namespace tessera::test_comparison
