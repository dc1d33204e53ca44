#include "support/files/safetensors.h"

#include <catch2/catch.hpp>

#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "tests/support/shell.h"

namespace tessera::test_safetensors {

using namespace tessera::test;

// A file with this header and so many bytes behind it.
static std::string file_of(const std::string &header, size_t bytes, uint64_t length) {
    std::string text(8, '\0');
    for (size_t i = 0; i < 8; i++) text[i] = static_cast<char>(length >> (8 * i));
    return text + header + std::string(bytes, 'x');
}
static std::string file_of(const std::string &header, size_t bytes) { return file_of(header, bytes, header.size()); }

static std::string refusal(const std::string &content) {
    try {
        Safetensors(content, "model");
    } catch (const UserError &error) { return error.what(); }
    return "";
}

TEST_CASE("safetensors: what is written is read") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "m.safetensors";
    const std::string six = "\x01\x02\x03\x04\x05\x06", eight = "abcdefgh";
    write_safetensors(file,
                      {{"b", "I8", {2, 3}, six},
                       {"name \"x\" größe", "F32", {2}, eight},
                       {"none", "F64", {0, 4}, ""},
                       {"scalar", "U16", {}, "hi"},
                       {"a", "F4", {4}, "zz"}},
                      {{"how", "by hand"}});
    const Safetensors read(file);
    REQUIRE(read.tensors().size() == 5);
    CHECK(read.tensors()[0].name == "a");
    CHECK(read.tensor("b").bytes == six);
    CHECK(read.tensor("b").extents == std::vector<int64_t>{2, 3});
    CHECK(read.tensor("name \"x\" größe").bytes == eight);
    CHECK(read.tensor("none").extents == std::vector<int64_t>{0, 4});
    CHECK(read.tensor("scalar").extents.empty());
    CHECK(read.metadata() == std::map<std::string, std::string>{{"how", "by hand"}});
    const std::string bytes = read_file(file);
    CHECK(static_cast<unsigned char>(bytes[0]) % 8 == 0);
    write_safetensors(folder.path() / "again", read.tensors(), read.metadata());
    CHECK(read_file(folder.path() / "again") == bytes);
    CHECK_THROWS_WITH(read.tensor("scaler"), Catch::Contains("error[safetensors.missing]") && Catch::Contains("Did you mean 'scalar'?"));
    CHECK_THROWS_WITH(write_safetensors(file, {{"b", "I8", {6}, six}, {"b", "I8", {6}, six}}, {}),
                      Catch::Contains("error[safetensors.repeated]"));
    CHECK(read_file(file) == bytes);
}

TEST_CASE("safetensors: broken files are refused in words") {
    const auto one = [](const std::string &dtype, const std::string &shape, const std::string &offsets) {
        return R"({"w":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}}";
    };
    CHECK(refusal(file_of(one("F32", "2", "0,8") + "   ", 8)) == "");
    CHECK(refusal(file_of(R"({})", 0)) == "");
    const struct {
        std::string content, id;
    } cases[] = {
        {"", "safetensors.cut"},
        {"short", "safetensors.cut"},
        {file_of("{}", 0, 3), "safetensors.cut"},
        {file_of("{}", 0, UINT64_MAX), "safetensors.cut"},
        {file_of("", 0), "safetensors.header"},
        {file_of(" {}", 0), "safetensors.header"},
        {file_of(std::string((size_t{16} << 20) + 1, ' '), 0), "safetensors.header"},
        {file_of("{\"w\":", 0), "json.syntax"},
        {file_of(one("F32", "2", "0,8").insert(1, R"("w":{"dtype":"F32","shape":[],"data_offsets":[8,12]},)"), 12), "json.repeated-key"},
        {file_of(R"({"w":[]})", 0), "json."},
        {file_of(R"({"w":{"dtype":"F32","shape":[2]}})", 8), "safetensors.field"},
        {file_of(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", 8), "json.unknown-field"},
        {file_of(R"({"__metadata__":{"a":1}})", 0), "safetensors.metadata"},
        {file_of(one("F33", "2", "0,8"), 8), "safetensors.type"},
        {file_of(one("F32", "-2", "0,8"), 8), "json.value"},
        {file_of(one("F32", "2.5", "0,8"), 8), "json.type"},
        {file_of(one("F32", "4611686018427387904,4", "0,8"), 8), "safetensors.shape"},
        {file_of(one("F32", "9223372036854775808", "0,8"), 8), "json.value"},
        {file_of(one("F4", "3", "0,2"), 2), "safetensors.shape"},
        {file_of(one("F32", "2", "0"), 8), "safetensors.offsets"},
        {file_of(one("F32", "2", "8,0"), 8), "safetensors.offsets"},
        {file_of(one("F32", "2", "0,12"), 8), "safetensors.offsets"},
        {file_of(one("F32", "2", "0,18446744073709551615"), 8), "json."},
        {file_of(one("F32", "2", "0,4"), 8), "safetensors.offsets"},
        {file_of(one("F32", "2", "0,8"), 9), "safetensors.offsets"},
        {file_of(one("F32", "2", "1,9"), 9), "safetensors.offsets"},
        {file_of(one("F32", "2", "0,8").insert(1, R"("v":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"), 12), "safetensors.offsets"},
        {file_of(one("F32", "0,1000", "0,8"), 8), "safetensors.offsets"},
        {file_of(one("F32", "0,9223372036854775807", "0,0"), 0), "safetensors.shape"},
        {file_of(one("F32", "1099511627776,1099511627776,0", "0,0"), 0), "safetensors.shape"},
    };
    for (const auto &[content, id] : cases) {
        INFO(content.substr(0, 200));
        CHECK_THAT(refusal(content), Catch::StartsWith("error[" + id) || Catch::StartsWith("error[json.number"));
    }
    CHECK(refusal(file_of(one("F32", "2", "0,12"), 8)) ==
          "error[safetensors.offsets]: model: /w: expected bytes within the 8 of the file behind its header, got 0 to 12.");
    CHECK_THROWS_WITH(Safetensors("/nowhere/x"), Catch::Contains("error[safetensors.file]"));
    CHECK_THROWS_WITH(Safetensors("/dev/zero"), Catch::Contains("error[safetensors.file]"));
}

}  // namespace tessera::test_safetensors
