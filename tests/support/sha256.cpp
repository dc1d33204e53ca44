#include "support/text/sha256.h"

#include <catch2/catch.hpp>

namespace tessera::test_sha256 {

TEST_CASE("the examples of FIPS 180-4 have their hashes", "[support]") {
    CHECK(sha256("") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256(std::string(1'000'000, 'a')) == "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// From 0 to 299 bytes, so that the padding ends in every place of a block; the expected one is by Python's hashlib.
TEST_CASE("bytes of every length have their hashes", "[support]") {
    std::string bytes, all;
    for (int length = 0; length < 300; length++) {
        all += sha256(bytes);
        bytes += static_cast<char>(length * 7 % 251);
    }
    CHECK(sha256(all) == "sha256:ce13b8759bab18233695d311ebad2a6ae135a3cdbf96ae362aa210f27affbe20");
}

TEST_CASE("bytes that come in parts have the hash of the whole", "[support]") {
    std::string bytes;
    for (int i = 0; i < 500; i++) bytes += static_cast<char>(i * 7 % 251);
    for (size_t first : {0, 1, 63, 64, 65, 200, 500})
        for (size_t second : {0, 1, 62, 64, 300}) {
            Sha256 hash;
            hash.add(bytes.substr(0, first));
            hash.add(bytes.substr(first, second));
            CHECK(hash.text() == sha256(bytes.substr(0, first + second > 500 ? 500 : first + second)));
            hash.add(first + second < 500 ? bytes.substr(first + second) : "");
            CHECK(hash.text() == sha256(bytes));
        }
}

}  // namespace tessera::test_sha256
