#include "schedules/target/target.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "support/text/error.h"
#include "tests/support/words.h"

namespace tessera::test_target {

using test::check_words;

TEST_CASE("each built-in target has all the features of the one before it") {
    const Target base = target_named("x86-64"), avx2 = target_named("avx2"), avx512 = target_named("avx512");
    CHECK(base.features.empty());
    CHECK(base.vector_bytes == 16);
    for (const char *feature : {"avx2", "fma", "f16c", "sse4_1"}) CHECK((avx2.has(feature) && avx512.has(feature)));
    for (const char *feature : {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})
        CHECK((!avx2.has(feature) && avx512.has(feature)));
    CHECK(avx2.vector_bytes == 32);
    CHECK(avx512.vector_bytes == 64);
    CHECK(avx512.vector_registers == 32);
    for (const Target &target : {base, avx2, avx512}) {
        CHECK(target.arch == Arch::x86_64);
        CHECK((target.l1_bytes < target.l2_bytes && target.l2_bytes < target.l3_bytes));
    }
}

TEST_CASE("what code is written in") {
    for (const std::string &name : target_names()) {
        const Target target = target_named(name);
        INFO(name);
        CHECK(target.is_gpu() == (target.max_threads > 0 && target.shared_bytes > 0));
        CHECK(names_gpu(name) == target.is_gpu());
        CHECK((target.arch == Arch::cuda) == (target.compute_capability > 0));
        if (!target.stands_in.empty()) CHECK(target_named(target.stands_in).is_gpu() == target.is_gpu());
    }
    CHECK_FALSE(names_gpu("avx2+avx512_bf16"));
    CHECK_FALSE(names_gpu("cuda"));
    CHECK(name_of(Arch::x86_64) == std::string("x86-64"));
    CHECK(name_of(Arch::cuda) == std::string("cuda"));
}

TEST_CASE("arm64 has no features of x86, and each arch its own") {
    const Target arm64 = target_named("arm64");
    CHECK(arm64.arch == Arch::arm64);
    CHECK(arm64.features.empty());
    CHECK(arm64.vector_bytes == 16);
    CHECK(target_named("arm64+asimddp").has("asimddp"));
    const size_t both = known_features(Arch::x86_64).size() + known_features(Arch::arm64).size();
    CHECK(both == known_features().size());
    CHECK(runs_here(target_named("host")));
    CHECK(runs_here(arm64) == (host_arch() == Arch::arm64));
    CHECK_FALSE(runs_here(target_named("wasm32")));
    CHECK(target_named("wasm32").vector_bytes == 16);
}

TEST_CASE("every feature of a built-in target is one that the runtime can check") {
    const std::vector<std::string> known = known_features();
    for (const std::string &name : target_names())
        for (const std::string &feature : target_named(name).features) CHECK(std::count(known.begin(), known.end(), feature) == 1);
}

TEST_CASE("the host is a built-in target that this processor satisfies") {
    const Target host = target_named("host");
    CHECK(target_named(host.name).features == host.features);
    const std::vector<std::string> have = host_features();
    for (const std::string &feature : host.features) CHECK(std::count(have.begin(), have.end(), feature) == 1);
    CHECK(host.l1_bytes > 0);
}

TEST_CASE("GPUs have blocks, and no features of processors") {
    for (const char *name : {"opencl", "cuda-sm80", "cuda-sm86", "cuda-sm90"}) {
        const Target target = target_named(name);
        CHECK(target.is_gpu());
        CHECK((target.shared_bytes >= 32 << 10 && target.max_threads >= 256));
        CHECK(target.features.empty());
    }
    CHECK_FALSE(target_named("avx512").is_gpu());
    check_words([] { target_named("opencl+fma"); },
                {"error[target.unknown-feature]: target 'opencl+fma': opencl has no feature 'fma'; its features are none."});
}

TEST_CASE("features can be added to a target, in any order and more than once") {
    const Target target = target_named("avx512+avx512_bf16+avx512_vnni+fma");
    CHECK(target.name == "avx512+avx512_vnni+avx512_bf16");
    CHECK(target.has("avx512_bf16"));
    CHECK(target == target_named("avx512+avx512_vnni+avx512_bf16+avx512_vnni"));
    CHECK(target_named(target.name) == target);
}

TEST_CASE("an unknown target or feature: the words") {
    check_words([] { target_named("avx51"); },
                {"error[target.unknown]: there is no target 'avx51'; the targets are x86-64, avx2, avx512, "
                 "znver4, znver5, sapphirerapids, amx, arm64, wasm32, opencl, cuda-sm80, cuda-sm86, cuda-sm90, host",
                 "Did you mean 'avx512'?"});
    check_words([] { target_named(""); }, {"there is no target ''"});
    check_words([] { target_named("avx512+bf16"); },
                {"error[target.unknown-feature]: target 'avx512+bf16': x86-64 has no feature 'bf16'; its features are sse4_1"});
    check_words([] { target_named("arm64+avx2"); },
                {"target 'arm64+avx2': arm64 has no feature 'avx2'; its features are asimdhp, asimddp, i8mm, bf16."});
    check_words([] { target_named("wasm32+simd128"); },
                {"error[target.unknown-feature]: target 'wasm32+simd128': wasm32 has no feature 'simd128'; its features are none."});
    check_words([] { target_named("avx2+avx512_bf61"); }, {"Did you mean 'avx512_bf16'?"});
}

TEST_CASE("a target without what a schedule requires: the words") {
    ResolvedSchedule s;
    s.name = "a/b";
    s.requires_features = {"avx2", "avx512f", "avx512_bf16"};
    CHECK_NOTHROW(check_requires(s, target_named("avx512+avx512_bf16")));
    check_words(
        [&] { check_requires(s, target_named("avx2")); },
        {"error[schedule.requires]: schedule 'a/b' at /requires: target 'avx2' has no avx512f, avx512_bf16; its features are sse4_1",
         "Generate for 'znver4' if"});
    check_words([&] { check_requires(s, target_named("arm64")); },
                {"target 'arm64' has no avx2, avx512f, avx512_bf16; its features are those of every arm64. The schedule is for another "
                 "kind of processor: use a schedule that"});
    s.requires_features = {"avx512g"};
    check_words([&] { check_requires(s, target_named("avx2")); },
                {"error[schedule.unknown-feature]: schedule 'a/b' at /requires: there is no feature 'avx512g'", "Did you mean 'avx512f'?"});
}

TEST_CASE("the targets of one library come best first") {
    auto names = [](const std::string &list) {
        std::vector<std::string> all;
        for (const Target &target : targets_named(list)) all.push_back(target.name);
        return all;
    };
    const std::vector<std::string> sorted = {"avx512", "avx2", "x86-64"};
    for (const char *list : {"x86-64,avx2,avx512", "avx512,avx2,x86-64", "avx2,avx512,x86-64"}) CHECK(names(list) == sorted);
    CHECK(names("avx2") == std::vector<std::string>{"avx2"});
    CHECK(names("arm64,arm64+asimddp") == std::vector<std::string>{"arm64+asimddp", "arm64"});
}

TEST_CASE("tessera_add_kernel knows the targets that there are") {
    std::ifstream file(TESSERA_SOURCE_DIR "/cmake/TesseraAddKernel.cmake");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    CHECK_THAT(text, Catch::Contains("set(known " + join(target_names(), " ") + ")"));
}

TEST_CASE("targets that cannot share a library: the words") {
    check_words([] { targets_named("avx2,x86-64,avx2"); },
                {"error[target.repeated]: targets 'avx2,x86-64,avx2': 'avx2' is there twice, as 'avx2'; name it once."});
    check_words([] { targets_named("avx2,avx2+fma"); },
                {"error[target.repeated]: targets 'avx2,avx2+fma': 'avx2' and 'avx2+fma' both stand "
                 "for the code of 'avx2', which a library has once; name one of them."});
    check_words([] { targets_named("avx2,arm64"); }, {"error[target.mixed-arch]: targets 'avx2,arm64': one library is for one kind of "
                                                      "processor, and 'avx2' is for x86-64, 'arm64' for arm64. Generate two"});
    check_words([] { targets_named("cuda-sm80,cuda-sm86"); },
                {"error[target.mixed-arch]: targets 'cuda-sm80,cuda-sm86': one library is for one GPU target, got 'cuda-sm80' and "
                 "'cuda-sm86'. Generate two libraries."});
    check_words([] { targets_named("avx2+avx_vnni,avx512"); },
                {"error[target.no-baseline]: targets 'avx2+avx_vnni,avx512': 'avx2+avx_vnni' has avx_vnni and 'avx512' does not",
                 "expected one target whose features all others have. Add one, such as x86-64."});
    check_words([] { targets_named("avx2,,avx512"); }, {"error[target.unknown]: there is no target ''"});
    check_words([] { targets_named("avx2,"); }, {"error[target.unknown]: there is no target ''"});
    check_words([] { targets_named(","); }, {"error[target.unknown]: there is no target ''"});
    check_words([] { target_named("avx2+avx512f"); },
                {"error[target.feature-set]: target 'avx2+avx512f': avx512f by itself; ", "Expected 'avx512'."});
    check_words([] { target_named("x86-64+avx512_vnni"); }, {"Expected 'avx512' with it: 'avx512+avx512_vnni'."});
    check_words([] { target_named("avx2+"); }, {"error[target.unknown-feature]: target 'avx2+': x86-64 has no feature ''"});
    check_words([] { targets_named(""); }, {"error[target.unknown]: there is no target ''"});
}

}  // namespace tessera::test_target
