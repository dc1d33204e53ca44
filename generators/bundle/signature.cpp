#include "generators/bundle/signature.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/crypto/ed25519.h"
#include "runtime/crypto/ed25519_sign.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

// RFC 8410: all that stands before the 32 bytes of a key.
constexpr std::string_view secret_head("\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20", 16);
constexpr std::string_view public_head("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr size_t signature_bytes = TESS_ED25519_SIGNATURE_BYTES;

// Nothing where it is no base64 of whole bytes.
std::optional<std::string> from_base64(std::string_view text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    uint32_t bits = 0;
    int count = 0;
    size_t padding = 0;
    for (char c : text) {
        if (c == '\n' || c == '\r') continue;
        const size_t digit = digits.find(c);
        if (c == '=') padding++;
        else if (digit == std::string_view::npos || padding) return {};
        else if (bits = bits << 6 | static_cast<uint32_t>(digit), count += 6; count >= 8)
            count -= 8, bytes += static_cast<char>(bits >> count);
    }
    return padding <= 2 ? std::optional(bytes) : std::nullopt;
}

KeyBytes read_key(const std::filesystem::path &file, const std::string &kind, std::string_view head, const char *remedy) {
    std::string text = read_regular(file, {"bundle", "key", "A key has a few lines.", 4096});
    const std::string begin = "-----BEGIN " + kind + "-----", end = "-----END " + kind + "-----";
    const size_t from = text.find(begin), to = text.find(end);
    std::optional<std::string> der;
    if (from != std::string::npos && to != std::string::npos && from + begin.size() <= to)
        der = from_base64(std::string_view(text).substr(from + begin.size(), to - from - begin.size()));
    KeyBytes key{};
    const bool is_key = der && der->size() == head.size() + key.size() && der->starts_with(head);
    if (is_key) std::memcpy(key.data(), der->data() + head.size(), key.size());
    // What was secret does not stay in memory.
    std::fill(text.begin(), text.end(), '\0');
    if (der) std::fill(der->begin(), der->end(), '\0');
    if (!is_key)
        throw UserError("bundle.key", "key '" + file.string() + "': expected an Ed25519 " + kind +
                                          " in PEM, got something else. Make one with '" + remedy + "'.");
    return key;
}

template <size_t Count>
std::array<unsigned char, Count> from_hexadecimal(const JsonReader &reader) {
    std::array<unsigned char, Count> bytes{};
    const std::string &text = reader.text();
    if (text.size() != 2 * Count || text.find_first_not_of("0123456789abcdef") != std::string::npos)
        reader.fail("bundle.signature", "expected " + std::to_string(2 * Count) + " lower-case hexadecimal digits.");
    for (size_t i = 0; i < Count; i++) bytes[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    return bytes;
}

bool is_key_name(const std::string &name) {
    return !name.empty() && name.size() <= 64 &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

std::string text_of(const std::string &key, const std::string &public_key, const std::string &signature) {
    const nlohmann::ordered_json document = {{"format", "tessera-signature"}, {"version", 1},
                                             {"algorithm", "ed25519"},        {"key", key},
                                             {"public", public_key},          {"signature", signature}};
    return json_text(document) + "\n";
}

}  // namespace

std::string hexadecimal(const unsigned char *bytes, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; i++) text += "0123456789abcdef"[bytes[i] >> 4], text += "0123456789abcdef"[bytes[i] & 15];
    return text;
}

KeyBytes read_secret_key(const std::filesystem::path &file) {
    return read_key(file, "PRIVATE KEY", secret_head, "openssl genpkey -algorithm ed25519 -out release.key");
}

KeyBytes read_public_key(const std::filesystem::path &file) {
    return read_key(file, "PUBLIC KEY", public_head, "openssl pkey -in release.key -pubout -out release.pub");
}

std::string signature_text(const std::string &manifest, const KeyBytes &secret, const std::string &key) {
    if (!is_key_name(key))
        throw UserError("bundle.key", "key '" + printable(key) +
                                          "': expected a name of 1 to 64 letters, digits, '.', '_' and '-'. Say one with --key-name.");
    KeyBytes public_key{};
    unsigned char signature[signature_bytes];
    tess_ed25519_public_key(secret.data(), public_key.data());
    tess_ed25519_sign(secret.data(), manifest.data(), manifest.size(), signature);
    return text_of(key, hexadecimal(public_key.data(), public_key.size()), hexadecimal(signature, signature_bytes));
}

Signature check_signature(const std::string &text, const std::string &manifest, const std::optional<KeyBytes> &wanted,
                          const std::string &subject) {
    const nlohmann::json document = parse_json(text, subject);
    const JsonReader all(document, subject);
    if (all.at("format").text() != "tessera-signature" || all.at("version").integer(0) != 1 || all.at("algorithm").text() != "ed25519")
        all.fail("bundle.signature",
                 "expected format tessera-signature, version 1 and algorithm ed25519, got another. Sign the bundle again.");
    all.only({"format", "version", "algorithm", "key", "public", "signature"});
    const std::string &key = all.at("key").text();
    if (!is_key_name(key)) all.at("key").fail("bundle.signature", "expected 1 to 64 letters, digits, '.', '_' and '-'.");
    const auto public_key = from_hexadecimal<32>(all.at("public"));
    const auto signature = from_hexadecimal<signature_bytes>(all.at("signature"));
    if (text_of(key, all.at("public").text(), all.at("signature").text()) != text)
        all.fail("bundle.signature", "expected one line, fields in their order, without blanks. Sign the bundle again.");
    if (wanted && *wanted != public_key)
        all.at("public").fail("bundle.signature", "it is signed by key '" + key + "', " + hexadecimal(public_key.data(), 32) +
                                                      ", and not by the one that is trusted, " + hexadecimal(wanted->data(), 32) + ".");
    if (!tess_ed25519_verify(signature.data(), manifest.data(), manifest.size(), public_key.data()))
        all.at("signature").fail("bundle.signature", "it is no signature of this manifest by that key: one of them was changed.");
    return {key, public_key};
}

}  // namespace tessera
