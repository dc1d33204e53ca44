// Lesson 7: pack weights ahead of time.
//
// A fast product reads its second operand in panels, and copies it into panels at each call. The weights of a network are the
// same in every call: pack them once, keep the bytes, in a file if you like, and call many times.
//
// The schedule says so, with "at": "prepack" where it would name a loop. The compiler then derives a second algorithm, which
// packs, and the library has a function for it. What it writes has a header, by which the kernel knows its own.
//
//   07_prepack <folder of tessera.h> <the runtime's static library>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "algorithms/build/tile_functions.h"
#include "generators/commands/generate.h"
#include "runtime/abi/tessera.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

using namespace tessera;

static Algorithm layer(const Numerics &numerics) {
    Builder f("layer", numerics);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}), w = f.input("w", {K, N});     // (M, K), (K, N)
    return f.output("y", relu(dot(x, w).named("acc"))).build();  // (M, N)
}

// Panels of 8 columns, copied at each call.
static Schedule per_call() {
    return Schedule("layer/per_call")
        .stage("acc", StageKnobs().micro({{"M", 2}, {"N", 8}}).vector({{"N", 4}}).pack("w", "root", {"N/8", "K", "N%8"}));
}

// The same panels ahead of time, and wider ones.
static Schedule ahead() {
    return Schedule("layer/ahead").extends("layer/per_call").stage("acc", StageKnobs().pack("w", "prepack", {"N/8", "K", "N%8"}));
}
static Schedule wide() {
    return Schedule("layer/wide")
        .extends("layer/per_call")
        .stage("acc", StageKnobs().micro({{"N", 16}}).pack("w", "prepack", {"N/16", "K", "N%16"}));
}

using Product = int32_t (*)(const TessTensor *x, const TessTensor *w, const TessTensor *y, const TessContext *);
using PackSize = int32_t (*)(const TessTensor *w, const TessContext *, uint64_t *bytes);
using PackWeights = int32_t (*)(const TessTensor *w, const TessTensor *w_packed, const TessContext *);

int main(int argc, char **argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: 07_prepack <folder of tessera.h> <runtime library>\n"), 2;

    // 1. Generate the layer under each schedule, and look at what one of them packs.
    Registry registry;
    registry.add("layer", "y[M, N] = relu(x[M, K] w[K, N])", layer).add_schedule(per_call).add_schedule(ahead).add_schedule(wide);
    const TemporaryFolder folder;
    const std::string dir = folder.path().string(), object = dir + "/kernels.so";
    std::string archives;
    for (const char *name : {"per_call", "ahead", "wide"}) {
        GenerateOptions options;
        options.kernel.algorithm = "layer", options.kernel.target = "x86-64", options.kernel.schedule = std::string("layer/") + name;
        options.name = name, options.out = dir;
        generate(registry, options);
        archives += " " + dir + "/lib" + name + ".a";
        const PreparedKernel prepared = prepare(registry, options.kernel, name);
        if (std::string(name) == "ahead") std::printf("%s", to_text(prepared.compiled.packings[0].general()).c_str());
    }
    const std::string command =
        "cc -pthread -shared -fPIC -o " + object + " -Wl,--whole-archive" + archives + " -Wl,--no-whole-archive " + argv[2];
    require(std::system(command.c_str()) == 0, "the kernels link with the runtime alone");
    void *library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    require(library, "the shared object loads");
    const auto plain = reinterpret_cast<Product>(dlsym(library, "per_call")), kernel = reinterpret_cast<Product>(dlsym(library, "ahead"));
    const auto pack = reinterpret_cast<PackWeights>(dlsym(library, "ahead_pack_w"));
    const auto pack_size = reinterpret_cast<PackSize>(dlsym(library, "ahead_pack_w_size"));
    require(plain && kernel && pack && pack_size, "a kernel with packed operands has three functions");

    // 2. Pack once: ask how many bytes, pack, and keep them in a file.
    constexpr int64_t M = 3, N = 21, K = 11;
    float x[M * K], w[K * N], y[M * N], expected[M * N];
    for (int i = 0; i < M * K; i++) x[i] = static_cast<float>(i % 7 - 3) / 4;
    for (int i = 0; i < K * N; i++) w[i] = static_cast<float>(i % 13 - 6) / 8;
    const int64_t x_shape[] = {M, K}, w_shape[] = {K, N}, y_shape[] = {M, N};
    const TessTensor xs = tess_dense(x, TESS_F32, 2, x_shape), ws = tess_dense(w, TESS_F32, 2, w_shape),
                     ys = tess_dense(y, TESS_F32, 2, y_shape);
    uint64_t bytes = 0;
    require(pack_size(&ws, nullptr, &bytes) == TESS_OK, "a packed operand has a size");
    std::printf("%lld bytes of weights are %llu bytes when they are packed\n", static_cast<long long>(sizeof w),
                static_cast<unsigned long long>(bytes));
    alignas(TESS_PACKED_ALIGNMENT) char packed[2048], loaded[2048];
    require(bytes <= sizeof packed, "there is room");
    const TessTensor packed_ws = tess_packed(packed, &bytes);
    require(pack(&ws, &packed_ws, nullptr) == TESS_OK, "weights are packed");
    std::ofstream(dir + "/weights", std::ios::binary).write(packed, static_cast<std::streamsize>(bytes));

    // 3. Another process, another day: read the file, or map it, and call. The result has the bits of packing at each call.
    std::ifstream(dir + "/weights", std::ios::binary).read(loaded, static_cast<std::streamsize>(bytes));
    const TessTensor loaded_ws = tess_packed(loaded, &bytes);
    alignas(TESS_WORKSPACE_ALIGNMENT) static char workspace[16384];
    TessFault fault = tess_fault();
    TessContext context = tess_context();
    context.fault = &fault;
    context.workspace = workspace, context.workspace_bytes = sizeof workspace;
    const TessTensor expected_ys = tess_dense(expected, TESS_F32, 2, y_shape);
    require(plain(&xs, &ws, &expected_ys, &context) == TESS_OK && kernel(&xs, &loaded_ws, &ys, &context) == TESS_OK,
            "both calls are legal");
    require(std::memcmp(y, expected, sizeof y) == 0, "the bits are the same");
    std::printf("packed weights from a file give the bits of weights that are packed at each call\n");

    // 4. A kernel knows what it did not pack: bytes for other panels, weights of another shape, weights that are not packed.
    const char *const names[] = {"x", "w.packed", "y"};
    auto refused = [&](Product other, const TessTensor &given) {
        char message[256];
        tess_status_message(other(&xs, &given, &ys, &context), &fault, names, message, sizeof message);
        std::printf("%s\n", message);
    };
    refused(reinterpret_cast<Product>(dlsym(library, "wide")), loaded_ws);
    const int64_t fewer[] = {K - 1, N};
    const TessTensor less = tess_dense(w, TESS_F32, 2, fewer);
    uint64_t fewer_bytes = 0;
    require(pack_size(&less, nullptr, &fewer_bytes) == TESS_OK, "a packed operand has a size");
    const TessTensor packed_less = tess_packed(packed, &fewer_bytes);
    require(pack(&less, &packed_less, nullptr) == TESS_OK, "weights are packed");
    refused(kernel, packed_less);
    refused(kernel, ws);
    dlclose(library);
}

// Output:
// tile program layer_pack_w for x86-64
//   dim K
//   dim N
//   dim N.o8 = (|N| + 7)/8
//   dim N.i8 = 8
//   input w[K, N]: f32
//   output w.packed[N.o8, K, N.i8]: f32, w[K, N] packed as N/8, K, N%8
//   parallel n.o < (|N| + 7)/8
//     for k < |K|
//       for n.i < 2
//         vector N.i.lane < 4
//           w.packed[n.o, k, n.i*4 + N.i.lane] <- load_or(w[k, n.o*8 + n.i*4 + N.i.lane], n.o*8 + n.i*4 + N.i.lane < |N|, 0.0)
// 924 bytes of weights are 1184 bytes when they are packed
// packed weights from a file give the bits of weights that are packed at each call
// argument 1 ('w.packed'): the operand was packed in another layout, for another schedule or processor; pack it with this kernel's packing
//> function
// argument 1 ('w.packed'), dimension 0: extent must equal that of argument 0 ('x'), dimension 1, 11, not 10
// argument 1 ('w.packed'): rank must be 1, not 2
