#include <catch2/catch.hpp>

#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "algorithms/library/library.h"
#include "compiler/abi/archive.h"
#include "compiler/abi/object_file.h"
#include "compiler/abi/wasm_object.h"
#include "support/text/error.h"
#include "tests/compiler/harness.h"

namespace tessera::test_wasm_object {

using namespace tessera::test;

// A library of softmax, whose rows run in parallel, so that there are tasks too.
static std::map<std::string, std::string> objects() {
    const Target target = target_named("wasm32");
    Knobs rows;
    rows.parallel = {"M"};
    const std::filesystem::path file = std::filesystem::temp_directory_path() / ("libtessera-wasm-" + std::to_string(getpid()) + ".a");
    emit_library({{"softmax", {{{}, lowered("softmax", library::softmax({}), {{"y", rows}}, target)}}}}, target, {file, {}});
    std::ifstream stream(file, std::ios::binary);
    const std::string archive{std::istreambuf_iterator<char>(stream), {}};
    std::filesystem::remove(file);
    return members_of(archive);
}

TEST_CASE("of a WebAssembly library only its documented symbols are seen, and it needs nothing of Halide") {
    std::set<std::string> shown, needed, defined;
    uint64_t loaded = 0;
    for (const auto &[name, object] : objects()) {
        CHECK(is_object(object));
        loaded += loaded_bytes(object);
        for (const ObjectSymbol &s : symbols_of(object)) {
            if (!s.global) continue;
            (s.defined ? defined : needed).insert(s.name);
            if (s.defined && !s.hidden) shown.insert(s.name);
            if (s.defined && s.function) CHECK(s.bytes > 0);
            if (s.defined && s.hidden) CHECK(s.name.find('.') != std::string::npos);
        }
    }
    CHECK(shown == std::set<std::string>{"softmax", "softmax_describe", "softmax_table", "softmax_workspace"});
    CHECK(loaded > 1000);
    CHECK(defined.count("softmax.wasm32.variant0.body") == 1);
    CHECK(needed.count("tess_abi2_call") == 1);
    for (const std::string &name : needed)
        if (!defined.count(name) && !name.starts_with("__"))  // the linker's own: memory and stack
            CHECK((name.starts_with("tess_abi2_") || name == "memset" || name == "memcpy"));
}

TEST_CASE("a broken WebAssembly object is found to be one") {
    const std::string whole = objects().at("libtessera-wasm-" + std::to_string(getpid()) + ".wasm32.o");
    for (size_t n = 9; n < whole.size(); n += 7) try {
            symbols_of(whole.substr(0, n));
        } catch (const InternalError &e) { CHECK(std::string(e.what()).find("WebAssembly") != std::string::npos); }
    CHECK_FALSE(is_wasm("\0asm"));
    CHECK_FALSE(is_object("text"));
}

}  // namespace tessera::test_wasm_object
