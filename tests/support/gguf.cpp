#include "support/files/gguf.h"

#include <catch2/catch.hpp>

#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/shell.h"

namespace tessera::test_gguf {

using namespace tessera::test;

static std::string refusal(const std::string &content) {
    try {
        Gguf(content, "model");
    } catch (const UserError &error) { return error.what(); }
    return "";
}

static const GgufEntry two_by_three = {"w", 0, {3, 2}, "abcdefghijklmnopqrstuvwx"};

TEST_CASE("gguf: tensors are read with their extents outermost first") {
    GgufParts parts;
    parts.values = {gguf_text("general.architecture") + little_endian(8, 4) + gguf_text("none"),
                    gguf_text("list") + little_endian(9, 4) + little_endian(8, 4) + little_endian(2, 8) + gguf_text("a") + gguf_text("bc"),
                    gguf_text("lists") + little_endian(9, 4) + little_endian(9, 4) + little_endian(1, 8) + little_endian(4, 4) +
                        little_endian(2, 8) + little_endian(7, 4) + little_endian(8, 4),
                    gguf_text("general.alignment") + little_endian(4, 4) + little_endian(64, 4)};
    parts.alignment = 64;
    parts.tensors = {two_by_three,
                     {"blk.0.q", 8, {32, 1}, std::string(34, 'q')},
                     {"empty", 0, {0, 5}, ""},
                     {"one", 24, {}, "o"},
                     {"größe", 30, {2}, "half"}};
    for (const uint32_t version : {2u, 3u}) {
        parts.version = version;
        const Gguf read(parts.text(), "model");
        REQUIRE(read.tensors().size() == 5);
        const std::vector<std::string> names = {"blk.0.q", "empty", "größe", "one", "w"};
        for (size_t i = 0; i < names.size(); i++) CHECK(read.tensors()[i].name == names[i]);
        CHECK(read.tensors()[0].type->name == std::string("Q8_0"));
        CHECK(read.tensors()[0].bytes == std::string(34, 'q'));
        CHECK(read.tensors()[1].extents == std::vector<int64_t>{5, 0});
        CHECK(read.tensors()[1].bytes.empty());
        CHECK(read.tensors()[3].extents.empty());
        CHECK(read.tensors()[4].extents == std::vector<int64_t>{2, 3});
        CHECK(read.tensors()[4].bytes == two_by_three.bytes);
    }
    const TemporaryFolder folder;
    write_file(folder.path() / "m.gguf", parts.text());
    CHECK(Gguf(folder.path() / "m.gguf").tensors().size() == 5);
    CHECK(refusal(GgufParts().text()) == "");
}

TEST_CASE("gguf: every file that is cut short is refused") {
    GgufParts parts;
    parts.values = {gguf_text("k") + little_endian(8, 4) + gguf_text("text")};
    parts.tensors = {two_by_three, {"q", 2, {32}, std::string(18, 'q')}};
    const std::string whole = parts.text();
    // Behind the last tensor there is nothing but padding.
    for (size_t size = 0; size < whole.size() - 14; size++) {
        INFO(size);
        CHECK_THAT(refusal(whole.substr(0, size)), Catch::StartsWith("error[gguf."));
    }
    // With any byte another, it is read or refused in words.
    for (size_t i = 0; i < whole.size() - 64; i++)
        for (const int change : {1, 0x40, 0xff}) {
            std::string other = whole;
            other[i] = static_cast<char>(other[i] ^ change);
            const std::string words = refusal(other);
            CHECK((words.empty() || words.starts_with("error[gguf.")));
        }
}

TEST_CASE("gguf: what cannot be is refused in words") {
    const auto with = [](const GgufEntry &entry) { return GgufParts{.tensors = {entry}}.text(); };
    const auto value = [](const std::string &rest) { return GgufParts{.values = {rest}}.text(); };
    const std::string head = "GGUF" + little_endian(3, 4);
    std::string deep = gguf_text("k") + little_endian(9, 4);
    for (int i = 0; i < 100; i++) deep += little_endian(9, 4) + little_endian(1, 8);
    const struct {
        std::string content, id, words;
    } cases[] = {
        {"GGML" + std::string(40, '\0'), "gguf.format", "expected the bytes GGUF"},
        {GgufParts{.version = 1}.text(), "gguf.format", "expected version 2 or 3 of the format, got 1"},
        {GgufParts{.version = 0x03000000}.text(), "gguf.format", "it is big-endian"},
        {head + little_endian(uint64_t{1} << 40, 8) + little_endian(0, 8), "gguf.value", "expected at most 1048576 tensors"},
        {head + little_endian(1000, 8) + little_endian(0, 8), "gguf.cut", "it should have 1000 tensors"},
        {head + little_endian(0, 8) + little_endian(UINT64_MAX, 8), "gguf.value", "values"},
        {value(little_endian(UINT64_MAX, 8) + "key"), "gguf.name", "of at most 65535 bytes"},
        {value(gguf_text("k") + little_endian(13, 4) + little_endian(0, 8)), "gguf.value", "expected one of the types 0 to 12, got 13"},
        {value(gguf_text("k") + little_endian(8, 4) + little_endian(UINT64_MAX, 8)), "gguf.cut", "value 'k'"},
        {value(gguf_text("k") + little_endian(9, 4) + little_endian(4, 4) + little_endian(uint64_t{1} << 62, 8)), "gguf.cut", "list 'k'"},
        {value(deep), "gguf.value", "lists within each other"},
        {value(gguf_text("general.alignment") + little_endian(4, 4) + little_endian(0, 4) + "pad"), "gguf.value", "power of two"},
        {value(gguf_text("general.alignment") + little_endian(4, 4) + little_endian(33, 4) + "pad"), "gguf.value", "power of two"},
        {value(gguf_text("general.alignment") + little_endian(8, 4) + gguf_text("32")), "gguf.value", "power of two"},
        {value(gguf_text("") + little_endian(4, 4) + little_endian(0, 4) + "padding"), "gguf.name", "a value's key"},
        {GgufParts{.values = {gguf_text("k") + little_endian(7, 4) + "\1", gguf_text("k") + little_endian(7, 4) + "\1"}}.text(),
         "gguf.name", "expected each name once"},
        {with({"a\x1b[2J", 0, {1}, "abcd"}), "gguf.name", "printable characters"},
        {with({"\xff\xfe", 0, {1}, "abcd"}), "gguf.name", "printable characters"},
        {with({std::string(2000, 'n'), 0, {1}, "abcd"}), "gguf.name", "of at most 1024 bytes"},
        {GgufParts{.tensors = {two_by_three, two_by_three}}.text(), "gguf.name", "tensor's name 'w' again"},
        {with({"w", 0, {1, 1, 1, 1, 1}, "abcd"}), "gguf.shape", "expected at most 4 axes, got 5"},
        {with({"w", 0, {UINT64_MAX}, "abcd"}), "gguf.shape", "2^63 - 1"},
        {with({"w", 0, {uint64_t{1} << 40, uint64_t{1} << 40}, "abcd"}), "gguf.shape", "more bytes than fit in 64 bits"},
        {with({"w", 4, {32}, std::string(20, 'x')}), "gguf.type", "there is no element type 4"},
        {with({"w", 0xffffffff, {32}, std::string(20, 'x')}), "gguf.type", "there is no element type"},
        {with({"w", 2, {33}, std::string(36, 'x')}), "gguf.shape", "Q4_0[33]: expected rows of a multiple of 32"},
        {with({"w", 2, {}, std::string(36, 'x')}), "gguf.shape", "multiple of 32"},
        {with({"w", 0, {1000}, "abcd"}), "gguf.cut", "tensor 'w' should have 4000 bytes"},
        {GgufParts{.tensors = {two_by_three}, .offsets = {4}}.text(), "gguf.offset", "expected a multiple of 32 for its offset, got 4"},
        {GgufParts{.tensors = {two_by_three}, .offsets = {UINT64_MAX - 31}}.text(), "gguf.cut", "tensor 'w' should have"},
        {GgufParts{.tensors = {two_by_three, {"v", 0, {3, 2}, two_by_three.bytes}}, .offsets = {0, 0}}.text(), "gguf.offset",
         "have bytes in common"},
    };
    for (const auto &[content, id, words] : cases) {
        INFO(words);
        CHECK_THAT(refusal(content), Catch::StartsWith("error[" + id + "]: GGUF file 'model': ") && Catch::Contains(words));
    }
    CHECK_THROWS_WITH(Gguf("/nowhere/x"), Catch::Contains("error[gguf.file]"));
}

}  // namespace tessera::test_gguf
