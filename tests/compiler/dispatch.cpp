// One library for several targets: which body runs, what it needs, and what of the library is seen from outside.
#include <catch2/catch.hpp>

#include <fstream>

#include "algorithms/library/library.h"
#include "compiler/abi/archive.h"
#include "compiler/abi/object_file.h"
#include "tests/compiler/harness.h"

namespace tessera::test_dispatch {

using namespace tessera::test;

static uint64_t bit(TessCpuFeature feature) { return uint64_t{1} << feature; }

// Folds split in as many lanes as `lanes` says, so that the bits of a result tell which target's program ran.
static TileProgram gemv(const Target &target, int64_t lanes) {
    KnobsByStage stages;
    if (lanes > 1) {
        stages["y"].split["K"] = {Split::How::lanes, lanes};
        stages["y.partial"].micro = {{"K.i", lanes}}, stages["y.partial"].vector = {{"K.i", lanes}};
        stages["y.partial"].place = Place{Place::Kind::at, "y", "M"};
    }
    return lowered("gemv", library::gemv({}), stages, target);
}

// Packs a panel of `width` columns in the workspace.
static TileProgram matmul(const Target &target, int64_t width) {
    KnobsByStage stages;
    stages["y"].micro = {{"M", 4}, {"N", width}}, stages["y"].vector = {{"N", 4}};
    stages["y"].loops = {"micro.N", "micro.M"}, stages["y"].parallel = {"micro.N"};
    stages["y"].pack["w"] = {"micro.N", {{"N", width, false}, {"K", 0, false}, {"N", width, true}}};
    return lowered("matmul", library::matmul({}), stages, target);
}

static std::vector<TargetKernels> kernels_for(const std::string &list) {
    std::vector<TargetKernels> all;
    int64_t lanes = 16;
    for (const Target &target : targets_named(list)) {
        all.push_back({target, {{"gemv", {{{}, gemv(target, lanes)}}}, {"matmul", {{{}, matmul(target, lanes)}}}}});
        lanes /= 2;
    }
    return all;
}

TEST_CASE("a library for several targets runs the best one that the processor and the context leave") {
    const std::vector<TargetKernels> all = kernels_for("x86-64,avx512,avx2");
    const Loaded library(all);
    const std::map<uint64_t, std::string> left = {
        {0, "avx512"}, {bit(TESS_CPU_AVX512BW), "avx2"}, {bit(TESS_CPU_AVX512F) | bit(TESS_CPU_FMA), "x86-64"}, {~uint64_t{0}, "x86-64"}};
    const Extents shape = {{"M", 5}, {"N", 21}, {"K", 67}};
    for (size_t k = 0; k < 2; k++) {
        const TileProgram &any = all[0].kernels[k].general();
        const Algorithm algorithm = k == 0 ? library::gemv({}) : library::matmul({});
        const Arrays inputs = make_inputs(algorithm, shape, 3);
        std::map<std::string, Arrays> expected;
        for (const TargetKernels &of : all) expected[of.target.name] = run_interpreter(of.kernels[k].general(), shape, inputs, {});
        if (k == 0) CHECK(differ_in_bits(expected.at("avx512"), expected.at("avx2")) != "");
        if (k == 0) CHECK(differ_in_bits(expected.at("avx2"), expected.at("x86-64")) != "");
        for (const auto &[off, name] : left) {
            if (off == 0 && !runs_here(target_named("avx512"))) continue;
            if (name == "avx2" && !runs_here(target_named("avx2"))) continue;
            INFO(any.name << " without " << off << ": " << name);
            // The run gives the kernel exactly the workspace that the query asks for.
            for (const Layout &layout : {Layout{true, 0, 0, 1, off}, Layout{false, 1, 0, 2, off}})
                CHECK(differ_in_bits(library.run(any, shape, inputs, {}, layout), expected.at(name)) == "");
        }
    }
}

TEST_CASE("a library whose least target is missing gives a status") {
    if (!runs_here(target_named("avx2"))) return;
    const std::vector<TargetKernels> all = kernels_for("avx2,avx512");
    const Loaded library(all);
    const Extents shape = {{"M", 2}, {"K", 3}};
    const Arrays inputs = make_inputs(library::gemv({}), shape, 1);
    const TileProgram &program = all[0].kernels[0].general();
    CHECK_NOTHROW(library.run(program, shape, inputs, {}, {}));
    CHECK_THROWS_WITH(library.run(program, shape, inputs, {}, Layout{true, 0, 0, 1, bit(TESS_CPU_F16C)}),
                      Catch::Contains("the processor, the operating system or the context lacks f16c, which the kernel was compiled for"));
}

TEST_CASE("of a library only its documented symbols are seen, and it needs nothing of Halide") {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / ("libtessera-symbols-" + std::to_string(getpid()) + ".a");
    emit_library(kernels_for("x86-64,avx2,avx512+avx512_bf16"), {file, {}});
    std::ifstream stream(file, std::ios::binary);
    const std::string archive{std::istreambuf_iterator<char>(stream), {}};
    std::filesystem::remove(file);
    std::set<std::string> shown, needed, defined, names;
    uint64_t loaded = 0;
    for (const auto &[name, object] : members_of(archive)) {
        names.insert(name.substr(name.find('.') + 1));
        loaded += loaded_bytes(object);
        for (const ObjectSymbol &s : symbols_of(object)) {
            if (!s.global) continue;
            (s.defined ? defined : needed).insert(s.name);
            if (s.defined && !s.hidden) shown.insert(s.name);
            if (s.defined && s.function) CHECK(s.bytes > 0);
            if (s.defined && s.hidden) CHECK(s.name.find('.') != std::string::npos);
        }
    }
    CHECK(names == std::set<std::string>{"entry.o", "x86_64.o", "avx2.o", "avx512.avx512_bf16.o"});
    CHECK(shown == std::set<std::string>{"gemv", "gemv_table", "gemv_describe", "gemv_workspace", "matmul", "matmul_table",
                                         "matmul_describe", "matmul_workspace"});
    CHECK(loaded > 1000);
    CHECK(defined.count("gemv.avx512.avx512_bf16.variant0.body") == 1);
    for (const std::string &name : needed)
        if (!defined.count(name)) CHECK((name.starts_with("tess_abi2_") || name == "fmaf" || name == "memset" || name == "memcpy"));
}

}  // namespace tessera::test_dispatch
