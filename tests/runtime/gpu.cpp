#include "runtime/gpu.h"

#include <catch2/catch.hpp>

#include <vector>

namespace tessera::test_gpu {

// x[M, N], y[N]: two dims, two tensors, one parameter.
static std::vector<int64_t> spec() {
    std::vector<int64_t> s = {TESS_SPEC_ABI1, 0, 2, 2, 1};
    for (int dim = 0; dim < 2; dim++) s.insert(s.end(), {-1, 0, -1, 1, -1});
    s.insert(s.end(), {TESS_ROLE_INPUT, TESS_F32, 2, TESS_FLAG_LAST_STRIDE_1, 0, 1, -1, -1, -1, -1, -1, -1});
    s.insert(s.end(), {TESS_ROLE_OUTPUT, TESS_F64, 1, TESS_FLAG_LAST_STRIDE_1, 1, -1, -1, -1, -1, -1, -1, -1});
    return s;
}

// Extents 3 and 5; x at 1000 with rows 7 apart, y at 2000; the parameter; workspace at 4096 with 256 bytes.
static std::vector<int64_t> frame() { return {3, 5, 1000, 7, 1, 2000, 1, 42, 4096, 256, 0, 1}; }

TEST_CASE("the numbers of a launch are extents, strides, where tensors begin, parameters and the caller's") {
    const std::vector<int64_t> s = spec(), f = frame(), own = {64, 128};
    TessGpuRun run = {};
    run.spec = s.data(), run.frame = f.data();
    int64_t numbers[TESS_GPU_MAX_NUMBERS];
    REQUIRE(tess_gpu1_numbers(&run, own.data(), 2, numbers) == 8);
    CHECK(std::vector<int64_t>(numbers, numbers + 8) == std::vector<int64_t>{3, 5, 7, 0, 0, 42, 64, 128});
    CHECK(tess_gpu1_numbers(&run, own.data(), TESS_GPU_MAX_NUMBERS, numbers) == -1);
}

TEST_CASE("a run starts without buffers") {
    const std::vector<int64_t> s = spec(), f = frame();
    TessGpuProgram program = {};
    TessGpuRun run;
    for (void *&buffer : run.buffers) buffer = &run;
    tess_gpu1_start(&run, &program, s.data(), f.data());
    CHECK((run.program == &program && run.spec == s.data() && run.frame == f.data()));
    CHECK((run.buffers[0] == nullptr && run.buffers[1] == nullptr && run.buffers[2] == nullptr));
}

TEST_CASE("a tensor's memory spans its rows, gaps between them included") {
    const std::vector<int64_t> s = spec();
    std::vector<int64_t> f = frame();
    void *address = nullptr;
    uint64_t bytes = 0;
    auto memory = [&](int64_t tensor) {
        tess_gpu1_memory(s.data(), f.data(), tensor, &address, &bytes);
        return bytes;
    };
    CHECK(memory(0) == 4 * (2 * 7 + 5));
    CHECK(address == reinterpret_cast<void *>(1000));
    CHECK(memory(1) == 8 * 5);
    CHECK(memory(2) == 256);
    CHECK(address == reinterpret_cast<void *>(4096));
    f[0] = 0;
    CHECK(memory(0) == 0);
    f[8] = 0;
    CHECK(memory(2) == 0);
    CHECK_FALSE(tess_gpu1_is_written(s.data(), 0));
    CHECK(tess_gpu1_is_written(s.data(), 1));
    CHECK_FALSE(tess_gpu1_is_written(s.data(), 2));
}

TEST_CASE("a tensor's memory begins below its first element where a stride is negative") {
    const std::vector<int64_t> s = spec();
    std::vector<int64_t> f = frame();
    f[3] = -7;
    void *address = nullptr;
    uint64_t bytes = 0;
    TessGpuRun run = {};
    run.spec = s.data(), run.frame = f.data();
    int64_t numbers[TESS_GPU_MAX_NUMBERS];
    auto memory = [&] { tess_gpu1_memory(s.data(), f.data(), 0, &address, &bytes); };
    memory();
    CHECK(bytes == 4 * (2 * 7 + 5));
    CHECK(address == reinterpret_cast<void *>(1000 - 4 * 2 * 7));
    REQUIRE(tess_gpu1_numbers(&run, nullptr, 0, numbers) == 6);
    CHECK(std::vector<int64_t>(numbers, numbers + 6) == std::vector<int64_t>{3, 5, -7, 14, 0, 42});
    // Two rows of one column.
    f[0] = 2, f[1] = 1, f[3] = -1;
    memory();
    CHECK((bytes == 4 * 2 && address == reinterpret_cast<void *>(996)));
    f[1] = 0;
    memory();
    CHECK((bytes == 0 && address == reinterpret_cast<void *>(1000)));
}

}  // namespace tessera::test_gpu
