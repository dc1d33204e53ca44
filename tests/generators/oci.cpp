// The command registry: a folder in OCI's image layout. registry_kills.py kills what adds to one.
#include "generators/oci/artifact.h"

#include <nlohmann/json.hpp>

#include "support/files/safetensors.h"
#include "support/text/error.h"
#include "support/text/sha256.h"
#include "tests/generators/harness.h"

namespace tessera::test_oci {

using namespace tessera::test;
namespace fs = std::filesystem;
using nlohmann::json;

// Two versions of a bundle that share their weights.
struct Made {
    TemporaryFolder folder;
    std::string registry = path("registry");
    std::string path(const std::string &name) const { return (folder.path() / name).string(); }
    Made() {
        write_safetensors(path("weights"), {{"w", "F32", {64, 32}, std::string(64 * 32 * 4, 'w')}}, {});
        for (const char *version : {"1", "2"}) {
            const std::string out = path(std::string("made") + version);
            REQUIRE(generator({"generate", "matmul", "--target", "x86-64", "--schedule", "none", "--out", out, "--quiet", "--shape", "N=32",
                               "--numerics", "f32", "--name", std::string("gemm") + version})
                        .code == 0);
            REQUIRE(generator({"bundle", "make", path(std::string("v") + version + ".tess"), "--name", "gemm", "--from", out, "--weights",
                               path("weights")})
                        .code == 0);
        }
    }
    Outcome run(std::vector<std::string> words) const {
        words.insert(words.begin() + 1, registry);
        words.insert(words.begin(), "registry");
        return generator(words);
    }
    size_t blobs() const {
        size_t count = 0;
        for (const auto &entry : fs::directory_iterator(folder.path() / "registry/blobs/sha256")) count += entry.is_regular_file();
        return count;
    }
};

TEST_CASE("registry: bundles come out with the bytes that went in, and share what is equal", "[oci]") {
    const Made m;
    const Outcome first = m.run({"add", m.path("v1.tess"), "--name", "layers/gemm:1"});
    INFO(first.err);
    REQUIRE(first.code == 0);
    CHECK_THAT(first.out, Catch::StartsWith("layers/gemm:1 sha256:"));
    const size_t alone = m.blobs();
    REQUIRE(m.run({"add", m.path("v2.tess"), "--name", "layers/gemm:2"}).code == 0);
    CHECK(m.blobs() == 2 * alone - 2);  // the weights and the empty configuration
    for (const char *version : {"1", "2"}) {
        REQUIRE(m.run({"get", std::string("layers/gemm:") + version, "--out", m.path("out.tess")}).code == 0);
        CHECK(read_file(m.path("out.tess")) == read_file(m.path(std::string("v") + version + ".tess")));
    }
    CHECK(m.run({"verify"}).out == "ok: 2 bundles, " + std::to_string(m.blobs()) + " blobs\n");

    // As the specification has it.
    CHECK(json::parse(read_file(m.registry + "/oci-layout")) == json{{"imageLayoutVersion", "1.0.0"}});
    const json index = json::parse(read_file(m.registry + "/index.json"));
    CHECK(index["schemaVersion"] == 2);
    REQUIRE(index["manifests"].size() == 2);
    const json entry = index["manifests"][0];
    CHECK(entry["annotations"]["org.opencontainers.image.ref.name"] == "layers/gemm:1");
    CHECK(entry["annotations"]["dev.tessera.algorithm"] == "matmul");
    CHECK(entry["annotations"]["dev.tessera.shape"] == "gemm1: N=32");
    CHECK(entry["annotations"]["dev.tessera.target"] == "x86-64");
    CHECK(entry["annotations"]["dev.tessera.policy"] == "f32");
    CHECK(entry["annotations"]["dev.tessera.sha256"] == sha256(read_file(m.path("v1.tess"))));
    const std::string text = read_file(m.registry + "/blobs/sha256/" + entry["digest"].get<std::string>().substr(7));
    CHECK(sha256(text) == entry["digest"]);
    CHECK(text.size() == entry["size"]);
    const json manifest = json::parse(text);
    CHECK(manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json");
    CHECK(manifest["artifactType"] == "application/vnd.tessera.bundle.v1");
    CHECK(manifest["config"]["digest"] == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    CHECK(manifest["layers"][0]["annotations"]["org.opencontainers.image.title"] == "manifest.json");

    CHECK_THAT(m.run({"list"}).out,
               Catch::Contains("layers/gemm:1 ") && Catch::Contains("layers/gemm:2 ") && Catch::Contains(" matmul x86-64 f32"));
    CHECK(json::parse(m.run({"list", "--algorithm", "matmul", "--target", "x86-64", "--policy", "f32", "--json"}).out)["entries"].size() ==
          2);
    CHECK(m.run({"list", "--algorithm", "softmax"}).out == "");
}

TEST_CASE("registry: a name stays what it is unless it is replaced, and what nothing names is pruned", "[oci]") {
    const Made m;
    REQUIRE(m.run({"add", m.path("v1.tess")}).code == 0);
    const size_t alone = m.blobs();
    CHECK(m.run({"add", m.path("v1.tess"), "--name", "gemm"}).code == 0);  // the same again
    CHECK(m.blobs() == alone);
    const Outcome taken = m.run({"add", m.path("v2.tess"), "--name", "gemm:latest"});
    CHECK(taken.code == 2);
    CHECK_THAT(taken.err, Catch::Contains("error[registry.taken]"));
    CHECK(m.run({"verify"}).code == 0);
    CHECK_THAT(m.run({"verify"}).err, Catch::Contains("blobs are named by nothing"));
    CHECK_THAT(m.run({"prune"}).out, Catch::StartsWith("removed "));
    CHECK(m.blobs() == alone);
    REQUIRE(m.run({"add", m.path("v2.tess"), "--replace"}).code == 0);
    REQUIRE(m.run({"prune"}).code == 0);
    CHECK(m.blobs() == alone);
    REQUIRE(m.run({"get", "gemm", "--out", m.path("out.tess")}).code == 0);
    CHECK(read_file(m.path("out.tess")) == read_file(m.path("v2.tess")));
    CHECK_THAT(m.run({"prune", "gemn"}).err, Catch::Contains("error[registry.missing]") && Catch::Contains("Did you mean 'gemm:latest'?"));
    REQUIRE(m.run({"prune", "gemm"}).code == 0);
    CHECK(m.blobs() == 0);
    CHECK(m.run({"verify"}).out == "ok: 0 bundles, 0 blobs\n");
    CHECK(m.run({"list"}).out == "");
}

TEST_CASE("registry: what is a document of ours is checked before it is added", "[oci]") {
    const Made m;
    const auto refused = [&](const std::string &name, const std::string &text, const std::string &words) {
        write_file(m.path(name), text);
        const Outcome done = m.run({"add", m.path(name)});
        INFO(text);
        CHECK(done.code == 2);
        CHECK_THAT(done.err, Catch::Contains(words));
    };
    refused("a.json", "{", "error[json.syntax]");
    refused("a.json", R"({"format": "tessera-schedul", "version": 1})",
            "error[registry.document]: file '" + m.path("a.json") + "': there is no format 'tessera-schedul' of JSON");
    refused("a.json", R"({"format": "tessera-schedul", "version": 1})", "Did you mean 'tessera-schedule'?");
    refused("a.json", R"({"format": "tessera-schedule", "version": 1, "name": "x", "stages": 7})", "error[");
    const Outcome shown = generator({"show", "matmul", "--json"});
    REQUIRE(shown.code == 0);
    json program = json::parse(shown.out);
    program["outputs"] = {"none"};
    refused("a.json", program.dump(), "error[");
    refused("a.tsv", "task\tfields\n", "error[examples.format]");
    CHECK(m.run({"list"}).out == "");

    write_file(m.path("program.json"), shown.out);
    write_file(m.path("words.json"), R"({"format": 7})");
    write_file(m.path("own.json"), R"({"format": "mine", "a": 1})");
    REQUIRE(m.run({"add", m.path("program.json"), m.path("words.json"), m.path("own.json")}).code == 0);
    const json all = json::parse(m.run({"list", "--algorithm", "matmul", "--json"}).out)["entries"];
    REQUIRE(all.size() == 1);
    CHECK((all[0]["name"] == "program:latest" && all[0]["kind"] == "program" && all[0]["policy"] == "f32"));
    REQUIRE(m.run({"get", "program", "--out", m.path("out.json")}).code == 0);
    CHECK(read_file(m.path("out.json")) == shown.out);
}

TEST_CASE("registry: schedules and records of tuning are kept beside bundles", "[oci]") {
    const Made m;
    const std::string schedule = Schedule("matmul/avx2").for_algorithm("matmul").stage("y", block({{"M", 4}})).text();
    write_file(m.path("mine.json"), schedule);
    write_file(m.path("records.db"), std::string("SQLite\0data", 11));
    REQUIRE(m.run({"add", m.path("mine.json"), m.path("records.db")}).code == 0);
    const json all = json::parse(m.run({"list", "--json"}).out)["entries"];
    REQUIRE(all.size() == 2);
    CHECK(
        (all[0]["name"] == "mine:latest" && all[0]["kind"] == "schedule" && all[0]["algorithm"] == "matmul" && all[0]["target"] == "avx2"));
    CHECK((all[1]["name"] == "records:latest" && all[1]["kind"] == "file"));
    REQUIRE(m.run({"get", "mine", "--out", m.path("out.json")}).code == 0);
    CHECK(read_file(m.path("out.json")) == schedule);
    REQUIRE(m.run({"get", "records", "--out", m.path("out.db")}).code == 0);
    CHECK(read_file(m.path("out.db")) == std::string("SQLite\0data", 11));
    CHECK(m.run({"verify"}).code == 0);
}

TEST_CASE("registry: hostile folders are refused, and nothing outside of them is read or written", "[oci]") {
    const Made m;
    REQUIRE(m.run({"add", m.path("v1.tess")}).code == 0);
    const fs::path root = m.registry, blobs = root / "blobs/sha256";
    const json index = json::parse(read_file(root / "index.json"));
    const std::string digest = index["manifests"][0]["digest"], good = read_file(root / "index.json");
    const fs::path manifest = blobs / digest.substr(7);
    const auto fails = [&](const std::string &id) {
        const Outcome got = m.run({"get", "gemm", "--out", m.path("out.tess")}), verified = m.run({"verify"});
        INFO(got.err << verified.out);
        CHECK(got.code == 2);
        CHECK(verified.code == 1);
        CHECK_THAT(got.err + verified.out, Catch::Contains("error[" + id));
        CHECK(!fs::exists(m.path("out.tess")));
    };
    const auto with_index = [&](const std::function<void(json &)> &change, const std::string &id) {
        json other = index;
        change(other);
        write_file(root / "index.json", other.dump());
        fails(id);
        write_file(root / "index.json", good);
    };
    with_index([](json &d) { d["manifests"][0]["digest"] = "sha256:../../../../etc/passwd"; }, "registry.document");
    with_index([](json &d) { d["manifests"][0]["digest"] = "sha512:" + std::string(64, 'a'); }, "registry.document");
    with_index([](json &d) { d["manifests"][0]["digest"] = "sha256:" + std::string(64, 'a'); }, "registry.blob");
    with_index([](json &d) { d["manifests"][0]["size"] = 7; }, "registry.blob");
    with_index([](json &d) { d["manifests"][0]["size"] = -7; }, "json.value");
    with_index([](json &d) { d["schemaVersion"] = 1; }, "registry.document");
    with_index([](json &d) { d.erase("manifests"); }, "json.missing");

    // A bundle whose layers are others than its manifest says.
    const auto with_manifest = [&](const std::function<void(json &)> &change, const std::string &id) {
        json other = json::parse(read_file(manifest));
        change(other);
        const std::string text = other.dump(), hash = sha256(text);
        write_file(blobs / hash.substr(7), text);
        with_index([&](json &d) { d["manifests"][0]["digest"] = hash, d["manifests"][0]["size"] = text.size(); }, id);
        fs::remove(blobs / hash.substr(7));
    };
    with_manifest([](json &d) { d["layers"][1]["annotations"]["org.opencontainers.image.title"] = "../../outside"; }, "registry.document");
    with_manifest([](json &d) { d["layers"].erase(1); }, "registry.document");
    with_manifest([](json &d) { std::swap(d["layers"][1], d["layers"][2]); }, "registry.document");
    with_manifest([](json &d) { d["layers"][0]["digest"] = "x"; }, "registry.document");
    with_manifest([](json &d) { d["layers"] = json::array(); }, "registry.document");

    // Blobs that were changed, cut, or are links.
    const std::string whole = read_file(manifest);
    const fs::path layer = blobs / json::parse(whole)["layers"][1]["digest"].get<std::string>().substr(7);
    const std::string content = read_file(layer);
    std::string changed = content;
    changed[0] = static_cast<char>(changed[0] ^ 1);
    for (const std::string &wrong : {changed, content.substr(1)}) {
        write_file(layer, wrong);
        fails("registry.blob");
    }
    fs::remove(layer);
    fails("registry.blob");
    write_file(m.path("outside"), content);
    fs::create_symlink(m.path("outside"), layer);
    fails("registry.blob");
    // Adding it again mends what is there, and leaves what the link led to.
    REQUIRE(m.run({"add", m.path("v1.tess")}).code == 0);
    CHECK(fs::is_regular_file(fs::symlink_status(layer)));
    CHECK(read_file(m.path("outside")) == content);
    CHECK(m.run({"verify"}).code == 0);

    // Things in blobs that are none, links in place of folders, a marker that is none.
    write_file(blobs / "note.txt", "x");
    CHECK(m.run({"verify"}).code == 1);
    CHECK(m.run({"prune"}).code == 0);
    CHECK(fs::exists(blobs / "note.txt"));
    fs::rename(root / "blobs", m.path("blobs elsewhere"));
    fs::create_directory_symlink(m.path("blobs elsewhere"), root / "blobs");
    for (const std::vector<std::string> &words : std::vector<std::vector<std::string>>{{"add", m.path("v2.tess")}, {"prune"}, {"list"}})
        CHECK_THAT(m.run(words).err, Catch::Contains("error[registry.folder]"));
    fs::remove(root / "blobs");
    fs::rename(m.path("blobs elsewhere"), root / "blobs");
    write_file(root / "oci-layout", R"({"imageLayoutVersion": "9.0.0"})");
    CHECK_THAT(m.run({"list"}).err, Catch::Contains("error[registry.document]"));
    fs::remove(root / "oci-layout");
    CHECK_THAT(m.run({"list"}).err, Catch::Contains("error[registry.folder]"));
    CHECK_THAT(m.run({"add", m.path("v2.tess")}).err, Catch::Contains("error[registry.folder]"));  // a folder with other things
}

TEST_CASE("registry: what cannot be read may name anything, so nothing is pruned", "[oci]") {
    const Made m;
    REQUIRE(m.run({"add", m.path("v1.tess")}).code == 0);
    const json index = json::parse(read_file(m.registry + "/index.json"));
    const fs::path manifest = fs::path(m.registry) / "blobs/sha256" / index["manifests"][0]["digest"].get<std::string>().substr(7);
    write_file(manifest, "x");
    const size_t before = m.blobs();
    CHECK_THAT(m.run({"prune"}).err, Catch::Contains("error[registry.blob]"));
    CHECK(m.blobs() == before);
}

TEST_CASE("registry: names and words that cannot be are refused", "[oci]") {
    CHECK(oci_reference("a") == "a:latest");
    CHECK(oci_reference("a/b.c-d_e:1.2+3") == "a/b.c-d_e:1.2+3");
    for (const std::string name : {"", ":", "a:", ":b", "/a", "a/", "a//b", "../a", "a/../b", "a b", "a:b:c", "a\n", "\xff"})
        CHECK_THROWS_WITH(oci_reference(name), Catch::Contains("error[registry.name]"));
    CHECK_THROWS_WITH(oci_reference(std::string(201, 'a')), Catch::Contains("error[registry.name]"));
    const TemporaryFolder folder;
    const std::string root = (folder.path() / "r").string();
    check_refused({"registry", "list", root}, {"error[registry.folder]", "'registry add' begins one"});
    check_refused({"registry", "verify", root}, {"error[registry.folder]"});
    check_refused({"registry", "prune", root}, {"error[registry.folder]"});
    CHECK(!fs::exists(root));
    check_refused({"registry", "add", root}, {"error[command.arguments]", "expected files to add"});
    check_refused({"registry", "get", root, "x", "--out", root + "/index.json"}, {"error[command.arguments]", "outside of the registry"});
    check_refused({"registry", "add", root, "a", "b", "--name", "c"}, {"error[command.arguments]"});
    check_refused({"registry", "get", root, "a"}, {"error[command.arguments]", "no --out"});
    check_refused({"registry", "list", root, "--replace"}, {"error[command.arguments]"});
    check_refused({"registry", "add", root, (folder.path() / "none.json").string()}, {"error[registry.file]"});
}

}  // namespace tessera::test_oci
