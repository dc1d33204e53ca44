#include "algorithms/build/ragged.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"

namespace tessera::test_ragged {

TEST_CASE("offsets are taken into the flat dim, whatever they hold") {
    const RaggedRows rows = ragged_rows("R", "offsets", DType::i32, "S", "T");
    CHECK(to_string(rows.dim.size) == "max(max(min(index(offsets[S + 1]), |T|), 0) - max(min(index(offsets[S]), |T|), 0), 0)");

    const int64_t T = 50;
    const std::vector<int64_t> offsets = {5, 3, 60, -4, INT64_MAX, 10, INT64_MIN, 2, 50, 50, INT64_MAX, INT64_MIN};
    Array x(DType::f32, {T, 1}), given(DType::i64, {static_cast<int64_t>(offsets.size())});
    for (int64_t t = 0; t < T; t++) x.set(t, Scalar::of_real(DType::f32, static_cast<double>(t * t)));
    for (size_t i = 0; i < offsets.size(); i++) given.set(static_cast<int64_t>(i), Scalar::of_integer(DType::i64, offsets[i]));
    const Array y = evaluate(library::segmented_sum({}), {{"x", x}, {"offsets", given}}).at("y");
    REQUIRE(y.size() + 1 == static_cast<int64_t>(offsets.size()));
    for (size_t s = 0; s + 1 < offsets.size(); s++) {
        double sum = 0;
        for (int64_t t = 0; t < T; t++)
            if (t >= offsets[s] && t < offsets[s + 1]) sum += static_cast<double>(t * t);
        INFO(s);
        CHECK(y.get(static_cast<int64_t>(s)).real == sum);
    }
}

}  // namespace tessera::test_ragged
