#include <catch2/catch.hpp>
#include <mutex>
#include <string>

#include "tests/mesh/independent.h"
#include "tests/mesh/ranks.h"

namespace tessera::test_mesh {

namespace {

const std::vector<int> dtypes = {TESS_F32, TESS_F64, TESS_F16, TESS_BF16, TESS_I32, TESS_I64};

Bytes joined(const std::vector<Bytes> &parts, size_t begin, size_t end) {
    Bytes all;
    for (size_t i = begin; i < end; ++i) all.insert(all.end(), parts[i].begin(), parts[i].end());
    return all;
}

Bytes part(const Bytes &bytes, size_t i, size_t n) {
    const size_t each = bytes.size() / n;
    return {bytes.begin() + ptrdiff_t(i * each), bytes.begin() + ptrdiff_t((i + 1) * each)};
}

struct Case {
    int dtype = TESS_F32, monoid = TESS_SUM, chunks = 8;
    size_t count = 100;
};

std::string said(const TessFault &fault, int32_t status) {
    char words[300];
    tess_status_message(status, &fault, nullptr, words, sizeof words);
    return words;
}

/// Threads report here, and the test checks it: Catch's assertions are for one thread.
class Report {
public:
    void add(const std::string &what) {
        const std::lock_guard lock(mutex_);
        if (!words_.empty()) words_ += "; ";
        words_ += what;
    }
    std::string words() const { return words_; }

private:
    std::mutex mutex_;
    std::string words_;
};

/// Runs one collective on every rank, with results that begin as garbage and with guards behind them.
std::string run(int n, const TessCollective &collective, const std::function<Bytes(int)> &input, const std::function<Bytes(int)> &expected,
                bool in_place = false) {
    Report report;
    on_ranks(n, [&](TessMesh *mesh, int r) {
        const Bytes given = input(r), wanted = expected(r);
        Bytes in = given, out(wanted.size() + 64, 0xa5);
        in.resize(in.size() + 64);
        TessCollective mine = collective;
        TessFault fault = tess_fault();
        mine.input = in.data();
        mine.result = out.data();
        if (in_place) std::copy(in.begin(), in.end() - 64, out.begin()), mine.input = out.data();
        for (int round = 0; round < (in_place ? 1 : 2); ++round) {
            const int32_t status = tess_mesh_collective(mesh, &mine, &fault);
            if (status != TESS_OK) return report.add("rank " + std::to_string(r) + ": " + said(fault, status));
            if (!std::equal(wanted.begin(), wanted.end(), out.begin())) return report.add("rank " + std::to_string(r) + " has other bits");
            for (size_t i = wanted.size(); i < out.size(); ++i)
                if (out[i] != 0xa5) return report.add("rank " + std::to_string(r) + " wrote behind its result");
        }
    });
    return report.words();
}

std::vector<Bytes> chunks_of(const Case &c, size_t rows = 1) {
    std::vector<Bytes> chunks;
    for (int i = 0; i < c.chunks; ++i) chunks.push_back(elements(c.dtype, c.count * rows, uint64_t(i) * 1000 + uint64_t(c.dtype)));
    return chunks;
}

TessCollective collective_of(TessCollectiveKind kind, const Case &c) {
    TessCollective collective = tess_collective(kind);
    collective.dtype = c.dtype;
    collective.monoid = c.monoid;
    collective.chunks = c.chunks;
    collective.count = int64_t(c.count);
    return collective;
}

std::string all_reduce(const Case &c, int n) {
    const std::vector<Bytes> chunks = chunks_of(c);
    const Bytes expected = folded(c.dtype, c.monoid, chunks, 0, chunks.size());
    const size_t each = chunks.size() / size_t(n);
    return run(
        n, collective_of(TESS_ALL_REDUCE, c), [&](int r) { return joined(chunks, size_t(r) * each, size_t(r + 1) * each); },
        [&](int) { return expected; });
}

std::string reduce_scatter(const Case &c, int n) {
    const std::vector<Bytes> chunks = chunks_of(c, size_t(n));
    const Bytes expected = folded(c.dtype, c.monoid, chunks, 0, chunks.size());
    const size_t each = chunks.size() / size_t(n);
    return run(
        n, collective_of(TESS_REDUCE_SCATTER, c), [&](int r) { return joined(chunks, size_t(r) * each, size_t(r + 1) * each); },
        [&](int r) { return part(expected, size_t(r), size_t(n)); });
}

std::string exclusive_scan(const Case &c, int n) {
    const std::vector<Bytes> chunks = chunks_of(c);
    const size_t each = chunks.size() / size_t(n), size = tess_dtype_size(c.dtype);
    std::vector<Bytes> before;
    Bytes nothing(size * c.count);
    for (size_t i = 0; i < c.count; ++i) {
        const bool large = c.monoid == TESS_MAX;
        unsigned char *at = &nothing[i * size];
        if (c.monoid == TESS_SUM) continue;
        const double x = c.monoid == TESS_PRODUCT ? 1 : large ? -INFINITY : INFINITY;
        if (c.dtype == TESS_F32) put(at, float(x));
        if (c.dtype == TESS_F64) put(at, x);
        if (c.dtype == TESS_F16) put(at, uint16_t(encoded(x, 10, 5)));
        if (c.dtype == TESS_BF16) put(at, uint16_t(encoded(x, 7, 8)));
        if (c.dtype == TESS_I32) put(at, c.monoid == TESS_PRODUCT ? 1 : large ? INT32_MIN : INT32_MAX);
        if (c.dtype == TESS_I64) put(at, c.monoid == TESS_PRODUCT ? int64_t(1) : large ? INT64_MIN : INT64_MAX);
    }
    before.push_back(nothing);
    for (size_t i = 1; i < chunks.size(); ++i) before.push_back(folded(c.dtype, c.monoid, chunks, 0, i));
    return run(
        n, collective_of(TESS_EXCLUSIVE_SCAN, c), [&](int r) { return joined(chunks, size_t(r) * each, size_t(r + 1) * each); },
        [&](int r) { return joined(before, size_t(r) * each, size_t(r + 1) * each); });
}

std::string named(const Case &c, int n) {
    return "dtype " + std::to_string(c.dtype) + " monoid " + std::to_string(c.monoid) + " chunks " + std::to_string(c.chunks) + " count " +
           std::to_string(c.count) + " ranks " + std::to_string(n);
}

}  // namespace

TEST_CASE("a reduction has the same bits for every number of ranks that divides the chunks, and those of the tree") {
    for (const int chunks : {1, 3, 4, 6, 7, 8, 9, 12, 16, 40})
        for (int n = 1; n <= 10 && n <= chunks; ++n) {
            if (chunks % n != 0) continue;
            for (const size_t count : {size_t(5), size_t(28), size_t(9001)}) {
                const int dtype = dtypes[(count + size_t(chunks) + size_t(n)) % dtypes.size()];
                const Case c = {dtype, 1 + int(count + size_t(chunks) * 3 + size_t(n)) % 4, chunks, count};
                INFO(named(c, n));
                CHECK(all_reduce(c, n) == "");
                CHECK(reduce_scatter(c, n) == "");
                CHECK(exclusive_scan(c, n) == "");
            }
        }
}

TEST_CASE("every type and monoid is folded as by another program, NaN and infinities too") {
    for (const int dtype : dtypes)
        for (int monoid = TESS_SUM; monoid <= TESS_PRODUCT; ++monoid)
            for (const int n : {1, 2, 3, 6}) {
                const Case c = {dtype, monoid, 6, 4099};
                INFO(named(c, n));
                CHECK(all_reduce(c, n) == "");
                CHECK(reduce_scatter(c, n) == "");
                CHECK(exclusive_scan(c, n) == "");
            }
}

TEST_CASE("large tensors are cut into pieces, and into lists") {
    for (const int n : {1, 2, 3, 4}) {
        const Case c = {TESS_F32, TESS_SUM, 12, 300'001};
        INFO(named(c, n));
        CHECK(all_reduce(c, n) == "");
        CHECK(exclusive_scan(c, n) == "");
        CHECK(reduce_scatter({TESS_BF16, TESS_SUM, 12, 100'003}, n) == "");
    }
    const Case long_one = {TESS_F64, TESS_MAX, 2, (size_t(64) << 20) / 8 + 12'345};  // longer than one list
    CHECK(all_reduce(long_one, 2) == "");
}

TEST_CASE("a rank may fold its subtrees by itself") {
    for (const int chunks : {6, 8, 12, 14, 24})
        for (int n = 1; n <= chunks; ++n) {
            if (chunks % n != 0) continue;
            for (const size_t count : {size_t(3), size_t(20'000)}) {
                const Case c = {TESS_F32, TESS_SUM, chunks, count};
                const std::vector<Bytes> all = chunks_of(c);
                const Bytes expected = folded(c.dtype, c.monoid, all, 0, all.size());
                TessCollective collective = collective_of(TESS_ALL_REDUCE, c);
                collective.flags = TESS_COLLECTIVE_FOLDED;
                INFO(named(c, n));
                CHECK(run(
                          n, collective,
                          [&](int r) {
                              TessSubtree subtrees[32];
                              const int each = chunks / n;
                              const int some = tess_mesh_subtrees(chunks, r * each, (r + 1) * each, subtrees, 32);
                              std::vector<Bytes> own;
                              for (int i = 0; i < some; ++i) {
                                  const auto first = size_t(subtrees[i].first);
                                  own.push_back(folded(c.dtype, c.monoid, all, first, first + size_t(subtrees[i].chunks)));
                              }
                              return joined(own, 0, own.size());
                          },
                          [&](int) { return expected; }) == "");
            }
        }
}

TEST_CASE("an all-reduce of one chunk a rank may be in place") {
    for (const int n : {1, 2, 3, 4, 5, 8})
        for (const size_t count : {size_t(3), size_t(50'000)}) {
            const Case c = {TESS_F32, TESS_SUM, n, count};
            const std::vector<Bytes> chunks = chunks_of(c);
            const Bytes expected = folded(c.dtype, c.monoid, chunks, 0, chunks.size());
            INFO(named(c, n));
            CHECK(run(
                      n, collective_of(TESS_ALL_REDUCE, c), [&](int r) { return chunks[size_t(r)]; }, [&](int) { return expected; },
                      true) == "");
        }
}

TEST_CASE("collectives that only move bytes") {
    for (const int dtype : {int(TESS_U8), int(TESS_BF16), int(TESS_F64)})
        for (const int n : {1, 2, 3, 4, 7, 8})
            for (const size_t count : {size_t(1), size_t(100), size_t(70'000)}) {
                const auto own = [&](int r, size_t rows) { return elements(dtype, count * rows, uint64_t(r) + 17); };
                TessCollective gather = tess_collective(TESS_ALL_GATHER), exchange = tess_collective(TESS_ALL_TO_ALL);
                gather.dtype = exchange.dtype = dtype;
                gather.count = exchange.count = int64_t(count);
                INFO("dtype " << dtype << " ranks " << n << " count " << count);
                std::vector<Bytes> all, rows;
                for (int r = 0; r < n; ++r) all.push_back(own(r, 1)), rows.push_back(own(r, size_t(n)));
                CHECK(run(
                          n, gather, [&](int r) { return all[size_t(r)]; }, [&](int) { return joined(all, 0, all.size()); }) == "");
                CHECK(run(
                          n, exchange, [&](int r) { return rows[size_t(r)]; },
                          [&](int r) {
                              Bytes mine;
                              for (int i = 0; i < n; ++i) {
                                  const Bytes block = part(rows[size_t(i)], size_t(r), size_t(n));
                                  mine.insert(mine.end(), block.begin(), block.end());
                              }
                              return mine;
                          }) == "");
                for (const int root : {0, n - 1, n / 2}) {
                    TessCollective broadcast = tess_collective(TESS_BROADCAST);
                    broadcast.dtype = dtype, broadcast.count = int64_t(count), broadcast.peer = root;
                    CHECK(run(
                              n, broadcast, [&](int r) { return all[size_t(r)]; }, [&](int) { return all[size_t(root)]; }) == "");
                }
                for (const int distance : {0, 1, -1, 2, n, -n - 1}) {
                    TessCollective shift = tess_collective(TESS_SHIFT);
                    shift.dtype = dtype, shift.count = int64_t(count), shift.distance = distance;
                    const auto from = [&](int r) { return size_t((((r - distance) % n) + n) % n); };
                    CHECK(run(
                              n, shift, [&](int r) { return all[size_t(r)]; }, [&](int r) { return all[from(r)]; }) == "");
                    shift.flags = TESS_COLLECTIVE_OPEN;
                    const auto given = [&](int r) {
                        const int source = r - distance;
                        return source >= 0 && source < n ? all[size_t(source)] : Bytes(all[0].size());
                    };
                    CHECK(run(
                              n, shift, [&](int r) { return all[size_t(r)]; }, given) == "");
                }
            }
}

TEST_CASE("groups of a grid, many operations in flight, and sends beside them") {
    Report report;
    on_ranks(6, [&](TessMesh *mesh, int r) {
        const int32_t extents[] = {2, 3};
        int32_t groups[2];
        TessFault fault = tess_fault();
        const auto must = [&](int32_t status) {
            if (status != TESS_OK) report.add(said(fault, status));
        };
        must(tess_mesh_axes(mesh, extents, 2, groups, &fault));
        if (tess_mesh_ranks(mesh, groups[0]) != 2 || tess_mesh_ranks(mesh, groups[1]) != 3 || tess_mesh_rank(mesh, groups[0]) != r / 3 ||
            tess_mesh_rank(mesh, groups[1]) != r % 3)
            report.add("other coordinates");
        std::vector<int64_t> operations;
        std::vector<int32_t> in(64), down(64), across(64), to(64), from(64);
        for (int i = 0; i < 64; ++i) {
            in[size_t(i)] = r * 100 + i, to[size_t(i)] = r * 1000 + i;
            int64_t operation = -1;
            TessCollective reduce = tess_collective(TESS_ALL_REDUCE);
            reduce.dtype = TESS_I32, reduce.monoid = TESS_SUM, reduce.count = 1;
            reduce.group = groups[0], reduce.input = &in[size_t(i)], reduce.result = &down[size_t(i)];
            must(tess_mesh_start(mesh, &reduce, &operation, &fault));
            operations.push_back(operation);
            reduce.group = groups[1], reduce.result = &across[size_t(i)];
            must(tess_mesh_start(mesh, &reduce, &operation, &fault));
            operations.push_back(operation);
            TessCollective send = tess_collective(TESS_SEND), receive = tess_collective(TESS_RECEIVE);
            send.dtype = receive.dtype = TESS_I32, send.count = receive.count = 1;
            send.peer = (r + 1) % 6, receive.peer = (r + 5) % 6;
            send.input = &to[size_t(i)], receive.result = &from[size_t(i)];
            must(tess_mesh_start(mesh, &receive, &operation, &fault));
            operations.push_back(operation);
            must(tess_mesh_start(mesh, &send, &operation, &fault));
            operations.push_back(operation);
        }
        for (size_t i = operations.size(); i-- > 0;) must(tess_mesh_wait(mesh, operations[i], &fault));
        for (int i = 0; i < 64; ++i) {
            const int row = r / 3 * 3;
            if (down[size_t(i)] != (r % 3 + r % 3 + 3) * 100 + 2 * i) report.add("down");
            if (across[size_t(i)] != (row + row + 1 + row + 2) * 100 + 3 * i) report.add("across");
            if (from[size_t(i)] != (r + 5) % 6 * 1000 + i) report.add("from");
        }
        TessMeshStatistics statistics = {};
        statistics.size = sizeof statistics;
        must(tess_mesh_statistics(mesh, &statistics));
        if (statistics.operations != operations.size() || statistics.sent_bytes == 0 || statistics.memory > 3 << 20)
            report.add("statistics");
    });
    CHECK(report.words() == "");
}

TEST_CASE("the bytes of an all-reduce are those of the best algorithm") {
    for (const int n : {2, 4, 8, 6}) {
        Report report;
        const size_t count = 96'000;
        on_ranks(n, [&](TessMesh *mesh, int) {
            std::vector<float> in(count), out(count);
            TessCollective reduce = collective_of(TESS_ALL_REDUCE, {TESS_F32, TESS_SUM, n, count});
            reduce.input = in.data(), reduce.result = out.data();
            if (tess_mesh_collective(mesh, &reduce, nullptr) != TESS_OK) report.add("failed");
            TessMeshStatistics statistics = {};
            statistics.size = sizeof statistics;
            tess_mesh_statistics(mesh, &statistics);
            const uint64_t best = 2 * count * 4 * uint64_t(n - 1) / uint64_t(n);
            if (statistics.sent_bytes != best || statistics.received_bytes != best) report.add(std::to_string(statistics.sent_bytes));
        });
        INFO(n);
        CHECK(report.words() == "");
    }
}

}  // namespace tessera::test_mesh
