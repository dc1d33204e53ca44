// Lesson 6: a second target.
//
// An algorithm knows nothing of machines, so a second kind of processor needs a second schedule and nothing else. It extends the
// first one and states what differs: shorter vectors, another register tile. Libraries for any target come out of a generator on
// any machine; no compiler for that target is needed before the application is linked.
//
// A tile program decides the bits, whatever runs it. So this machine can say today, with the interpreter, what another will compute.
#include <cstdio>
#include <cstring>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/array.h"
#include "compiler/abi/archive.h"
#include "compiler/abi/object_file.h"
#include "compiler/interpret/interpret.h"
#include "generators/commands/generate.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

using namespace tessera;

static Algorithm scores(const Numerics &numerics) {
    Builder f("scores", numerics);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}), w = f.input("w", {K, N});  // (M, K), (K, N)
    return f.output("y", dot(x, w)).build();                  // (M, N)
}

// A processor with 16 registers of 8 floats.
static Schedule avx2() {
    return Schedule("scores/avx2").require({"avx2", "fma"}).stage("y", StageKnobs().micro({{"M", 4}, {"N", 16}}).vector({{"N", 8}}));
}
// One with 32 registers of 4 floats. Every arm64 has fma, so nothing is required.
static Schedule arm64() {
    return Schedule("scores/arm64")
        .extends("scores/avx2")
        .require({})
        .stage("y", StageKnobs().micro({{"M", 8}, {"N", 12}}).vector({{"N", 4}}));
}
// WebAssembly has no fma. It is exact there as well, but takes some fifty instructions; this schedule rounds twice instead.
static Schedule wasm32() {
    return Schedule("scores/wasm32").extends("scores/arm64").stage("y", StageKnobs().micro({{"M", 4}, {"N", 8}}).instruction("mul_add"));
}

// y as the tile program computes it.
static Array run(const TileProgram &program) {
    Array x(DType::f32, {9, 31}), w(DType::f32, {31, 21}), y(DType::f32, {9, 21});
    for (int64_t i = 0; i < x.size(); i++) x.set(i, Scalar::of_real(DType::f32, 1.0 / static_cast<double>(i + 1)));
    for (int64_t i = 0; i < w.size(); i++) w.set(i, Scalar::of_real(DType::f32, static_cast<double>(i % 17) / 3));
    interpret(program, {{"x", x.view("x")}, {"w", w.view("w")}, {"y", y.view("y")}}, {}, {});
    return y;
}

int main() {
    Registry registry;
    registry.add("scores", "y[M, N] = x[M, K] w[K, N]", scores).add_schedule(avx2).add_schedule(arm64).add_schedule(wasm32);

    // 1. Generate for each. A schedule named <algorithm>/<target> is the target's default; a library has a body for each target.
    const TemporaryFolder folder;
    std::map<std::string, Array> results;
    for (const char *target : {"avx2", "arm64", "wasm32"}) {
        GenerateOptions options;
        options.kernel.algorithm = "scores", options.kernel.target = target, options.kernel.quiet = true;
        options.name = std::string("scores_") + target, options.out = folder.path().string();
        generate(registry, options);
        for (const auto &[member, object] : members_of(read_file(folder.path() / ("lib" + options.name + ".a"))))
            if (member.find("entry") == std::string::npos)
                for (const ObjectSymbol &s : symbols_of(object))
                    if (s.name.ends_with(".body")) std::printf("%s\n", s.name.c_str());
        const TileProgram program = prepare(registry, options.kernel).compiled.kernel.general();
        results[target] = run(program);
    }

    // 2. The tiles differ, and the order of additions does not: the phone will have the server's bits.
    const auto same = [&](const char *a, const char *b) {
        return results.at(a).data == results.at(b).data ? "the same bits" : "other bits";
    };
    std::printf("arm64 and avx2: %s\n", same("arm64", "avx2"));

    // 3. A product that is rounded before it is added is another number, and the tile program says so.
    std::printf("wasm32 and avx2: %s\n", same("wasm32", "avx2"));
    KernelOptions options;
    options.algorithm = "scores", options.target = "wasm32";
    const std::string text = to_text(prepare(registry, options).compiled.kernel.general());
    const size_t at = text.find("y.acc[M.u2");
    std::printf("%s\n", text.substr(at, text.find('\n', at) - at).c_str());

    // 4. What a schedule needs it says, and a target that has not got it is refused before anything is compiled.
    options.target = "arm64", options.schedule = "scores/avx2";
    try {
        prepare(registry, options);
    } catch (const UserError &e) { std::printf("%s\n", e.what()); }
}

// Output:
// scores_avx2.avx2.variant0.body
// scores_arm64.arm64.variant0.body
// scores_wasm32.wasm32.variant0.body
// arm64 and avx2: the same bits
// wasm32 and avx2: other bits
// y.acc[M.u2, N.u2*4 + N.lane2] = y.acc[M.u2, N.u2*4 + N.lane2] + x[m.micro*4 + M.u2, k]*w[k, n.micro*8 + N.u2*4 + N.lane2]
// error[schedule.requires]: schedule 'scores/avx2' at /requires: target 'arm64' has no avx2, fma; its features are those of every arm64.
//> The schedule is for another kind of processor: use a schedule that does not require them.
