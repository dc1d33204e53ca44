// Kernels for GPUs: what comes out of OpenCL on PoCL equals the tile program bit by bit; what goes to NVIDIA's assembler is
// accepted, in registers.
#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "compiler/emit/emit_gpu.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/laws.h"
#include "tests/support/thorough.h"

namespace tessera::test_emit_gpu {

using namespace tessera::test;

TEST_CASE("emitted code equals the tile program: opencl", "[.][gpu]") {
    if (!has_opencl()) {
        WARN("built without OpenCL (ocl-icd-opencl-dev, pocl-opencl-icd): not run");
        return;
    }
    Target target = target_named("opencl");
    std::vector<Case> cases = gpu_cases();
    std::vector<TileProgram> programs;
    for (const Case &c : cases) programs.push_back(lowered(c, target));
    Loaded library(programs, target);
    check_code(cases, programs, library, [](uint32_t number) {
        return std::vector<Layout>{number % 2 ? Layout{true, 0, 0, 1, 0, number % 4 == 1} : Layout{false, 2, 3, 1, 0, number % 4 == 0}};
    });
}

// What an application compiles, with warnings as errors, where it may have other compilers than ours.
TEST_CASE("the host files of GPU kernels compile without warnings") {
    for (const char *name : {"opencl", "cuda-sm80"}) {
        const Target target = target_named(name);
        std::vector<Kernel> kernels;
        for (const Case &c : gpu_cases()) kernels.push_back({c.name, {{{}, lowered(c, target)}}});
        std::string folder = (std::filesystem::temp_directory_path() / "tessera-host-XXXXXX").string();
        REQUIRE(mkdtemp(folder.data()));
        // Each by itself: what one has no use for another may have.
        std::string files;
        for (const Kernel &kernel : kernels) {
            std::ofstream(folder + "/" + kernel.name + ".c") << host_of({kernel}, target, "image", false);
            files += " " + kernel.name + ".c";
        }
        for (const Build &build : c_builds("-std=c99 -Wall -Wextra -Werror")) {
            const std::string command = "cd '" + folder + "' && " + build.compiler + " " + build.options + " -fsyntax-only -I'" +
                                        TESSERA_SOURCE_DIR + "'" + files + " > log 2>&1";
            const int code = std::system(command.c_str());
            std::ifstream log(folder + "/log");
            INFO(command << "\n" << std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 2000));
            CHECK(code == 0);
        }
        std::filesystem::remove_all(folder);
    }
}

// The log of nvcc with what its assembler says of each function.
static std::string assembled(const std::string &source, const std::string &arch) {
    std::string folder = (std::filesystem::temp_directory_path() / "tessera-cuda-XXXXXX").string();
    REQUIRE(mkdtemp(folder.data()));
    std::ofstream(folder + "/kernels.cu") << source;
    std::string command = std::string("'") + TESSERA_NVCC + "' -arch=" + arch + " -fmad=false -cubin -Xptxas -v -o '" + folder +
                          "/kernels.cubin' '" + folder + "/kernels.cu' > '" + folder + "/log' 2>&1";
    int failed = std::system(command.c_str());
    std::ifstream log(folder + "/log");
    std::string said(std::istreambuf_iterator<char>(log), {});
    std::filesystem::remove_all(folder);
    return failed ? "failed: " + said : said;
}

TEST_CASE("NVIDIA's assembler takes the kernels, and keeps them in registers", "[.][gpu]") {
    if (std::string(TESSERA_NVCC).empty()) {
        WARN("there is no nvcc: not compiled");
        return;
    }
    for (const char *arch : {"sm_80", "sm_86"}) {
        if (!is_thorough() && arch != std::string("sm_80")) continue;
        Target target = target_named(std::string("cuda-sm") + (arch + 3));
        std::vector<Kernel> kernels;
        for (const Case &c : gpu_cases()) kernels.push_back({c.name, {{{}, lowered(c, target)}}});
        std::string said = assembled(kernels_of(kernels, target).kernels, arch);
        INFO(said);
        CHECK(said.find("failed") == std::string::npos);
        CHECK(said.find("warning") == std::string::npos);
        for (const char *name : {"matmul_staged_0", "matmul_shipped_0", "softmax_shipped_0"}) {
            const size_t at = said.find(std::string("Function properties for ") + name + "\n");
            REQUIRE(at != std::string::npos);
            CHECK(said.substr(at, 200).find(" 0 bytes spill stores, 0 bytes spill loads") != std::string::npos);
        }
    }
}

}  // namespace tessera::test_emit_gpu
