// Lesson 16: plan and run.
//
// A call checks all that it is given: types, extents, strides, memory. Who calls a small kernel a million times with the same shapes
// makes a plan, which checks once, chooses the code once, and then runs on one set of pointers after the other. This lesson also asks a
// kernel what it is, as a binding for another language would, which has no header to read.
//
//   16_plan_and_run <folder of tessera.h> <the runtime's static library>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "algorithms/build/tile_functions.h"
#include "generators/commands/generate.h"
#include "runtime/abi/tessera.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

using namespace tessera;

// y = alpha x + z for each row; what is added is the same for all rows.
static Algorithm shifted(const Numerics &numerics) {
    Builder f("shifted", numerics);
    Dim fours = symbolic_dim("N");
    fours.multiple_of = 4;
    Dim M = f.dim("M"), N = f.dim(fours);
    Tile x = f.input("x", {M, N}), z = f.input("z", {N});  // (M, N), (N)
    Tile alpha = f.parameter("alpha", numerics.compute);
    return f.output("y", fma(alpha, x, z)).build();  // (M, N)
}

static Schedule by_vectors() { return Schedule("shifted/x86-64").stage("y", StageKnobs().vector({{"N", 4}})); }

// What the kernel says of itself. Each struct begins with its size, so that later versions can have more in it.
static void describe(const TessKernel &kernel) {
    TessKernelInfo info;
    info.size = sizeof info;
    require(tess_kernel_info(&kernel, &info) == TESS_OK, "a kernel is described");
    std::printf("%s: %d tensors, %d parameters in %d bytes\n", info.name, info.tensors, info.parameters,
                static_cast<int>(info.parameter_bytes));
    for (int32_t i = 0; i < info.tensors; i++) {
        TessTensorInfo tensor;
        tensor.size = sizeof tensor;
        require(tess_kernel_tensor(&kernel, i, &tensor) == TESS_OK, "so are its tensors");
        std::printf("  %s is %s, %d bits, [", tensor.name, tensor.role == TESS_ROLE_INPUT ? "read" : "written", tensor.type.bits);
        for (int axis = 0; axis < tensor.rank; axis++) {
            TessDimInfo dim;
            dim.size = sizeof dim;
            require(tess_kernel_dim(&kernel, tensor.dims[axis], &dim) == TESS_OK, "and their dims");
            std::printf("%s%s", axis ? ", " : "", dim.name);
            if (dim.multiple_of > 1) std::printf(" (a multiple of %d)", static_cast<int>(dim.multiple_of));
        }
        std::printf("]\n");
    }
    for (int32_t i = 0; i < info.code; i++) {
        TessCodeInfo code;
        code.size = sizeof code;
        require(tess_kernel_code(&kernel, i, &code) == TESS_OK, "and its code");
        std::printf("  code for %s\n", code.target);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: 16_plan_and_run <folder of tessera.h> <runtime library>\n"), 2;

    // 1. Generate and load, as in lesson 5. All that is needed of the library is one function.
    Registry registry;
    registry.add("shifted", "y[M, N] = alpha x[M, N] + z[N]", shifted).add_schedule(by_vectors);
    const TemporaryFolder folder;
    GenerateOptions options;
    options.kernel.algorithm = "shifted", options.kernel.target = "x86-64", options.kernel.quiet = true;
    options.out = folder.path().string();
    generate(registry, options);
    const std::string dir = folder.path().string(), object = dir + "/kernel.so";
    const std::string command =
        "cc -pthread -shared -fPIC -o " + object + " -Wl,--whole-archive " + dir + "/libshifted.a -Wl,--no-whole-archive " + argv[2];
    require(std::system(command.c_str()) == 0, "the kernel links with the runtime alone");
    void *library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    require(library, "the shared object loads");
    const auto fill_in = reinterpret_cast<int32_t (*)(TessKernel *)>(dlsym(library, "shifted_describe"));
    TessKernel kernel = tess_kernel();
    require(fill_in && fill_in(&kernel) == TESS_OK, "the kernel is a value");
    describe(kernel);

    // 2. Plan: shapes, strides and parameters are there, pointers come later. The memory is ours; nothing has to be freed.
    constexpr int64_t M = 3, N = 8;
    const int64_t matrix[] = {M, N}, row[] = {N};
    const TessTensor x = tess_dense(nullptr, TESS_F32, 2, matrix), z = tess_dense(nullptr, TESS_F32, 1, row),
                     y = tess_dense(nullptr, TESS_F32, 2, matrix);
    const TessTensor *const tensors[] = {&x, &z, &y};
    TessFault fault = tess_fault();
    TessContext context = tess_context();
    context.fault = &fault;
    uint64_t bytes = 0;
    require(tess_plan_bytes(&kernel, &bytes) == TESS_OK, "a plan has a size");
    std::vector<uint64_t> memory(bytes / 8);
    const float alpha = 2;  // all that shifted_parameters has
    require(tess_plan_make(&kernel, tensors, &alpha, &context, memory.data(), bytes) == TESS_OK, "the plan is made");
    const auto *plan = reinterpret_cast<const TessPlan *>(memory.data());
    require(tess_plan_workspace(plan, &bytes) == TESS_OK && bytes == 0, "this kernel needs no workspace");

    // 3. Run, with one set of pointers after the other. Any number of threads may do so at once.
    float xs[2][M * N], zs[N], ys[2][M * N];
    for (int i = 0; i < M * N; i++) xs[0][i] = static_cast<float>(i), xs[1][i] = static_cast<float>(-i);
    for (float &v : zs) v = 0.5f;
    for (int i = 0; i < 2; i++) {
        void *const data[] = {xs[i], zs, ys[i]};
        require(tess_plan_run(plan, data, nullptr, &context) == TESS_OK, "the plan runs");
        std::printf("run %d: y[2, 7] = %g\n", i, static_cast<double>(ys[i][23]));
    }

    // 4. What a plan cannot know is checked in each run; what it can know is refused when it is made.
    char words[256];
    const char *const names[] = {"x", "z", "y"};
    void *const overlapping[] = {xs[0], zs, xs[0] + 8};
    tess_status_message(tess_plan_run(plan, overlapping, nullptr, &context), &fault, names, words, sizeof words);
    std::printf("%s\n", words);
    const int64_t six[] = {6};
    const TessTensor short_z = tess_dense(nullptr, TESS_F32, 1, six);
    const TessTensor *const wrong[] = {&x, &short_z, &y};
    const int32_t refused = tess_plan_make(&kernel, wrong, &alpha, &context, memory.data(), 8 * memory.size());
    tess_status_message(refused, &fault, names, words, sizeof words);
    std::printf("%s\n", words);
    dlclose(library);
}

// Output:
// shifted: 3 tensors, 1 parameters in 4 bytes
//   x is read, 32 bits, [M, N (a multiple of 4)]
//   z is read, 32 bits, [N (a multiple of 4)]
//   y is written, 32 bits, [M, N (a multiple of 4)]
//   code for x86-64
// run 0: y[2, 7] = 46.5
// run 1: y[2, 7] = -45.5
// argument 2 ('y'): memory is shared with argument 0 ('x'); an output needs an address range of its own
// argument 1 ('z'), dimension 0: extent must equal that of argument 0 ('x'), dimension 1, 8, not 6
