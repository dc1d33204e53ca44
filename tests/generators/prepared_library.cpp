#include "generators/kernel/prepared_library.h"

#include <nlohmann/json.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/abi/archive.h"
#include "support/text/sha256.h"
#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_prepared_library {

using namespace tessera::test;
using nlohmann::json;

static constexpr int64_t table_size = 4096;

// Two algorithms with one constant in them, and one that calls another.
static Registry registry_of_parts() {
    Registry registry = sample_registry();
    auto with_table = [](const std::string &name, auto combine) {
        return [=](const Numerics &numerics) {
            std::vector<double> values;
            for (int64_t i = 0; i < table_size; i++) values.push_back(static_cast<double>(i % 97) / 8);
            Builder f(name, numerics);
            const Dim M = f.dim("M"), N = f.dim("N", table_size);
            return f.output("y", combine(f.input("x", {M, N}), f.constant("table", {N}, values))).build();  // (M, N)
        };
    };
    registry.add("scaled", "y[M, N] = x[M, N] table[N]", with_table("scaled", [](const Tile &x, const Tile &t) { return x * t; }))
        .add("shifted", "y[M, N] = x[M, N] + table[N]", with_table("shifted", [](const Tile &x, const Tile &t) { return x + t; }))
        .add("feed_forward", "three calls", library::feed_forward);
    registry.add_schedule([] { return Schedule("feed_forward/once").stage("down", StageKnobs().call("once")); });
    return registry;
}

static Outcome make(const std::vector<std::string> &more, const Registry &registry) {
    std::vector<std::string> words = {"generate", "--target", "avx2", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return generator(words, registry);
}

static std::string module_of(const std::string &kernels) {
    return R"({"format": "tessera-module", "version": 1, "name": "parts", "kernels": [)" + kernels + "]}";
}

static const char *caller = R"(
#include <stdio.h>
#include "parts.h"
enum { M = 3, N = 5, K = 4 };
static float x[M * K], w[K * N], y[M * N], s[M * N];
int main(void) {
    const int64_t x_shape[] = {M, K}, w_shape[] = {K, N}, y_shape[] = {M, N};
    const TessTensor xs = tess_dense(x, TESS_F32, 2, x_shape), ws = tess_dense(w, TESS_F32, 2, w_shape);
    const TessTensor ys = tess_dense(y, TESS_F32, 2, y_shape), ss = tess_dense(s, TESS_F32, 2, y_shape);
    TessContext context = tess_context();
    int wrong = 0;
    for (int i = 0; i < M * K; i++) x[i] = (float)(i % 5 - 2);
    for (int i = 0; i < K * N; i++) w[i] = (float)(i % 7 - 3);
    if (product(&xs, &ws, &ys, &context) != TESS_OK) return 2;
    if (sums(&ys, &ss, &context) != TESS_OK) return 3;
    for (int m = 0; m < M; m++) {
        float running = 0;
        for (int n = 0; n < N; n++) {
            float value = 0;
            for (int k = 0; k < K; k++) value += x[m * K + k] * w[k * N + n];
            running += value;
            wrong += y[m * N + n] != value || s[m * N + n] != running;
        }
    }
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
)";

TEST_CASE("a module is one library, one header and one manifest") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string(), file = (folder.path() / "parts module.json").string(), depfile = out + ".d";
    write_file(file, module_of(R"({"name": "product", "algorithm": "matmul", "shape": {"K": 4}, "schedule": "none"},
                                  {"name": "sums", "algorithm": "cumulative_sum", "schedule": "none"})"));
    const std::string link =
        " -std=c11 -O1 -Wall -Wextra -Wno-psabi -I'" TESSERA_SOURCE_DIR "/runtime/abi' -I'" TESSERA_SOURCE_DIR "' app.c ";
    for (const std::string emit : {"library", "c"}) {
        const std::string to = out + emit, code = emit == "c" ? "parts.c" : "libparts.a";
        const Outcome made = make({"--module", file, "--out", to, "--emit", emit, "--emit-tiles", "--depfile", depfile}, sample_registry());
        INFO(made.err);
        REQUIRE(made.code == 0);
        CHECK(files_in(to) == (emit == "c" ? "parts.c parts.h parts.manifest.json parts.tiles.txt"
                                           : "libparts.a parts.h parts.manifest.json parts.tiles.txt"));
        CHECK_THAT(read_file(depfile), Catch::StartsWith(to + "/" + code + ":") && Catch::Contains("/parts\\ module.json"));
        CHECK_THAT(read_file(to + "/parts.tiles.txt"),
                   Catch::StartsWith("# product\ntile program matmul for avx2") && Catch::Contains("# sums\ntile program cumulative_sum"));
        const json manifest = json::parse(read_file(to + "/parts.manifest.json"));
        CHECK(manifest["library"] == "parts");
        CHECK(!manifest.contains("kernel"));
        REQUIRE(manifest["kernels"].size() == 2);
        CHECK(manifest["kernels"][0]["kernel"] == "product");
        CHECK(manifest["kernels"][0]["fixed"] == json({{"K", 4}}));
        CHECK(manifest["kernels"][1]["algorithm"]["name"] == "cumulative_sum");
        CHECK(manifest["kernels"][1]["targets"][0]["name"] == "avx2");
        CHECK(manifest["kernels"][1]["targets"][0]["variants"].size() == 1);
        CHECK(manifest["targets"][0]["name"] == "avx2");
        CHECK(!manifest["targets"][0].contains("variants"));
        CHECK(manifest["files"][code] == sha256(read_file(to + "/" + code)));
        if (emit == "library")
            CHECK(manifest["symbols"]["public"] == json({"product", "product_describe", "product_table", "product_workspace", "sums",
                                                         "sums_describe", "sums_table", "sums_workspace"}));
        else
            CHECK_THAT(read_file(to + "/parts.c"), Catch::Contains(" * product: algorithm matmul, f32, ") &&
                                                       Catch::Contains(" * product: fixed extents: K=4\n") &&
                                                       Catch::Contains(" * sums: algorithm cumulative_sum"));
        write_file(to + "/app.c", caller);
        const Outcome app =
            shell("cd '" + to + "' && cc" + link + code + instrumented + TESSERA_RUNTIME_LIBRARY + " -lpthread -lm -o app && ./app");
        INFO(app.err);
        CHECK(app.out == "0 wrong\n");
    }
    // The same by words, under a name of its own, with numerics of all.
    const Outcome words =
        make({"--kernel", "product=matmul:K=4", "--kernel", "cumulative_sum", "--numerics", "f64", "--name", "by-words", "--out", out},
             sample_registry());
    INFO(words.err);
    REQUIRE(words.code == 0);
    CHECK(files_in(out) == "by-words.h by-words.manifest.json libby-words.a");
    const json manifest = json::parse(read_file(out + "/by-words.manifest.json"));
    for (const json &kernel : manifest["kernels"]) CHECK(kernel["numerics"] == "f64");
    CHECK(manifest["kernels"][1]["kernel"] == "cumulative_sum");
}

TEST_CASE("kernels of a module share constants, and callees that are emitted once") {
    const Registry registry = registry_of_parts();
    const TemporaryFolder folder;
    auto archive_of = [&](const std::string &name, const std::string &kernels) {
        const std::string file = (folder.path() / (name + ".json")).string(), out = (folder.path() / name).string();
        write_file(file, module_of(kernels));
        const Outcome made = make({"--module", file, "--out", out}, registry);
        INFO(made.err);
        REQUIRE(made.code == 0);
        return read_file(out + "/libparts.a");
    };
    const std::string scaled = R"({"algorithm": "scaled", "schedule": "none"})",
                      shifted = R"({"algorithm": "shifted", "schedule": "none"})";
    const size_t one = archive_of("one", scaled).size(), other = archive_of("other", shifted).size(),
                 both = archive_of("both", scaled + ", " + shifted).size();
    const size_t table = table_size * sizeof(float);
    CHECK(one > table);
    CHECK(other > table);
    CHECK(both > table);
    CHECK(both < 2 * table);

    auto callees_in = [&](const std::string &archive) {
        size_t count = 0;
        for (const auto &[name, object] : members_of(archive)) count += name.find(".callee") != std::string::npos;
        return count;
    };
    const std::string layer =
        R"({"name": "NAME", "algorithm": "feed_forward", "shape": {"D": 24, "F": 48}, "schedule": "feed_forward/once"})";
    auto named = [&](const std::string &name) { return std::string(layer).replace(layer.find("NAME"), 4, name); };
    const std::string first = archive_of("first", named("first")),
                      layers = archive_of("layers", named("first") + ", " + named("second") + ", " + named("third"));
    CHECK(callees_in(first) == 1);
    CHECK(callees_in(layers) == 1);
}

TEST_CASE("a module's errors") {
    const Registry registry = sample_registry();
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    auto refuse = [&](const std::vector<std::string> &words, const std::vector<std::string> &parts) {
        std::vector<std::string> all = {"generate", "--target", "avx2", "--quiet", "--out", out};
        all.insert(all.end(), words.begin(), words.end());
        check_refused(all, parts, 2, registry);
    };
    refuse({}, {"error[command.arguments]: generate: expected an algorithm, --kernel or --module, got none; 'list' shows the algorithms."});
    refuse({"--kernel", "matmul"},
           {"error[command.arguments]: generate: with --kernel, expected the library's name, got none. Say --name."});
    refuse(
        {"--kernel", "matmul", "--name", "a", "--shape", "N=8"},
        {"error[command.arguments]: generate: --shape is of one kernel, and with --kernel there may be several. State it with each, in a "
         "file for --module."});
    refuse({"--module", "a.json", "--numerics", "f64"}, {"generate: --numerics is of one kernel, and with --module there may be several. "
                                                         "State it in the file of the module."});
    refuse({"--module", "a.json", "--kernel", "matmul"}, {"error[command.arguments]", "--kernel excludes --module"});
    refuse({"matmul", "--kernel", "matmul", "--name", "a"}, {"generate: algorithm is of one kernel"});
    refuse(
        {"--kernel", "matmul", "--name", "../a"},
        {"error[module.name]: library '../a': expected at most 100 letters, digits, '_' and '-', which name lib<name>.a and <name>.h; got "
         "another name. Rename it."});
    refuse(
        {"--kernel", "matmul", "--kernel", "cumulative_sum", "--kernel", "matmul:N=8", "--name", "a"},
        {"error[module.name]: library 'a': expected kernels with names of their own, got 'matmul' for the kernels 0 and 2, counted from 0. "
         "Give a kernel another name: \"name\" in the module's file, or --kernel <name>=<algorithm>."});
    for (const std::string part : {"table", "workspace", "describe", "argument_names", "parameters", "plan", "variant0", "task12"})
        refuse({"--kernel", "matmul", "--kernel", "matmul_" + part + "=matmul:N=8", "--name", "a"},
               {"error[module.name]: library 'a': expected functions with names of their own, got 'matmul_" + part +
                "' for kernel 'matmul_" + part + "', which is a name that 'matmul', kernel 'matmul', takes for parts of its own."});
    refuse({"--kernel", "up=matmul:Z=8", "--name", "a"},
           {"error[shape.unknown-dim]: library 'a', kernel 'up': matmul: there is no dim 'Z'"});
    refuse({"--kernel", "main=matmul", "--name", "a"}, {"error[emit.name]: library 'a', kernel 'main': "});
    const std::string file = (folder.path() / "m.json").string();
    write_file(file, module_of(R"({"algorithm": "matmul", "schedules": {"avx512": "none"}})"));
    refuse({"--module", file}, {"error[command.schedule-for]: library 'parts', kernel 'matmul': ", "the library is not for 'avx512'"});
    write_file(file, module_of(R"({"name": "a", "algorithm": "matmul", "schedule": "matmul/prepacked_avx2"},
                                  {"name": "a_pack_w", "algorithm": "matmul"})"));
    refuse(
        {"--module", file},
        {"error[module.name]: library 'parts': expected functions with names of their own, got 'a_pack_w' twice: for what packs an operand "
         "of kernel 'a' and for kernel 'a_pack_w'."});
    CHECK(!std::filesystem::exists(out + "/liba.a"));
}

TEST_CASE("a module for a GPU is one file of C and one of kernels") {
    const TemporaryFolder folder;
    const std::string out = folder.path().string();
    const Outcome made = generator({"generate", "--kernel", "product=matmul:K=4", "--kernel", "sums=cumulative_sum", "--name", "parts",
                                    "--target", "opencl", "--quiet", "--out", out});
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK(files_in(out) == "parts.c parts.cl parts.h parts.manifest.json");
    for (const char *function : {"int32_t product(", "int32_t sums("}) {
        CHECK_THAT(read_file(out + "/parts.h"), Catch::Contains(function));
        CHECK_THAT(read_file(out + "/parts.c"), Catch::Contains(function));
    }
}

}  // namespace tessera::test_prepared_library
