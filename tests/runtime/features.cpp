#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/abi/kernel.h"
#include "tests/runtime/toy_kernel.h"

namespace tessera::test_cpu {

using namespace tessera::test;

namespace {

std::set<std::string> flags_of_the_kernel() {
    std::ifstream file("/proc/cpuinfo");
    std::set<std::string> flags;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("flags", 0) != 0) continue;
        std::istringstream rest(line.substr(line.find(':') + 1));
        for (std::string flag; rest >> flag;) flags.insert(flag);
        break;
    }
    return flags;
}

}  // namespace

TEST_CASE("every feature has a name of its own") {
    std::set<std::string> names;
    for (int bit = 0; bit < TESS_CPU_FEATURE_COUNT; ++bit) {
        REQUIRE(tess_cpu_feature_name(bit) != nullptr);
        names.insert(tess_cpu_feature_name(bit));
    }
    CHECK(names.size() == TESS_CPU_FEATURE_COUNT);
    CHECK(std::string(tess_cpu_feature_name(TESS_CPU_AVX2)) == "avx2");
    CHECK(std::string(tess_cpu_feature_name(TESS_CPU_AVX512_BF16)) == "avx512_bf16");
    CHECK(std::string(tess_cpu_feature_name(TESS_CPU_AMX_BF16)) == "amx_bf16");
    CHECK(tess_cpu_feature_name(-1) == nullptr);
    CHECK(tess_cpu_feature_name(TESS_CPU_FEATURE_COUNT) == nullptr);
}

TEST_CASE("the features are those that the system lists") {
    const std::set<std::string> flags = flags_of_the_kernel();
    const uint64_t features = tess_cpu_features();
    CHECK(features >> TESS_CPU_FEATURE_COUNT == 0);
    if (flags.empty()) return;
    for (int bit = 0; bit < TESS_CPU_FEATURE_COUNT; ++bit) {
        const bool have = (features >> bit & 1) != 0;
        INFO(tess_cpu_feature_name(bit));
        if (bit >= TESS_CPU_ASIMDHP && bit < TESS_CPU_SSE4A) {
            CHECK(!have);
            continue;
        }
        if (have) CHECK(flags.count(tess_cpu_feature_name(bit)) == 1);
        // AMX may be listed and yet be refused to this process.
        if (!have && (bit < TESS_CPU_AMX_TILE || bit == TESS_CPU_SSE4A)) CHECK(flags.count(tess_cpu_feature_name(bit)) == 0);
    }
}

TEST_CASE("any thread may ask for the features") {
    uint64_t a = 0, b = 1;
    std::thread first([&] { a = tess_cpu_features(); });
    std::thread second([&] { b = tess_cpu_features(); });
    first.join();
    second.join();
    CHECK(a == b);
    CHECK(a == tess_cpu_features());
}

TEST_CASE("a call names the first feature that is missing") {
    TessContext without = tess_context();
    without.features_off = ~(UINT64_C(1) << TESS_CPU_AVX2);
    const auto needs = [&](uint64_t features) { return check(toy_spec({}, {}, 0, features), {}, &without); };
    const uint64_t avx2 = tess_cpu_features() & UINT64_C(1) << TESS_CPU_AVX2, bf16 = UINT64_C(1) << TESS_CPU_AVX512_BF16;
    CHECK(needs(0) == TESS_OK);
    CHECK(needs(avx2) == TESS_OK);
    CHECK(tess_status_code(needs(avx2 | bf16)) == TESS_CPU);
    CHECK(words(needs(avx2 | bf16)) ==
          "the processor, the operating system or the context lacks avx512_bf16, which the kernel "
          "was compiled for; compile it for a lesser target too");
    CHECK(words(needs(1)).find("lacks sse4_1,") != std::string::npos);
    CHECK(words(needs(UINT64_C(1) << 60)).find("lacks an instruction set,") != std::string::npos);
}

}  // namespace tessera::test_cpu
