#include "runtime/gpu/gpu.h"

#include <catch2/catch.hpp>

#include <vector>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_gpu {

using namespace tessera::test;

// x[M, N], y[N]: two dims, two tensors, one parameter.
static std::vector<int64_t> spec(int64_t device) {
    std::vector<int64_t> s = toy_spec({{}, {}}, {{TESS_ROLE_INPUT, {0, 1}}, {TESS_ROLE_OUTPUT, {1}, TESS_F64}}, 1);
    s[TESS_SPEC_DEVICE] = device;
    if (device == TESS_OPENCL) s[TESS_SPEC_FRAME_WORDS] += 2;
    return s;
}

TEST_CASE("the numbers of a launch are extents, strides, where tensors begin, parameters and the caller's") {
    // Extents 3 and 5; x with rows 7 apart, y; the parameter; the tail; byte offsets.
    const std::vector<int64_t> frame = {3, 5, 1000, 7, 1, 2000, 1, 42, 4096, 256, 0, 1, 0, 0, 0, 0, 40, 16}, own = {64, 128};
    for (int64_t device : {TESS_CUDA, TESS_OPENCL}) {
        const std::vector<int64_t> s = spec(device);
        const TessContext context = tess_context();
        const TessCall call = {&context, 0, 1, 0, 0};
        TessGpuProgram program = {};
        TessGpuRun run;
        tess_gpu2_start(&run, &program, s.data(), frame.data(), &call);
        CHECK((run.program == &program && run.spec == s.data() && run.frame == frame.data() && !run.loaded && run.context == &context));
        int64_t numbers[TESS_GPU_MAX_LAUNCH];
        REQUIRE(tess_gpu2_numbers(&run, own.data(), 2, numbers) == 8);
        const int64_t x = device == TESS_OPENCL ? 10 : 0, y = device == TESS_OPENCL ? 2 : 0;
        CHECK(std::vector<int64_t>(numbers, numbers + 8) == std::vector<int64_t>{3, 5, 7, x, y, 42, 64, 128});
        CHECK(tess_gpu2_numbers(&run, own.data(), TESS_GPU_MAX_LAUNCH, numbers) == -1);
    }
}

TEST_CASE("a program is loaded once in each context, as long as there is room") {
    TessGpuProgram program = {};
    int contexts[TESS_GPU_MAX_CONTEXTS + 1];
    for (int i = 0; i < TESS_GPU_MAX_CONTEXTS; i++) {
        TessGpuLoaded *loaded = tess_gpu2_loaded(&program, &contexts[i], nullptr);
        REQUIRE(loaded == &program.loaded[i]);
        CHECK(tess_gpu2_loaded(&program, &contexts[i], nullptr) == loaded);
        loaded->context = &contexts[i], loaded->program = &program;
    }
    CHECK(tess_gpu2_loaded(&program, &contexts[3], nullptr) == &program.loaded[3]);
    CHECK(tess_gpu2_loaded(&program, &contexts[TESS_GPU_MAX_CONTEXTS], nullptr) == nullptr);
}

TEST_CASE("a kernel for a device wants its tensors there, and the context's device") {
    static TessDevice seen;
    auto body = [](void *call, int64_t *) -> int32_t {
        seen.id = static_cast<TessCall *>(call)->device;
        return 0;
    };
    std::vector<int64_t> s = spec(TESS_CUDA);
    alignas(64) static float x[15];
    static double y[5];
    auto on = [](Tensor t, int32_t type, int32_t id) {
        t.device = {type, id};
        return t;
    };
    auto call = [&](TessDevice device, int32_t type, int32_t id) {
        TessContext context = telling();
        context.device = device;
        const std::vector<Tensor> args = {on(dense(x, {3, 5}), type, id), on(dense(y, {5}, TESS_F64), type, id)};
        return tess_abi2_call(s.data(), nullptr, body, pointers(args).data(), no_parameters, &context);
    };
    CHECK(call({0, 0}, TESS_CUDA, 0) == TESS_OK);
    CHECK(seen.id == 0);
    CHECK(call({TESS_CUDA, 3}, TESS_CUDA, 3) == TESS_OK);
    CHECK(seen.id == 3);
    CHECK(words(call({TESS_CUDA, 3}, TESS_CUDA, 2)) == "argument 0: the tensor must be on the device with number 3, not 2");
    CHECK(words(call({0, 0}, TESS_HOST, 0)) == "argument 0: the tensor must be on a CUDA device, not on the host");
    CHECK(words(call({TESS_OPENCL, 0}, TESS_CUDA, 0)) ==
          "the context's device must be one of the kernel's kind, on a CUDA device, not on an OpenCL device");
}

TEST_CASE("memory objects overlap only within one") {
    const std::vector<int64_t> s = spec(TESS_OPENCL);
    auto call = [&](uintptr_t x, uint64_t x_offset, uintptr_t y, uint64_t y_offset) {
        std::vector<Tensor> args = {dense(reinterpret_cast<void *>(x), {3, 5}), dense(reinterpret_cast<void *>(y), {5}, TESS_F64)};
        args[0].byte_offset = x_offset, args[1].byte_offset = y_offset;
        for (Tensor &t : args) t.device.type = TESS_OPENCL;
        const TessContext context = telling();
        return tess_status_code(tess_abi2_call(s.data(), nullptr, succeed, pointers(args).data(), no_parameters, &context));
    };
    CHECK(call(1001, 0, 1003, 0) == TESS_OK);
    CHECK(call(1001, 0, 1001, 64) == TESS_OK);
    CHECK(call(1001, 0, 1001, 56) == TESS_OVERLAP);
    CHECK(call(1001, 0, 1003, 4) == TESS_MISALIGNED);
    CHECK(call(0, 0, 1003, 0) == TESS_NULL_DATA);
}

}  // namespace tessera::test_gpu
