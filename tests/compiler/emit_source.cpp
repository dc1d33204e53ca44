// The C of a small kernel as people read it, what it says when it cannot be made, and that it is clean under sanitizers.
// That it computes what the tile program says is in laws.cpp and random.cpp.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/abi/c_names.h"
#include "compiler/emit/c/names.h"
#include "compiler/emit/emit_source.h"
#include "compiler/emit/header.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"

namespace tessera::test_emit_source {

using namespace tessera::test;

static std::string source(const TileProgram &p, const std::string &target = "avx2") {
    return source_of({{p.name, {{{}, p}}}}, target_named(target));
}

static TileProgram small_matmul() {
    Knobs tile;
    tile.micro = {{"M", 2}, {"N", 16}}, tile.vector = {{"N", 8}}, tile.parallel = {"micro.M"};
    return lowered("small_matmul", bind_extents(library::matmul({}), {{"N", 16}}), {{"y", tile}}, target_named("avx2"));
}

TEST_CASE("the C of a small kernel is as it is checked in") {
    const std::string text = source(small_matmul());
    const std::filesystem::path file = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/golden/small_matmul.c";
    if (std::getenv("TESSERA_UPDATE_GOLDEN")) std::ofstream(file) << text;
    std::ifstream in(file);
    CHECK(text == std::string(std::istreambuf_iterator<char>(in), {}));
}

TEST_CASE("register tiles are variables of C") {
    const std::string text = source(small_matmul());
    CHECK_THAT(text, Catch::Contains("y_acc_1_1 = fma_f32x8("));
    CHECK_THAT(text, !Catch::Contains("y_acc["));
    CHECK_THAT(text, Catch::Contains("/* parallel m.micro < (|M| + 1)/2 */"));
}

TEST_CASE("what is stored where it was loaded is no statement of C") {
    Builder f("kept");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N});
    f.output("y", f.fold(sum_monoid(DType::f32), {x}, {"N"}, f.index(M) < f.index(N))[0]);  // nothing of one column
    const std::string c = source(lowered("kept", bind_extents(f.build(), {{"N", 1}}), {}, target_named("avx2")));
    CHECK(c.find("y_acc = y_acc;") == std::string::npos);
}

TEST_CASE("a file has several kernels, and a kernel several variants") {
    const Target target = target_named("avx2");
    const TileProgram plain = lowered("matmul", library::matmul({}), {}, target);
    const Kernel both{"a", {{{{"N", "", 16, "==", 0}}, plain}, {{}, plain}}}, one{"b", {{{}, plain}}};
    const std::string text = source_of({both, one}, target, {"made for a test"});
    CHECK_THAT(
        text, Catch::Contains("    if (frame[1] % 16 == 0) { /* N % 16 == 0 */\n        frame[17] = (int64_t)(uintptr_t)&a_variant0_body;\n"
                              "        return a_variant0_plan(frame);\n    }\n    frame[17] = (int64_t)(uintptr_t)&a_variant1_body;\n"
                              "    return a_variant1_plan(frame);\n"));
    CHECK_THAT(text, Catch::Contains("int32_t b(const TessTensor *x, ") && Catch::Contains(" * made for a test\n"));
}

TEST_CASE("C is as long as its distinct expressions, whatever they share") {
    Builder f("nested");
    Dim M = f.dim("M");
    Tile y = f.input("x", {M});
    for (int n = 0; n < 6; n++) y = gelu(y);
    CHECK(source(lower(f.output("y", y).build(), {}, target_named("avx2"))).size() < 60000);
}

TEST_CASE("identifiers of C") {
    CHECK(emit_c::identifier("y.acc") == "y_acc");
    for (const char *name : {"", "1", "int", "linux", "frame", "size_M", "load_f32x16", "TESS_OK", "_x"}) {
        INFO(name);
        CHECK(emit_c::identifier(name) != name);
        CHECK(is_c_name(emit_c::identifier(name)));
    }
    emit_c::Identifiers scope;
    CHECK(scope.take("a.b") == "a_b");
    CHECK(scope.take("a_b") == "a_b_2");
    scope.release("a_b");
    CHECK(scope.take("a_b") == "a_b");
}

static void not_in_c(const TileProgram &p, const std::string &part) {
    try {
        source(p, "x86-64");
        FAIL("expected: " << part);
    } catch (const UserError &e) { CHECK_THAT(e.what(), Catch::Contains(part)); }
}

TEST_CASE("what C for a CPU cannot hold") {
    TileProgram p;
    p.name = "k";
    p.body = {tile_node(Barrier{})};
    not_in_c(p, "error[emit.cpu]: k: barriers are not for a CPU target.");
    p.body = {tile_node(Loop{"t", Expr(4), LoopKind::thread, {}})};
    not_in_c(p, "k: thread loops are not for a CPU target.");
    p.body = {tile_node(Alloc{{"b", DType::f32, {Expr(4)}, Space::shared}, {}})};
    not_in_c(p, "k: shared memory is not for a CPU target.");
    const TileNode store = Compute{"b", {variable("i")}, constant(DType::f32, 1), {}};
    p.body = {tile_node(Alloc{{"b", DType::f32, {Expr(20000)}, Space::registers},
                              {tile_node(Loop{"i", Expr(20000), LoopKind::unrolled, {tile_node(store)}})}})};
    not_in_c(p,
             "error[emit.unrolled]: k: it has more than 16384 unrolled statements in a row around 'b'; expected fewer, so that a C "
             "compiler can be given them. "
             "Choose a smaller 'micro' tile.");
    p.body.clear();
    p.constants = {{"c", DType::f32, {}, Role::constant, {}}};
    not_in_c(p, "error[emit.constant]: k: the constant 'c' has no values; pass it as an input.");
}

TEST_CASE("constants are tables of C") {
    Target target = target_named("avx2");
    TileProgram p;
    p.name = "ramp", p.target = "avx2";
    p.dims = {fixed_dim("N", 3)};
    p.constants = {{"c",
                    DType::f32,
                    {"N"},
                    Role::constant,
                    {Scalar::of_real(DType::f32, 1), Scalar::of_real(DType::f32, -0.0), Scalar::of_real(DType::f32, 0.1)}}};
    Tensor y{"y", DType::f32, {"N"}, Role::input, {}};
    p.arguments = {{y, true, false}};
    p.body = {tile_node(
        Loop{"i", Expr(3), LoopKind::serial, {tile_node(Compute{"y", {variable("i")}, load("c", DType::f32, {variable("i")}), {}})}})};
    for (const Build &build : c_builds("-O2")) {
        Loaded library({p}, target, build);
        CHECK(differ_in_bits(library.run(p, {}, {}, {}, Layout{}), run_interpreter(p, {}, {}, {})) == "");
    }
}

// Whether `text` compiles, with what the compiler says and its assembly.
struct Compiled {
    bool done;
    std::string said, assembly;
};

static Compiled compiled(const std::string &text, const std::string &compiler) {
    std::string folder = (std::filesystem::temp_directory_path() / "tessera-compiled-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()));
    std::ofstream(folder + "/kernels.c") << text;
    const std::string command = compiler + " -std=c11 -Wall -Wextra -Werror -Wno-psabi -I'" + TESSERA_SOURCE_DIR + "' -I'" +
                                TESSERA_SOURCE_DIR + "/runtime/abi' -S -o '" + folder + "/kernels.s' '" + folder + "/kernels.c' > '" +
                                folder + "/log' 2>&1";
    auto content = [&](const char *name) {
        std::ifstream in(folder + name);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    Compiled result{std::system(command.c_str()) == 0, content("/log"), content("/kernels.s")};
    std::filesystem::remove_all(folder);
    return result;
}

// gcc tells of each part. clang tells of few, and is told that there is none.
TEST_CASE("C does not compile with parts of -ffast-math, or is as without") {
    const std::string text = source(small_matmul());
    for (const char *part :
         {"-ffast-math", "-ffinite-math-only", "-freciprocal-math", "-fno-signed-zeros", "-funsafe-math-optimizations"}) {
        INFO(part);
        const Compiled got = compiled(text, std::string("gcc -O1 ") + part);
        CHECK_FALSE(got.done);
        CHECK_THAT(got.said, Catch::Contains("compile this file without -ffast-math and its parts"));
    }
    if (c_builds("").size() < 2) return;
    const TileProgram row = lowered("softmax", library::softmax({}), {}, target_named("avx2"));
    CHECK_FALSE(compiled(text, "clang -O1 -ffast-math").done);
    const Compiled plain = compiled(source(row), "clang -O2"),
                   loose = compiled(source(row), "clang -O2 -fassociative-math -fno-signed-zeros -fno-trapping-math -freciprocal-math");
    CHECK((plain.done && !plain.assembly.empty()));
    CHECK(plain.assembly == loose.assembly);
}

TEST_CASE("dot products of ARM are in C where the compiler has them, and asked of the processor only then", "[.][arm64]") {
    const Target target = target_named("arm64+asimddp");
    if (!can_emulate(target)) return;
    Library schedules;
    schedules.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    const auto stages = resolve(schedules.find("matmul_u8s8/arm64+asimddp"), schedules).stages;
    const std::string text = source(lowered("bytes", library::matmul_u8s8({}), stages, target), target.name);
    const std::string gcc = std::string("'") + TESSERA_ARM64_CC + "' -O2", clang = "clang --target=aarch64-linux-gnu -O2",
                      asks = "\n_Static_assert(TESS_CPU_FEATURES != 0, \"\");\n",
                      asks_nothing = "\n_Static_assert(TESS_CPU_FEATURES == 0, \"\");\n";
    auto check = [&](const std::string &compiler, bool has) {
        const Compiled got = compiled(text + (has ? asks : asks_nothing), compiler);
        INFO(compiler << "\n" << got.said);
        CHECK(got.done);
        CHECK((got.assembly.find("sdot") != std::string::npos) == has);
    };
    check(gcc, true);
    check(gcc + " -mcpu=cortex-a53", true);
    check(gcc + " -march=armv8.2-a+dotprod", true);
    check(gcc + " -DTESS_PORTABLE", false);
    if (c_builds("").size() < 2) return;
    // The headers of another architecture's libc are where its gcc is.
    check(clang + " -isystem /usr/aarch64-linux-gnu/include -march=armv8.2-a+dotprod", true);
    check(clang + " -isystem /usr/aarch64-linux-gnu/include", false);
}

static const char *sanitized_main = R"(
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
static TessTensor tensor(int32_t rank, const int64_t *shape) {
    int64_t n = 1, i;
    float *data;
    for (i = 0; i < rank; i++) n *= shape[i];
    data = malloc((size_t)(n ? n : 1) * sizeof *data);
    for (i = 0; i < n; i++) data[i] = (float)(i % 7) - 3;
    return tess_dense(data, TESS_F32, rank, shape);
}
int main(void) {
    int64_t m, n;
    for (m = 0; m < 12; m += 3)
        for (n = 0; n < 40; n += 13) {
            const int64_t square[] = {m, n};
            TessTensor x = tensor(2, square), y = tensor(2, square);
            TessContext context = tess_context();
            uint64_t bytes = 0;
            int status = softmax_rows_workspace(&x, &y, &context, &bytes);
            context.workspace_bytes = (bytes + 63) / 64 * 64;
            context.workspace = bytes ? aligned_alloc(64, context.workspace_bytes) : 0;
            if (!status) status = softmax_rows(&x, &y, &context);
            if (status) return status;
            free(context.workspace), free(x.data), free(y.data);
        }
    return 0;
}
)";

TEST_CASE("a kernel in C is clean under the address and undefined behaviour sanitizers") {
    const Target target = target_named("avx2");
    std::vector<Kernel> kernels;
    for (const Case &c : library_cases(8))
        if (c.name == "softmax_rows") kernels.push_back({c.name, {{{}, lowered(c, target)}}});
    REQUIRE(kernels.size() == 1);
    std::string folder = (std::filesystem::temp_directory_path() / "tessera-sanitized-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()));
    std::ofstream(folder + "/kernels.h") << header_of("kernels", {{target, kernels}});
    std::ofstream(folder + "/kernels.c") << source_of(kernels, target);
    std::ofstream(folder + "/main.c") << sanitized_main;
    // Without intrinsics, which the sanitizers do not look into.
    const std::string command = std::string("cd '") + folder +
                                "' && gcc -std=c11 -O1 -g -Wall -Wextra -Werror -Wno-psabi -DTESS_PORTABLE -fsanitize=address,undefined "
                                "-fno-sanitize-recover=all -I'" +
                                TESSERA_SOURCE_DIR + "' -I'" + TESSERA_SOURCE_DIR + "/runtime/abi' kernels.c main.c '" +
                                TESSERA_RUNTIME_LIBRARY + "' -lpthread -lm -o main > log 2>&1 && ./main >> log 2>&1";
    const int code = std::system(command.c_str());
    std::ifstream log(folder + "/log");
    INFO(std::string(std::istreambuf_iterator<char>(log), {}));
    CHECK(code == 0);
    std::filesystem::remove_all(folder);
}

}  // namespace tessera::test_emit_source
