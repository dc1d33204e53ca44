#include "generators/registry/algorithm_file.h"

#include <random>

#include <nlohmann/json.hpp>

#include "algorithms/library/library.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_algorithm_file {

using namespace tessera::test;
using nlohmann::json;

static const char *caller = R"(
#include <stdio.h>
#include <stdlib.h>
#include "dense_relu.h"
enum { M = 5, N = 9, K = 7 };
int main(void) {
    static float x[M * K], w[K * N], b[N], y[M * N];
    const int64_t x_shape[] = {M, K}, w_shape[] = {K, N}, y_shape[] = {M, N};
    const TessTensor xs = tess_dense(x, TESS_F32, 2, x_shape), ws = tess_dense(w, TESS_F32, 2, w_shape);
    const TessTensor bs = tess_dense(b, TESS_F32, 1, w_shape + 1), ys = tess_dense(y, TESS_F32, 2, y_shape);
    TessContext context = tess_context();
    uint64_t bytes = 0;
    int different = 0;
    for (int i = 0; i < M * K; i++) x[i] = (float)(i % 5 - 2);
    for (int i = 0; i < K * N; i++) w[i] = (float)(i % 7 - 3);
    for (int i = 0; i < N; i++) b[i] = (float)(i - 4);
    if (dense_relu_workspace(&xs, &ws, &bs, &ys, &context, &bytes) != TESS_OK) return 2;
    context.workspace_bytes = (bytes + 63) / 64 * 64;
    context.workspace = bytes ? aligned_alloc(TESS_WORKSPACE_ALIGNMENT, context.workspace_bytes) : NULL;
    if (dense_relu(&xs, &ws, &bs, &ys, &context) != TESS_OK) return 3;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = b[n];
            for (int k = 0; k < K; k++) sum += x[m * K + k] * w[k * N + n];
            different += y[m * N + n] != (sum > 0 ? sum : 0);
        }
    printf("%d of %d differ\n", different, M * N);
    free(context.workspace);
    return different != 0;
}
)";

TEST_CASE("an algorithm that another tool wrote becomes a kernel") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "of a tool.json").string(), out = (folder.path() / "out").string(),
                      depfile = (folder.path() / "k.d").string();
    const Outcome written = shell("'" TESSERA_PYTHON3 "' '" TESSERA_SOURCE_DIR "/tests/generators/other_tool.py' '" + file + "'");
    REQUIRE(written.err == "");
    CHECK_THAT(generator({"show", file}).out, Catch::StartsWith("algorithm dense_relu: f32") && Catch::Contains("max(acc[M, N] + b[N]"));
    const Outcome verified = generator({"verify", file, "--target", "avx2", "--schedule", "none", "--shape", "K=7"});
    INFO(verified.err);
    CHECK_THAT(verified.out, Catch::StartsWith("dense_relu on avx2, f32, schedule none: ") && Catch::Contains("equal to the tile program"));
    const Outcome made =
        generator({"generate", file, "--shape", "N=9", "K=7", "--target", "x86-64", "--out", out, "--depfile", depfile, "--quiet"});
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK(files_in(out) == "dense_relu.h dense_relu.manifest.json libdense_relu.a");
    const json manifest = json::parse(read_file(out + "/dense_relu.manifest.json"));
    CHECK(manifest["algorithm"]["semantic"] == semantic_hash(read_algorithm(file)));
    CHECK_THAT(manifest.dump(), !Catch::Contains(folder.path().string()));
    CHECK_THAT(read_file(depfile), Catch::Contains("/of\\ a\\ tool.json"));
    write_file(out + "/app.c", caller);
    const Outcome app = shell("cd '" + out + "' && cc -std=c11 -O1 -I'" TESSERA_SOURCE_DIR "/runtime/abi' app.c libdense_relu.a" +
                              instrumented + TESSERA_RUNTIME_LIBRARY " -lpthread -lm -o app && ./app");
    INFO(app.err);
    CHECK(app.out == "0 of 45 differ\n");
    CHECK(app.code == 0);
}

TEST_CASE("show --json writes what commands take, of every algorithm of the library") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "a.json").string();
    const json listed = json::parse(stock_generator("list --json").out);
    for (const json &one : listed["algorithms"]) {
        const std::string name = one["name"];
        const Outcome shown = stock_generator("show " + name + " --json");
        INFO(name << shown.err);
        REQUIRE(shown.code == 0);
        write_file(file, shown.out);
        CHECK(to_json(read_algorithm(file)) == json::parse(shown.out));
    }
    // With what is fixed; and the hash is that of the one with the name.
    write_file(file, generator({"show", "matmul", "--numerics", "bf16", "--json"}).out);
    CHECK(semantic_hash(read_algorithm(file)) == semantic_hash(library::matmul(numerics_named("bf16"))));
    CHECK(generator({"show", file, "--shape", "N=8"}).out == generator({"show", "matmul", "--numerics", "bf16", "--shape", "N=8"}).out);
    CHECK_THAT(generator({"show", file, "--shape", "N=8", "--json"}).out, Catch::Contains("\"fixed\": 8"));
    check_refused({"show", "matmul", "--json", "--what", "tiles"}, {"--json changes nothing of what --what tiles shows"});
    // Its schedules are those of its name, where they apply.
    json other = to_json(library::matmul(numerics_named("f32")));
    const std::vector<std::string> tiles = {"show", file, "--what", "tiles", "--target", "avx2"};
    write_file(file, other.dump());
    CHECK_THAT(generator(tiles).err, Catch::Contains("note: matmul on avx2: schedule 'matmul/f32/avx2/"));
    other["name"] = "layernorm";
    write_file(file, other.dump());
    CHECK_THAT(generator(tiles).err,
               Catch::Contains("layernorm on avx2: passed over layernorm/avx2: ") && Catch::Contains("'layernorm/f32/avx2', derived"));
}

TEST_CASE("a file's algorithm is tuned, and what was found is taken and checked") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "p.json").string(), found = (folder.path() / "found").string();
    json program = to_json(library::matmul(numerics_named("f32")));
    program["name"] = "product";
    write_file(file, program.dump());
    const Outcome tuned = generator({"tune", file, "--shape", "N=32", "K=32", "--extents", "M=32", "--target", "avx2", "--deterministic",
                                     "--trials", "4", "--out", found, "--quiet"});
    INFO(tuned.err << tuned.out);
    REQUIRE(tuned.code == 0);
    CHECK_THAT(generator({"show", file, "--shape", "N=32", "K=32", "--target", "avx2", "--schedule-dir", found, "--what", "tiles"}).err,
               Catch::Contains("note: product on avx2: schedule 'product/f32/avx2/") && Catch::Contains("for this shape"));
    CHECK_THAT(generator({"check", found}).out, Catch::Contains("there is no algorithm 'product'"));
    CHECK(generator({"check", found, "--program", file}).code == 0);
    program["name"] = "matmul";
    write_file(file, program.dump());
    check_refused({"check", found, "--program", file}, {"error[generator.duplicate]: algorithm 'matmul'"});
}

TEST_CASE("mistakes in an algorithm file are refused with the file's name") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "a.json").string();
    const json good = to_json(library::layernorm(numerics_named("f32")));
    auto refuse = [&](const std::string &text, const std::string &id, const std::vector<std::string> &parts) {
        write_file(file, text);
        std::vector<std::string> all = parts;
        all.push_back("error[" + id + "]: " + file + ":");
        check_words([&] { read_algorithm(file); }, all);
    };
    auto with = [&](const std::string &pointer, const json &value) {
        json changed = good;
        changed[json::json_pointer(pointer)] = value;
        return changed.dump();
    };
    refuse(good.dump().substr(0, 200), "json.syntax", {});
    refuse(std::string(100000, '['), "json.depth", {"deeper than 64 levels"});
    refuse(with("/version", 1), "json.version", {"this build reads version 2, the text has version 1"});
    refuse(with("/format", "tessera-schedule"), "json.version", {"expected the format \"tessera-algorithm\""});
    refuse(with("/stages", json::array()), "json.unknown-field", {"algorithm: /stages: there is no field of this name"});
    refuse(with("/outputs", {"nothing"}), "algorithm.output", {"layernorm"});
    refuse(with("/name", "../../etc"), "algorithm.name", {"a name has letters, digits and '_'"});
    refuse(with("/numerics/name", "../f32"), "numerics.policy",
           {"/numerics: numerics policy '../f32': expected a name of at most 48 lower-case letters, digits and '_'"});
    check_words([&] { read_algorithm(folder.path() / "none.json"); }, {"error[algorithm.file]: algorithm file '"});
    check_words([&] { read_algorithm(folder.path()); }, {"error[algorithm.file]"});
    // What is given beside it.
    write_file(file, good.dump());
    check_refused({"show", file, "--numerics", "f64"}, {"error[command.numerics]: --numerics 'f64': expected the numerics of " + file +
                                                        ", which are 'f32'; leave out --numerics."});
    CHECK(generator({"show", file, "--numerics", "f32"}).code == 0);
    check_refused({"show", file, "--option", "points=4"}, {"error[option.unknown]: " + file + ": there is no option 'points'"});
    check_refused({"show", file, "--shape", "Z=4"}, {"'Z'"});
    // A name that C has already.
    write_file(file, with("/name", "main"));
    check_refused({"generate", file, "--out", folder.path().string()}, {"error[emit.name]", "'main'"});
}

// A program of `levels` algorithms, each of which calls the one before twice.
static json doubled(int levels) {
    const json plain = to_json(library::layernorm(numerics_named("f32")));
    json callees = json::array(), last;
    for (int i = 0; i <= levels; i++) {
        last = plain;
        last.erase("format"), last.erase("version");
        last["name"] = "level" + std::to_string(i);
        last["steps"] = json::array();
        if (i == 0) last["steps"].push_back({{"name", "y"}, {"dims", {"M", "N"}}, {"map", {"load", "x", "f32", "M", "N"}}});
        else
            for (const char *scope : {"a", "b"})
                last["steps"].push_back({{"call",
                                          {{"scope", scope},
                                           {"callee", i - 1},
                                           {"dims", {{"M", "M"}, {"N", "N"}}},
                                           {"tensors", {{"x", scope[0] == 'a' ? "x" : "a.y"}, {"gamma", "gamma"}, {"beta", "beta"}}},
                                           {"parameters", {{"eps", {"parameter", "eps", "f32"}}}}}}});
        last["outputs"] = {i == 0 ? "y" : "b.y"};
        if (i < levels) callees.push_back(last);
    }
    last["format"] = "tessera-algorithm", last["version"] = 2, last["callees"] = callees;
    return last;
}

TEST_CASE("a short text that says a huge program is refused before it is unfolded") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "a.json").string();
    write_file(file, doubled(40).dump());
    check_words([&] { read_algorithm(file); }, {"error[algorithm.too-large]: " + file +
                                                ": expected at most 10000 stages in 64 levels of calls, counting the stages of a "
                                                "callee at each call, got more in 'level14'. Split the program into several."});
}

TEST_CASE("whatever stands in an algorithm file, it is read or refused") {
    std::mt19937 random(22);
    const std::vector<json> good = {to_json(library::matmul(numerics_named("f32"))), to_json(library::layernorm(numerics_named("bf16"))),
                                    to_json(library::ring_append(numerics_named("f32"))), doubled(2)};
    const std::vector<json> values = {0,   -1,  1,       INT32_MAX,     int64_t{1} << 40, "", "x",
                                      "M", "y", nullptr, json::array(), json::object(),   1.5};
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "a.json").string();
    size_t refused = 0;
    for (int round = 0; round < 300; round++) {
        json document = good[random() % good.size()];
        const json flat = document.flatten();
        auto place = [&] { return std::next(flat.begin(), static_cast<long>(random() % flat.size())); };
        for (size_t i = 0; i <= random() % 3; i++) {
            json::json_pointer pointer(place().key());
            for (size_t up = random() % 4; up > 0 && !pointer.parent_pointer().empty(); up--) pointer = pointer.parent_pointer();
            if (!document.contains(pointer)) continue;
            document[pointer] = random() % 2 ? values[random() % values.size()] : place().value();
        }
        std::string text = document.dump();
        if (random() % 8 == 0) text.resize(random() % text.size());
        write_file(file, text);
        INFO(text);
        try {
            to_json(read_algorithm(file));
        } catch (const UserError &error) {
            refused++;
            CHECK_THAT(error.what(), Catch::Contains(file));
        }
    }
    CHECK(refused > 150);
}

}  // namespace tessera::test_algorithm_file
