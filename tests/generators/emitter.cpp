// Forms in which kernels come out, looked up by name and target.
#include "compiler/emit/emitter.h"

#include <nlohmann/json.hpp>

#include "tests/generators/harness.h"

namespace tessera::test_emitter {

using namespace tessera::test;

// An emitter from outside the tree: one file with the tile programs of one target, in C's comments.
static Emitter tiles_emitter() {
    Emitter tiles;
    tiles.name = "tiles", tiles.summary = "the tile programs, in comments of C, <name>.tiles.c";
    tiles.accepts = [](const Target &target) { return target.arch == Arch::arm64; };
    tiles.emit = [](const Emission &emission, const OutputFolder &out) {
        std::string text;
        for (const Kernel &kernel : emission.targets.at(0).kernels)
            for (const KernelVariant &variant : kernel.variants) text += "/*\n" + to_text(variant.program) + "*/\n";
        out.write(emission.name + ".tiles.c", text);
        return std::vector{emission.name + ".tiles.c"};
    };
    return tiles;
}

static std::vector<std::string> generating(const std::string &out, const std::string &target, const std::vector<std::string> &more) {
    std::vector<std::string> words = {"generate", "matmul", "--schedule", "none", "--target", target, "--out", out};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST_CASE("an emitter is looked up by its name and the target; without a name, the first that accepts the target") {
    const Registry registry = sample_registry();
    CHECK(registry.emitter("library", target_named("avx2")).makes_objects);
    CHECK(!registry.emitter("c", target_named("avx2")).makes_objects);
    CHECK(registry.emitter("c", target_named("avx2")).links.empty());
    for (const char *word : {"library", "c"}) {
        CHECK(registry.emitter(word, target_named("opencl")).links.front().name == "tessera_opencl");
        CHECK(registry.emitter(word, target_named("cuda-sm80")).links.front().name == "tessera_cuda");
    }
    for (const std::string &target : target_names()) {
        INFO(target);
        CHECK(registry.emitter("library", target_named(target)).accepts(target_named(target)));
    }
}

TEST_CASE("a generator adds an emitter, which writes beside the header and the manifest") {
    Registry registry = sample_registry();
    registry.add_emitter(tiles_emitter());
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    const Outcome made = generator(generating(out, "arm64", {"--emit", "tiles"}), registry);
    INFO(made.err);
    REQUIRE(made.code == 0);
    const std::string shown = generator({"show", "matmul", "--schedule", "none", "--target", "arm64", "--what", "tiles"}, registry).out;
    CHECK(read_file(folder.path() / "out" / "matmul.tiles.c") == "/*\n" + shown + "*/\n");
    const auto manifest = nlohmann::json::parse(read_file(folder.path() / "out" / "matmul.manifest.json"));
    CHECK(manifest["emit"] == "tiles");
    CHECK(manifest["files"].contains("matmul.tiles.c"));
    CHECK(manifest["files"].contains("matmul.h"));
    CHECK(!std::filesystem::exists(folder.path() / "out" / "libmatmul.a"));

    check_refused(generating(out, "avx2", {"--emit", "tiles"}),
                  {"error[command.emit]: --emit tiles: expected a form in which kernels for 'avx2' come out; those are library, c. "
                   "Choose one of them, or another target."},
                  2, registry);
    check_refused(generating(out, "arm64", {"--emit", "tiles", "--emit-assembly"}),
                  {"error[command.emit]: --emit-assembly: expected a form with machine code, got 'tiles'. Leave it out."}, 2, registry);
    check_refused(generating(out, "arm64", {"--emit", "tiles"}), {"--emit", "library", "c"});  // one that does not know it
    CHECK_THAT(generator({"generate", "--help"}, registry).out, Catch::Contains("tiles: the tile programs, in comments of C"));
}

TEST_CASE("a registered emitter that cannot be is refused when the generator starts") {
    Registry same = sample_registry();
    same.add_emitter(library_emitter());
    check_refused({"list"}, {"error[generator.duplicate]: emitter 'library'"}, 2, same);
    Registry empty = sample_registry();
    Emitter nothing = tiles_emitter();
    nothing.emit = {};
    empty.add_emitter(nothing);
    check_refused({"list"}, {"error[generator.entry]: emitter 'tiles'"}, 2, empty);
}

// CMake has to know the file's name before anything runs.
TEST_CASE("the words of EMIT in CMake are those of the emitters") {
    std::string words;
    for (const std::string &name : sample_registry().emitter_names()) words += (words.empty() ? "" : "|") + name;
    const std::string cmake = read_file(TESSERA_SOURCE_DIR "/cmake/TesseraAddKernel.cmake");
    CHECK_THAT(cmake, Catch::Contains("[EMIT " + words + "]"));
}

}  // namespace tessera::test_emitter
