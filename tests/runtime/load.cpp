/// Libraries that are loaded and run, and where in memory they are.
#include "runtime/load/load.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <sstream>

#include "runtime/abi/kernel.h"
#include "tests/runtime/object_writer.h"

namespace tessera::test::load {

// In memory of just its size, which a sanitizer watches.
struct Loaded {
    TessLoaded *library = nullptr;
    TessLoadError error{};
    TessLoadStatus status;
    explicit Loaded(const std::string &bytes)
        : status(tess_load_archive(std::vector<char>(bytes.begin(), bytes.end()).data(), bytes.size(), &library, &error)) {}
    Loaded(const Loaded &) = delete;
    Loaded &operator=(const Loaded &) = delete;
    ~Loaded() { tess_loaded_close(library); }
    template <typename T>
    T *named(const char *name) const {
        return reinterpret_cast<T *>(tess_loaded_symbol(library, name));
    }
};

// What compiled C does, which two objects share.
bool works(const Loaded &loaded) {
    const auto run_steps = loaded.named<int64_t(int64_t, int64_t)>("run_steps");
    const auto count_up = loaded.named<int64_t()>("count_up");
    const auto cleared = loaded.named<int64_t(char *, int64_t)>("cleared");
    const auto from_table = loaded.named<float(int64_t)>("from_table");
    if (!run_steps || !count_up || !cleared || !from_table) return false;
    char bytes[64];
    std::memset(bytes, 1, sizeof bytes);
    return run_steps(6, 0) == 42 && run_steps(2, 1) == 42 && count_up() == 41 && count_up() == 42 && run_steps(2, 1) == 44 &&
           cleared(bytes, 64) == 106 && bytes[0] == 0 && bytes[63] == 0 && from_table(1) == 1.5f;
}

// In a child, so that this process stays as it is. Whether it holds there.
bool in_child(const std::function<bool()> &holds) {
    const pid_t child = fork();
    if (child == 0) _exit(holds() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The lines of /proc/self/maps for the memory around an address: from `begin` to the end of that library.
std::string permissions_at(const void *address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        char permissions[5] = "";
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) != 3) continue;
        const auto at = reinterpret_cast<uintptr_t>(address);
        if (at >= begin && at < end) return permissions;
    }
    return "none";
}

TEST_CASE("A library that a C compiler wrote is loaded, from memory and from its file", "[load]") {
    const std::string bytes = file_bytes(TESSERA_LOAD_LIBRARY);
    const Loaded one(bytes), two(bytes);
    INFO(one.error.text);
    REQUIRE(one.status == TESS_LOAD_OK);
    CHECK(works(one));
    CHECK(works(two));  // each has data of its own
    CHECK(one.named<void>("shared_counter"));
    CHECK_FALSE(one.named<void>("own_step"));
    CHECK_FALSE(one.named<void>(""));
    CHECK_FALSE(one.named<void>("memset"));
    TessLoaded *file = nullptr;
    REQUIRE(tess_load_file(TESSERA_LOAD_LIBRARY, &file, nullptr) == TESS_LOAD_OK);
    CHECK(tess_loaded_symbol(file, "count_up"));
    tess_loaded_close(file);
    tess_loaded_close(nullptr);
}

TEST_CASE("No memory of a library is both written and run", "[load]") {
    const Loaded loaded(file_bytes(TESSERA_LOAD_LIBRARY));
    REQUIRE(loaded.library);
    const void *code = nullptr;
    uint64_t bytes = 0;
    tess_loaded_code(loaded.library, &code, &bytes);
    const auto *begin = static_cast<const char *>(code), *function = loaded.named<const char>("count_up");
    CHECK(function >= begin);
    CHECK(function < begin + bytes);
    CHECK(permissions_at(function) == "r-xp");
    CHECK(permissions_at(loaded.library) == "r--p");
    CHECK(permissions_at(loaded.named<void>("shared_counter")) == "rw-p");
}

TEST_CASE("Where memory that was written never becomes code, a library is loaded by a file in memory", "[load]") {
    constexpr int set_mdwe = 65, refuse_exec_gain = 1;
    const std::string bytes = file_bytes(TESSERA_LOAD_LIBRARY);
    if (!in_child([&] { return prctl(set_mdwe, refuse_exec_gain, 0, 0, 0) == 0; })) {
        WARN("skipped: this Linux cannot refuse it (PR_SET_MDWE)");
        return;
    }
    CHECK(in_child([&] {
        prctl(set_mdwe, refuse_exec_gain, 0, 0, 0);
        const Loaded loaded(bytes);
        return works(loaded) && permissions_at(loaded.named<void>("count_up")) == "r-xp";
    }));
}

TEST_CASE("Functions have names for perf where the environment asks for them", "[load]") {
    const std::string bytes = file_bytes(TESSERA_LOAD_LIBRARY);
    const auto named = [&](const char *asked) {
        return in_child([&] {
            setenv("TESSERA_PERF_MAP", asked, 1);
            const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
            const Loaded loaded(bytes);
            if (!loaded.library) return false;
            std::ostringstream line;
            line << std::hex << tess_loaded_symbol(loaded.library, "count_up");
            const std::string map = file_bytes(path.c_str()), address = line.str().substr(2);
            unlink(path.c_str());
            return std::regex_search(map, std::regex("(^|\n)" + address + " [0-9a-f]+ count_up\n")) && map.find(" own_step\n") != map.npos;
        });
    };
    CHECK(named("1"));
    CHECK_FALSE(named("0"));
}

TEST_CASE("A library may call every function of the contract with kernels, and the listed ones of the C library", "[load]") {
    const std::string header = file_bytes(TESSERA_PATH_OF_KERNEL_H);
    std::vector<std::string> names = {"memcpy", "memmove", "memset", "ceil",      "ceilf", "floor",  "floorf",    "fma",
                                      "fmaf",   "rint",    "rintf",  "nearbyint", "trunc", "truncf", "nearbyintf"};
    const size_t of_libc = names.size();
    const std::regex declared("\nint32_t (tess_abi2_[a-z_]+)\\(");
    for (auto i = std::sregex_iterator(header.begin(), header.end(), declared); i != std::sregex_iterator(); ++i) names.push_back((*i)[1]);
    CHECK(names.size() == of_libc + 8);
    WrittenObject object;
    object.sections.push_back({SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, std::string(8 * names.size(), '\0')});
    object.symbols.push_back({"addresses", 1});
    for (size_t i = 0; i < names.size(); i++) {
        object.symbols.push_back({names[i]});
        object.relocations.push_back({1, uint32_t(host_machine == EM_X86_64 ? R_X86_64_64 : R_AARCH64_ABS64), 8 * i, i + 2});
    }
    const Loaded loaded(archive_bytes({object_bytes(object)}));
    INFO(loaded.error.text);
    REQUIRE(loaded.library);
    const auto *addresses = loaded.named<const uintptr_t>("addresses");
    for (size_t i = 0; i < names.size(); i++) CHECK(addresses[i] != 0);
    CHECK(addresses[of_libc] == reinterpret_cast<uintptr_t>(&tess_abi2_call));
    object.symbols.back().name = "getenv";
    const Loaded refused(archive_bytes({object_bytes(object)}));
    CHECK(refused.status == TESS_LOAD_SYMBOL);
}

TEST_CASE("Relocations add what they say, and zeros are zeros", "[load]") {
    const uint32_t word = host_machine == EM_X86_64 ? R_X86_64_64 : R_AARCH64_ABS64;
    WrittenObject one, two;
    one.sections.push_back({SHT_PROGBITS, SHF_ALLOC, "constants that are read"});
    one.sections.push_back({SHT_NOBITS, SHF_ALLOC | SHF_WRITE, "", 64, 1000});
    one.symbols = {{"constants", 1}, {"zeros", 2, 0, 1000}, {"hidden", 1, 2, 0, STB_GLOBAL, STT_OBJECT, STV_HIDDEN}};
    two.sections.push_back({SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, std::string(24, '\0'), 8});
    two.symbols = {{"constants"}, {"hidden"}, {"words", 1}};
    two.relocations = {{1, word, 0, 1, 3}, {1, word, 8, 2, -1}, {1, word, 16, 3, 8}};
    const Loaded loaded(archive_bytes({object_bytes(one), object_bytes(two)}));
    INFO(loaded.error.text);
    REQUIRE(loaded.library);
    const auto *constants = loaded.named<const char>("constants"), *zeros = loaded.named<const char>("zeros");
    const auto *words = loaded.named<const char *>("words");
    CHECK(std::string(constants) == "constants that are read");
    CHECK(words[0] == constants + 3);
    CHECK(words[1] == constants + 1);
    CHECK(words[2] == reinterpret_cast<const char *>(words + 1));
    CHECK(reinterpret_cast<uintptr_t>(zeros) % 64 == 0);
    CHECK(std::string(zeros, 1000) == std::string(1000, '\0'));
    CHECK_FALSE(loaded.named<void>("hidden"));
}

// Loads the library here, or the one that TESSERA_LIBRARY names; prints, and judges nothing.
TEST_CASE("the time of a load", "[.][load-time]") {
    const char *named = std::getenv("TESSERA_LIBRARY");
    std::vector<double> us;
    for (int i = 0; i < 1001; i++) {
        const auto start = std::chrono::steady_clock::now();
        TessLoaded *loaded = nullptr;
        REQUIRE(tess_load_file(named ? named : TESSERA_LOAD_LIBRARY, &loaded, nullptr) == TESS_LOAD_OK);
        us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
        tess_loaded_close(loaded);
    }
    std::sort(us.begin(), us.end());
    WARN("least " << us[0] << " us, median " << us[us.size() / 2] << " us");
}

}  // namespace tessera::test::load
