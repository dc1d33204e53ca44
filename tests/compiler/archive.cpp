#include "compiler/abi/archive.h"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "compiler/abi/object_file.h"
#include "compiler/emit/emit_library.h"
#include "support/files/output_folder.h"
#include "tests/compiler/cases.h"
#include "tests/support/shell.h"

namespace tessera::test_archive {

using namespace tessera::test;

using Members = std::vector<std::pair<std::string, std::string>>;

static std::map<std::string, std::string> as_map(const Members &members) { return {members.begin(), members.end()}; }

TEST_CASE("what is put into a static library comes out of it, by this reader and by ar") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "some.a").string();
    Members members;
    for (const size_t name : {1, 14, 15, 16, 17, 60})
        for (const size_t size : {0, 1, 2, 61})
            members.emplace_back(std::string(name - 1, 'm') + static_cast<char>('a' + size % 26),
                                 std::string(size, static_cast<char>(name)));
    for (size_t n = 0; n <= members.size(); n++) {
        const Members some(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(n));
        const std::string archive = archive_of(some);
        CHECK(members_of(archive) == as_map(some));
        CHECK(archive.size() % 2 == 0);
        write_file(file, archive);
        const Outcome listed = shell("ar t '" + file + "'");
        std::string names;
        for (const auto &[name, bytes] : some) names += name + "\n";
        CHECK(listed.code == 0);
        CHECK(listed.out == names);
        if (n) CHECK(shell("ar p '" + file + "' " + some.back().first).out == some.back().second);
    }
}

TEST_CASE("the index of a static library says where each symbol is defined") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "libkernels.a").string();
    const Target target = target_named("avx2");
    std::vector<Kernel> kernels;
    for (const Case &c : library_cases(8))
        if (c.name == "matmul_prefetched" || c.name == "layers_once") kernels.push_back({c.name, {{{}, lowered(c, target)}}});
    REQUIRE(!kernels.empty());
    emit_library(kernels, target, {file, {}});
    std::vector<std::string> expected;
    for (const auto &[member, object] : members_of(read_file(file)))
        for (const ObjectSymbol &s : symbols_of(object))
            if (s.defined && s.global) expected.push_back(s.name + " in " + member);
    std::istringstream lines(shell("nm --print-armap '" + file + "'").out);
    std::vector<std::string> indexed;
    std::string line;
    while (std::getline(lines, line) && line.find("Archive index") == std::string::npos) {}
    while (std::getline(lines, line) && !line.empty()) indexed.push_back(line);
    std::sort(expected.begin(), expected.end()), std::sort(indexed.begin(), indexed.end());
    CHECK(expected.size() > 6);
    CHECK(indexed == expected);
}

}  // namespace tessera::test_archive
