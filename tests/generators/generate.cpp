#include "generators/commands/generate.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/text/hash.h"
#include "support/processes/owned_folder.h"
#include "support/text/sha256.h"
#include "tests/generators/harness.h"

namespace tessera::test_generate {

using namespace tessera::test;

TEST_CASE("generate writes a library, a header and a manifest, and on request more") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "made here").string();
    const Outcome outcome = generator({"generate", "matmul", "--schedule", "none", "--out", out});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.out + outcome.err == "");
    CHECK(files_in(out) == "libmatmul.a matmul.h matmul.manifest.json");
    CHECK_THAT(
        read_file(out + "/matmul.h"),
        Catch::Contains("int32_t matmul(const TessTensor *x, const TessTensor *w, const TessTensor *y, const TessContext *context);"));
    CHECK(generator({"generate", "matmul", "--schedule", "none", "--out", out, "--name", "gemm", "--emit-assembly", "--emit-tiles"}).code ==
          0);
    CHECK(files_in(out) == "gemm.h gemm.manifest.json gemm.s gemm.tiles.txt libgemm.a libmatmul.a matmul.h matmul.manifest.json");
    CHECK_THAT(read_file(out + "/gemm.tiles.txt"), Catch::StartsWith("tile program matmul"));
}

TEST_CASE("generate writes C that a compiler takes as it is") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "c").string();
    const Outcome outcome = generator({"generate", "matmul", "--emit", "c", "--schedule", "none", "--target", "avx2", "--shape", "N=8",
                                       "--out", out, "--depfile", out + ".d"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(files_in(out) == "matmul.c matmul.h matmul.manifest.json");
    CHECK(read_file(out + ".d").rfind(out + "/matmul.c:", 0) == 0);
    const auto manifest = nlohmann::json::parse(read_file(out + "/matmul.manifest.json"));
    CHECK(manifest["emit"] == "c");
    CHECK(manifest["files"]["matmul.c"] == sha256(read_file(out + "/matmul.c")));
    const std::string resolved = manifest["targets"][0]["variants"][0]["resolved"], semantic = manifest["algorithm"]["semantic"];
    CHECK_THAT(read_file(out + "/matmul.c"), Catch::Contains(" * matmul: tile program " + resolved) && Catch::Contains(semantic) &&
                                                 Catch::Contains(" * fixed extents: N=8\n"));
    const std::string root = TESSERA_SOURCE_DIR;
    const Outcome compiled =
        shell("cd '" + out + "' && cc -std=c11 -O2 -Wall -Wextra -Werror -Wno-psabi -I'" + root + "' -include matmul.h -c matmul.c");
    INFO(compiled.err);
    CHECK(compiled.code == 0);
    // One folder is enough for what an application compiles.
    write_file(out + "/app.c", "#include \"matmul.h\"\nint main(void) { return matmul(0, 0, 0, 0) == TESS_OK; }\n");
    const Outcome app = shell("cd '" + out + "' && cc -std=c11 -O1 -Wall -Wextra -Werror -Wno-psabi -I'" + root + "' app.c matmul.c" +
                              instrumented + TESSERA_RUNTIME_LIBRARY " -lpthread -lm -o app && ./app");
    INFO(app.err);
    CHECK(app.code == 0);
    check_refused({"generate", "matmul", "--out", out, "--emit", "c", "--emit-assembly"},
                  {"error[command.emit]: --emit-assembly: expected --emit library, since no machine code is made with --emit c; compile "
                   "the C file with -S."});
    for (const std::vector<std::string> &more : {std::vector<std::string>{"--emit", "c"}, {"--schedule-for", "avx512=none"}}) {
        std::vector<std::string> words = {"generate", "matmul", "--out", out, "--target", "avx2,x86-64"};
        words.insert(words.end(), more.begin(), more.end());
        CHECK_THAT(generator(words).err, Catch::StartsWith("error[command."));  // before any note on a kernel
    }
    check_refused(
        {"generate", "matmul", "--out", out, "--emit", "c", "--target", "avx2,x86-64"},
        {"error[command.emit]: --emit c: expected one target, got 2; generate a file for each, or a library with --emit library."});
    check_refused({"generate", "matmul", "--out", out, "--emit", "rust"},
                  {"error[command.arguments]", "--emit: expected library or c, got 'rust';"});
    check_refused({"generate", "matmul", "--out", out, "--emit", "1"}, {"--emit: expected library or c, got '1';"});
}

TEST_CASE("generate says what the algorithm was declared with, and which patterns of the schedule matched nothing") {
    const TemporaryFolder folder;
    const std::string out = folder.path().string();
    const Outcome outcome =
        stock_generator("generate fft --option points=60 --emit c --target avx2 --schedule fft/avx2 --out '" + out + "' 2>&1");
    INFO(outcome.out);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.out,
               Catch::Contains("note: schedule 'fft/avx2': 'fft*.pass*' matches no stage of fft; its stages are fft.first, fft.last, y\n"));
    CHECK_THAT(read_file(out + "/fft.h"), Catch::StartsWith("/* Generated by Tessera. Compile the C file of the same name, and link "
                                                            "Tessera's runtime.\n * Algorithm fft, declared with points=60. */\n"));
    CHECK_THAT(generator({"generate", "--help"}).out, Catch::Contains("cuda-sm80"));
}

TEST_CASE("the manifest names what went in and hashes what came out") {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/base").stage("y", block({{"M", 4}})); });
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "mine.json").string(), out = (folder.path() / "out").string();
    write_file(file, Schedule("mine").extends("matmul/base").variant({"M <= 2"}, "y", block({{"M", 2}})).text());
    REQUIRE(generator(
                {"generate", "matmul", "--schedule", file, "--shape", "N=8", "K=3", "--target", "avx2", "--numerics", "f64", "--out", out},
                registry)
                .code == 0);
    const std::string text = read_file(out + "/matmul.manifest.json");
    const auto manifest = nlohmann::json::parse(text);
    CHECK(manifest["format"] == "tessera-manifest");
    CHECK(manifest["version"] == 1);
    CHECK(manifest["halide"] == "21.0.0");
    CHECK(manifest["algorithm"]["name"] == "matmul");
    CHECK(manifest["algorithm"]["semantic"] == semantic_hash(registry.make("matmul", numerics_named("f64"))));
    CHECK(manifest["algorithm"]["surface"] == surface_hash(registry.make("matmul", numerics_named("f64"))));
    CHECK(manifest["numerics"] == "f64");
    CHECK(manifest["options"] == nlohmann::json::object());
    CHECK(manifest["fixed"] == nlohmann::json({{"N", 8}, {"K", 3}}));
    REQUIRE(manifest["targets"].size() == 1);
    const auto target = manifest["targets"][0];
    CHECK(target["name"] == "avx2");
    CHECK(target["schedule"]["chain"][0]["file"] == "mine.json");
    CHECK(target["schedule"]["chain"][0]["hash"] == sha256(read_file(file)));
    CHECK(target["schedule"]["chain"][1]["name"] == "matmul/base");
    REQUIRE(target["variants"].size() == 2);
    CHECK(target["variants"][0]["when"] == std::vector<std::string>{"M <= 2"});
    CHECK(target["variants"][0]["resolved"] != target["variants"][1]["resolved"]);
    CHECK(manifest["symbols"]["public"] == std::vector<std::string>{"matmul", "matmul_describe", "matmul_table", "matmul_workspace"});
    CHECK(manifest["licences"]["embedded"].empty());
    CHECK(manifest["licences"]["linked"][0]["licence"] == "Apache-2.0");
    for (const char *name : {"libmatmul.a", "matmul.h"}) CHECK(manifest["files"][name] == sha256(read_file(out + "/" + name)));
    CHECK_THAT(text, !Catch::Contains(folder.path().string()));
}

TEST_CASE("a library for several targets: each with its own schedule, listed best first, with what it takes") {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/avx2").stage("y", block({}).vector({{"N", 8}}).parallel({"M"})); });
    registry.add_schedule([] { return Schedule("other").stage("y", block({{"M", 3}})); });
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string(), depfile = (folder.path() / "k.d").string();
    const Outcome outcome = generator({"generate", "matmul", "--target", "x86-64,avx2,avx512", "--schedule-for", "avx512=other", "--out",
                                       out, "--depfile", depfile, "--emit-tiles", "--emit-assembly"},
                                      registry);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.err, Catch::Contains("matmul on avx2: schedule 'matmul/avx2'") &&
                                Catch::Contains("matmul on x86-64: schedule 'matmul/f32/x86-64', derived"));
    const auto targets = nlohmann::json::parse(read_file(out + "/matmul.manifest.json"))["targets"];
    REQUIRE(targets.size() == 3);
    const std::vector<std::string> names = {"avx512", "avx2", "x86-64"};
    for (size_t i = 0; i < 3; i++) {
        CHECK(targets[i]["name"] == names[i]);
        CHECK(targets[i]["variants"][0]["bytes"] > 100);
        CHECK(targets[i]["bytes"] >= targets[i]["variants"][0]["bytes"]);
    }
    CHECK(targets[0]["schedule"]["name"] == "other");
    CHECK(targets[1]["schedule"]["name"] == "matmul/avx2");
    CHECK(targets[2]["schedule"]["match"] == "derived");
    for (const std::string &name : names)
        CHECK_THAT(read_file(out + "/matmul.tiles.txt"), Catch::Contains("tile program matmul for " + name));
    for (const char *part : {"matmul.avx512.variant0.body", "ymm", "matmul.x86_64.variant0.body"})
        CHECK_THAT(read_file(out + "/matmul.s"), Catch::Contains(part));
}

TEST_CASE("a kernel that takes a packed operand comes with what packs it") {
    Registry registry = sample_registry();
    const Schedule panels = Schedule("matmul/avx2").stage("y", block({{"N", 16}}).pack("w", "prepack", {"N/16", "K", "N%16"}));
    registry.add_schedule([=] { return panels; });
    registry.add_schedule([=] { return panels.named("matmul/x86-64").stage("y", StageKnobs().pack("w", "prepack", {"N/8", "K", "N%8"})); });
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    const Outcome outcome =
        generator({"generate", "matmul", "--name", "gemm", "--target", "x86-64,avx2", "--out", out, "--emit-tiles", "--quiet"}, registry);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto manifest = nlohmann::json::parse(read_file(out + "/gemm.manifest.json"));
    CHECK(manifest["symbols"]["public"] ==
          nlohmann::json({"gemm", "gemm_describe", "gemm_pack_w", "gemm_pack_w_describe", "gemm_pack_w_size", "gemm_pack_w_table",
                          "gemm_pack_w_workspace", "gemm_table", "gemm_workspace"}));
    for (size_t t = 0; t < 2; t++) {
        const auto packing = manifest["targets"][t]["packings"][0];
        CHECK(packing["function"] == "gemm_pack_w");
        CHECK(packing["operand"] == "w");
        CHECK(packing["layout"] == (t == 0 ? nlohmann::json({"N/16", "K", "N%16"}) : nlohmann::json({"N/8", "K", "N%8"})));
        CHECK(packing["variants"][0]["bytes"] > 100);
        CHECK_THAT(read_file(out + "/gemm.h"), Catch::Contains("hash " + packing["layout_hash"].get<std::string>()));
    }
    CHECK_THAT(read_file(out + "/gemm.tiles.txt"),
               Catch::Contains("tile program matmul_pack_w for avx2") && Catch::Contains("tile program matmul_pack_w for x86-64"));
    // As C, with the same functions, which compile beside the header.
    const std::string c = (folder.path() / "c").string(), root = TESSERA_SOURCE_DIR;
    REQUIRE(generator({"generate", "matmul", "--emit", "c", "--target", "avx2", "--out", c, "--quiet"}, registry).code == 0);
    const Outcome compiled =
        shell("cd '" + c + "' && cc -std=c11 -O2 -Wall -Wextra -Werror -Wno-psabi -I'" + root + "' -include matmul.h -c matmul.c");
    INFO(compiled.err);
    CHECK(compiled.code == 0);
    CHECK_THAT(read_file(c + "/matmul.h"),
               Catch::Contains("int32_t matmul_pack_w_size(const TessTensor *w, const TessContext *context, uint64_t *bytes);"));
    // All targets take the same operands packed.
    check_refused({"generate", "matmul", "--target", "x86-64,avx2", "--schedule-for", "x86-64=none", "--out", out},
                  {"error[schedule.prepack]: matmul: the schedules of all targets must take the same operands packed ahead of time; that "
                   "of avx2 takes w, that of x86-64 none. Name a schedule for each target with --schedule-for."},
                  2, registry);
    check_refused({"generate", "matmul", "--target", "opencl", "--schedule", "matmul/avx2", "--out", out},
                  {"packing 'w' ahead of time is not for opencl"}, 2, registry);
}

TEST_CASE("several targets: the words of what does not fit") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    const std::vector<std::string> two = {"generate", "matmul",   "--schedule",  "none",          "--out",
                                          out,        "--target", "avx2,x86-64", "--schedule-for"};
    auto with = [&](const std::string &text) {
        auto all = two;
        all.push_back(text);
        return all;
    };
    check_refused(
        with("avx512=none"),
        {"error[command.schedule-for]: --schedule-for 'avx512=none': the library is not for 'avx512'; its targets are avx2, x86-64."});
    check_refused(with("avx2"), {"error[command.schedule-for]: --schedule-for 'avx2': expected <target>=<schedule>, such as avx2="});
    check_refused(
        {"generate", "matmul", "--out", out, "--target", "avx2,x86-64", "--schedule-for", "avx2=none", "--schedule-for", "avx2=none"},
        {"target avx2 is given twice; give it once."});
    check_refused({"generate", "matmul", "--out", out, "--target", "avx2,arm64"}, {"error[target.mixed-arch]"});
    for (const std::vector<std::string> &command : {std::vector<std::string>{"verify"}, {"bench"}, {"show", "--what", "tiles"}}) {
        std::vector<std::string> words = command;
        words.insert(words.end(), {"matmul", "--target", "avx2,x86-64"});
        check_refused(
            words,
            {"error[command.one-target]: --target 'avx2,x86-64': expected one target; only 'generate' takes several. Choose one of them."});
    }
}

TEST_CASE("constants are part of a kernel, and no arguments of it") {
    Registry registry = sample_registry();
    registry.add("scaled", "y[M, N] = x[M, N] table[N]", [](const Numerics &numerics) {
        Builder f("scaled", numerics);
        Dim M = f.dim("M"), N = f.dim("N", 3);
        return f.output("y", f.input("x", {M, N}) * f.constant("table", {N}, {1, 2, 3})).build();
    });
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    REQUIRE(generator({"generate", "scaled", "--schedule", "none", "--target", "x86-64", "--out", out}, registry).code == 0);
    CHECK_THAT(read_file(out + "/scaled.h"),
               Catch::Contains("int32_t scaled(const TessTensor *x, const TessTensor *y, const TessContext *context);"));
    const auto manifest = nlohmann::json::parse(read_file(out + "/scaled.manifest.json"));
    CHECK(manifest["constants"] == nlohmann::json::parse(R"([{"name": "table", "dtype": "f32", "bytes": 12}])"));
    CHECK_THAT(generator({"list", "scaled"}, registry).out, !Catch::Contains("table[N],"));
    CHECK(generator({"verify", "scaled", "--schedule", "none", "--target", "x86-64"}, registry).code == 0);
}

TEST_CASE("the depfile lists a schedule and its ancestors as make reads them") {
    const TemporaryFolder folder;
    const std::filesystem::path dir = folder.path() / "with blank#";
    write_file(dir / "mine" / "base.json", Schedule("mine/base").text());
    write_file(dir / "mine" / "leaf.json", Schedule("mine/leaf").extends("mine/base").text());
    const std::string out = (folder.path() / "o").string(), depfile = (folder.path() / "k.d").string();
    REQUIRE(generator({"generate", "matmul", "--schedule", "mine/leaf", "--schedule-dir", dir.string(), "--out", out, "--depfile", depfile})
                .code == 0);
    const std::string escaped = std::filesystem::canonical(folder.path()).string() + "/with\\ blank\\#/mine/";
    CHECK(read_file(depfile) == out + "/libmatmul.a: \\\n  " + escaped + "leaf.json \\\n  " + escaped + "base.json\n");
}

TEST_CASE("the depfile lists a target file") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "o").string(), depfile = (folder.path() / "k.d").string(),
                      target = (folder.path() / "t.json").string();
    write_file(target, R"({"format": "tessera-target", "version": 1, "name": "avx2"})");
    REQUIRE(generator({"generate", "matmul", "--schedule", "none", "--target", target, "--out", out, "--depfile", depfile}).code == 0);
    CHECK(read_file(depfile) == out + "/libmatmul.a: \\\n  " + target + "\n");
}

TEST_CASE("equal inputs give equal bytes in another folder, locale, time zone and number of processors") {
    const TemporaryFolder folder;
    const std::string a = (folder.path() / "a").string(), b = (folder.path() / "b" / "deeper").string();
    const std::string what = "generate layernorm --shape N=96 --target avx2 --quiet --emit-assembly --emit-tiles --out ";
    const Outcome first = stock_generator(what + a),
                  second = stock_generator(what + "b/deeper", "cd '" + folder.path().string() +
                                                                  "' && LC_ALL=de_DE.UTF-8 LANG=tr_TR.UTF-8 TZ=Asia/Tokyo taskset 1 ");
    INFO(first.err << second.err);
    REQUIRE(first.code + second.code == 0);
    CHECK(files_in(a) == "layernorm.h layernorm.manifest.json layernorm.s layernorm.tiles.txt liblayernorm.a");
    CHECK(files_in(a) == files_in(b));
    for (const auto &entry : std::filesystem::directory_iterator(a)) {
        INFO(entry.path());
        CHECK(read_file(entry.path()) == read_file(std::filesystem::path(b) / entry.path().filename()));
    }
}

TEST_CASE("a compile that takes too long is stopped and leaves nothing") {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/unrolled").stage("y", block({{"M", 64}}).micro({{"M", 8}, {"N", 16}})); });
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    check_refused({"generate", "matmul", "--schedule", "matmul/unrolled", "--target", "avx512", "--out", out, "--compile-limit-s", "0.05"},
                  {"error[compile.limit]: matmul: compiling was stopped; expected it to end within 0.05 s. Unroll less",
                   "or raise --compile-limit-s."},
                  2, registry);
    CHECK(files_in(out) == "");
}

TEST_CASE("generate's errors leave what is there") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    write_file(out + "/libmatmul.a", "kept");
    check_refused({"generate", "matmul", "--out", out, "--schedule", "nowhere"}, {"error[schedule.missing]"});
    check_refused({"generate", "matmul", "--out", out, "--name", "int"}, {"error[emit.name]", "got 'int'; give another one with --name."});
    check_refused({"generate", "matmul"}, {"error[command.arguments]: tessera-generator generate: --out is required"});
    check_refused({"generate", "matmul", "--out", out + "/libmatmul.a"}, {"error[output.folder]"});
    check_refused({"generate", "matmul", "--out", out, "--compile-limit-s", "0"}, {"error[command.arguments]"});
    check_refused({"generate", "matmul", "--out", out, "--name", ""}, {"error[emit.name]", "got ''; give another one with --name."});
    check_refused({"generate", "matmul", "--out", out, "--name", std::string(300, 'k')},
                  {"error[emit.name]", "at most 200 characters", "has 300"});
    check_refused({"generate", "matmul", "--out", out, "--name", "memcpy"},
                  {"error[emit.name]", "got 'memcpy', which is a function of the C library's; give another"});
    CHECK(files_in(out) == "libmatmul.a");
    CHECK(read_file(out + "/libmatmul.a") == "kept");
}

TEST_CASE("generate replaces all of its files or none") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    const std::vector<std::string> line = {"generate", "matmul", "--schedule", "none", "--target", "x86-64", "--out", out};
    std::filesystem::create_directories(out + "/libmatmul.a/inside");
    write_file(out + "/matmul.h", "kept"), write_file(out + "/matmul.manifest.json", "kept");
    check_refused(line, {"error[output.write]: file '", "/libmatmul.a': expected to write it", "it is a folder. Choose another place."});
    CHECK(read_file(out + "/matmul.h") + read_file(out + "/matmul.manifest.json") == "keptkept");
    CHECK(files_in(out) == "libmatmul.a matmul.h matmul.manifest.json");
    // A depfile that cannot be written is found out as early.
    std::filesystem::remove_all(out + "/libmatmul.a");
    std::vector<std::string> with_depfile = line;
    with_depfile.insert(with_depfile.end(), {"--depfile", out + "/no/such/folder.d"});
    check_refused(with_depfile, {"error[output.write]: file '", "no/such/folder.d': expected to write it"});
    CHECK(read_file(out + "/matmul.h") == "kept");
    CHECK(files_in(out) == "matmul.h matmul.manifest.json");
}

TEST_CASE("generate removes what one that was killed left behind") {
    const TemporaryFolder folder;
    const std::filesystem::path out = folder.path() / "out", alive = out / ".tessera-alive", unowned = out / ".tessera-others";
    int said[2];
    REQUIRE(pipe(said) == 0);
    const pid_t child = fork();
    if (child == 0) {
        const OutputFolder own(out);
        own_folder(own.staged("").parent_path(), ".tessera-");
        if (write(said[1], "x", 1) < 0) _exit(1);
        while (true) pause();
    }
    char told = 0;
    REQUIRE(read(said[0], &told, 1) == 1);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(said[0]), close(said[1]);
    std::filesystem::create_directory(alive), std::filesystem::create_directory(unowned);
    own_folder(alive, ".tessera-none-of-these");
    REQUIRE(std::distance(std::filesystem::directory_iterator(out), {}) == 3);
    CHECK(generator({"generate", "matmul", "--schedule", "none", "--target", "x86-64", "--emit", "c", "--out", out.string()}).code == 0);
    CHECK(std::filesystem::exists(alive));
    CHECK(std::filesystem::exists(unowned));
    CHECK(std::distance(std::filesystem::directory_iterator(out), {}) == 5);  // and the three that it writes
}

TEST_CASE("a limit of the machine on the size of files is no error of Tessera's") {
    const TemporaryFolder folder;
    const std::string out = "softmax --target avx2 --quiet --out '" + folder.path().string() + "/out'";
    for (const char *more : {"", " --emit c", " --emit-assembly"}) {
        const Outcome outcome = stock_generator("generate " + out + more, "ulimit -f 4; ");
        INFO(more << "\n" << outcome.err);
        CHECK(outcome.code == 2);
        CHECK_THAT(
            outcome.err,
            Catch::Contains(
                "error[output.write]: softmax: compiling was stopped, since a file would have been larger than this machine lets it be"));
    }
}

// Whether a run that may have lacked room ended as it should: well, or with a user's error and no other line.
static bool ends_well(const Outcome &outcome) {
    if (outcome.code == 0) return outcome.err.empty();
    return outcome.code == 2 && outcome.err.starts_with("error[output.") && std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1;
}

TEST_CASE("a disk that is full at any moment is no error of Tessera's") {
    const TemporaryFolder folder;
    const std::string in_own_mounts = "unshare --user --map-root-user --mount sh -c ", disk = folder.path().string();
    const bool mounts = shell(in_own_mounts + "'mount -t tmpfs none " + disk + "'").code == 0;
    // Where nobody may mount, the size of files is limited instead, in units of 512 bytes; what is over it fails in the same places.
    auto with_room = [&](int kilobytes, const std::string &what) {
        const std::string line = std::string("\"" TESSERA_GENERATOR "\" generate ") + what + " --quiet --out " + disk + "/out";
        if (!mounts) return shell("rm -rf " + disk + "/out; ulimit -f " + std::to_string(2 * kilobytes) + "; " + line);
        return shell(in_own_mounts + "'mount -t tmpfs -o size=" + std::to_string(kilobytes) + "k none " + disk + " && " + line + "'");
    };
    for (const char *what : {"column_sum --schedule none --target x86-64", "column_sum --target avx2,x86-64 --emit-assembly --emit-tiles",
                             "column_sum --target avx2 --emit c", "column_sum --target opencl"}) {
        int refused = 0;
        for (int kilobytes = 4;; kilobytes += 4) {
            const Outcome outcome = with_room(kilobytes, what);
            INFO(what << " on " << kilobytes << " KB: " << outcome.code << "\n" << outcome.err);
            REQUIRE(ends_well(outcome));
            if (outcome.code == 0) break;
            refused++;
        }
        INFO(what);
        CHECK(refused > (mounts ? 2 : 0));
    }
}

TEST_CASE("generate writes to a folder of any name, by temporary files in one of any name") {
    const TemporaryFolder folder;
    const char *const before = std::getenv("TMPDIR");
    const std::string saved = before ? before : "";
    std::vector<std::string> names = odd_names();
    // As long as a path may be with what is made inside.
    std::string deep = "%";
    while (folder.path().string().size() + deep.size() < 3800) deep += "/" + std::string(200, '%');
    names.push_back(deep);
    for (const std::string &name : names) {
        const std::filesystem::path out = folder.path() / "out" / name, temporary = folder.path() / "temporary" / name;
        std::filesystem::create_directories(temporary);
        setenv("TMPDIR", temporary.c_str(), 1);
        const Outcome made = generator({"generate", "matmul", "--schedule", "none", "--target", "avx2,x86-64", "--out", out.string(),
                                        "--emit-assembly", "--depfile", (out / "k.d").string()}),
                      verified =
                          generator({"verify", "matmul", "--schedule", "none", "--target", "x86-64", "--extents", "M=2", "N=3", "K=4"});
        before ? setenv("TMPDIR", saved.c_str(), 1) : unsetenv("TMPDIR");
        INFO(name << "\n" << made.err << verified.err);
        REQUIRE(made.code + verified.code == 0);
        CHECK(files_in(out) == "k.d libmatmul.a matmul.h matmul.manifest.json matmul.s");
        CHECK(read_file(out / "libmatmul.a") == read_file(folder.path() / "out" / names[0] / "libmatmul.a"));
        for (const auto &left : std::filesystem::directory_iterator(temporary))  // gcc leaves a list of symbols where the path has '='
            CHECK(left.path().extension() == ".res");
    }
    for (const std::string &name : {std::string(300, 'x'), deep + "/" + deep})
        check_refused({"generate", "matmul", "--schedule", "none", "--quiet", "--out", (folder.path() / name).string()},
                      {"error[output.folder]: folder '", "': expected one to write to; File name too long. Choose another"});
}

TEST_CASE("an option without the value that its '=' promises takes no other word for it") {
    check_refused({"generate", "matmul", "--out=", "--quiet"},
                  {"error[command.arguments]: --out=: expected a value behind '=', got nothing; give it one, or leave the option out."});
    CHECK(!std::filesystem::exists("--quiet"));
    check_refused({"show", "matmul", "--shape=", "N=4"}, {"error[command.arguments]: --shape=: expected a value behind '='"});
}

TEST_CASE("a wrong extent that follows from others is told with the right one") {
    const TemporaryFolder folder;
    const std::string at = folder.path().string(), root = TESSERA_SOURCE_DIR;
    write_file(folder.path() / "main.c", R"(#include <stdio.h>
#include "conv1d.h"
static void say(int64_t length, int64_t got) {
    const int64_t of_x[] = {1, length, 1}, of_w[] = {2, 1, 1}, of_y[] = {1, got, 1};
    const TessTensor x = tess_dense(NULL, TESS_F32, 3, of_x), w = tess_dense(NULL, TESS_F32, 3, of_w);
    const TessTensor y = tess_dense(NULL, TESS_F32, 3, of_y);
    TessFault fault = tess_fault();
    TessContext context = tess_context();
    uint64_t bytes = 0;
    char words[200];
    context.fault = &fault;
    tess_status_message(conv1d_workspace(&x, &w, &y, &context, &bytes), &fault, conv1d_argument_names, words, sizeof words);
    puts(words);
}
int main(void) {
    say(5, 4), say(5, 9), say(1, 3), say(70001, 1);
    return 0;
}
)");
    for (const char *emit : {"library", "c"}) {
        const Outcome made = stock_generator(std::string("generate conv1d --schedule none --target avx2 --quiet --emit ") + emit +
                                             " --out '" + at + "/" + emit + "'");
        INFO(made.err);
        REQUIRE(made.code == 0);
        const std::string of = at + "/" + emit;
        const Outcome run = shell(std::string("cc -std=c11 -O1 -mavx2 -mfma") + instrumented + "-I'" + of + "' -I'" + root + "' -I'" +
                                  root + "/runtime/abi' '" + at + "/main.c' '" + of + "/" + (emit[0] == 'c' ? "conv1d.c" : "libconv1d.a") +
                                  "' " TESSERA_RUNTIME_LIBRARY " -lpthread -lm -o '" + of + "/main' && '" + of + "/main'");
        INFO(run.err);
        const std::string place = "argument 2 ('y'), dimension 1: extent must be ";
        CHECK(run.out == "ok\n" + place + "4, not 9\n" + place + "0, not 3\n" + place + "70000, not 1\n");
    }
}

}  // namespace tessera::test_generate
