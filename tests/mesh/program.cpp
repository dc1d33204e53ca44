#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <mutex>
#include <string>

#include "runtime/mesh/program.h"
#include "tests/mesh/ranks.h"

namespace tessera::test_mesh {

namespace {

/// A table as a compiler would write it.
struct Table {
    TessProgramHeader header = {};
    std::vector<TessProgramBuffer> buffers;
    std::vector<TessProgramTensor> tensors;
    std::vector<TessProgramArgument> arguments;
    std::vector<TessProgramCollective> collectives;
    std::vector<TessProgramOperation> operations;

    int buffer(TessProgramMemory memory, int64_t elements, uint64_t at = 0) {
        buffers.push_back({uint64_t(elements) * 4, at, memory, 0});
        return int(buffers.size()) - 1;
    }
    int tensor(int of, int64_t elements, int64_t first = 0) {
        TessProgramTensor t = {};
        t.buffer = of, t.dtype = TESS_F32, t.rank = 1, t.at = uint64_t(first) * 4, t.extents[0] = elements;
        tensors.push_back(t);
        return int(tensors.size()) - 1;
    }
    void run(int kernel, const std::vector<std::pair<int, int>> &of) {
        operations.push_back({TESS_PROGRAM_RUN, kernel, int(arguments.size()), int(of.size())});
        for (const auto &[t, role] : of) arguments.push_back({t, role});
    }
    int start(int collective, int input, int result) {
        operations.push_back({TESS_PROGRAM_START, collective, int(arguments.size()), 2});
        arguments.push_back({input, TESS_ROLE_INPUT});
        arguments.push_back({result, TESS_ROLE_OUTPUT});
        return int(operations.size()) - 1;
    }
    void wait(int started) { operations.push_back({TESS_PROGRAM_WAIT, started, 0, 0}); }
    void free_buffer(int b) { operations.push_back({TESS_PROGRAM_FREE, b, 0, 0}); }
    int collective(TessCollectiveKind kind, int64_t count, int monoid = 0, int axis = -1) {
        TessProgramCollective c = {};
        c.kind = kind, c.axis = axis, c.dtype = TESS_F32, c.monoid = monoid, c.count = count;
        c.id = uint32_t(collectives.size()) + 1;
        collectives.push_back(c);
        return int(collectives.size()) - 1;
    }

    std::vector<uint64_t> words() const {
        std::vector<uint64_t> all((sizeof header + 7) / 8);
        TessProgramHeader h = header;
        const auto list = [&](const auto &entries) {
            const size_t at = all.size(), bytes = entries.size() * sizeof entries[0];
            all.resize(at + (bytes + 7) / 8);
            if (bytes > 0) std::memcpy(&all[at], entries.data(), bytes);
            return TessProgramList{at * 8, int32_t(entries.size()), 0};
        };
        h.buffers = list(buffers), h.tensors = list(tensors), h.arguments = list(arguments);
        h.collectives = list(collectives), h.operations = list(operations);
        std::memcpy(h.magic, "TESSPROG", 8);
        h.version = TESS_PROGRAM_TABLE, h.header = sizeof h, h.bytes = all.size() * 8;
        std::memcpy(all.data(), &h, sizeof h);
        return all;
    }
};

int32_t check(const Table &table, TessFault *fault = nullptr) {
    const std::vector<uint64_t> words = table.words();
    const TessProgramTable whole = {words.data(), words.size() * 8};
    return tess_program_check(&whole, fault);
}

int32_t verify(const std::vector<Table> &tables, int ranks, TessFault *fault = nullptr) {
    std::vector<std::vector<uint64_t>> words;
    std::vector<TessProgramTable> whole;
    for (const Table &table : tables) words.push_back(table.words());
    for (const auto &w : words) whole.push_back({w.data(), w.size() * 8});
    return tess_program_verify(whole.data(), int32_t(whole.size()), ranks, fault);
}

constexpr int64_t n = 30'000;

/// A step of training by data and tensor: gradients in two buckets, sent while the next is computed, and a shift along an axis.
Table training_step(int data, int tensor) {
    Table t;
    t.header.hash = 77, t.header.rank = -1, t.header.axes = 2, t.header.extents[0] = data, t.header.extents[1] = tensor;
    t.header.kernels = 3;
    t.header.arena_bytes = uint64_t(n) * 4 * 4 + 1024;
    const uint64_t each = (uint64_t(n) * 4 + 63) / 64 * 64;
    const int x = t.buffer(TESS_PROGRAM_INPUT, n), w = t.buffer(TESS_PROGRAM_STATE, n), y = t.buffer(TESS_PROGRAM_OUTPUT, n);
    const int g = t.buffer(TESS_PROGRAM_LOCAL, n, 0), sum = t.buffer(TESS_PROGRAM_LOCAL, n, each);
    const int halo = t.buffer(TESS_PROGRAM_LOCAL, n, 2 * each), last = t.buffer(TESS_PROGRAM_LOCAL, n, 0);
    const int tx = t.tensor(x, n), tw = t.tensor(w, n), ty = t.tensor(y, n);
    const int low = t.tensor(g, n / 2), high = t.tensor(g, n / 2, n / 2), all_sums = t.tensor(sum, n);
    const int sum_low = t.tensor(sum, n / 2), sum_high = t.tensor(sum, n / 2, n / 2), th = t.tensor(halo, n), tl = t.tensor(last, n);
    const int reduce_low = t.collective(TESS_ALL_REDUCE, n / 2, TESS_SUM, 0),
              reduce_high = t.collective(TESS_ALL_REDUCE, n / 2, TESS_SUM, 0);
    const int shift = t.collective(TESS_SHIFT, n, 0, 1);
    t.collectives[size_t(shift)].distance = 1;
    t.run(0, {{tx, TESS_ROLE_INPUT}, {tw, TESS_ROLE_INPUT}, {high, TESS_ROLE_OUTPUT}});
    const int a = t.start(reduce_high, high, sum_high);
    t.run(0, {{tx, TESS_ROLE_INPUT}, {tw, TESS_ROLE_INPUT}, {low, TESS_ROLE_OUTPUT}});
    const int b = t.start(reduce_low, low, sum_low);
    const int c = t.start(shift, tx, th);
    t.wait(a);
    t.wait(b);
    t.free_buffer(g);
    t.run(1, {{all_sums, TESS_ROLE_INPUT}, {tw, TESS_ROLE_INOUT}, {tl, TESS_ROLE_OUTPUT}});
    t.wait(c);
    t.run(2, {{th, TESS_ROLE_INPUT}, {tl, TESS_ROLE_INPUT}, {ty, TESS_ROLE_OUTPUT}});
    return t;
}

/// Microbatches that go through `ranks` stages: each receives, computes and sends.
std::vector<Table> pipeline(int ranks, int microbatches) {
    std::vector<Table> tables;
    for (int r = 0; r < ranks; ++r) {
        Table t;
        t.header.hash = 78, t.header.rank = r, t.header.kernels = 1;
        const int x = t.buffer(TESS_PROGRAM_INPUT, microbatches * 8), y = t.buffer(TESS_PROGRAM_OUTPUT, microbatches * 8);
        const int in = t.buffer(TESS_PROGRAM_LOCAL, 8, 0), out = t.buffer(TESS_PROGRAM_LOCAL, 8, 64);
        t.header.arena_bytes = 128;
        const int send = t.collective(TESS_SEND, 8), receive = t.collective(TESS_RECEIVE, 8);
        t.collectives[size_t(send)].peer = (r + 1) % ranks, t.collectives[size_t(receive)].peer = (r + ranks - 1) % ranks;
        t.collectives[size_t(send)].id = t.collectives[size_t(receive)].id = 1;
        const int ti = t.tensor(in, 8), to = t.tensor(out, 8);
        for (int m = 0; m < microbatches; ++m) {
            const int tx = t.tensor(x, 8, m * 8), ty = t.tensor(y, 8, m * 8);
            if (r > 0) t.wait(t.start(receive, -1, ti));
            t.run(0, {{r > 0 ? ti : tx, TESS_ROLE_INPUT}, {to, TESS_ROLE_OUTPUT}});
            t.run(0, {{to, TESS_ROLE_INPUT}, {ty, TESS_ROLE_OUTPUT}});
            if (r + 1 < ranks) t.wait(t.start(send, to, -1));
        }
        tables.push_back(t);
    }
    return tables;
}

}  // namespace

TEST_CASE("a training step on a grid runs from its table") {
    for (const auto &[data, tensor] : {std::pair{1, 1}, {2, 1}, {2, 2}, {3, 2}}) {
        const Table table = training_step(data, tensor);
        REQUIRE(verify({table}, data * tensor) == TESS_OK);
        const std::vector<uint64_t> words = table.words();
        std::string wrong;
        std::mutex one;
        on_ranks(data * tensor, [&](TessMesh *mesh, int r) {
            const auto bad = [&](const std::string &what) {
                const std::lock_guard lock(one);
                wrong += what + "; ";
            };
            const TessProgramTable whole = {words.data(), words.size() * 8};
            TessProgramKernel kernels[3] = {};
            int calls = 0;
            for (TessProgramKernel &kernel : kernels) kernel.size = sizeof kernel, kernel.state = &calls;
            kernels[0].run = [](void *state, void *const *d, const TessContext *) {  // the call's number tells which half it is
                const int first = ++*static_cast<int *>(state) % 2 == 1 ? n / 2 : 0;
                for (int i = 0; i < n / 2; ++i)
                    static_cast<float *>(d[2])[i] = static_cast<float *>(d[0])[first + i] * static_cast<float *>(d[1])[first + i];
                return 0;
            };
            kernels[1].run = [](void *, void *const *d, const TessContext *) {
                for (int i = 0; i < n; ++i) {
                    static_cast<float *>(d[1])[i] += static_cast<float *>(d[0])[i];
                    static_cast<float *>(d[2])[i] = static_cast<float *>(d[0])[i];
                }
                return 0;
            };
            kernels[2].run = [](void *, void *const *d, const TessContext *) {
                for (int i = 0; i < n; ++i)
                    static_cast<float *>(d[2])[i] = static_cast<float *>(d[0])[i] + 1000 * static_cast<float *>(d[1])[i];
                return 0;
            };
            struct alignas(64) Line {
                float f[16];
            };
            std::vector<Line> x(n / 16 + 1), w(n / 16 + 1), y(n / 16 + 1), arena(size_t(n) / 4 + 16);
            float *const px = x[0].f, *const pw = w[0].f, *const py = y[0].f;
            for (int i = 0; i < n; ++i) px[i] = float(r * 3 + i % 5), pw[i] = 2;
            TessProgram *program = nullptr;
            TessFault fault = tess_fault();
            int32_t status = tess_program_make(&whole, kernels, 3, mesh, nullptr, &program, &fault);
            if (status != TESS_OK) return bad(tess_status_kind(status));
            void *const buffers[] = {px, pw, py, nullptr, nullptr, nullptr, nullptr};
            for (int step = 0; step < 2; ++step) {
                std::vector<float> before(pw, pw + n);
                status = tess_mesh_run(program, buffers, arena.data(), nullptr, &fault);
                if (status != TESS_OK) return bad(tess_status_kind(status));
                for (int i = 0; i < n; ++i) {
                    float sum = 0;
                    for (int d = 0; d < data; ++d) sum += float((r % tensor + d * tensor) * 3 + i % 5);
                    sum *= before[size_t(i)];
                    const int from = r / tensor * tensor + (r % tensor + tensor - 1) % tensor;
                    if (pw[i] != before[size_t(i)] + sum || py[i] != float(from * 3 + i % 5) + 1000 * sum) return bad("other values");
                }
            }
            if (tess_mesh_run(program, nullptr, arena.data(), nullptr, &fault) != (TESS_NULL_DATA | 1 << 12)) bad("null buffers");
            if (tess_mesh_run(program, buffers, nullptr, nullptr, &fault) != TESS_NULL_DATA) bad("null arena");
            tess_program_destroy(program);
        });
        CHECK(wrong == "");
    }
}

TEST_CASE("a kernel that fails breaks the mesh for all") {
    const Table table = training_step(2, 1);
    const std::vector<uint64_t> words = table.words();
    int32_t statuses[2] = {};
    int64_t culprits[2] = {};
    on_ranks(2, [&](TessMesh *mesh, int r) {
        const TessProgramTable whole = {words.data(), words.size() * 8};
        TessProgramKernel kernels[3] = {};
        int fails = r == 1 ? 1 : 0;
        for (TessProgramKernel &kernel : kernels) {
            kernel.size = sizeof kernel, kernel.state = &fails;
            kernel.run = [](void *state, void *const *, const TessContext *) {
                return *static_cast<int *>(state) != 0 ? int32_t(TESS_RANK) : 0;
            };
        }
        struct alignas(64) Line {
            float f[16];
        };
        std::vector<Line> x(n / 16 + 1), w(n / 16 + 1), y(n / 16 + 1), arena(size_t(n) / 4 + 16);
        void *const buffers[] = {x.data(), w.data(), y.data(), nullptr, nullptr, nullptr, nullptr};
        TessProgram *program = nullptr;
        TessFault fault = tess_fault();
        if (tess_program_make(&whole, kernels, 3, mesh, nullptr, &program, &fault) != TESS_OK) return;
        statuses[r] = tess_mesh_run(program, buffers, arena.data(), nullptr, &fault);
        culprits[r] = fault.got;
        tess_program_destroy(program);
    });
    CHECK(statuses[1] == TESS_RANK);
    CHECK(statuses[0] == TESS_MESH_LOST);
    CHECK(culprits[0] == 1);
}

TEST_CASE("a pipeline has a table for each rank") {
    for (const int ranks : {1, 2, 4}) {
        const std::vector<Table> tables = pipeline(ranks, 5);
        REQUIRE(verify(tables, ranks) == TESS_OK);
        std::string wrong;
        std::mutex one;
        on_ranks(ranks, [&](TessMesh *mesh, int r) {
            const std::vector<uint64_t> words = tables[size_t(r)].words();
            const TessProgramTable whole = {words.data(), words.size() * 8};
            TessProgramKernel kernel = {};
            kernel.size = sizeof kernel;
            kernel.run = [](void *, void *const *d, const TessContext *) {
                for (int i = 0; i < 8; ++i) static_cast<float *>(d[1])[i] = static_cast<float *>(d[0])[i] + 1;
                return 0;
            };
            alignas(64) float x[40], y[40], arena[32];
            for (int i = 0; i < 40; ++i) x[i] = float(i);
            void *const buffers[] = {x, y, nullptr, nullptr};
            TessProgram *program = nullptr;
            int32_t status = tess_program_make(&whole, &kernel, 1, mesh, nullptr, &program, nullptr);
            if (status == TESS_OK) status = tess_mesh_run(program, buffers, arena, nullptr, nullptr);
            tess_program_destroy(program);
            const std::lock_guard lock(one);
            if (status != TESS_OK) wrong += tess_status_kind(status);
            for (int i = 0; i < 40; ++i)
                if (y[i] != float(i + r + 2)) wrong += "x";
        });
        CHECK(wrong == "");
    }
}

TEST_CASE("mutants of a table are refused: one rank drops, doubles, swaps or turns round a collective") {
    const Table good = training_step(2, 2);
    const auto collective_operations = [](const Table &t) {
        std::vector<size_t> at;
        for (size_t i = 0; i < t.operations.size(); ++i)
            if (t.operations[i].kind == TESS_PROGRAM_START) at.push_back(i);
        return at;
    };
    /* Erases an operation; waits that name later ones move with them. */
    const auto erase = [](Table &t, size_t i) {
        t.operations.erase(t.operations.begin() + ptrdiff_t(i));
        for (TessProgramOperation &o : t.operations)
            if (o.kind == TESS_PROGRAM_WAIT && size_t(o.index) > i) --o.index;
    };
    const auto insert = [](Table &t, size_t i, TessProgramOperation o) {
        for (TessProgramOperation &other : t.operations)
            if (other.kind == TESS_PROGRAM_WAIT && size_t(other.index) >= i) ++other.index;
        t.operations.insert(t.operations.begin() + ptrdiff_t(i), o);
    };
    const auto refused = [&](const Table &mutant) {
        for (int r = 0; r < 4; ++r) {
            std::vector<Table> tables(4, good);
            tables[size_t(r)] = mutant;
            CHECK(verify(tables, 4) != TESS_OK);
        }
    };
    REQUIRE(verify(std::vector<Table>(4, good), 4) == TESS_OK);
    for (const size_t i : collective_operations(good)) {
        Table dropped = good, doubled = good, swapped = good;
        for (size_t w = dropped.operations.size(); w-- > i;)
            if (dropped.operations[w].kind == TESS_PROGRAM_WAIT && size_t(dropped.operations[w].index) == i) erase(dropped, w);
        erase(dropped, i);
        refused(dropped);
        insert(doubled, i + 1, {TESS_PROGRAM_WAIT, int32_t(i), 0, 0});
        insert(doubled, i + 2, good.operations[i]);
        for (TessProgramOperation &o : doubled.operations)  // the first wait of the old ones is for the second start
            if (&o > &doubled.operations[i + 2] && o.kind == TESS_PROGRAM_WAIT && size_t(o.index) == i) o.index = int32_t(i + 2);
        refused(doubled);
        for (const size_t j : collective_operations(good)) {
            if (j <= i) continue;
            swapped = good;
            std::swap(swapped.operations[i].index, swapped.operations[j].index);
            std::swap(swapped.operations[i].first, swapped.operations[j].first);
            refused(swapped);
        }
        Table turned = good;
        turned.collectives[2].distance = 2;
        refused(turned);
    }
}

TEST_CASE("pipelines in which ranks wait for each other are refused") {
    TessFault fault = tess_fault();
    std::vector<Table> tables = pipeline(3, 4);
    for (TessProgramCollective &c : tables[1].collectives) c.kind = c.kind == TESS_SEND ? TESS_RECEIVE : TESS_SEND;  // an edge turned round
    CHECK(verify(tables, 3, &fault) != TESS_OK);
    tables = pipeline(2, 4);
    std::swap(tables[1].collectives[1], tables[1].collectives[0]);
    CHECK(verify(tables, 2, &fault) != TESS_OK);
    tables = pipeline(3, 4);
    tables[2] = pipeline(3, 3)[2];  // one message is not received
    CHECK(verify(tables, 3, &fault) != TESS_OK);

    // Two ranks that send before they receive: an engine without memory of its own stands still.
    std::vector<Table> ring;
    for (int r = 0; r < 2; ++r) {
        Table t;
        t.header.hash = 5, t.header.rank = r;
        const int x = t.tensor(t.buffer(TESS_PROGRAM_INPUT, 4), 4), y = t.tensor(t.buffer(TESS_PROGRAM_OUTPUT, 4), 4);
        const int send = t.collective(TESS_SEND, 4), receive = t.collective(TESS_RECEIVE, 4);
        t.collectives[0].peer = t.collectives[1].peer = 1 - r, t.collectives[1].id = t.collectives[0].id;
        t.wait(t.start(send, x, -1));
        t.wait(t.start(receive, -1, y));
        ring.push_back(t);
    }
    CHECK(verify(ring, 2, &fault) == TESS_PROGRAM_DEADLOCK);
    CHECK(fault.expected == 1);
    for (Table &t : ring) std::swap(t.operations[1], t.operations[2]), t.operations[2].index = 0, t.operations[3].index = 1;
    CHECK(verify(ring, 2, &fault) == TESS_OK);  // both posted before either is waited for
}

TEST_CASE("each rule of a table has its status") {
    TessFault fault = tess_fault();
    const Table good = training_step(2, 1);
    REQUIRE(check(good, &fault) == TESS_OK);
    const auto refused = [&](int32_t status, const std::function<void(Table &)> &change) {
        Table bad = good;
        change(bad);
        CHECK(check(bad, &fault) == status);
    };
    refused(TESS_PROGRAM_FIELD, [](Table &t) { t.buffers[0].memory = 4; });
    refused(TESS_PROGRAM_FIELD, [](Table &t) { t.operations[0].kind = 9; });
    refused(TESS_PROGRAM_FIELD, [](Table &t) { t.operations[0].index = 3; });
    refused(TESS_PROGRAM_FIELD, [](Table &t) { t.operations[0].count = 1 << 30; });
    refused(TESS_PROGRAM_FIELD, [](Table &t) { t.arguments[0].tensor = 99; });
    refused(TESS_PROGRAM_FIELD, [](Table &t) { t.arguments[0].tensor = -1; });
    refused(TESS_PROGRAM_FIELD, [](Table &t) { t.tensors[0].rank = 9; });
    refused(TESS_PROGRAM_FIELD, [](Table &t) { t.collectives[0].axis = 2; });
    refused(TESS_PROGRAM_TENSOR, [](Table &t) { t.tensors[0].extents[0] += 1; });
    refused(TESS_PROGRAM_TENSOR, [](Table &t) { t.tensors[0].extents[0] = INT64_MAX; });
    refused(TESS_PROGRAM_TENSOR, [](Table &t) { t.tensors[0].at = UINT64_MAX; });
    refused(TESS_PROGRAM_OVERLAP, [](Table &t) { t.buffers[3].at = 1 << 30; });
    refused(TESS_PROGRAM_OVERLAP, [](Table &t) { t.buffers[4].at = 64; });
    refused(TESS_PROGRAM_UNDEFINED, [](Table &t) { t.arguments[2].role = TESS_ROLE_INOUT; });
    refused(TESS_PROGRAM_READ_ONLY, [](Table &t) { t.arguments[0].role = TESS_ROLE_OUTPUT; });
    refused(TESS_PROGRAM_WAIT_OTHER, [](Table &t) { t.operations[6].index = 1; });  // the first one twice
    refused(TESS_PROGRAM_WAIT_OTHER, [](Table &t) { t.operations[5].index = 0; });  // a kernel
    refused(TESS_PROGRAM_WAIT_OTHER, [](Table &t) { t.operations[5].index = 50; });
    refused(TESS_PROGRAM_FREED, [](Table &t) { t.operations[7].index = 0; });  // the caller's
    refused(TESS_PROGRAM_FREED, [](Table &t) { t.operations[7].index = 5, t.operations[7].index = 6; });
    refused(TESS_PROGRAM_BUSY, [](Table &t) { t.operations[7].index = 5; });  // in flight
    refused(TESS_PROGRAM_BUSY, [](Table &t) { std::swap(t.operations[6], t.operations[7]), std::swap(t.operations[7], t.operations[8]); });
    refused(TESS_PROGRAM_RESULT, [](Table &t) { t.operations.pop_back(); });
    std::vector<uint64_t> words = good.words();
    for (size_t cut = 0; cut < words.size(); ++cut) {  // any length, and each word as garbage: a status, and no fault of memory
        const TessProgramTable shorter = {words.data(), cut * 8};
        CHECK(tess_program_check(&shorter, &fault) == TESS_PROGRAM_FORMAT);
    }
    int refusals = 0;
    for (size_t i = 0; i < words.size(); ++i)
        for (const uint64_t garbage :
             {~uint64_t(0), uint64_t(1) << 63, uint64_t(0x7fffffff), uint64_t(1) << 32, words[i] + 1, words[i] ^ 8}) {
            std::vector<uint64_t> bad = words;
            bad[i] = garbage;
            const TessProgramTable whole = {bad.data(), bad.size() * 8};
            refusals += tess_program_check(&whole, &fault) != TESS_OK;
            tess_program_verify(&whole, 1, 2, &fault);
        }
    CHECK(refusals > int(words.size()));
    CHECK(verify({good}, 3, &fault) == TESS_PROGRAM_MESH);
    Table chunks = training_step(3, 1);
    chunks.collectives[0].chunks = 4;
    CHECK(verify({chunks}, 3, &fault) == TESS_MESH_CHUNKS);
}

}  // namespace tessera::test_mesh
