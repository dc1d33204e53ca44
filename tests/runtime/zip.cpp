/// The zip of bundles: its rules one by one, and sizes and counts that need ZIP64.
#include "runtime/bundle/zip.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>

#include "tests/runtime/bundle_writer.h"

namespace tessera::test_zip {

using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

// The paths of all members, or what is refused.
std::string walked(const void *file, uint64_t size) {
    TessBundleError error;
    TessZip zip;
    TessZipMember member;
    std::string all;
    if (tess_zip_begin(&zip, file, size, &error) != TESS_OK) return error.text;
    for (;;) {
        if (tess_zip_next(&zip, &member, &error) != TESS_OK) return error.text;
        if (!member.path) return all;
        if (all.size() < 1000) all += std::string(member.path, member.path_bytes) + " ";
    }
}

std::string walked(const std::string &bytes) {
    const std::vector<char> own(bytes.begin(), bytes.end());  // of just this size, which a sanitizer watches
    return walked(own.data(), own.size());
}

std::vector<ZipEntry> two() { return {{"a", "first", 0, 0}, {"b/c", std::string(100, 'x'), 0, 0}}; }

// Two members, with a change at an offset from a place.
std::string with(size_t at, const std::string &bytes) {
    std::vector<ZipEntry> entries = two();
    std::string all = zip_bytes(entries);
    return walked(all.replace(at, bytes.size(), bytes));
}

size_t directory_at() {
    std::vector<ZipEntry> entries = two();
    (void)zip_bytes(entries);
    return entries[1].offset + entries[1].bytes.size();
}

}  // namespace

TEST_CASE("A zip of stored members is walked through", "[zip]") {
    std::vector<ZipEntry> entries = two();
    CHECK(walked(zip_bytes(entries)) == "a b/c ");
    entries.clear();
    CHECK(walked(zip_bytes(entries)).empty());
    CHECK(tess_zip_crc("123456789", 9) == 0xcbf43926);
}

TEST_CASE("Paths of bundles have no parts that lead elsewhere", "[zip]") {
    const auto is_path = [](const std::string &path) { return tess_zip_is_path(path.data(), path.size()) == 1; };
    for (const char *good : {"a", "a/b", "a.b/c..d", "A-Z_0,9+x", "..a", "...", "a/..b"}) CHECK(is_path(good));
    CHECK(is_path(std::string(255, 'a')));
    for (const char *bad :
         {"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/./b", "a/../b", "a b", "a\\b", "c:a", "a\n", "\xc3\xa9", "a*"})
        CHECK_FALSE(is_path(bad));
    CHECK_FALSE(is_path(std::string(256, 'a')));
    CHECK_FALSE(is_path(std::string("a\0b", 3)));
}

TEST_CASE("A zip that breaks a rule is refused", "[zip]") {
    const size_t directory = directory_at(), second_entry = directory + 46 + 1, end = second_entry + 46 + 3;
    const auto number = [](auto value) {
        std::string bytes;
        put_number(bytes, value);
        return bytes;
    };
    // The local header of the first member.
    for (const size_t at : {0, 1, 4, 6, 8, 10, 12, 14, 18, 22, 26, 28, 30}) CHECK_THAT(with(at, "\x7f"), Contains("bundle: expected "));
    CHECK_THAT(with(6, "\x01"), Contains("expected a local header that says what the directory says at byte 0"));
    CHECK_THAT(with(31, "\x01"), Contains("expected the extra field that aligns data to 64 bytes at byte 31"));
    CHECK_THAT(with(40, "\x01"), Contains("expected the extra field that aligns data"));
    // Its entry.
    for (const size_t at : {0, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 30, 32, 34, 36, 38, 42})
        CHECK_THAT(with(directory + at, "\x7f"), Contains("bundle: expected "));
    CHECK_THAT(with(directory + 10, "\x08"),
               Contains("expected an entry of a stored file, without flags, times, comment and further disks"));
    CHECK_THAT(with(directory + 8, "\x01"), Contains("without flags"));
    CHECK_THAT(with(directory + 46, "/"), Contains("expected a path that bundles may have"));
    CHECK_THAT(with(second_entry + 46, "a"), Contains("expected the path that the directory has"));
    // Overlaps, gaps, and another order: a header is only where the data before it end.
    CHECK_THAT(with(second_entry + 42, number(uint32_t{0})), Contains("expected a local header that begins where the data before it end"));
    CHECK_THAT(with(directory + 42, number(uint32_t{64})), Contains("begins where the data before it end"));
    CHECK_THAT(with(second_entry + 20, number(uint32_t{99})), Contains("expected one size of a stored file"));
    // The end.
    for (const size_t at : {0, 4, 6, 8, 10, 12, 16, 20}) CHECK_THAT(with(end + at, "\x7f"), Contains("bundle: expected "));
    CHECK_THAT(with(end + 8, number(uint32_t{0xfffefffe})), Contains("expected at most "));
    CHECK_THAT(with(end + 8, number(uint32_t{0x00010001})), Contains("expected the end of the directory after its last member"));
    CHECK_THAT(with(end + 8, number(uint32_t{0x00030003})), Contains("expected a member's entry in the directory"));
    CHECK_THAT(with(end + 8, number(uint32_t{0xffffffff})), Contains("expected the locator of ZIP64's end"));
    CHECK_THAT(with(end + 16, number(uint32_t{0xffffffff})), Contains("expected the locator of ZIP64's end"));
    CHECK_THAT(with(end + 12, number(uint32_t{0x7fffffff})), Contains("expected a directory that ends where the end begins"));
    CHECK_THAT(walked(""), Contains("expected a file of at least 22 bytes, got 0"));
}

TEST_CASE("Data that nobody lists between members, or before the directory, are refused", "[zip]") {
    std::vector<ZipEntry> entries = two();
    std::string all = zip_bytes(entries);
    const size_t directory = directory_at();
    all.insert(directory, "hidden");
    const uint32_t at = static_cast<uint32_t>(directory + 6);
    for (int i = 0; i < 4; i++) all[all.size() - 6 + size_t(i)] = static_cast<char>(at >> 8 * i);
    CHECK_THAT(walked(all), Contains("expected the directory where the last data end"));
}

TEST_CASE("A member of more than 4 GiB has its numbers in ZIP64's fields", "[zip]") {
    // In memory that is never touched but for the headers: 5 GiB of zeros.
    const uint64_t big = (uint64_t{5} << 30) + 7;
    const auto header = [&](uint64_t size, uint64_t at) {
        std::string text = "PK\3\4", extra;
        for (const int word : {45, 0, 0, 0, 0x21}) put_number(text, static_cast<uint16_t>(word));
        put_number(text, uint32_t{0});
        put_number(text, uint32_t{0xffffffff}), put_number(text, uint32_t{0xffffffff});
        put_number(extra, uint16_t{1}), put_number(extra, uint16_t{16}), put_number(extra, size), put_number(extra, size);
        extra += alignment_extra(at + 30 + 3 + extra.size());
        put_number(text, uint16_t{3}), put_number(text, static_cast<uint16_t>(extra.size()));
        return text + "big" + extra;
    };
    const auto end_of = [&](uint64_t size, uint64_t offset_of_last, uint64_t directory, uint64_t count) {
        std::string all, extra;
        put_number(extra, uint16_t{1}), put_number(extra, uint16_t{16}), put_number(extra, size), put_number(extra, size);
        all += "PK\1\2";
        for (const int word : {0x031e, 45, 0, 0, 0, 0x21}) put_number(all, static_cast<uint16_t>(word));
        put_number(all, uint32_t{0}), put_number(all, uint32_t{0xffffffff}), put_number(all, uint32_t{0xffffffff});
        put_number(all, uint16_t{3}), put_number(all, static_cast<uint16_t>(extra.size()));
        for (int i = 0; i < 3; i++) put_number(all, uint16_t{0});
        put_number(all, uint32_t{0x81a40000}), put_number(all, uint32_t{0});
        all += "big" + extra;
        extra.clear();
        put_number(extra, uint16_t{1}), put_number(extra, uint16_t{8}), put_number(extra, offset_of_last);
        all += "PK\1\2";
        for (const int word : {0x031e, 45, 0, 0, 0, 0x21}) put_number(all, static_cast<uint16_t>(word));
        put_number(all, tess_zip_crc("abc", 3)), put_number(all, uint32_t{3}), put_number(all, uint32_t{3});
        put_number(all, uint16_t{1}), put_number(all, static_cast<uint16_t>(extra.size()));
        for (int i = 0; i < 3; i++) put_number(all, uint16_t{0});
        put_number(all, uint32_t{0x81a40000}), put_number(all, uint32_t{0xffffffff});
        all += "z" + extra;
        const uint64_t bytes = all.size();
        all += "PK\6\6";
        put_number(all, uint64_t{44}), put_number(all, uint16_t{0x031e}), put_number(all, uint16_t{45});
        put_number(all, uint32_t{0}), put_number(all, uint32_t{0}), put_number(all, count), put_number(all, count);
        put_number(all, bytes), put_number(all, directory);
        all += "PK\6\7";
        put_number(all, uint32_t{0}), put_number(all, directory + bytes), put_number(all, uint32_t{1});
        return all + directory_end(count, bytes, 0xffffffff);
    };
    const std::string first = header(big, 0);
    const uint64_t second_at = first.size() + big;
    ZipEntry last{"z", "abc", second_at, 0};
    const std::string second = local_header(last, second_at) + last.bytes;
    const uint64_t directory = second_at + second.size();
    const std::string sound = end_of(big, second_at, directory, 2);
    const uint64_t size = directory + sound.size();
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    char *file = static_cast<char *>(memory);
    std::memcpy(file, first.data(), first.size());
    std::memcpy(file + second_at, second.data(), second.size());
    const auto with_end = [&](const std::string &end) {
        std::memcpy(file + directory, end.data(), end.size());
        return walked(file, directory + end.size());
    };
    CHECK(with_end(sound) == "big z ");
    CHECK_THAT(with_end(end_of(big + 1, second_at, directory, 2)), Contains("bundle: expected "));
    CHECK_THAT(with_end(end_of(big, second_at + 64, directory, 2)), Contains("begins where the data before it end"));
    CHECK_THAT(with_end(end_of(~uint64_t{0} - 100, second_at, directory, 2)), Contains("bundle: expected "));
    CHECK_THAT(with_end(end_of(big, 5, directory, 2)), Contains("expected ZIP64's numbers where they are needed and nowhere else"));
    CHECK_THAT(with_end(end_of(big, second_at, directory + 1, 2)), Contains("bundle: expected "));
    CHECK_THAT(with_end(end_of(big, second_at, directory, uint64_t{1} << 40)), Contains("bundle: expected "));
    munmap(memory, size);
}

TEST_CASE("More members than 16 bits count are counted by ZIP64", "[zip]") {
    std::string all, directory;
    const uint32_t count = 70000;
    for (uint32_t i = 0; i < count; i++) {
        ZipEntry entry{std::to_string(i), "", all.size(), 0};
        all += local_header(entry, all.size());
        directory += directory_entry(entry);
    }
    const uint64_t at = all.size(), bytes = directory.size();
    all += directory + "PK\6\6";
    put_number(all, uint64_t{44}), put_number(all, uint16_t{0x031e}), put_number(all, uint16_t{45}), put_number(all, uint64_t{0});
    put_number(all, uint64_t{count}), put_number(all, uint64_t{count}), put_number(all, bytes), put_number(all, at);
    all += "PK\6\7";
    put_number(all, uint32_t{0}), put_number(all, at + bytes), put_number(all, uint32_t{1});
    all += directory_end(0xffff, bytes, at);
    CHECK_THAT(walked(all), Contains("0 1 2 3 4 "));
}

}  // namespace tessera::test_zip
