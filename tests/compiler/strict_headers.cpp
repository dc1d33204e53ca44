// What applications include, and the C that they compile, under the strictest warnings that people turn on, as errors.
#include <catch2/catch.hpp>

#include <cstdio>

#include "algorithms/library/library.h"
#include "algorithms/transform/bind_extents.h"
#include "compiler/emit/emit_source.h"
#include "compiler/emit/header.h"
#include "support/files/output_folder.h"
#include "tests/compiler/harness.h"
#include "tests/support/shell.h"

namespace tessera::test_strict_headers {

using namespace tessera::test;

static const std::string strict =
    " -Wall -Wextra -Wconversion -Wsign-conversion -Wfloat-conversion -Wdouble-promotion -Wshadow -Wcast-qual -Wcast-align -Wundef "
    "-Wwrite-strings -Wpointer-arith -Wformat=2 -Wswitch-enum -Wredundant-decls -Wunused -Wvla -Wmissing-declarations "
    "-Wnull-dereference -Werror";
static const std::string of_c = " -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wnested-externs";
static const std::string of_gcc = " -Wswitch-default -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wno-psabi";
static const std::string of_clang = " -Wno-psabi";
// Where a header is all that is looked at. What only says how old or how padded it is, is left out.
static const std::string header_of_clang = " -Weverything -Wno-padded -Wno-declaration-after-statement -Wno-c++98-compat-pedantic";
static const std::string of_cxx = " -Wzero-as-null-pointer-constant";

struct Files {
    TemporaryFolder folder;

    Files() {
        const Target target = target_named("avx2");
        std::vector<Kernel> kernels;
        for (const Algorithm &a : {library::softmax({}), library::linear({}), library::dropout({}), library::ring_append({})})
            kernels.push_back({a.name, {{{}, lowered(a.name, a, {}, target)}}});
        write("kernels.h", header_of("kernels", {{target, kernels}}));
        write("kernels.c", source_of(kernels, target));
        write("user.c", "#include <tessera.h>\n#include \"runtime/gpu/gpu.h\"\n#include \"kernels.h\"\n");
        write("user.cpp", "#include <tessera.h>\n#include \"kernels.h\"\n");
    }

    void write(const std::string &name, const std::string &text) const { write_file(folder.path() / name, text); }

    void compile(const std::string &compiler, const std::string &options, const std::string &file) const {
        const Outcome outcome = shell("cd '" + folder.path().string() + "' && " + compiler + options + " -I'" TESSERA_SOURCE_DIR
                                      "' -I'" TESSERA_SOURCE_DIR "/runtime/abi' -fsyntax-only " + file + " 2>&1");
        INFO(compiler << options << " " << file << "\n" << outcome.out);
        CHECK(outcome.code == 0);
    }
};

static bool has(const std::string &compiler) {
    if (shell(compiler + " --version > /dev/null 2>&1").code == 0) return true;
    std::printf("skipped: not installed: %s\n", compiler.c_str());
    return false;
}

TEST_CASE("headers and generated C have no warning of gcc", "[strict]") {
    const Files files;
    for (const char *standard : {" -std=c99", " -std=c11"})
        files.compile("gcc", standard + strict + of_c + of_gcc + " -Wpedantic", "user.c");
    for (const char *standard : {" -std=c++17", " -std=c++20"})
        files.compile("g++", standard + strict + of_gcc + of_cxx + " -Wpedantic -Wold-style-cast -Wuseless-cast", "user.cpp");
    files.compile("gcc", " -std=c11" + strict + of_c + of_gcc, "kernels.c");
}

TEST_CASE("headers and generated C have no warning of clang", "[strict]") {
    if (!has("clang")) return;
    const Files files;
    for (const char *standard : {" -std=c99", " -std=c11"}) files.compile("clang", standard + strict + of_c + header_of_clang, "user.c");
    for (const char *standard : {" -std=c++17", " -std=c++20"})
        files.compile("clang++", standard + strict + header_of_clang + of_cxx + " -Wno-c++98-compat", "user.cpp");
    files.compile("clang", " -std=c11" + strict + of_c + of_clang, "kernels.c");
}

}  // namespace tessera::test_strict_headers
