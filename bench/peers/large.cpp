// tessera-large: kernels whose `pool` is declared large, beside the same where it is not. One thread; all that they touch is in the second
// cache.
#include <fmt/core.h>

#include <functional>
#include <string>

#include "bench/measure/paired_timing.h"
#include "bench/peers/arguments.h"

#include "elements.h"
#include "elements_large.h"
#include "pages.h"
#include "pages_large.h"
#include "rows.h"
#include "rows_large.h"

int main() {
    fmt::print("{:<44}{:>10}{:>12}{:>8}  {}\n", "a large tensor", "large", "not large", "ratio", "95% interval");
    auto row = [](const std::string &name, const std::function<int32_t()> &with, const std::function<int32_t()> &without) {
        const Contest r = contest({[&] { check(with()); }, [&] { check(without()); }}, 200, 2);
        fmt::print("{:<44}{:>7.2f} us{:>9.2f} us{:>8.3f}  {:.3f}..{:.3f}\n", name, r.seconds[0] * 1e6, r.seconds[1] * 1e6, r.ratio[1],
                   r.lower[1], r.upper[1]);
    };
    auto numbers = [](int64_t count, int32_t below) {
        static std::mt19937 engine(1);
        std::vector<int32_t> all(static_cast<size_t>(count));
        for (int32_t &n : all) n = static_cast<int32_t>(engine() % static_cast<uint32_t>(below));
        return all;
    };
    auto ids = [](std::vector<int32_t> &data, int64_t *extents, int32_t rank) { return tess_dense(data.data(), TESS_I32, rank, extents); };
    Floats memory = random_floats(65536), to(65536);
    for (int64_t d : {16, 256}) {
        const int64_t p = 65536 / (16 * d);
        std::vector<int32_t> table = numbers(p, static_cast<int32_t>(p));
        int64_t extents[] = {1, p};
        TessTensor pool = desc(memory, {p, 16, d}), t = ids(table, extents, 2), y = desc(to, {1, p, 16, d});
        row(
            fmt::format("gather of {} pages of 16x{}", p, d), [&] { return pages_large(&pool, &t, &y, nullptr); },
            [&] { return pages(&pool, &t, &y, nullptr); });
    }
    for (int64_t d : {16, 256}) {
        const int64_t p = 65536 / d;
        TessTensor pool = desc(memory, {p, d}), y = desc(to, {p, d});
        row(
            fmt::format("copy of {} rows of {}", p, d), [&] { return rows_large(&pool, &y, nullptr); },
            [&] { return rows(&pool, &y, nullptr); });
    }
    std::vector<int32_t> at = numbers(65536, 256), column = numbers(65536, 256);
    int64_t extents[] = {65536};
    TessTensor pool = desc(memory, {256, 256}), r = ids(at, extents, 1), c = ids(column, extents, 1), y = desc(to, {65536});
    row(
        "gather of 65536 single elements", [&] { return elements_large(&pool, &r, &c, &y, nullptr); },
        [&] { return elements(&pool, &r, &c, &y, nullptr); });
}
