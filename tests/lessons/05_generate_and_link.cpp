// Lesson 5: generate and link.
//
// Generating happens ahead of time, in a build. Out come three files: a static library, a plain C header and a manifest. The
// application links the library and Tessera's small C runtime, and carries nothing of the compiler.
//
// Usually CMake does it: `tessera_add_kernel(scaled_add GENERATOR my_kernels)` runs a generator, which is a program of three
// lines: a Registry, what to add to it, `return generator_main(argc, argv, registry)`. This lesson does the same step by
// step, and then loads what came out into itself, so that it can call it.
//
//   05_generate_and_link <folder of tessera.h> <the runtime's static library>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/array.h"
#include "compiler/interpret/interpret.h"
#include "generators/commands/generate.h"
#include "runtime/abi/tessera.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

using namespace tessera;

// y = alpha x + z, with a scalar that is given when the kernel is called.
static Algorithm scaled_add(const Numerics &numerics) {
    Builder f("scaled_add", numerics);
    Dim N = f.dim("N");
    Tile x = f.input("x", {N}), z = f.input("z", {N});  // (N)
    Tile alpha = f.parameter("alpha", numerics.compute);
    return f.output("y", fma(alpha, x, z)).build();  // (N)
}

static Schedule by_vectors() {
    return Schedule("scaled_add/x86-64").stage("y", StageKnobs().micro({{"N", 8}}).vector({{"N", 4}}).tail("N", Tail::loop));
}

// As declared in scaled_add.h: tensors, then a struct of parameters, then the context; a status comes back.
struct Parameters {
    float alpha;
};
using ScaledAdd = int32_t (*)(const TessTensor *x, const TessTensor *z, const TessTensor *y, const Parameters *, const TessContext *);

int main(int argc, char **argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: 05_generate_and_link <folder of tessera.h> <runtime library>\n"), 2;

    // 1. Generate. The registry is what this generator knows; the schedule's name, <algorithm>/<target>, makes it the default.
    Registry registry;
    registry.add("scaled_add", "y[N] = alpha x[N] + z[N]", scaled_add).add_schedule(by_vectors);
    const TemporaryFolder folder;
    GenerateOptions options;
    options.kernel.algorithm = "scaled_add";
    options.kernel.target = "x86-64";
    options.kernel.quiet = true;
    options.out = folder.path().string();
    generate(registry, options);
    for (const char *file : {"libscaled_add.a", "scaled_add.h", "scaled_add.manifest.json"}) {
        require(std::filesystem::exists(folder.path() / file), "generate writes its three files");
        std::printf("%s\n", file);
    }

    // 2. Link. An application would name the library on its link line; to load it here it becomes a shared object. The header
    // is C99 and is compiled as such on the way.
    const std::string dir = folder.path().string(), object = dir + "/kernel.so", source = dir + "/kernel.c";
    std::ofstream(source) << "#include \"scaled_add.h\"\n";
    const std::string command = "cc -std=c99 -Wall -Werror -pthread -shared -fPIC -o " + object + " -I " + dir + " -I " + argv[1] + " " +
                                source + " -Wl,--whole-archive " + dir + "/libscaled_add.a -Wl,--no-whole-archive " + argv[2];
    require(std::system(command.c_str()) == 0, "the kernel links with the runtime alone");
    void *library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    require(library, "the shared object loads");
    const auto kernel = reinterpret_cast<ScaledAdd>(dlsym(library, "scaled_add"));
    require(kernel, "the kernel has its name in C");

    // 3. Call. A tensor is a pointer with extents and perhaps strides, laid out as DLPack has it. A null context means one thread
    // and no workspace, which is all that this kernel needs; `scaled_add_workspace` would say otherwise.
    constexpr int64_t n = 1003;
    Array x(DType::f32, {n}), z(DType::f32, {n}), y(DType::f32, {n});
    for (int64_t i = 0; i < n; i++) {
        x.set(i, Scalar::of_real(DType::f32, 1.0 / static_cast<double>(i + 1)));
        z.set(i, Scalar::of_real(DType::f32, static_cast<double>(i % 17) / 3));
    }
    const TessTensor dx = tess_dense(x.data.data(), TESS_F32, 1, &n), dz = tess_dense(z.data.data(), TESS_F32, 1, &n);
    TessTensor dy = tess_dense(y.data.data(), TESS_F32, 1, &n);
    const Parameters parameters = {0.3f};
    const int32_t status = kernel(&dx, &dz, &dy, &parameters, nullptr);
    std::printf("status %s\n", tess_status_kind(status));
    require(status == TESS_OK, "the call is legal");

    // 4. Compare. The interpreter of the tile program gives the same bits: memcmp, not a tolerance.
    const PreparedKernel prepared = prepare(registry, options.kernel);
    const TileProgram &program = prepared.compiled.kernel.general();
    Array expected(DType::f32, {n});
    interpret(program, {{"x", x.view("x")}, {"z", z.view("z")}, {"y", expected.view("y")}}, {},
              {{"alpha", Scalar::of_real(DType::f32, 0.3f)}});
    require(std::memcmp(y.data.data(), expected.data.data(), y.data.size()) == 0, "compiled code has the interpreter's bits");
    std::printf("the compiled kernel has the bits of its tile program\n");

    // 5. A wrong call returns; it never writes out of bounds, aborts or throws. The status holds what is wrong with which
    // argument; the fault that the context points to, the rest.
    const int64_t short_n = 7;
    dy = tess_dense(y.data.data(), TESS_F32, 1, &short_n);
    const char *const names[] = {"x", "z", "y"};
    char message[256];
    TessFault fault = tess_fault();
    TessContext context = tess_context();
    context.fault = &fault;
    const int32_t refused = kernel(&dx, &dz, &dy, &parameters, &context);
    for (const TessFault *details : std::initializer_list<const TessFault *>{&fault, nullptr}) {
        tess_status_message(refused, details, names, message, sizeof message);
        std::printf("%s\n", message);
    }
    dlclose(library);
}

// Output:
// libscaled_add.a
// scaled_add.h
// scaled_add.manifest.json
// status ok
// the compiled kernel has the bits of its tile program
// argument 2 ('y'), dimension 0: extent must equal that of argument 0 ('x'), dimension 0, 1003, not 7
// argument 2 ('y'): an extent must equal that of the same dim elsewhere
