// What is in a generated library beside the code.
#include <catch2/catch.hpp>

#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/emit/emit_library.h"
#include "compiler/emit/emit_source.h"
#include "tests/compiler/cases.h"

namespace tessera::test_emit_library {

using namespace tessera::test;

static std::string output_of(const std::string &command) {
    std::string text;
    FILE *pipe = popen(command.c_str(), "r");
    REQUIRE(pipe);
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, n);
    REQUIRE(pclose(pipe) == 0);
    return text;
}

// A library in a folder of its own, which goes with it.
class Archive {
public:
    explicit Archive(const std::vector<TileProgram> &programs, const Target &target) {
        std::string pattern = (std::filesystem::temp_directory_path() / "tessera-test-XXXXXX").string();
        REQUIRE(mkdtemp(pattern.data()));
        folder = pattern;
        std::vector<Kernel> kernels;
        for (const TileProgram &p : programs) kernels.push_back({p.name, {{{}, p}}});
        emit_library(kernels, target, {path(), assembly()});
    }
    ~Archive() { std::filesystem::remove_all(folder); }
    Archive(const Archive &) = delete;

    std::filesystem::path path() const { return folder / "libkernels.a"; }
    std::string listing() const {
        std::ifstream in(assembly());
        return {std::istreambuf_iterator<char>(in), {}};
    }

private:
    std::filesystem::path assembly() const { return folder / "kernels.s"; }
    std::filesystem::path folder;
};

static constexpr int64_t table_extent = 16384;

static Algorithm with_table(const std::string &name, double first) {
    Builder f(name);
    Dim M = f.dim("M"), N = f.dim("N", table_extent);
    std::vector<double> values;
    for (int64_t i = 0; i < table_extent; i++) values.push_back(first + static_cast<double>(i));
    return f.output("y", f.input("x", {M, N}) * f.constant("table", {N}, values)).build();
}

TEST_CASE("constants are read-only data without a symbol, equal ones once") {
    Target target = target_named("avx512");
    Knobs y;
    y.vector = {{"N", 16}};
    auto program = [&](const std::string &name, double first) { return lowered(name, with_table(name, first), {{"y", y}}, target); };
    Archive one({program("a", 0)}, target), alike({program("a", 0), program("b", 0)}, target),
        apart({program("a", 0), program("b", 1)}, target);
    const std::string text = one.listing();
    CHECK(text.find(".p2align\t6, 0x0\n.Lconstant.0.data:") != std::string::npos);  // to a vector
    std::string symbols = output_of("nm '" + one.path().string() + "'");
    INFO(symbols);
    CHECK(symbols.find(" table") == std::string::npos);
    CHECK(symbols.find(" D ") == std::string::npos);
    CHECK(symbols.find(" R ") == std::string::npos);
    auto size = [](const Archive &a) { return static_cast<int64_t>(std::filesystem::file_size(a.path())); };
    int64_t bytes = table_extent * 4;
    CHECK(size(one) > bytes);
    CHECK(size(alike) < 2 * bytes);
    CHECK(size(apart) > 2 * bytes);
}

TEST_CASE("a prefetch asks for the line in every cache, and to own it where it will be written") {
    const Target target = target_named("avx512");
    std::vector<TileProgram> programs;
    for (const Case &c : library_cases(16))
        if (c.name == "matmul_prefetched") programs = {lowered(c, target)};
    REQUIRE(programs.size() == 1);
    const std::string text = Archive(programs, target).listing();
    CHECK(text.find("prefetcht0") != std::string::npos);
    CHECK(text.find("prefetchw") != std::string::npos);
    CHECK(text.find("prefetchnta") == std::string::npos);
    const std::string c = source_of({{programs[0].name, {{{}, programs[0]}}}}, target);
    CHECK(c.find("_for_store(y") != std::string::npos);
    CHECK(c.find(" prefetch(x") != std::string::npos);
}

TEST_CASE("a callee is emitted once in a library, for all of its kernels") {
    Target target = target_named("avx2");
    std::vector<TileProgram> programs;
    for (const Case &c : library_cases(8))
        if (c.name == "layers_once") programs = {lowered("a", c.algorithm, c.stages, target), lowered("b", c.algorithm, c.stages, target)};
    Archive archive(programs, target);
    std::string symbols = output_of("nm '" + archive.path().string() + "'");
    INFO(symbols);
    for (std::string name :
         {"a.avx2.callee0.scaled_product", "a.avx2.callee1.scaled_product2", "a.avx2.callee2.doubled", "a.avx2.callee3.accumulate"}) {
        size_t defined = symbols.find(" T " + name + "\n");
        REQUIRE(defined != std::string::npos);
        CHECK(symbols.find(" T " + name + "\n", defined + 1) == std::string::npos);
    }
    CHECK(symbols.find("b.avx2.callee") == std::string::npos);
    CHECK(symbols.find(".callee4") == std::string::npos);
    const std::string text = archive.listing();
    for (const char *name : {"\na.avx2.variant0.body:", "\na.avx2.callee3.accumulate:"}) CHECK(text.find(name) != std::string::npos);
}

}  // namespace tessera::test_emit_library
