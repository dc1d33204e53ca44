/// Hashes and signatures: published vectors, and what must be refused.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/crypto/ed25519_sign.h"
#include "runtime/crypto/sha256.h"
#include "runtime/crypto/sha512.h"

namespace tessera::test_crypto {

namespace {

std::string hex(const unsigned char *bytes, size_t size) {
    std::string text;
    for (size_t i = 0; i < size; i++)
        for (const int shift : {4, 0}) text += "0123456789abcdef"[bytes[i] >> shift & 15];
    return text;
}

std::vector<unsigned char> from_hex(const std::string &text) {
    std::vector<unsigned char> bytes(text.size() / 2);
    for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    return bytes;
}

std::string sha512(const std::vector<std::string> &parts) {
    TessSha512 sha;
    unsigned char hash[TESS_SHA512_BYTES];
    tess_sha512_begin(&sha);
    for (const std::string &part : parts) tess_sha512_add(&sha, part.data(), part.size());
    tess_sha512_end(&sha, hash);
    return hex(hash, sizeof hash);
}

using Bytes = std::vector<unsigned char>;

bool verifies(const Bytes &signature, const Bytes &message, const Bytes &key) {
    REQUIRE(signature.size() == TESS_ED25519_SIGNATURE_BYTES);
    REQUIRE(key.size() == TESS_ED25519_KEY_BYTES);
    return tess_ed25519_verify(signature.data(), message.data(), message.size(), key.data()) == 1;
}

Bytes public_key(const Bytes &secret) {
    Bytes key(TESS_ED25519_KEY_BYTES);
    tess_ed25519_public_key(secret.data(), key.data());
    return key;
}

Bytes signature_of(const Bytes &secret, const Bytes &message) {
    Bytes signature(TESS_ED25519_SIGNATURE_BYTES);
    tess_ed25519_sign(secret.data(), message.data(), message.size(), signature.data());
    return signature;
}

struct Vector {
    std::string secret, key, message, signature;
};

// RFC 8032, section 7.1.
const std::vector<Vector> vectors = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
     "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
     "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
     "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42", "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704"},
};

}  // namespace

TEST_CASE("SHA-256 is the same at every length, by instructions and without, whole and in parts") {
    std::string bytes(3000, '\0');
    std::mt19937 random(1);
    for (char &c : bytes) c = static_cast<char>(random());
    for (size_t size = 0; size < bytes.size(); size += size < 300 ? 1 : 97) {
        unsigned char fast[TESS_SHA256_BYTES], plain[TESS_SHA256_BYTES];
        tess_sha256(bytes.data() + size % 3, size - size % 3, fast);
        tess_sha256_plain(bytes.data() + size % 3, size - size % 3, plain);
        REQUIRE(std::memcmp(fast, plain, sizeof fast) == 0);
        TessSha256 sha;
        tess_sha256_begin(&sha);
        for (size_t at = size % 3, part = 0; at < size; at += part) {
            part = std::min<size_t>(random() % 150, size - at);
            tess_sha256_add(&sha, bytes.data() + at, part);
        }
        tess_sha256_end(&sha, plain);
        REQUIRE(std::memcmp(fast, plain, sizeof fast) == 0);
    }
    unsigned char hash[TESS_SHA256_BYTES];
    tess_sha256(nullptr, 0, hash);
    CHECK(hex(hash, sizeof hash) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    tess_sha256("abc", 3, hash);
    CHECK(hex(hash, sizeof hash) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("SHA-512 has the hashes of FIPS 180-4, in whatever parts a message comes") {
    CHECK(sha512({"abc"}) == vectors[3].message);
    const std::string long_one =
        "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";
    const std::string hash =
        "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909";
    CHECK(sha512({long_one}) == hash);
    CHECK(sha512({"", long_one.substr(0, 1), long_one.substr(1, 63), long_one.substr(64)}) == hash);
    const std::string million(1000, 'a');
    CHECK(
        sha512(std::vector<std::string>(1000, million)) ==
        "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973ebde0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b");
}

TEST_CASE("Ed25519 signs and verifies as RFC 8032 says") {
    for (const Vector &v : vectors) {
        const Bytes secret = from_hex(v.secret), message = from_hex(v.message), key = from_hex(v.key);
        CHECK(public_key(secret) == key);
        CHECK(signature_of(secret, message) == from_hex(v.signature));
        CHECK(verifies(from_hex(v.signature), message, key));
    }
}

TEST_CASE("Ed25519 refuses a signature, message or key of which one bit differs") {
    const Bytes secret(32, 7), key = public_key(secret), message = {1, 2, 3, 4, 5};
    const Bytes signature = signature_of(secret, message);
    REQUIRE(verifies(signature, message, key));
    CHECK_FALSE(verifies(signature, {1, 2, 3, 4}, key));
    CHECK_FALSE(verifies(signature, {1, 2, 3, 4, 5, 0}, key));
    const auto flipped = [](Bytes bytes, size_t bit) {
        bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        return bytes;
    };
    for (size_t bit = 0; bit < 8 * signature.size(); bit += 3) REQUIRE_FALSE(verifies(flipped(signature, bit), message, key));
    for (size_t bit = 0; bit < 8 * message.size(); bit++) REQUIRE_FALSE(verifies(signature, flipped(message, bit), key));
    for (size_t bit = 0; bit < 8 * key.size(); bit += 3) REQUIRE_FALSE(verifies(signature, message, flipped(key, bit)));
}

TEST_CASE("Ed25519 refuses S that is not below the order") {
    const Bytes order = from_hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    const Bytes secret(32, 9), key = public_key(secret), message = {1};
    Bytes signature = signature_of(secret, message);
    unsigned carry = 0;
    for (size_t i = 0; i < 32; i++) {
        carry += unsigned(signature[32 + i]) + order[i];
        signature[32 + i] = static_cast<unsigned char>(carry);
        carry >>= 8;
    }
    REQUIRE(carry == 0);  // the same number modulo the order
    CHECK_FALSE(verifies(signature, message, key));
    for (const unsigned char byte : {0x80, 0xff}) {
        signature[63] |= byte;
        CHECK_FALSE(verifies(signature, message, key));
    }
}

TEST_CASE("Ed25519 refuses keys of small order, and those that are no point or not in their right form") {
    // All encodings of the eight points, the last ones not below the modulus.
    const std::vector<std::string> small = {"0100000000000000000000000000000000000000000000000000000000000000",
                                            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                                            "0000000000000000000000000000000000000000000000000000000000000000",
                                            "0000000000000000000000000000000000000000000000000000000000000080",
                                            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
                                            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
                                            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
                                            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
                                            "0100000000000000000000000000000000000000000000000000000000000080",
                                            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                                            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                                            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                                            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                                            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                                            "0200000000000000000000000000000000000000000000000000000000000000"};
    const Bytes secret(32, 3), good = public_key(secret);
    for (const std::string &key : small)
        for (const std::string &r : small) {
            // With S = 0, R = -k A: for a key of small order one of the eight always fits.
            Bytes signature = from_hex(r);
            signature.resize(64);
            for (unsigned char message = 0; message < 4; message++) {
                REQUIRE_FALSE(verifies(signature, {message}, from_hex(key)));
                REQUIRE_FALSE(verifies(signature, {message}, good));
            }
        }
}

}  // namespace tessera::test_crypto
