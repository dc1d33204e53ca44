/// Bundles as bytes, with whatever is wrong in them that a test wants.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/zip.h"
#include "runtime/crypto/ed25519_sign.h"
#include "support/text/sha256.h"

namespace tessera::test {

template <typename T>
void put_number(std::string &bytes, T value) {
    for (size_t i = 0; i < sizeof value; i++) bytes += static_cast<char>(static_cast<uint64_t>(value) >> 8 * i);
}

/// A member and its entry in the directory.
struct ZipEntry {
    std::string path, bytes;
    uint64_t header = 0, offset = 0;
};

inline std::string alignment_extra(uint64_t at) {
    const uint64_t padding = (64 - (at + 6) % 64) % 64;
    std::string extra;
    put_number(extra, uint16_t{0xd935}), put_number(extra, static_cast<uint16_t>(2 + padding)), put_number(extra, uint16_t{64});
    return extra + std::string(padding, '\0');
}

inline std::string local_header(const ZipEntry &entry, uint64_t at) {
    std::string header = "PK\3\4";
    for (const int word : {10, 0, 0, 0, 0x21}) put_number(header, static_cast<uint16_t>(word));
    put_number(header, tess_zip_crc(entry.bytes.data(), entry.bytes.size()));
    put_number(header, static_cast<uint32_t>(entry.bytes.size())), put_number(header, static_cast<uint32_t>(entry.bytes.size()));
    const std::string extra = alignment_extra(at + 30 + entry.path.size());
    put_number(header, static_cast<uint16_t>(entry.path.size())), put_number(header, static_cast<uint16_t>(extra.size()));
    return header + entry.path + extra;
}

inline std::string directory_entry(const ZipEntry &entry) {
    std::string header = "PK\1\2";
    for (const int word : {0x031e, 10, 0, 0, 0, 0x21}) put_number(header, static_cast<uint16_t>(word));
    put_number(header, tess_zip_crc(entry.bytes.data(), entry.bytes.size()));
    put_number(header, static_cast<uint32_t>(entry.bytes.size())), put_number(header, static_cast<uint32_t>(entry.bytes.size()));
    for (const size_t word : {entry.path.size(), size_t{0}, size_t{0}, size_t{0}, size_t{0}})
        put_number(header, static_cast<uint16_t>(word));
    put_number(header, uint32_t{0x81a40000}), put_number(header, static_cast<uint32_t>(entry.header));
    return header + entry.path;
}

inline std::string directory_end(size_t members, uint64_t bytes, uint64_t at) {
    std::string end = "PK\5\6";
    for (const size_t word : {size_t{0}, size_t{0}, members, members}) put_number(end, static_cast<uint16_t>(word));
    put_number(end, static_cast<uint32_t>(bytes)), put_number(end, static_cast<uint32_t>(at)), put_number(end, uint16_t{0});
    return end;
}

/// A zip of these members, in this order; says where each is.
inline std::string zip_bytes(std::vector<ZipEntry> &entries) {
    std::string all, directory;
    for (ZipEntry &entry : entries) {
        entry.header = all.size();
        all += local_header(entry, all.size());
        entry.offset = all.size();
        all += entry.bytes;
    }
    for (const ZipEntry &entry : entries) directory += directory_entry(entry);
    return all + directory + directory_end(entries.size(), directory.size(), all.size());
}

/// What a bundle is written from. The manifest's members, tensors' offsets and the end follow from what there is.
struct WrittenBundle {
    nlohmann::ordered_json manifest;
    std::vector<ZipEntry> members;                                         // without manifest.json and signature
    std::vector<uint64_t> tensor_offsets;                                  // in weights.safetensors
    std::function<void(nlohmann::ordered_json &)> change = [](auto &) {};  // the last word on the manifest
    std::function<std::string(const std::string &)> sign = {};             // the member `signature` of a manifest

    std::string bytes() const {
        std::vector<ZipEntry> entries = {{"manifest.json", "", 0, 0}};
        entries.insert(entries.end(), members.begin(), members.end());
        if (sign) entries.push_back({"signature", "", 0, 0});
        std::string all;
        for (int i = 0; i < 4; i++) {  // until no number has another number of digits
            all = zip_bytes(entries);
            nlohmann::ordered_json document = manifest;
            document["members"] = nlohmann::ordered_json::array();
            uint64_t end = entries[0].offset + entries[0].bytes.size();
            for (size_t m = 1; m <= members.size(); m++) {
                const ZipEntry &entry = entries[m];
                document["members"].push_back(
                    {{"path", entry.path}, {"offset", entry.offset}, {"bytes", entry.bytes.size()}, {"sha256", sha256(entry.bytes)}});
                end = entry.offset + entry.bytes.size();
                if (entry.path == "weights.safetensors")
                    for (size_t t = 0; t < tensor_offsets.size(); t++) document["tensors"][t]["offset"] = entry.offset + tensor_offsets[t];
            }
            document["end"] = end;
            change(document);
            entries[0].bytes = document.dump(1);
            if (sign) entries.back().bytes = sign(entries[0].bytes);
        }
        return zip_bytes(entries);
    }
};

inline std::string bytes_of_file(const char *path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Bytes aligned to 64 in memory of just their size, which a sanitizer watches.
class AlignedBytes {
public:
    explicit AlignedBytes(const std::string &bytes) : size_(bytes.size()) {
        if (posix_memalign(&memory_, 64, bytes.empty() ? 1 : bytes.size()) != 0) std::abort();
        std::memcpy(memory_, bytes.data(), bytes.size());
    }
    AlignedBytes(const AlignedBytes &) = delete;
    AlignedBytes &operator=(const AlignedBytes &) = delete;
    ~AlignedBytes() { std::free(memory_); }
    void *data() const { return memory_; }
    uint64_t size() const { return size_; }

private:
    void *memory_ = nullptr;
    uint64_t size_;
};

/// A bundle that is open, and how it went.
struct OpenBundle {
    AlignedBytes file;
    TessBundleError error{};
    uint64_t needed = 0;
    std::vector<uint64_t> memory;  // aligned to 8, of just the size that is enough
    TessBundle *bundle = nullptr;
    int32_t status;

    explicit OpenBundle(const std::string &bytes, const TessBundleOptions *options = nullptr, uint64_t less = 0) : file(bytes) {
        status = tess_bundle_read_bytes(file.data(), file.size(), &needed, &error);
        if (status != TESS_OK) return;
        memory.resize(needed / 8);
        status = tess_bundle_read(file.data(), file.size(), options, memory.data(), needed / 8 * 8 - less, &bundle, &error);
    }
    OpenBundle(const OpenBundle &) = delete;
    OpenBundle &operator=(const OpenBundle &) = delete;
    ~OpenBundle() { tess_bundle_close(bundle); }

    std::string said() const { return status == TESS_OK ? "opened" : std::string(tess_status_kind(status)) + ": " + error.text; }
};

/// Two tensors in the layout of safetensors: "a" of f32 [2, 3], "b" of i8 [5].
inline const std::string weights_header =
    R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"I8","shape":[5],"data_offsets":[24,29]}})";

/// A sound one: kernels `toy` and `other` of libraries for three targets, of which the second and the third run here; two tensors, one of
/// them packed too.
inline WrittenBundle sound_bundle() {
    WrittenBundle b;
    std::string weights, numbers;
    std::string header = weights_header;
    header.resize((header.size() + 7) / 8 * 8, ' ');
    put_number(weights, static_cast<uint64_t>(header.size()));
    weights += header;
    b.tensor_offsets = {weights.size(), weights.size() + 24};
    for (const float value : {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        put_number(weights, bits);
    }
    weights += std::string("\1\2\3\4\5");
#if defined(__aarch64__)
    const char *const here = "arm64", *const elsewhere = "avx2";
#else
    const char *const here = "x86-64", *const elsewhere = "asimddp";
#endif
    b.members = {{"programs/toy.json", "{}", 0, 0},
                 {"schedules/toy/base.json", "{}", 0, 0},
                 {"code/base/libtoy.a", bytes_of_file(TESSERA_BUNDLE_LIBRARY_2), 0, 0},
                 {"code/base/toy.manifest.json", "{}", 0, 0},
                 {"code/never/libtoy.a", bytes_of_file(TESSERA_BUNDLE_LIBRARY_1), 0, 0},
                 {"code/never/toy.manifest.json", "{}", 0, 0},
                 {"include/base/toy.h", "", 0, 0},
                 {"include/never/toy.h", "", 0, 0},
                 {"weights.safetensors", weights, 0, 0},
                 {"packed/0123456789abcdef/0", "TESSPACK" + std::string(152, '\0'), 0, 0},
                 {"licences/LICENSE", "text", 0, 0},
                 {"assets/words.txt", "a b", 0, 0}};
    const auto library = [](const char *target) {
        const std::string folder = std::string("/") + target + "/";
        return nlohmann::ordered_json{{"name", "toy"},
                                      {"module", false},
                                      {"targets", {target}},
                                      {"archive", "code" + folder + "libtoy.a"},
                                      {"header", "include" + folder + "toy.h"},
                                      {"manifest", "code" + folder + "toy.manifest.json"}};
    };
    const auto code = [](const char *target, int number) {
        return nlohmann::ordered_json{{"target", target},
                                      {"library", number},
                                      {"bits", sha256(target)},
                                      {"schedule", std::string("toy/") + target},
                                      {"packed", nlohmann::ordered_json::array()}};
    };
    const auto kernel = [&](const char *name) {
        return nlohmann::ordered_json{
            {"name", name},
            {"algorithm", {{"name", "toy"}, {"semantic", sha256("a")}, {"surface", sha256("b")}}},
            {"numerics", "f32"},
            {"program", "programs/toy.json"},
            {"options", nlohmann::ordered_json::object()},
            {"fixed", {{"N", 4}}},
            {"arguments", {{{"name", "y"}, {"role", "output"}, {"dtype", "f32"}, {"dims", nlohmann::ordered_json::array()}}}},
            {"parameters", nlohmann::ordered_json::array()},
            {"code", {code("never", 0), code("base", 1)}},
            {"weights", {{{"argument", "w"}, {"tensor", 0}}, {{"argument", "v"}, {"tensor", 1}}}}};
    };
    b.manifest = {{"format", "tessera-bundle"},
                  {"version", 1},
                  {"tessera", "0.1.0"},
                  {"halide", "21.0.0"},
                  {"name", "sound"},
                  {"targets",
                   {{{"name", "never"}, {"arch", here}, {"features", {elsewhere}}},
                    {{"name", "base"}, {"arch", here}, {"features", nlohmann::ordered_json::array()}},
                    {{"name", "far"}, {"arch", "wasm32"}, {"features", nlohmann::ordered_json::array()}}}},
                  {"libraries", {library("never"), library("base")}},
                  {"kernels", {kernel("toy"), kernel("other"), kernel("far")}},
                  {"tensors",
                   {{{"name", "a"}, {"type", "F32"}, {"dims", {2, 3}}, {"offset", 0}, {"bytes", 24}},
                    {{"name", "b"}, {"type", "I8"}, {"dims", {5}}, {"offset", 0}, {"bytes", 5}}}},
                  {"packed", {{{"tensor", 0}, {"layout", "0x0123456789abcdef"}, {"member", "packed/0123456789abcdef/0"}}}},
                  {"licences", {{{"name", "tessera_runtime"}, {"licence", "Apache-2.0"}, {"member", "licences/LICENSE"}}}}};
    auto &kernels = b.manifest["kernels"];
    kernels[1]["code"][1]["packed"] = {{{"argument", "w"}, {"layout", "0x0123456789abcdef"}, {"function", "other_pack_w"}},
                                       {{"argument", "v"}, {"layout", "0x1111111111111111"}, {"function", "other_pack_v"}}};
    kernels[2]["code"] = {code("far", 0)};
    return b;
}

/// Signs as `bundle make --key` does.
inline std::function<std::string(const std::string &)> signer(const std::string &secret, const std::string &key_name) {
    return [=](const std::string &manifest) {
        const auto *key = reinterpret_cast<const unsigned char *>(secret.data());
        unsigned char public_key[32], signature[64];
        tess_ed25519_public_key(key, public_key);
        tess_ed25519_sign(key, manifest.data(), manifest.size(), signature);
        const auto hex = [](const unsigned char *bytes, size_t size) {
            std::string text;
            for (size_t i = 0; i < size; i++)
                for (const int shift : {4, 0}) text += "0123456789abcdef"[bytes[i] >> shift & 15];
            return text;
        };
        return R"({"format":"tessera-signature","version":1,"algorithm":"ed25519","key":")" + key_name + R"(","public":")" +
               hex(public_key, 32) + R"(","signature":")" + hex(signature, 64) + "\"}\n";
    };
}

}  // namespace tessera::test
