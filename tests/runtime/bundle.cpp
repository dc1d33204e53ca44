/// Bundles that are opened: kernels, tensors, members, keys, memory, threads.
#include "runtime/bundle/bundle.h"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "runtime/crypto/ed25519.h"
#include "tests/runtime/bundle_writer.h"

namespace tessera::test_bundle {

using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

// What the kernel writes, or the word of its status.
std::string result_of(const OpenBundle &open, const char *name, uint64_t features_off = 0) {
    TessKernel kernel = tess_kernel();
    TessBundleError error;
    int32_t status = tess_bundle_kernel(open.bundle, name, &kernel, &error);
    if (status != TESS_OK) return std::string(tess_status_kind(status)) + ": " + error.text;
    float y = 0;
    const TessTensor tensor = tess_dense(&y, TESS_F32, 0, nullptr), *tensors[] = {&tensor};
    TessContext context = tess_context();
    context.features_off = features_off;
    status = tess_call(&kernel, tensors, nullptr, &context);
    return status == TESS_OK ? std::to_string(int(y)) : tess_status_kind(status);
}

std::string weight_of(const OpenBundle &open, const char *kernel, const char *argument, TessTensor *tensor) {
    TessBundleError error;
    const int32_t status = tess_bundle_weight(open.bundle, kernel, argument, tensor, &error);
    return status == TESS_OK ? "ok" : std::string(tess_status_kind(status)) + ": " + error.text;
}

}  // namespace

TEST_CASE("A bundle gives the kernels whose code runs here", "[bundle]") {
    const OpenBundle open(sound_bundle().bytes());
    INFO(open.said());
    REQUIRE(open.status == TESS_OK);
    CHECK(result_of(open, "toy") == "2");
    CHECK_THAT(result_of(open, "other"),
               Contains("bundle-code: member 'code/base/libtoy.a': expected the kernel 'other' in it, got a library without"));
    CHECK_THAT(result_of(open, "far"),
               Contains("bundle-target: kernel 'far': expected code that this processor runs, got 3 targets of others"));
    CHECK_THAT(result_of(open, "none"),
               Contains("bundle-kernel: bundle 'sound': expected one of its 3 kernels ('far' is the first), got 'none'"));
    TessBundleInfo info{};
    info.size = sizeof info;
    REQUIRE(tess_bundle_info(open.bundle, &info) == TESS_OK);
    CHECK(std::string(info.name) == "sound");
    CHECK(info.kernels == 3);
    CHECK(info.tensors == 2);
    CHECK(info.replay == nullptr);
    REQUIRE(info.targets == 3);
    for (uint32_t t = 0; t < 3; t++) {
        TessBundleTargetInfo target{};
        target.size = sizeof target;
        REQUIRE(tess_bundle_target_info(open.bundle, t, &target) == TESS_OK);
        CHECK(std::string(target.name) == std::vector<std::string>{"never", "base", "far"}[t]);
        CHECK(target.runs_here == (t == 1));
        CHECK((target.cpu_features != 0) == (t == 0));
    }
    TessBundleKernelInfo kernel{};
    kernel.size = sizeof kernel;
    REQUIRE(tess_bundle_kernel_info(open.bundle, 0, &kernel) == TESS_OK);
    CHECK(std::string(kernel.name) == "toy");
    CHECK(std::string(kernel.algorithm) == "toy");
    CHECK(std::string(kernel.target) == "base");
    CHECK(std::string(kernel.bits) == sha256("base"));
    CHECK(std::string(kernel.schedule) == "toy/base");
    REQUIRE(tess_bundle_kernel_info(open.bundle, 2, &kernel) == TESS_OK);
    CHECK(kernel.target == nullptr);
    CHECK(tess_bundle_kernel_info(open.bundle, 3, &kernel) == TESS_NO_SUCH);
    kernel.size = 4;
    CHECK(tess_bundle_kernel_info(open.bundle, 0, &kernel) == TESS_STRUCT_SIZE);
    CHECK(std::string(tess_bundle_tensor_name(open.bundle, 1)) == "b");
    CHECK(tess_bundle_tensor_name(open.bundle, 2) == nullptr);
}

TEST_CASE("Code of which features are switched off is not chosen", "[bundle]") {
    const uint64_t all = tess_cpu_features();
    if (all == 0) return;
    int bit = 0;
    while ((all >> bit & 1) == 0) bit++;
    WrittenBundle written = sound_bundle();
    written.manifest["targets"][0]["features"] = {tess_cpu_feature_name(bit)};
    TessBundleOptions options = tess_bundle_options();
    const OpenBundle with(written.bytes(), &options);
    REQUIRE(with.status == TESS_OK);
    CHECK(result_of(with, "toy") == "1");
    options.features_off = UINT64_C(1) << bit;
    const OpenBundle without(written.bytes(), &options);
    REQUIRE(without.status == TESS_OK);
    CHECK(result_of(without, "toy") == "2");
}

TEST_CASE("Tensors of a bundle point into it", "[bundle]") {
    const OpenBundle open(sound_bundle().bytes());
    REQUIRE(open.status == TESS_OK);
    TessTensor tensor;
    REQUIRE(tess_bundle_tensor(open.bundle, "a", &tensor, nullptr) == TESS_OK);
    CHECK(tensor.rank == 2);
    CHECK((tensor.extents[0] == 2 && tensor.extents[1] == 3));
    CHECK((tensor.type.code == 2 && tensor.type.bits == 32 && tensor.type.lanes == 1));
    CHECK(tensor.strides == nullptr);
    const auto *begin = static_cast<const char *>(open.file.data()), *data = static_cast<const char *>(tensor.data);
    CHECK((data > begin && data < begin + open.file.size()));
    CHECK(static_cast<const float *>(tensor.data)[5] == 6.0F);
    REQUIRE(tess_bundle_tensor(open.bundle, "b", &tensor, nullptr) == TESS_OK);
    CHECK(static_cast<const int8_t *>(tensor.data)[4] == 5);
    TessBundleError error;
    CHECK(tess_bundle_tensor(open.bundle, "c", &tensor, &error) == TESS_BUNDLE_TENSOR);
    CHECK_THAT(error.text, Contains("bundle 'sound': expected one of its 2 tensors ('a' is the first), got 'c'"));
}

TEST_CASE("A weight is what the chosen code takes: a tensor, or its packed form", "[bundle]") {
    const OpenBundle open(sound_bundle().bytes());
    REQUIRE(open.status == TESS_OK);
    TessTensor tensor;
    REQUIRE(weight_of(open, "toy", "w", &tensor) == "ok");
    CHECK(tensor.type.bits == 32);
    REQUIRE(weight_of(open, "other", "w", &tensor) == "ok");
    CHECK((tensor.rank == 1 && tensor.extents[0] == 160 && tensor.type.bits == 8));
    CHECK(std::memcmp(tensor.data, "TESSPACK", 8) == 0);
    CHECK(reinterpret_cast<uintptr_t>(tensor.data) % TESS_PACKED_ALIGNMENT == 0);
    CHECK_THAT(
        weight_of(open, "other", "v", &tensor),
        Contains(
            "bundle-packed: kernel 'other', argument 'v': expected tensor 'b' packed in layout 0x1111111111111111, got none in the bundle. "
            "Pack it by 'other_pack_v'"));
    CHECK_THAT(weight_of(open, "toy", "y", &tensor),
               Contains("bundle-tensor: kernel 'toy': expected an argument that is a weight, got 'y'"));
}

TEST_CASE("Members of a bundle are given when they have their hashes", "[bundle]") {
    const OpenBundle open(sound_bundle().bytes());
    REQUIRE(open.status == TESS_OK);
    const void *data = nullptr;
    uint64_t bytes = 0;
    REQUIRE(tess_bundle_member(open.bundle, "licences/LICENSE", &data, &bytes, nullptr) == TESS_OK);
    CHECK(std::string(static_cast<const char *>(data), bytes) == "text");
    REQUIRE(tess_bundle_member(open.bundle, "include/base/toy.h", &data, &bytes, nullptr) == TESS_OK);
    CHECK(bytes == 0);
    REQUIRE(tess_bundle_member(open.bundle, "assets/words.txt", &data, &bytes, nullptr) == TESS_OK);
    CHECK(std::string_view(static_cast<const char *>(data), bytes) == "a b");
    for (const char *path : {"licences", "licences/LICENSE2", "manifest.json", "signature", "", "zzz"})
        CHECK(tess_bundle_member(open.bundle, path, &data, &bytes, nullptr) == TESS_NO_SUCH);
}

TEST_CASE("A bundle is opened from its file, which is mapped", "[bundle]") {
    const std::string path = "/tmp/tessera-bundle-" + std::to_string(getpid()) + ".tess", bytes = sound_bundle().bytes();
    std::ofstream(path, std::ios::binary) << bytes;
    uint64_t needed = 0;
    TessBundleError error;
    REQUIRE(tess_bundle_bytes(path.c_str(), &needed, &error) == TESS_OK);
    std::vector<uint64_t> memory(needed / 8 + 1);
    TessBundle *bundle = nullptr;
    REQUIRE(tess_bundle_open(path.c_str(), nullptr, memory.data(), needed, &bundle, &error) == TESS_OK);
    unlink(path.c_str());
    TessTensor tensor;
    REQUIRE(tess_bundle_tensor(bundle, "a", &tensor, nullptr) == TESS_OK);
    CHECK(static_cast<const float *>(tensor.data)[0] == 1.0F);
    tess_bundle_close(bundle);
    for (const char *none : {"/tmp/no/such.tess", "/tmp", "/dev/null"}) {
        INFO(none);
        CHECK(tess_bundle_bytes(none, &needed, &error) == TESS_BUNDLE_FILE);
        CHECK(tess_bundle_open(none, nullptr, memory.data(), 8 * memory.size(), &bundle, &error) == TESS_BUNDLE_FILE);
        CHECK(bundle == nullptr);
        CHECK_THAT(error.text, Contains(std::string("file '") + none + "': expected a bundle that can be read, got: "));
    }
    CHECK(tess_bundle_open(nullptr, nullptr, memory.data(), needed, &bundle, &error) == TESS_NULL_ARGUMENT);
    tess_bundle_close(nullptr);
}

TEST_CASE("Where a key is demanded, a bundle is signed by it or refused", "[bundle]") {
    const std::string secret(32, 's'), other(32, 'o');
    WrittenBundle written = sound_bundle();
    written.sign = signer(secret, "release-2026");
    unsigned char key[32];
    tess_ed25519_public_key(reinterpret_cast<const unsigned char *>(secret.data()), key);
    TessBundleOptions options = tess_bundle_options();
    options.public_key = key;
    options.verify = tess_ed25519_verify;
    const auto said = [&](const WrittenBundle &bundle) { return OpenBundle(bundle.bytes(), &options).said(); };
    CHECK(said(written) == "opened");
    CHECK(OpenBundle(written.bytes()).said() == "opened");  // where none is demanded
    CHECK_THAT(said(sound_bundle()), Contains("bundle-signature: bundle: expected a signature of the key that is demanded, got none."));
    written.sign = signer(other, "somebody");
    CHECK_THAT(said(written),
               Contains("bundle-signature: bundle: expected a signature of the key that is demanded, got one of another key ('somebody')"));
    const auto changed = [&](const std::string &from, const std::string &to) {
        written.sign = [=](const std::string &manifest) {
            std::string text = signer(secret, "key")(manifest);
            const size_t at = text.find(from);
            REQUIRE(at != text.npos);
            return text.replace(at, from.size(), to);
        };
        return said(written);
    };
    CHECK_THAT(changed("\"key\"", "\"kez\""), Contains("bundle-signature: signature: expected the field 'key'"));
    CHECK_THAT(changed("\"}\n", "0\"}\n"), Contains("expected 128 lower-case hexadecimal digits of a signature"));
    CHECK_THAT(changed("\"public\":\"", "\"public\":\"00"), Contains("expected 64 lower-case hexadecimal digits of a key"));
    CHECK_THAT(changed("ed25519", "rsa"), Contains("expected the field 'algorithm'"));
    CHECK_THAT(changed("\"version\":1", "\"version\":2"), Contains("expected version 1"));
    CHECK_THAT(changed("}\n", "}\n{}"), Contains("expected nothing after the object"));
    written.sign = [=](const std::string &manifest) { return signer(secret, "key")(manifest + " "); };
    CHECK_THAT(said(written), Contains("bundle-signature: bundle: expected a signature that fits manifest.json, got one that does not"));
    written.sign = [](const std::string &) { return std::string(2000, ' '); };
    CHECK_THAT(said(written), Contains("got none."));
}

TEST_CASE("Options that do not go together are refused", "[bundle]") {
    TessBundleOptions options = tess_bundle_options();
    const std::string bytes = sound_bundle().bytes();
    const unsigned char key[32] = {};
    options.public_key = key;
    CHECK_THAT(OpenBundle(bytes, &options).said(),
               Contains("bundle-options: options: expected a function that verifies beside the key, got null"));
    options = tess_bundle_options();
    options.flags = 6;
    CHECK_THAT(OpenBundle(bytes, &options).said(), Contains("bundle-options: options: expected flags that this library knows, got 0x6"));
    options = tess_bundle_options();
    options.size = 8;
    CHECK_THAT(OpenBundle(bytes, &options).said(), Contains("struct-size: options: expected a size of 32, got 8"));
}

TEST_CASE("What is enough memory for a bundle is said before, and with less it is refused", "[bundle]") {
    // Entries of as few characters as there can be.
    WrittenBundle dense = sound_bundle();
    dense.tensor_offsets.clear();
    dense.manifest["tensors"] = nlohmann::ordered_json::array();
    dense.manifest["packed"] = dense.manifest["tensors"];
    for (nlohmann::ordered_json &kernel : dense.manifest["kernels"]) kernel["weights"] = dense.manifest["packed"];
    const uint64_t weights_at = 0;
    dense.change = [&](nlohmann::ordered_json &document) {
        uint64_t at = weights_at;
        for (const auto &member : document["members"])
            if (member["path"] == "weights.safetensors") at = member["offset"];
        for (int i = 0; i < 300; i++) {
            const std::string name = {char('a' + i / 26), char('a' + i % 26)};
            document["tensors"].push_back(
                {{"name", name}, {"type", "U8"}, {"dims", nlohmann::ordered_json::array()}, {"offset", at}, {"bytes", 1}});
        }
    };
    for (const std::string &bytes : {sound_bundle().bytes(), dense.bytes()}) {
        CHECK(OpenBundle(bytes).said() == "opened");
        const uint64_t all = OpenBundle(bytes).needed / 8 * 8;
        int refused = 0;
        for (uint64_t less = 8; less < all; less += 8 * (1 + less / 160)) {
            const OpenBundle open(bytes, nullptr, less);
            if (open.status == TESS_OK) continue;
            REQUIRE(open.status == TESS_BUNDLE_MEMORY);
            refused++;
        }
        CHECK(refused > 10);
    }
    const OpenBundle open(sound_bundle().bytes());
    std::vector<char> memory(open.needed + 16);
    TessBundle *bundle = nullptr;
    char *odd = memory.data() + (reinterpret_cast<uintptr_t>(memory.data()) % 8 == 0 ? 1 : 0);
    CHECK(tess_bundle_read(open.file.data(), open.file.size(), nullptr, odd, open.needed, &bundle, nullptr) == TESS_BUNDLE_MEMORY);
}

TEST_CASE("Threads that ask for a kernel at once get the same code", "[bundle]") {
    for (int round = 0; round < 20; round++) {
        const OpenBundle open(sound_bundle().bytes());
        REQUIRE(open.status == TESS_OK);
        std::atomic<int> ready{0};
        std::vector<TessKernel> kernels(4, tess_kernel());
        std::vector<int32_t> statuses(4, -1);
        std::vector<std::thread> threads;
        for (size_t i = 0; i < kernels.size(); i++)
            threads.emplace_back([&, i] {
                for (ready++; ready < 4;) {}
                TessTensor tensor;
                statuses[i] =
                    tess_bundle_tensor(open.bundle, "a", &tensor, nullptr) | tess_bundle_kernel(open.bundle, "toy", &kernels[i], nullptr);
            });
        for (std::thread &thread : threads) thread.join();
        for (size_t i = 0; i < kernels.size(); i++) {
            CHECK(statuses[i] == TESS_OK);
            CHECK(kernels[i].body == kernels[0].body);
        }
    }
}

// Opens the bundle that TESSERA_BUNDLE names and takes its first kernel that runs here; prints, and judges nothing.
TEST_CASE("the time to open a bundle", "[.][bundle-time]") {
    const char *path = std::getenv("TESSERA_BUNDLE");
    REQUIRE(path);
    uint64_t needed = 0;
    REQUIRE(tess_bundle_bytes(path, &needed, nullptr) == TESS_OK);
    std::vector<uint64_t> memory(needed / 8 + 1);
    std::vector<double> opened, first, every;
    for (int i = 0; i < 301; i++) {
        const auto start = std::chrono::steady_clock::now();
        const auto us = [&] { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count(); };
        TessBundle *bundle = nullptr;
        TessBundleError error;
        INFO(error.text);
        REQUIRE(tess_bundle_open(path, nullptr, memory.data(), needed, &bundle, &error) == TESS_OK);
        opened.push_back(us());
        TessBundleInfo info{};
        info.size = sizeof info;
        tess_bundle_info(bundle, &info);
        for (uint32_t k = 0; k < info.kernels; k++) {
            TessBundleKernelInfo named{};
            named.size = sizeof named;
            tess_bundle_kernel_info(bundle, k, &named);
            TessKernel kernel = tess_kernel();
            REQUIRE(tess_bundle_kernel(bundle, named.name, &kernel, nullptr) == TESS_OK);
            if (k == 0) first.push_back(us());
        }
        every.push_back(us());
        tess_bundle_close(bundle);
    }
    for (std::vector<double> *times : {&opened, &first, &every}) std::sort(times->begin(), times->end());
    WARN("median: open " << opened[150] << " us, to the first kernel " << first[150] << " us, to all " << every[150] << " us; memory "
                         << needed << " bytes");
}

}  // namespace tessera::test_bundle
