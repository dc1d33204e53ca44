#include "support/text/printable.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

namespace tessera::test_printable {

TEST_CASE("printable: letters of any script stay, what acts on a terminal is escaped") {
    for (const char *kept : {"", "plain ~ text", "größe … ≤ 行列 مصفوفة 🙂", "\\u001b"}) CHECK(printable(kept) == kept);
    CHECK(printable("\x1b[2J\x07\x7f") == "\\u001b[2J\\u0007\\u007f");
    CHECK(printable("a\u202eb\u2066\u200b\ufeff\u2028") == "a\\u202eb\\u2066\\u200b\\ufeff\\u2028");
    CHECK(printable("\u009b1m") == "\\u009b1m");  // one character that opens a sequence
    CHECK(printable("\U000e0041") == "\\U000e0041");
    CHECK(printable("a\n\tb") == "a\\u000a\\u0009b");
    CHECK(printable("a\n\tb\r", true) == "a\n\tb\\u000d");
    CHECK(printable(std::string("a\0b", 3)) == "a\\u0000b");
}

TEST_CASE("printable: bytes that are not UTF-8 are escaped one by one") {
    CHECK(printable("a\xff\xc3") == "a\\xff\\xc3");
    CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");           // an escape in two bytes where one will do
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a pair
    CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
    CHECK(printable("\xe2\x82") == "\\xe2\\x82");
    // Another reader of UTF-8 agrees on every text of two and three bytes that begins above ASCII.
    for (int a = 0x80; a < 0x100; a++)
        for (int b = 0; b < 0x100; b++)
            for (int c : {0x20, 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc0}) {
                const std::string text = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
                bool is_utf8 = true;
                try {
                    (void)nlohmann::json(text).dump();
                } catch (const nlohmann::json::exception &) { is_utf8 = false; }
                INFO(a << " " << b << " " << c);
                REQUIRE((printable(text).find("\\x") == std::string::npos) == is_utf8);
            }
}

}  // namespace tessera::test_printable
