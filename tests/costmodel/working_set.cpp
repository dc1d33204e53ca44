#include "costmodel/features/working_set.h"

#include <catch2/catch.hpp>

namespace tessera::test_working_set {

// A loop over rows of a matrix of floats around one over the elements of a row; `rows` apart by `stride` elements.
static Walk rows_of(double rows, double elements, double stride) {
    return {{{rows, 1}, {elements, 2}}, {rows - 1, 0, 0, elements - 1}, {rows, stride}, 4};
}

static Access access_to(size_t buffer, const Walk &walk, double middle = 0, double likely = 1) {
    return {buffer, false, likely, middle, walk.loops, touched_by(walk)};
}

static Target with_caches(int64_t l1, int64_t l2, int64_t l3) {
    Target target = target_named("avx512");
    target.l1_bytes = l1, target.l2_bytes = l2, target.l3_bytes = l3;
    return target;
}

TEST_CASE("what is touched counts in lines and pages, and rows without a gap are one") {
    const std::vector<Touched> touched = touched_by(rows_of(8, 16, 1024));
    REQUIRE(touched.size() == 3);
    CHECK(touched[0].bytes == 8 * 64);
    CHECK(touched[0].pages == 8);
    CHECK(touched[0].rows == 8);
    CHECK(touched[1].bytes == 64);
    CHECK(touched[2].bytes == 64);  // an element brings its line
    CHECK(touched_by(rows_of(8, 4, 4))[0].bytes == 128);
    CHECK(touched_by(rows_of(8, 4, 4))[0].rows == 1);
    CHECK(touched_by(rows_of(8, 1024, 1024))[0].bytes == 8 * 4096);
    CHECK(touched_by(rows_of(8, 1024, 1024))[0].pages == 8);
    CHECK(touched_by({{}, {}, {}, 4})[0].bytes == 64);
}

TEST_CASE("rows a way apart share its sets") {
    const std::vector<Touched> apart =
        touched_by(rows_of(24, 1, 1024));  // 4 KiB: of the first level the same set, of the second every 64th
    CHECK(apart[0].needs[0] == Approx(0.8 * 24 * 4096));
    CHECK(apart[0].needs[1] == Approx(0.8 * 1.5 * 65536));
    for (double stride : {1000.0, 1001.0, 1003.0, 1008.0, 1024.0 + 16, 1275.0}) {
        CAPTURE(stride);
        const std::vector<Touched> odd = touched_by(rows_of(24, 1, stride));
        CHECK(odd[0].needs[0] == 24 * 64);
        CHECK(odd[0].needs[1] == 24 * 64);
    }
    CHECK(touched_by(rows_of(24, 1, 1024 + 1))[0].needs[0] > 7 * 4096);  // two or three lines of a way
    CHECK(touched_by(rows_of(24, 1, 1024 + 1))[0].needs[0] < 24 * 4096);
    CHECK(touched_by(rows_of(24, 1, 512))[0].needs[0] == Approx(0.8 * 12 * 4096));
    CHECK(touched_by(rows_of(4, 1 << 20, 1 << 20))[0].needs[0] == 4.0 * (1 << 22));
}

TEST_CASE("a level brings what it cannot hold, and nothing of what it holds whole") {
    const Walk matrix = rows_of(64, 1024, 1024);  // 256 KiB
    const Walk vector{{{64, 1}, {1024, 2}}, {0, 1023}, {1024}, 4};
    const std::vector<Access> accesses = {access_to(0, matrix), access_to(1, vector)};
    const std::array<double, 3> all = WorkingSets(accesses, 3, with_caches(16 << 10, 128 << 10, 1 << 20)).traffic();
    CHECK(all[0] == (256 << 10) + 4096);  // the vector stays, since one row and the vector fit
    CHECK(all[1] == (256 << 10) + 4096);
    CHECK(all[2] == 0);
    const WorkingSets small(accesses, 3, with_caches(4 << 10, 128 << 10, 1 << 20));
    CHECK(small.traffic()[0] == (256 << 10) + 64 * 4096);
    CHECK(small.bytes_in(0) == (256 << 10) + 4096);
    CHECK(small.bytes_in(1) == 8192);
    CHECK(small.rows_in(1) == 2);
    CHECK(WorkingSets({}, 1, with_caches(1, 1, 1)).traffic()[0] == 0);
}

TEST_CASE("two branches bring what one would, the same data is brought once, and other data for itself") {
    const Target target = with_caches(16 << 10, 128 << 10, 1 << 20);
    const Walk matrix = rows_of(64, 1024, 1024);
    const double bytes = 256 << 10;
    auto traffic = [&](const std::vector<Access> &accesses) { return WorkingSets(accesses, 3, target).traffic()[1]; };
    CHECK(traffic({access_to(0, matrix), access_to(0, matrix)}) == bytes);
    CHECK(traffic({access_to(0, matrix, 0, 0.75), access_to(0, matrix, 0, 0.25)}) == bytes);
    CHECK(traffic({access_to(0, matrix, 0, 0.25)}) == bytes / 4);
    CHECK(traffic({access_to(0, matrix), access_to(0, matrix, bytes)}) == 2 * bytes);
    CHECK(traffic({access_to(0, matrix), access_to(1, matrix)}) == 2 * bytes);
}

TEST_CASE("a column of many pages has their addresses translated again for each element") {
    const Walk columns{{{1024, 1}, {512, 2}}, {0, 1023, 511, 0}, {512, 1024}, 4};
    const std::vector<Access> accesses = {access_to(0, columns)};
    const Target target = target_named("avx512");
    CHECK(WorkingSets(accesses, 3, target).translations() == 1024 * 512);
    const std::vector<Access> rows = {access_to(0, rows_of(512, 1024, 1024))};
    CHECK(WorkingSets(rows, 3, target).translations() == 512);
    const std::vector<Access> few = {access_to(0, rows_of(64, 1024, 1024))};
    CHECK(WorkingSets(few, 3, target).translations() == 0);
}

}  // namespace tessera::test_working_set
