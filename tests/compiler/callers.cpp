// Eight callers at once, of programs whose rounds run in threads, under the thread sanitizer: the same bits, and no race.
#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "compiler/emit/emit_source.h"
#include "compiler/emit/header.h"
#include "tests/compiler/cases.h"
#include "tests/support/shell.h"

namespace tessera::test_callers {

using namespace tessera::test;

// Each caller has its result and its workspace; inputs and a pool, which whoever finds it busy does without, are everybody's. Every other
// caller has a pool of its own too, so that there always are rounds in threads. With an argument all callers have one workspace.
static const char *main_source = R"(
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
enum { CALLERS = 8, CALLS = 12, THREADS = 4 };
typedef int32_t (*Call)(const TessTensor *const *, const TessContext *);
static const int64_t x[] = {5, 17}, b[] = {3, 17}, z[] = {5, 17}, qkv[] = {6, 132}, y[] = {4, 6, 11};
static TessTensor batch[3], heads[2];
static TessPool *everybodys;
static unsigned char *everybodys_workspace;
static TessTensor tensor(int32_t rank, const int64_t *shape, size_t *bytes) {
    size_t n = 1, i;
    float *data;
    for (i = 0; i < (size_t)rank; i++) n *= (size_t)shape[i];
    data = malloc(n * sizeof *data);
    for (i = 0; i < n; i++) data[i] = (float)(i % 7) / 4 - 0.5f;
    *bytes = n * sizeof *data;
    return tess_dense(data, TESS_F32, rank, shape);
}
/* Gives what was written, or nothing. */
static void *result(Call call, const TessTensor *given, int count, const int64_t *shape, int32_t rank, TessContext context, size_t *bytes) {
    TessTensor out = tensor(rank, shape, bytes);
    const TessTensor *all[3] = {&given[0], &given[1], &out};
    all[count] = &out;
    memset(out.data, 0xff, *bytes);
    if (call(all, &context) == TESS_OK) return out.data;
    free(out.data);
    return NULL;
}
static void *both(TessPool *pool, int32_t threads, size_t *bytes) {
    TessContext context = tess_context();
    size_t first, second;
    void *of_batch, *of_heads;
    unsigned char *all = NULL;
    context.pool = pool, context.threads = threads, context.workspace_bytes = 1 << 20;
    context.workspace = everybodys_workspace ? everybodys_workspace : aligned_alloc(64, context.workspace_bytes);
    of_batch = result(batch_in_parallel_table, batch, 2, z, 2, context, &first);
    of_heads = result(heads_in_parallel_table, heads, 1, y, 3, context, &second);
    if (of_batch && of_heads) {
        all = malloc(*bytes = first + second);
        memcpy(all, of_batch, first), memcpy(all + first, of_heads, second);
    }
    free(of_batch), free(of_heads);
    if (!everybodys_workspace) free(context.workspace);
    return all;
}
typedef struct Caller {
    TessPool *pool;
    const void *expected;
    int wrong;
} Caller;
static void *calls(void *argument) {
    Caller *caller = argument;
    int i;
    for (i = 0; i < CALLS; i++) {
        size_t bytes = 0;
        void *got = both(caller->pool && i % 2 ? caller->pool : everybodys, THREADS, &bytes);
        caller->wrong += !got || memcmp(got, caller->expected, bytes) != 0;
        free(got);
    }
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t threads[CALLERS];
    Caller callers[CALLERS];
    size_t bytes;
    int i, wrong = 0;
    void *expected;
    (void)argv;
    batch[0] = tensor(2, x, &bytes), batch[1] = tensor(2, b, &bytes), heads[0] = tensor(2, qkv, &bytes);
    expected = both(NULL, 1, &bytes);
    if (!expected) return 2;
    everybodys = tess_pool_create(THREADS);
    if (argc > 1) everybodys_workspace = aligned_alloc(64, 1 << 20);
    for (i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){i % 2 ? tess_pool_create(THREADS) : NULL, expected, 0};
        pthread_create(&threads[i], NULL, calls, &callers[i]);
    }
    for (i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        wrong += callers[i].wrong;
        tess_pool_destroy(callers[i].pool);
    }
    tess_pool_destroy(everybodys);
    return wrong ? 3 : 0;
}
)";

TEST_CASE("eight callers of repeated calls in threads do not race") {
    const Target target = target_named("avx2");
    std::vector<Kernel> kernels;
    for (const Case &c : repeat_cases(8))
        if (c.name == "batch_in_parallel" || c.name == "heads_in_parallel") kernels.push_back({c.name, {{{}, lowered(c, target)}}});
    REQUIRE(kernels.size() == 2);
    std::string folder = (std::filesystem::temp_directory_path() / "tessera-callers-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()));
    write_file(folder + "/kernels.h", header_of("kernels", {{target, kernels}}));
    write_file(folder + "/kernels.c", source_of(kernels, target));
    write_file(folder + "/main.c", main_source);
    // Without intrinsics, which the sanitizer does not look into, and with a runtime that it does look into.
    const Outcome compiled =
        shell("cd '" + folder + "' && gcc -std=c11 -O1 -g -Wall -Wextra -Werror -Wno-psabi -DTESS_PORTABLE -fsanitize=thread " +
              "-I'" TESSERA_SOURCE_DIR "' -I'" TESSERA_SOURCE_DIR "/runtime/abi' kernels.c main.c " TESSERA_RUNTIME_SOURCES +
              " -lpthread -lm -o main");
    INFO(compiled.out << compiled.err);
    REQUIRE(compiled.code == 0);
    const Outcome shared = shell("'" + folder + "/main' shared"), own = shell("'" + folder + "/main'");
    std::filesystem::remove_all(folder);
    if (shared.err.find("unexpected memory mapping") != std::string::npos) {
        std::puts("skipped: gcc's thread sanitizer cannot run where the system spreads addresses so far (vm.mmap_rnd_bits)");
        return;
    }
    CHECK_THAT(shared.err, Catch::Contains("data race"));
    CHECK(own.err == "");
    CHECK(own.code == 0);
}

}  // namespace tessera::test_callers
