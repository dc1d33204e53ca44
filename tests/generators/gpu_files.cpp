#include "compiler/emit/emitter.h"

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "support/processes/installed_program.h"
#include "support/text/sha256.h"
#include "tests/generators/harness.h"

namespace tessera::test_gpu_files {

using namespace tessera::test;

static const char *app = R"(#include <stdio.h>
#include "matmul.h"
#include "tests/compiler/opencl_call.h"
int main(void) {
    float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {1, 0, 0, 1, 1, 1}, y[4];
    const int64_t xs[2] = {2, 3}, ws[2] = {3, 2}, ys[2] = {2, 2};
    const TessTensor dx = tess_dense(x, TESS_F32, 2, xs), dw = tess_dense(w, TESS_F32, 2, ws), dy = tess_dense(y, TESS_F32, 2, ys);
    const TessTensor *const all[3] = {&dx, &dw, &dy};
    const TessContext context = tess_context();
    TessKernel kernel = tess_kernel();
    int32_t status = matmul_describe(&kernel);
    int i;
    char words[200];
    for (i = 0; i < 2 && status == 0; i++) status = call_on_device(&kernel, all, 3, NULL, &context, NULL);
    printf("%d: %g %g %g %g\n", status, status ? 0 : y[0], status ? 0 : y[1], status ? 0 : y[2], status ? 0 : y[3]);
    /* What is on the host is refused, and so is a call without a queue. */
    tess_status_message(matmul(&dx, &dw, &dy, NULL), NULL, matmul_argument_names, words, sizeof words);
    printf("%s\n", words);
    return 0;
}
)";

// Each argument by itself counts its rows from the last one, and then those of one column are next to each other.
static const char *backwards = R"(#include <stdio.h>
#include "matmul.h"
#include "tests/compiler/opencl_call.h"
static TessTensor turned(float *data, const int64_t *extents, int64_t *strides, int backwards) {
    TessTensor tensor = tess_dense(data, TESS_F32, 2, extents);
    strides[0] = extents[1], strides[1] = 1;
    if (backwards) {
        tensor.data = data + (extents[0] - 1) * extents[1];
        strides[0] = -extents[1];
        tensor.strides = strides;
    }
    return tensor;
}
static void product(int64_t k, int which) {
    float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {1, 0, 0, 1, 1, 1}, y[4] = {0};
    const int64_t of_x[2] = {2, k}, of_w[2] = {k, 2}, of_y[2] = {2, 2};
    int64_t s[3][2];
    const TessTensor dx = turned(x, of_x, s[0], which == 0), dw = turned(w, of_w, s[1], which == 1), dy = turned(y, of_y, s[2], which == 2);
    const TessTensor *const all[3] = {&dx, &dw, &dy};
    const TessContext context = tess_context();
    TessKernel kernel = tess_kernel();
    int32_t status = matmul_describe(&kernel);
    if (status == 0) status = call_on_device(&kernel, all, 3, NULL, &context, NULL);
    printf("%d: %g %g %g %g\n", status, y[0], y[1], y[2], y[3]);
}
int main(void) {
    int which;
    for (which = 0; which < 3; which++) product(3, which);
    product(1, 0);
    return 0;
}
)";

static std::string linked(const nlohmann::json &manifest) {
    std::string names;
    for (const auto &entry : manifest["licences"]["linked"]) names += (names.empty() ? "" : " ") + entry["name"].get<std::string>();
    return names;
}

TEST_CASE("a kernel for OpenCL is source that an application compiles and runs") {
    const TemporaryFolder folder;
    const std::string out = folder.path().string();
    const Outcome outcome = generator({"generate", "matmul", "--target", "opencl", "--schedule", "none", "--out", out});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(files_in(out) == "matmul.c matmul.cl matmul.h matmul.manifest.json");
    const auto manifest = nlohmann::json::parse(read_file(out + "/matmul.manifest.json"));
    CHECK(manifest["targets"][0]["name"] == "opencl");
    CHECK_FALSE(manifest.contains("nvcc"));
    CHECK(linked(manifest) == "tessera_runtime tessera_opencl libOpenCL");
    for (const char *name : {"matmul.c", "matmul.cl", "matmul.h"}) CHECK(manifest["files"][name] == sha256(read_file(out + "/" + name)));
    CHECK_THAT(read_file(out + "/matmul.cl"), Catch::Contains("#pragma OPENCL FP_CONTRACT OFF") && Catch::Contains("__kernel"));
    if (std::string(TESSERA_OPENCL_LIBRARY).empty()) return;
    write_file(folder.path() / "app.c", app);
    const std::string root = TESSERA_SOURCE_DIR;
    write_file(folder.path() / "backwards.c", backwards);
    for (const std::string program : {"app", "backwards"}) {
        const std::string options = "-Wall -Wextra -Werror -DTESSERA_OPENCL=1 -I'" + root + "' -I'" + root + "/runtime/abi'",
                          sources = program + ".c matmul.c '" + root + "/autotune/measure/opencl_memory.c'";
        const Outcome built = shell("cd '" + out + "' && cc -std=c99" + instrumented + options + " -o " + program + " " + sources + " '" +
                                    TESSERA_OPENCL_LIBRARY + "' '" + TESSERA_RUNTIME_LIBRARY + "' -lOpenCL -lpthread");
        INFO(built.err);
        REQUIRE(built.code == 0);
    }
    const std::string pocl = "POCL_DEVICES=basic POCL_CACHE_DIR='" + out + "/cache' ";
    CHECK(shell(pocl + "'" + out + "/app'").out ==
          "0: 4 5 10 11\nargument 0 ('x'): the tensor is not on the device that the kernel runs on\n");
    CHECK(shell(pocl + "'" + out + "/backwards'").out == "0: 10 11 4 5\n0: 4 3 10 9\n0: 10 11 4 5\n0: 2 0 1 0\n");
}

TEST_CASE("a kernel for CUDA is source and PTX") {
    const TemporaryFolder folder;
    const std::string out = folder.path().string();
    if (!installed_program({"nvcc"})) {
        check_refused({"generate", "matmul", "--target", "cuda-sm80", "--schedule", "none", "--out", out},
                      {"error[command.nvcc]: target 'cuda-sm80': nvcc makes the PTX, and there is none on the PATH; install the CUDA "
                       "toolkit (12 or later) and add its bin folder."});
        return;
    }
    REQUIRE(generator({"generate", "matmul", "--target", "cuda-sm80", "--schedule", "none", "--out", out}).code == 0);
    CHECK(files_in(out) == "matmul.c matmul.cu matmul.h matmul.manifest.json matmul.ptx");
    const auto manifest = nlohmann::json::parse(read_file(out + "/matmul.manifest.json"));
    CHECK(manifest["nvcc"] == installed_program({"nvcc"})->version);
    CHECK(linked(manifest) == "tessera_runtime tessera_cuda libcuda");
    CHECK_THAT(read_file(out + "/matmul.ptx"), Catch::Contains(".target sm_80") && Catch::Contains("fma.rn.f32"));
}

TEST_CASE("what a GPU has no use for: the words") {
    check_refused({"verify", "matmul", "--target", "opencl", "--schedule", "none"},
                  {"error[command.target]: target 'opencl': this command runs kernels on the processor, and not on a GPU; choose --target "
                   "host. 'generate' writes the kernel for opencl."});
    const TemporaryFolder folder;
    check_refused({"generate", "matmul", "--target", "opencl", "--schedule", "none", "--emit-assembly", "--out", folder.path().string()},
                  {"error[command.assembly]: target 'opencl': kernels for GPUs have no assembly: their source or PTX is written anyway. "
                   "Leave out --emit-assembly."});
}

}  // namespace tessera::test_gpu_files
