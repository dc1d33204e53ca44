#include "schedules/knobs/former_names.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "schedules/artifact/library.h"
#include "schedules/artifact/provenance.h"
#include "schedules/target/target.h"
#include "schedules/target/target_file.h"

namespace tessera::test_former_names {

namespace fs = std::filesystem;

TEST_CASE("each former name of a target is that target") {
    for (const FormerName &former : former_target_names()) {
        CHECK(target_named(former.was) == target_named(former.is));
        CHECK(target_named(former.was).name == former.is);
        CHECK(target_named(former.was + "+amx_tile").name == former.is + "+amx_tile");
        CHECK(parse_target(R"({"format": "tessera-target", "version": 1, "name": ")" + former.was + R"("})", "t.json").name == former.is);
        const std::vector<std::string> today = target_names();
        CHECK(std::count(today.begin(), today.end(), former.is) == 1);
        CHECK(std::count(today.begin(), today.end(), former.was) == 0);
    }
}

TEST_CASE("the name of a schedule has its target as a part, as a part's end, or with features") {
    CHECK(current_schedule_name("gemm/avx512_bf16") == "gemm/znver4");
    CHECK(current_schedule_name("gemm/bf16/prepacked_avx512_bf16") == "gemm/bf16/prepacked_znver4");
    CHECK(current_schedule_name("gemm/f32/avx512_fp16/M64") == "gemm/f32/sapphirerapids/M64");
    CHECK(current_schedule_name("gemm/avx512_bf16+avx_vnni") == "gemm/znver4+avx_vnni");
    for (const char *same : {"gemm/avx512", "gemm/avx512+avx512_bf16", "myavx512_bf16/a", "gemm/avx512_bf16x", "gemm/znver4"})
        CHECK(current_schedule_name(same) == same);
    for (const char *name : {"gemm/avx512_bf16", "avx512_fp16/bf16/prepacked_avx512_bf16", "avx512_bf16/avx512_bf16"}) {
        const std::vector<std::string> former = former_schedule_names(current_schedule_name(name));
        CHECK(std::count(former.begin(), former.end(), name) == 1);
        for (const std::string &spelling : former) CHECK(current_schedule_name(spelling) == current_schedule_name(name));
    }
    CHECK(former_schedule_names("gemm/avx512").empty());
}

TEST_CASE("a schedule under a former name is found by both names, is extended by both and has the name of today") {
    std::string pattern = (fs::temp_directory_path() / "tessera-former-XXXXXX").string();
    const fs::path folder = mkdtemp(pattern.data());
    fs::create_directories(folder / "gemm" / "avx512_bf16");
    auto write = [&](const std::string &name, const std::string &rest) {
        std::ofstream(folder / (name + ".json"))
            << R"({"format": "tessera-schedule", "version": 1, "name": ")" << name << '"' << rest << "}";
    };
    write("gemm/prepacked_avx512_bf16", "");
    write("gemm/avx512_bf16/M64", R"(, "extends": "gemm/prepacked_avx512_bf16", "measured": {"resolved": "sha256:0",
        "task": {"algorithm": "gemm", "target": "avx512_bf16"}, "from": {"ancestors": [["gemm/prepacked_avx512_bf16", "sha256:1"]]}})");
    write("gemm/avx512_fp16", R"(, "extends": "gemm/prepacked_znver4")");
    Library library;
    library.add_folder(folder);
    CHECK(library.names() == std::vector<std::string>{"gemm/prepacked_znver4", "gemm/sapphirerapids", "gemm/znver4/M64"});
    for (const char *name : {"gemm/znver4/M64", "gemm/avx512_bf16/M64"}) {
        const Schedule found = library.find(name);
        CHECK(found.name() == "gemm/znver4/M64");
        CHECK(found.parent_name() == "gemm/prepacked_znver4");
        const auto provenance = provenance_of(found);
        REQUIRE(provenance);
        CHECK(provenance->task.target == "znver4");
        CHECK(provenance->ancestors.at(0).first == "gemm/prepacked_znver4");
        CHECK(library.ancestry(found).size() == 2);
    }
    CHECK(library.ancestry(library.find("gemm/avx512_fp16")).back().name() == "gemm/prepacked_znver4");
    CHECK(library.ancestry(Schedule("mine").extends("gemm/prepacked_avx512_bf16")).size() == 2);
    fs::remove_all(folder);
}

TEST_CASE("what is registered under a former name is found by both") {
    Library library;
    library.add(Schedule("gemm/avx512_bf16"));
    CHECK(library.find("gemm/znver4") == library.find("gemm/avx512_bf16"));
    CHECK(library.names() == std::vector<std::string>{"gemm/znver4"});
}

TEST_CASE("tessera_add_kernel knows each target and each former name") {
    std::ifstream file(TESSERA_SOURCE_DIR "/cmake/TesseraAddKernel.cmake");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::string known;
    for (const std::string &name : target_names()) known += " " + name;
    CHECK_THAT(text, Catch::Contains("set(known" + known + ")"));
    for (const auto &[was, is] : former_target_names())
        CHECK_THAT(text, Catch::Contains("string(REGEX REPLACE \"^" + was + "(\\\\+|$)\" \"" + is + "\\\\1\" target"));
}

}  // namespace tessera::test_former_names
