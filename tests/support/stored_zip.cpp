#include "support/files/stored_zip.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "support/files/crc32.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "tests/support/npz_file.h"
#include "tests/support/shell.h"
#include "tests/support/thorough.h"

namespace tessera::test_stored_zip {

using namespace tessera::test;

static std::string refusal(const std::string &bytes) {
    const TemporaryFolder folder;
    write_file(folder.path() / "x.tess", bytes);
    try {
        const StoredZip zip(folder.path() / "x.tess");
        for (const ZipMember &m : zip.members()) zip.read(m, uint64_t{1} << 30);
    } catch (const UserError &error) { return error.id(); }
    return "";
}

static std::string three_members(const TemporaryFolder &folder) {
    const auto file = folder.path() / "a.tess";
    write_stored_zip(file, {{"manifest.json", "{}"}, {"code/avx2/lib.a", std::string(1000, 'c')}, {"none", ""}});
    return read_file(file);
}

TEST_CASE("stored zip: members are at multiples of 64, and equal members make equal bytes", "[stored_zip]") {
    const TemporaryFolder folder;
    const std::string bytes = three_members(folder);
    CHECK(three_members(folder) == bytes);
    const StoredZip zip(folder.path() / "a.tess");
    REQUIRE(zip.members().size() == 3);
    CHECK(zip.members()[0].offset == 64);
    for (const ZipMember &m : zip.members()) CHECK(m.offset % 64 == 0);
    CHECK(zip.read(*zip.find("code/avx2/lib.a"), 1000) == std::string(1000, 'c'));
    CHECK(zip.read(*zip.find("none"), 0) == "");
    CHECK(zip.find("nothing") == nullptr);
    CHECK(bytes.substr(zip.members()[0].offset, 2) == "{}");
    // From the parts of a file, the same bytes.
    std::vector<ZipContent> again;
    for (const ZipMember &m : zip.members()) again.push_back({m.path, {}, zip.file(), m.offset, m.bytes});
    write_stored_zip(folder.path() / "b.tess", again);
    CHECK(read_file(folder.path() / "b.tess") == bytes);
}

TEST_CASE("stored zip: another reader takes it, and finds nothing to complain of", "[stored_zip]") {
    const TemporaryFolder folder;
    three_members(folder);
    const Outcome outcome = shell("cd '" + folder.path().string() + R"(' && python3 -c '
import zipfile
z = zipfile.ZipFile("a.tess")
assert z.testzip() is None
for i in z.infolist(): print(i.filename, i.file_size, i.compress_type, i.date_time[:3], oct(i.external_attr >> 16), i.extract_version)
')");
    CHECK(outcome.err == "");
    CHECK(
        outcome.out ==
        "manifest.json 2 0 (1980, 1, 1) 0o100644 10\ncode/avx2/lib.a 1000 0 (1980, 1, 1) 0o100644 10\nnone 0 0 (1980, 1, 1) 0o100644 10\n");
}

TEST_CASE("stored zip: each byte but the data is as it must be, and a cut is found", "[stored_zip]") {
    const TemporaryFolder folder;
    const std::string bytes = three_members(folder);
    for (size_t i = 0; i < bytes.size(); i += i < 100 || i > 1200 ? 1 : 37) {
        std::string other = bytes;
        other[i] = static_cast<char>(other[i] ^ 0x11);
        INFO(i);
        CHECK(refusal(other).starts_with("zip."));
    }
    for (size_t cut = 0; cut < bytes.size(); cut += 13) CHECK(refusal(bytes.substr(0, cut)).starts_with("zip."));
    CHECK(refusal(bytes + '\0') == "zip.end");
    CHECK(refusal('\0' + bytes).starts_with("zip."));
    CHECK(refusal(bytes) == "");
}

TEST_CASE("stored zip: zips of others are refused in words", "[stored_zip]") {
    CHECK(refusal(zip_of({{"a", "text", 8}})) == "zip.compressed");
    CHECK(refusal(zip_of({{"a", "text"}})) == "zip.form");
    CHECK(refusal(zip_of({{"../a", "text"}})) == "zip.path");
    CHECK(refusal(zip_of({{"a", "text"}, {"A", "text"}})) == "zip.path");
    CHECK(refusal("") == "zip.end");
    CHECK(refusal("PK\5\6" + std::string(18, '\xff')) == "zip.end");
    CHECK(refusal("PK\6\6" + std::string(52, '\xff') + "PK\6\7" + std::string(16, '\xff') + "PK\5\6" + std::string(18, '\xff')) ==
          "zip.members");
    const TemporaryFolder folder;
    CHECK_THROWS_WITH(StoredZip(folder.path()), Catch::Contains("error[zip.file]"));
    CHECK_THROWS_WITH(StoredZip(folder.path() / "none"), Catch::Contains("error[zip.file]"));
}

TEST_CASE("stored zip: paths that lead elsewhere, or that are one on another system, are not written", "[stored_zip]") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "a.tess";
    for (const std::string path : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "a b", "a\\b", "a:b", "\xc3\xa4", "a\nb"}) {
        INFO(path);
        CHECK(!zip_path_problem(path).empty());
        CHECK_THROWS_WITH(write_stored_zip(file, {{path, "x"}}), Catch::Contains("error[zip.path]"));
    }
    CHECK(!zip_path_problem(std::string(256, 'a')).empty());
    CHECK(zip_path_problem(std::string(255, 'a')) == "");
    CHECK(zip_path_problem("packed/0123/avx512,avx2+fma-x_1.a") == "");
    CHECK_THROWS_WITH(write_stored_zip(file, {{"a/b", "x"}, {"A/b", "y"}}), Catch::Contains("error[zip.path]"));
    CHECK(!std::filesystem::exists(file));
}

TEST_CASE("stored zip: sizes and counts beyond 32 and 16 bits", "[stored_zip]") {
    const uint64_t large = uint64_t{5} << 30;
    const std::vector<ZipPlace> places = zip_places({{"a", large}, {"b", 3}, {"c", 1}});
    CHECK(places[0].offset == 64);
    CHECK(places[1].offset == large + 128);
    CHECK(places[2].offset == large + 192);
    CHECK_THROWS_WITH(zip_places({{"a", zip_max_bytes}, {"b", 1}}), Catch::Contains("error[zip.too-large]"));

    const TemporaryFolder folder;
    const auto file = folder.path() / "many.tess";
    std::vector<ZipContent> many;
    for (int i = 0; i < 65'536; i++) many.push_back({"m" + std::to_string(i), i % 1000 ? "" : "x"});
    write_stored_zip(file, many);
    CHECK(StoredZip(file).members().size() == many.size());
    many.resize(65'535);
    write_stored_zip(file, many);
    CHECK(StoredZip(file).members().size() == many.size());
    const Outcome outcome =
        shell("python3 -c 'import sys, zipfile; print(len(zipfile.ZipFile(sys.argv[1]).namelist()))' '" + file.string() + "'");
    CHECK(outcome.out == "65535\n");
    many.resize(zip_max_members + 1, {"n", ""});
    for (size_t i = 0; i < many.size(); i++) many[i].path = "m" + std::to_string(i);
    CHECK_THROWS_WITH(write_stored_zip(file, many), Catch::Contains("error[zip.members]"));
}

TEST_CASE("stored zip: a file of more than 4 GiB is written and read", "[stored_zip]") {
    if (!is_thorough()) return;
    const TemporaryFolder folder;
    const auto hole = folder.path() / "hole", file = folder.path() / "large.tess";
    write_file(hole, "x");
    REQUIRE(truncate(hole.c_str(), off_t{5} << 30) == 0);
    const auto source = std::make_shared<RegularFile>(hole, Handed{"hole", "file", "", size_t{1} << 40});
    write_stored_zip(file, {{"a", {}, source, 0, source->bytes()}, {"b", "text"}});
    const StoredZip zip(file);
    CHECK(zip.members()[0].bytes == source->bytes());
    CHECK(zip.read(*zip.find("b"), 4) == "text");
    const Outcome outcome =
        shell("python3 -c 'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); print(z.read(\"b\"))' '" + file.string() + "'");
    CHECK(outcome.out == "b'text'\n");
}

TEST_CASE("crc32: in parts and whole, by another way of computing it", "[stored_zip]") {
    std::string bytes;
    for (int i = 0; i < 300; i++) {
        CHECK(crc32_of(bytes) == crc_of(bytes));
        CHECK(crc32_of(std::string_view(bytes).substr(static_cast<size_t>(i) / 3), crc32_of(bytes.substr(0, static_cast<size_t>(i) / 3))) ==
              crc_of(bytes));
        bytes += static_cast<char>(i * 37);
    }
    CHECK(crc32_of("123456789") == 0xcbf43926);
}

}  // namespace tessera::test_stored_zip
