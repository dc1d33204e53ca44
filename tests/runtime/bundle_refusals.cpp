/// Bundles from strangers: what is refused, in which words; every cut, every flipped byte, every field of the manifest, and random damage.
/// Each is refused or gives what was in it, and nothing else happens.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "runtime/bundle/bundle.h"
#include "tests/runtime/bundle_writer.h"

namespace tessera::test_bundle_refusals {

using namespace tessera::test;
using Catch::Matchers::Contains;
using Json = nlohmann::ordered_json;

namespace {

const std::vector<std::string> paths = {
    "programs/toy.json",           "schedules/toy/base.json",      "code/base/libtoy.a", "code/never/libtoy.a",
    "code/base/toy.manifest.json", "code/never/toy.manifest.json", "include/base/toy.h", "include/never/toy.h",
    "weights.safetensors",         "packed/0123456789abcdef/0",    "licences/LICENSE",   "assets/words.txt"};

// Opens it and looks at all that is in it. "sound" where everything is as it was written; otherwise the first refusal.
std::string seen(const std::string &bytes) {
    const OpenBundle open(bytes);
    if (open.status != TESS_OK) {
        CHECK(open.bundle == nullptr);
        CHECK(open.error.status == open.status);
        const std::string text = open.error.text;
        CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
        CHECK(text.find("expected") != text.npos);
        return open.said();
    }
    TessBundleError error;
    const auto refused = [&](int32_t status) { return std::string(tess_status_kind(status)) + ": " + error.text; };
    for (const std::string &path : paths) {
        const void *data = nullptr;
        uint64_t size = 0;
        if (const int32_t status = tess_bundle_member(open.bundle, path.c_str(), &data, &size, &error)) return refused(status);
    }
    TessKernel kernel = tess_kernel();
    if (const int32_t status = tess_bundle_kernel(open.bundle, "toy", &kernel, &error)) return refused(status);
    float y = 0;
    const TessTensor result = tess_dense(&y, TESS_F32, 0, nullptr), *tensors[] = {&result};
    REQUIRE(tess_call(&kernel, tensors, nullptr, nullptr) == TESS_OK);
    REQUIRE((y == 1.0F || y == 2.0F));
    if (y == 1.0F) return "sound, with the other code";
    TessTensor tensor;
    if (const int32_t status = tess_bundle_tensor(open.bundle, "a", &tensor, &error)) return refused(status);
    REQUIRE(static_cast<const float *>(tensor.data)[5] == 6.0F);
    if (const int32_t status = tess_bundle_weight(open.bundle, "other", "w", &tensor, &error)) return refused(status);
    if (tensor.rank == 2) return "sound, with nothing packed";
    REQUIRE(std::memcmp(tensor.data, "TESSPACK", 8) == 0);
    return "sound";
}

std::string changed(const std::function<void(Json &)> &change) {
    WrittenBundle written = sound_bundle();
    written.change = change;
    return seen(written.bytes());
}

std::string small_bundle() {
    WrittenBundle written = sound_bundle();
    written.members[4].bytes = "no archive, and none that runs here";  // shorter, as each of its bytes costs two runs
    return written.bytes();
}

}  // namespace

TEST_CASE("The bundle that the others here change is sound", "[bundle]") {
    CHECK(seen(sound_bundle().bytes()) == "sound");
    CHECK(seen(small_bundle()) == "sound");
}

TEST_CASE("A bundle that is cut anywhere is refused", "[bundle]") {
    const std::string bytes = small_bundle();
    for (size_t size = 0; size < bytes.size(); size++) {
        const OpenBundle open(bytes.substr(0, size));
        REQUIRE(open.status == TESS_BUNDLE_FORMAT);
    }
    CHECK_THAT(seen(bytes + "x"), Contains("bundle-format: bundle: expected the end of a zip of one disk without a comment"));
}

TEST_CASE("A bundle of which any byte is another is refused", "[bundle]") {
    const std::string bytes = small_bundle();
    std::mt19937 random(5);
    for (size_t at = 0; at < bytes.size(); at++) {
        std::string flipped = bytes;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
        INFO(at);
        REQUIRE(seen(flipped) != "sound");
    }
}

TEST_CASE("A manifest without a field, with one twice, in another order or with one more is refused", "[bundle]") {
    const Json manifest = Json::parse([] {
        std::string text;
        WrittenBundle written = sound_bundle();
        written.change = [&](Json &document) { text = document.dump(); };
        (void)written.bytes();
        return text;
    }());
    // What a loader does not look at, may be anything.
    const auto is_ignored = [](const std::string &place) {
        return place.find("/options/") != place.npos || place.find("/fixed/") != place.npos || place.find("/arguments/") != place.npos ||
               place.find("/licences/") != place.npos;
    };
    const std::vector<Json> others = {
        nullptr, true, -1, 1e300, "", "x", Json::array(), Json::object(), Json::array({1}), 4611686018427387904, std::string(300, 'y')};
    int fields = 0;
    const std::function<void(const Json &, const std::string &)> walk = [&](const Json &value, const std::string &place) {
        if (!value.is_structured()) return;
        for (auto item = value.begin(); item != value.end(); ++item) {
            const std::string key = value.is_object() ? item.key() : std::to_string(item - value.begin());
            const std::string inner = place + "/" + key;
            const auto pointer = Json::json_pointer(inner);
            if (is_ignored(inner)) continue;
            fields++;
            INFO(inner);
            if (value.is_object() && key != "program") {
                REQUIRE(changed([&](Json &document) { document[Json::json_pointer(place)].erase(key); }) != "sound");
            }
            for (const Json &other : others) (void)changed([&](Json &document) { document[pointer] = other; });
            if (value.is_object()) {
                REQUIRE(changed([&](Json &document) { document[Json::json_pointer(place)]["surplus"] = 1; }) != "sound");
                if (value.size() > 1)
                    REQUIRE(changed([&](Json &document) {
                                Json &object = document[Json::json_pointer(place)];
                                const Json first = object.front();
                                const std::string name = object.begin().key();
                                object.erase(name);
                                object[name] = first;
                            }) != "sound");
            }
            if (inner.find("/members/") == inner.npos || inner.find("/members/0") != inner.npos) walk(*item, inner);
        }
    };
    walk(manifest, "");
    CHECK(fields > 100);
}

TEST_CASE("What a manifest says wrongly is refused in words", "[bundle]") {
    const auto says = [](const std::string &text, const std::string &part) {
        INFO(text);
        CHECK_THAT(text, Contains(part));
    };
    says(changed([](Json &m) { m["version"] = 2; }),
         "bundle-version: manifest.json: expected version 1 of the format, got 2. Link a newer runtime");
    says(changed([](Json &m) { m["format"] = "zip"; }), "bundle-manifest: manifest.json: expected the field 'format' at or before byte");
    says(changed([](Json &m) { m["members"][2]["sha256"] = sha256("other"); }),
         "bundle-hash: member 'code/base/libtoy.a': expected the bytes that the manifest hashed");
    says(changed([](Json &m) { m["members"][8]["sha256"] = sha256("other"); }), "bundle-hash: member 'weights.safetensors'");
    says(changed([](Json &m) { m["members"][0]["sha256"] = "sha256:12"; }), "expected sha256: and 64 lower-case hexadecimal digits");
    says(changed([](Json &m) { m["members"][11]["offset"] = int64_t(m["members"][11]["offset"]) + 64; }),
         "bundle-format: bundle: expected the member 'assets/words.txt'");
    says(changed([](Json &m) { m["members"][1]["offset"] = int64_t(m["members"][1]["offset"]) + 8; }),
         "expected members behind each other in the file, at multiples of 64");
    says(changed([](Json &m) { m["members"][1]["offset"] = m["members"][0]["offset"]; }), "expected members behind each other in the file");
    says(changed([](Json &m) { m["members"][1]["bytes"] = int64_t{1} << 61; }), "expected members behind each other in the file");
    says(changed([](Json &m) { m["members"][1]["bytes"] = 1; }),
         "bundle-format: bundle: expected the member 'schedules/toy/base.json' of 1 bytes");
    says(changed([](Json &m) { m["members"].erase(11); }), "bundle-format: bundle: expected the end at byte");
    says(changed([](Json &m) { m["members"].erase(0); }), "bundle-format: bundle: expected the member 'schedules/toy/base.json'");
    says(changed([](Json &m) { std::swap(m["members"][0], m["members"][1]); }), "expected members in the order that bundles have");
    says(changed([](Json &m) { m["members"][0]["path"] = "../../etc/passwd"; }), "expected a path that bundles have");
    says(changed([](Json &m) { m["members"][0]["path"] = "other/x"; }), "expected a path that bundles have");
    says(changed([](Json &m) { m["end"] = int64_t(m["end"]) + 1; }), "bundle-format: bundle: expected the end at byte");
    says(changed([](Json &m) { m["kernels"][1]["name"] = "toy"; }), "expected kernels of different names");
    says(changed([](Json &m) { m["kernels"][0]["name"] = "t\\u00e9"; }), "expected a plain text of at most 250 characters");
    says(changed([](Json &m) { m["kernels"][0]["code"][1]["library"] = 2; }), "expected a number in 'libraries'");
    says(changed([](Json &m) { m["kernels"][0]["code"][1]["target"] = "none"; }), "expected the name of a target in 'targets'");
    says(changed([](Json &m) { m["kernels"][0]["weights"][0]["tensor"] = 2; }), "expected weights of kernels among the tensors");
    says(changed([](Json &m) { m["libraries"][1]["archive"] = "code/other/libtoy.a"; }),
         "expected archives of libraries among the members");
    says(changed([](Json &m) { m["packed"][0]["member"] = "packed/0/0"; }), "expected packed tensors among the members");
    says(changed([](Json &m) { m["packed"][0]["tensor"] = 7; }), "expected a number in 'tensors'");
    says(changed([](Json &m) { m["tensors"][0]["offset"] = int64_t(m["tensors"][0]["offset"]) + 8; }),
         "expected tensors inside of weights.safetensors");
    says(changed([](Json &m) { m["tensors"][0]["offset"] = 0; }), "expected tensors inside of weights.safetensors");
    says(changed([](Json &m) { m["tensors"][0]["offset"] = int64_t(m["tensors"][0]["offset"]) + 1; }),
         "expected a tensor at a multiple of its elements' size");
    says(changed([](Json &m) { m["tensors"][0]["bytes"] = 20; }), "expected as many bytes as the type and the dims of a tensor ask for");
    says(changed([](Json &m) {
             m["tensors"][0]["dims"] = {int64_t{1} << 31, int64_t{1} << 31};
         }),
         "expected at most 8 dims, with at most 2^62 bytes");
    says(changed([](Json &m) { m["tensors"][0]["dims"] = {0, int64_t{1} << 62, 8}; }), "expected as many bytes as the type and the dims");
    says(changed([](Json &m) { m["tensors"][0]["dims"] = {1, 1, 1, 1, 1, 1, 1, 1, 6}; }), "expected at most 8 dims");
    says(changed([](Json &m) { m["tensors"][0]["type"] = "F6_E2M3"; }), "expected a type of whole or half bytes");
    says(changed([](Json &m) { m["tensors"][0]["type"] = "F4"; }), "expected as many bytes as");
    says(changed([](Json &m) { m["tensors"][0]["name"] = "c"; }), "expected tensors in the order of their names");
    says(changed([](Json &m) {
             for (int i = 0; i < 70; i++) m["targets"].push_back(m["targets"][2]);
         }),
         "expected at most 64 targets");
    says(changed([](Json &m) {
             Json deep = 1;
             for (int i = 0; i < 100; i++) deep = Json::array({deep});
             m["kernels"][0]["numerics"] = deep;
         }),
         "got more than 32 objects and arrays within each other");
}

TEST_CASE("A manifest that is no JSON is refused, whatever bytes it has", "[bundle]") {
    const auto with_manifest = [](const std::string &text) {
        std::vector<ZipEntry> entries = {{"manifest.json", text, 0, 0}};
        return seen(zip_bytes(entries));
    };
    for (const char *text : {"", "null", "[]", "{}", "{\"format\":\"tessera-bundle\"", "{\"format\":\"tessera-bundle\",\"version\":1e0}",
                             "\xff\xfe", "{\"format\":\"\x80\"}"}) {
        INFO(text);
        CHECK_THAT(with_manifest(text), Contains("bundle-manifest: manifest.json: expected "));
    }
    CHECK_THAT(with_manifest(std::string(100000, '[')), Contains("bundle-manifest"));
    CHECK_THAT(with_manifest(std::string(100000, '{')), Contains("bundle-manifest"));
    CHECK_THAT(with_manifest(std::string(TESS_BUNDLE_MAX_MANIFEST + 1, ' ')),
               Contains("expected manifest.json, of at most 16 MiB, as the first member"));
    std::vector<ZipEntry> none, other = {{"weights.safetensors", "", 0, 0}};
    CHECK_THAT(seen(zip_bytes(none)), Contains("expected manifest.json, of at most 16 MiB, as the first member, got ''"));
    CHECK_THAT(seen(zip_bytes(other)), Contains("as the first member, got 'weights.safetensors'"));
}

TEST_CASE("A library in a bundle that is none is refused, with the loader's words", "[bundle]") {
    WrittenBundle written = sound_bundle();
    written.members[2].bytes = "no archive";
    CHECK_THAT(seen(written.bytes()),
               Contains("bundle-code: member 'code/base/libtoy.a': library: expected a static library, which begins with '!<arch>'"));
    written.members[2].bytes = "";
    CHECK_THAT(seen(written.bytes()), Contains("bundle-code: member 'code/base/libtoy.a': expected 1 to 2^30 bytes"));
}

TEST_CASE("Members after the signature, or beside the manifest's, are refused", "[bundle]") {
    WrittenBundle written = sound_bundle();
    written.members.push_back({"signature", "{}", 0, 0});
    written.change = [](Json &m) { m["end"] = int64_t(m["members"][12]["offset"]) - 128, m["members"].erase(12); };
    CHECK(seen(written.bytes()) != "sound");  // the end is only near
    written = sound_bundle();
    written.members.push_back({"signature", "{}", 0, 0});
    written.members.push_back({"zzz", "{}", 0, 0});
    written.change = [](Json &m) { m["members"].erase(13), m["members"].erase(12); };
    CHECK_THAT(seen(written.bytes()), Contains("expected no member after its signature"));
}

TEST_CASE("Bundles that were damaged at random are refused, or are sound", "[bundle]") {
    const std::string bytes = small_bundle();
    std::mt19937 random(11);
    int refused = 0;
    for (int i = 0; i < 4000; i++) {
        std::string damaged = bytes;
        for (unsigned n = 1 + random() % 4; n > 0; n--) {
            // Half of the damage is where the structure is: the first and the last parts.
            const size_t size = damaged.size(), at = random() % 2   ? random() % size
                                                     : random() % 2 ? random() % std::min<size_t>(size, 6000)
                                                                    : size - 1 - random() % std::min<size_t>(size, 1200);
            switch (random() % 5) {
            case 0: damaged[at] = static_cast<char>(random()); break;
            case 1: damaged.erase(at, 1 + random() % 80); break;
            case 2: damaged.insert(at, 1 + random() % 80, static_cast<char>(random())); break;
            case 3: std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at), std::min<size_t>(4, size - at), '\xff'); break;
            default: damaged.replace(at, std::min<size_t>(64, size - at), damaged.substr(random() % size, 64)); break;
            }
            if (damaged.empty()) damaged = "P";
        }
        refused += seen(damaged) != "sound";
    }
    CHECK(refused > 3900);
}

TEST_CASE("Manifests that were damaged at random are refused, or say what they say", "[bundle]") {
    // The CRC is made right again, so that the reader is what stands between the bytes and the program.
    std::mt19937 random(12);
    std::string manifest;
    WrittenBundle written = sound_bundle();
    written.change = [&](Json &m) { manifest = m.dump(1); };
    (void)written.bytes();
    static const char *const pieces[] = {"{",  "}",    "[",       "]",        ",",   ":",    "\"",      "\\",  "0", "9999999999999999999",
                                         "-1", "null", "\\u0000", "\"path\"", "1e9", "\xc3", "{\"a\":", "[[[["};
    for (int i = 0; i < 6000; i++) {
        std::string damaged = manifest;
        for (unsigned n = 1 + random() % 3; n > 0; n--) {
            const size_t at = random() % damaged.size();
            switch (random() % 4) {
            case 0: damaged[at] = static_cast<char>(random()); break;
            case 1: damaged.erase(at, 1 + random() % 20); break;
            case 2: damaged.insert(at, pieces[random() % std::size(pieces)]); break;
            default: damaged.replace(at, 10, damaged.substr(random() % damaged.size(), random() % 40)); break;
            }
            if (damaged.empty()) damaged = "{";
        }
        std::vector<ZipEntry> entries = {{"manifest.json", damaged, 0, 0}};
        entries.insert(entries.end(), written.members.begin(), written.members.end());
        (void)seen(zip_bytes(entries));
    }
}

}  // namespace tessera::test_bundle_refusals
