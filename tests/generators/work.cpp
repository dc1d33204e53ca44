#include "generators/work.h"

#include "algorithms/library/library.h"
#include "compiler/lower.h"
#include "tests/generators/harness.h"

using namespace tessera;

static Work work(const Algorithm &algorithm, const DimExtents &symbolic) {
    return work_of(algorithm, lower(algorithm, {}, target_named("x86-64")), all_extents(algorithm, symbolic));
}

TEST_CASE("an fma counts two operations, and arguments are moved once") {
    const Work matmul = work(library::matmul({}), {{"M", 2}, {"N", 3}, {"K", 5}});
    CHECK(matmul.operations == 2.0 * 2 * 3 * 5);
    CHECK(matmul.bytes == 4.0 * (2 * 5 + 5 * 3 + 2 * 3));
    CHECK(work(library::cumulative_sum(numerics_named("f64")), {{"M", 2}, {"N", 3}}).operations == 6.0);
    CHECK(work(library::cumulative_sum(numerics_named("f64")), {{"M", 2}, {"N", 3}}).bytes == 8.0 * 12);
}

TEST_CASE("a state is read and written") {
    CHECK(work(library::ring_append({}), {{"B", 1}, {"W", 10}, {"T", 2}, {"D", 4}}).bytes == 4.0 * (2 * 40 + 8));
}

TEST_CASE("operations are not counted where data decides how many there are") {
    const Work sums = work(library::segmented_sum({}), {{"B", 2}, {"T", 5}, {"N", 3}});
    CHECK(!sums.operations);
    CHECK(sums.bytes == 4.0 * 15 + 8.0 * 3 + 4.0 * 6);
}
