// The command bundle, and what bundles are made of.
#include <cstring>
#include <numeric>
#include <sstream>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "algorithms/library/library.h"
#include "costmodel/model/examples.h"
#include "generators/bundle/bundle.h"
#include "generators/bundle/make.h"
#include "generators/bundle/packed_weights.h"
#include "generators/bundle/signature.h"
#include "runtime/abi/tessera.h"
#include "runtime/bundle/bundle.h"
#include "runtime/crypto/ed25519.h"
#include "runtime/load/load.h"
#include "support/files/safetensors.h"
#include "support/text/error.h"
#include "support/text/sha256.h"
#include "tests/generators/harness.h"
#include "tests/support/gguf_writer.h"

namespace tessera::test_bundle {

using namespace tessera::test;
namespace fs = std::filesystem;
using nlohmann::json;

// matmul with panels of w, 16 wide with AVX2 and 8 wide without.
static Registry packing_registry() {
    Registry registry = sample_registry();
    registry.add("softmax", "y[M, N] = softmax of x[M, N] over N", library::softmax);
    const Schedule panels = Schedule("matmul/avx2").stage("y", block({{"N", 16}}).pack("w", "prepack", {"N/16", "K", "N%16"}));
    registry.add_schedule([=] { return panels; });
    registry.add_schedule([=] { return panels.named("matmul/x86-64").stage("y", StageKnobs().pack("w", "prepack", {"N/8", "K", "N%8"})); });
    return registry;
}

static std::string floats(size_t count) {
    std::string bytes(4 * count, '\0');
    for (size_t i = 0; i < count; i++) {
        const float value = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 8;
        std::memcpy(bytes.data() + 4 * i, &value, 4);
    }
    return bytes;
}

// What the tests share: libraries for two targets, and weights of [24, 20].
struct Made {
    TemporaryFolder folder;
    Registry registry = packing_registry();
    std::string path(const std::string &name) const { return (folder.path() / name).string(); }
    Made() {
        const Outcome both = generator(
            {"generate", "matmul", "--name", "gemm", "--target", "avx2,x86-64", "--out", path("gemm"), "--sources", "--quiet"}, registry);
        INFO(both.err);
        REQUIRE(both.code == 0);
        REQUIRE(
            generator({"generate", "softmax", "--target", "x86-64", "--schedule", "none", "--out", path("softmax"), "--sources", "--quiet"},
                      registry)
                .code == 0);
        const std::string w = floats(24 * 20);
        write_safetensors(path("weights"), {{"gemm.w", "F32", {24, 20}, w}, {"other", "F32", {3}, std::string(12, 'x')}}, {});
        write_file(path("LICENSE"), "terms\n");
    }
    Outcome make(const std::string &name, std::vector<std::string> more = {}) const {
        std::vector<std::string> words = {"bundle",        "make",      path(name),      "--from",    path("gemm"),
                                          path("softmax"), "--weights", path("weights"), "--licence", path("LICENSE")};
        words.insert(words.end(), more.begin(), more.end());
        return generator(words, registry);
    }
};

TEST_CASE("bundle: libraries, weights and sources become one file, which is listed, checked and rebuilt") {
    const Made m;
    const Outcome made = m.make("layer.tess");
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK_THAT(made.out, Catch::Contains("2 kernels, 2 libraries, 2 tensors, 2 packed"));
    const Bundle bundle(m.path("layer.tess"));
    const BundleManifest &b = bundle.manifest();
    CHECK(b.name == "layer");
    REQUIRE(b.targets.size() == 2);
    CHECK(b.targets[0].name == "avx2");
    REQUIRE(b.kernels.size() == 2);
    const BundleKernel &gemm = b.kernels[0];
    CHECK(gemm.name == "gemm");
    REQUIRE(gemm.arguments.size() == 3);
    CHECK(gemm.arguments[1] == BundleArgument{"w", "input", "f32", {"K", "N"}});
    CHECK(gemm.arguments[2].role == "output");
    REQUIRE(gemm.weights.size() == 1);
    CHECK(b.tensors[gemm.weights[0].tensor].name == "gemm.w");
    REQUIRE(gemm.code.size() == 2);
    CHECK(gemm.code[0].packed[0].layout != gemm.code[1].packed[0].layout);
    CHECK(gemm.code[0].packed[0].function == "gemm_pack_w");
    CHECK(gemm.program == "programs/gemm.json");
    CHECK(b.find("schedules/matmul/avx2.json"));
    CHECK(bundle.read("licences/LICENSE", 100) == "terms\n");
    for (const BundleLicence &l : b.licences) CHECK((l.name == "tessera_runtime" && l.member == "licences/LICENSE"));
    // Tensors lie where the manifest says, in the file itself.
    const std::string bytes = read_file(m.path("layer.tess"));
    CHECK(bytes.substr(b.tensors[0].offset, b.tensors[0].bytes) == floats(24 * 20));

    const Outcome checked = generator({"bundle", "check", m.path("layer.tess")}, m.registry);
    INFO(checked.out);
    CHECK(checked.code == 0);
    for (const char *line : {"ok: hashes of ", "ok: 2 libraries", "ok: 2 algorithms", "ok: 1 file of weights", "ok: 2 packed weights"})
        CHECK_THAT(checked.out, Catch::Contains(line));
    const Outcome rebuilt = generator({"bundle", "check", m.path("layer.tess"), "--rebuild"}, m.registry);
    INFO(rebuilt.out << rebuilt.err);
    CHECK(rebuilt.code == 0);
    CHECK_THAT(rebuilt.out, Catch::Contains("ok: code/avx2,x86-64/libgemm.a comes again, byte for byte") &&
                                Catch::Contains("ok: include/x86-64/softmax.h comes again") &&
                                Catch::Contains("ok: 2 packed weights come again"));
    const Outcome listed = generator({"bundle", "list", m.path("layer.tess")});
    CHECK_THAT(listed.out, Catch::Contains("kernel gemm: matmul, f32; for avx2 x86-64") && Catch::Contains("= tensor gemm.w") &&
                               Catch::Contains("code/x86-64/libsoftmax.a"));
    CHECK(json::parse(generator({"bundle", "list", m.path("layer.tess"), "--json"}).out)["name"] == "layer");

    // Equal inputs, equal bytes, whatever the folders are called and in whichever order they are named.
    fs::rename(m.path("gemm"), m.path("elsewhere"));
    REQUIRE(generator({"bundle", "make", m.path("again.tess"), "--name", "layer", "--licence", m.path("LICENSE"), "--weights",
                       m.path("weights"), "--from", m.path("elsewhere"), m.path("softmax")},
                      m.registry)
                .code == 0);
    CHECK(read_file(m.path("again.tess")) == bytes);
}

TEST_CASE("bundle: weights of several files are one, and assets come along") {
    const Made m;
    std::vector<std::string> names;
    const std::string first = floats(24 * 20), second(first.rbegin(), first.rend());
    write_safetensors(m.path("a"), {{"w", "F32", {24, 20}, first}}, {});
    write_safetensors(m.path("b"), {{"w", "F32", {24, 20}, second}, {"other", "F32", {1}, floats(1)}}, {});
    write_file(m.path("alphabet.txt"), "abc\n");
    const auto make = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"bundle", "make", m.path("x.tess"), "--from", m.path("gemm"), m.path("softmax")});
        return words;
    };
    const Outcome made = generator(make({"--weights", "gemm=" + m.path("a"), m.path("b"), "--asset", m.path("alphabet.txt")}), m.registry);
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK_THAT(made.err,
               Catch::Contains("note: 2 of 3 tensors fit no argument: other, w. Inputs without a tensor: gemm.x, softmax.x. Rename "
                               "the tensors, or say --weight <kernel>.<argument>=<tensor>"));
    const Bundle bundle(m.path("x.tess"));
    for (const BundleTensor &t : bundle.manifest().tensors) names.push_back(t.name);
    CHECK(names == std::vector<std::string>{"gemm.w", "other", "w"});
    const BundleTensor &w = bundle.manifest().tensors[bundle.manifest().kernels[0].weights.at(0).tensor];
    CHECK(w.name == "gemm.w");
    CHECK(read_file(m.path("x.tess")).substr(w.offset, w.bytes) == first);
    CHECK(bundle.read("assets/alphabet.txt", 100) == "abc\n");
    CHECK(generator({"bundle", "check", m.path("x.tess"), "--rebuild"}, m.registry).code == 0);
    check_refused(make({"--weights", "up=" + m.path("a")}), {"error[bundle.weight]", "there is no kernel 'up'; there are gemm, softmax."},
                  2, m.registry);
    check_refused(make({"--weights", m.path("a"), m.path("b")}), {"error[safetensors.repeated]"}, 2, m.registry);
}

TEST_CASE("bundle: records are those of records export, and libraries are for processors") {
    const Made m;
    write_file(m.path("rows.tsv"), "{\"format\": \"tessera-schedule\"}\n");
    const auto make = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"bundle", "make", m.path("x.tess")});
        return words;
    };
    check_refused(make({"--from", m.path("softmax"), "--records", m.path("rows.tsv")}),
                  {"error[examples.format]", "rows.tsv: expected a first line that names the fields, as `records export` writes it."}, 2,
                  m.registry);
    std::ostringstream rows;
    write_examples(rows, {});
    write_file(m.path("rows.tsv"), rows.str() + "matmul\t1\n");
    check_refused(make({"--from", m.path("softmax"), "--records", m.path("rows.tsv")}), {"error[examples.format]", "rows.tsv:2: expected"},
                  2, m.registry);
    write_file(m.path("rows.tsv"), rows.str());
    REQUIRE(generator(make({"--from", m.path("softmax"), "--records", m.path("rows.tsv")}), m.registry).code == 0);
    CHECK(Bundle(m.path("x.tess")).read("records/rows.tsv", 1 << 20) == rows.str());

    REQUIRE(generator({"generate", "softmax", "--target", "opencl", "--schedule", "none", "--out", m.path("gpu"), "--quiet"}, m.registry)
                .code == 0);
    check_refused(make({"--from", m.path("gpu")}),
                  {"error[bundle.generated]", "got a file of C for OpenCL, which no loader runs. Generate the kernel for a processor"}, 2,
                  m.registry);
}

TEST_CASE("bundle: weights come from GGUF files, as floats where that is asked for") {
    const Made m;
    const std::string w = floats(24 * 20);
    GgufParts parts;
    parts.tensors = {{"blk.w", 0, {20, 24}, w}, {"codes", 8, {32}, std::string(34, 'q')}, {"K", 12, {256}, std::string(144, '\x11')}};
    write_file(m.path("model.gguf"), parts.text());
    const auto make = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"bundle", "make", m.path("x.tess"), "--from", m.path("gemm"), "--weight", "gemm.w=blk.w"});
        return words;
    };
    const Outcome made = generator(make({"--weights", m.path("model.gguf")}), m.registry);
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK_THAT(made.err, Catch::Contains("tensor 'K' of Q4_K became bf16"));
    const auto seen = [&] {
        std::vector<std::string> all;
        const Bundle bundle(m.path("x.tess"));
        for (const BundleTensor &t : bundle.manifest().tensors) all.push_back(t.name + " " + t.type);
        return all;
    };
    CHECK(seen() == std::vector<std::string>{"K BF16", "blk.w F32", "codes I8", "codes_scales F16"});
    const BundleTensor bound = Bundle(m.path("x.tess")).manifest().tensors[1];
    CHECK(bound.dims == std::vector<int64_t>{24, 20});
    CHECK(read_file(m.path("x.tess")).substr(bound.offset, bound.bytes) == w);
    CHECK(generator({"bundle", "check", m.path("x.tess"), "--rebuild"}, m.registry).code == 0);
    REQUIRE(generator(make({"--weights", m.path("model.gguf"), "--floats", "f32"}), m.registry).code == 0);
    CHECK(seen() == std::vector<std::string>{"K F32", "blk.w F32", "codes F32"});
    check_refused(make({"--weights", m.path("model.gguf"), "--floats", "f16"}),
                  {"error[bundle.weight]", "expected f32[K, N], got F16[24, 20]"}, 2, m.registry);
    write_file(m.path("model.gguf"), parts.text().substr(0, 300));
    check_refused(make({"--weights", m.path("model.gguf")}), {"error[gguf.cut]", "Is it whole?"}, 2, m.registry);
    check_refused({"bundle", "make", m.path("x.tess"), "--from", m.path("gemm"), "--floats", "f32"},
                  {"error[bundle.weight]", "--floats f32: expected --weights with it"}, 2, m.registry);
}

static bool schema_accepts(const json &document) {
    const json text = json::parse(read_file(std::string(TESSERA_SOURCE_DIR) + "/schedules/tessera-bundle.schema.json"));
    valijson::Schema schema;
    valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

TEST_CASE("bundle: manifests are documents by the schema") {
    const Made m;
    REQUIRE(m.make("layer.tess").code == 0);
    const json document = json::parse(Bundle(m.path("layer.tess")).manifest_text());
    CHECK(schema_accepts(document));
    for (const auto &[pointer, value] : std::vector<std::pair<const char *, json>>{{"/version", 2},
                                                                                   {"/more", 1},
                                                                                   {"/end", -1},
                                                                                   {"/kernels", json::array()},
                                                                                   {"/kernels/0/name", "a\"b"},
                                                                                   {"/kernels/0/arguments/0/role", "in"},
                                                                                   {"/members/0/offset", 65},
                                                                                   {"/members/0/sha256", "sha256:0"},
                                                                                   {"/packed/0/layout", "0x1"}}) {
        json wrong = document;
        wrong[json::json_pointer(pointer)] = value;
        INFO(pointer);
        CHECK(!schema_accepts(wrong));
    }
}

TEST_CASE("bundle: packed weights have the bytes that the kernel's own function writes") {
    const Made m;
    REQUIRE(m.make("layer.tess").code == 0);
    const Bundle bundle(m.path("layer.tess"));
    const BundleManifest &b = bundle.manifest();
    const std::vector<std::string> have = host_features();
    size_t compared = 0;
    for (const BundleCode &code : b.kernels[0].code) {
        const Target target = target_named(code.target);
        if (target.arch != host_arch() || !std::all_of(target.features.begin(), target.features.end(), [&](const std::string &f) {
                return std::find(have.begin(), have.end(), f) != have.end();
            }))
            continue;
        // A library for this target alone: with several, the best one packs.
        REQUIRE(generator({"generate", "matmul", "--name", "gemm", "--target", code.target, "--out", m.path(code.target), "--quiet"},
                          m.registry)
                    .code == 0);
        TessLoaded *loaded = nullptr;
        REQUIRE(tess_load_file(m.path(code.target + "/libgemm.a").c_str(), &loaded, nullptr) == TESS_LOAD_OK);
        using Size = int32_t (*)(const TessTensor *, const TessContext *, uint64_t *);
        using Pack = int32_t (*)(const TessTensor *, const TessTensor *, const TessContext *);
        const auto size = reinterpret_cast<Size>(tess_loaded_symbol(loaded, "gemm_pack_w_size"));
        const auto pack = reinterpret_cast<Pack>(tess_loaded_symbol(loaded, "gemm_pack_w"));
        std::string w = floats(24 * 20);
        const int64_t shape[] = {24, 20};
        const TessTensor tensor = tess_dense(w.data(), TESS_F32, 2, shape);
        uint64_t bytes = 0;
        REQUIRE(size(&tensor, nullptr, &bytes) == TESS_OK);
        std::vector<char> memory(bytes + 64);
        char *aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
        const TessTensor packed = tess_packed(aligned, &bytes);
        REQUIRE(pack(&tensor, &packed, nullptr) == TESS_OK);
        for (const BundlePackedTensor &p : b.packed)
            if (p.layout == code.packed[0].layout) {
                compared++;
                CHECK((bundle.read(p.member, bytes) == std::string(aligned, bytes)));
            }
        tess_loaded_close(loaded);
    }
    CHECK(compared > 0);
}

TEST_CASE("bundle: the loader of applications opens it, demands the key, and runs its kernel with its packed weight") {
    const Made m;
    write_file(
        m.path("release.key"),
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n");
    REQUIRE(m.make("layer.tess", {"--key", m.path("release.key")}).code == 0);
    const KeyBytes key =
        check_signature(*Bundle(m.path("layer.tess")).signature_text(), Bundle(m.path("layer.tess")).manifest_text(), {}, "x").public_key;
    TessBundleError error;
    TessBundleOptions options = tess_bundle_options();
    options.public_key = key.data(), options.verify = tess_ed25519_verify;
    uint64_t bytes = 0;
    const std::string file = m.path("layer.tess");
    REQUIRE(tess_bundle_bytes(file.c_str(), &bytes, &error) == TESS_OK);
    std::vector<uint64_t> memory(bytes / 8 + 1);
    TessBundle *bundle = nullptr;
    const int32_t opened = tess_bundle_open(file.c_str(), &options, memory.data(), bytes, &bundle, &error);
    INFO(error.text);
    REQUIRE(opened == TESS_OK);
    TessKernel kernel = tess_kernel();
    if (host_arch() == Arch::x86_64) {
        REQUIRE(tess_bundle_kernel(bundle, "gemm", &kernel, &error) == TESS_OK);
        TessTensor w;
        REQUIRE(tess_bundle_weight(bundle, "gemm", "w", &w, &error) == TESS_OK);
        std::vector<float> x(3 * 24, 0.5f), y(3 * 20);
        const int64_t x_shape[] = {3, 24}, y_shape[] = {3, 20};
        const TessTensor tx = tess_dense(x.data(), TESS_F32, 2, x_shape), ty = tess_dense(y.data(), TESS_F32, 2, y_shape);
        const TessTensor *const tensors[] = {&tx, &w, &ty};
        TessContext context = tess_context();
        uint64_t workspace = 0;
        REQUIRE(tess_call_workspace(&kernel, tensors, &context, &workspace) == TESS_OK);
        std::vector<char> room(workspace + 64);
        context.workspace = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64, context.workspace_bytes = workspace;
        REQUIRE(tess_call(&kernel, tensors, nullptr, &context) == TESS_OK);
        const std::string values = floats(24 * 20);
        for (size_t n = 0; n < 20; n++) {
            float sum = 0;
            for (size_t k = 0; k < 24; k++) {
                float value = 0;
                std::memcpy(&value, values.data() + 4 * (k * 20 + n), 4);
                sum += 0.5f * value;  // exact: sixteenths
            }
            for (size_t row = 0; row < 3; row++) CHECK(y[row * 20 + n] == sum);
        }
    }
    tess_bundle_close(bundle);
}

TEST_CASE("bundle: layouts with axes whole and in parts, in any order") {
    std::string bytes(5 * 3 * 2, '\0');
    std::iota(bytes.begin(), bytes.end(), '\1');
    const auto packed = [&](const std::vector<std::string> &layout) {
        return packed_bytes({{"A", "B", "C"}, layout, 7, DType::u8}, {5, 3, 2}, bytes, "w").substr(TESS_PACKED_HEADER_BYTES);
    };
    CHECK(packed({"A", "B", "C"}) == bytes);
    const auto expected = [&](auto at, std::vector<int> extents) {
        std::string text;
        std::vector<int> i(extents.size(), 0);
        for (int n = std::accumulate(extents.begin(), extents.end(), 1, std::multiplies<>()), k = 0; k < n; k++) {
            int rest = k;
            for (size_t d = extents.size(); d-- > 0;) i[d] = rest % extents[d], rest /= extents[d];
            const auto [a, b, c] = at(i);
            text += a < 5 && b < 3 && c < 2 ? bytes[static_cast<size_t>((a * 3 + b) * 2 + c)] : '\0';
        }
        return text;
    };
    using At = std::tuple<int, int, int>;
    CHECK(packed({"C", "A", "B"}) == expected([](auto &i) { return At(i[1], i[2], i[0]); }, {2, 5, 3}));
    CHECK(packed({"A/4", "B", "C", "A%4"}) == expected([](auto &i) { return At(i[0] * 4 + i[3], i[1], i[2]); }, {2, 3, 2, 4}));
    CHECK(packed({"A%4", "B/2", "C", "B%2", "A/4"}) ==
          expected([](auto &i) { return At(i[4] * 4 + i[0], i[1] * 2 + i[3], i[2]); }, {4, 2, 2, 2, 2}));
    CHECK(packed({"B%8", "A", "C", "B/8"}) == expected([](auto &i) { return At(i[1], i[3] * 8 + i[0], i[2]); }, {8, 5, 2, 1}));
    for (const std::vector<std::string> &wrong : std::vector<std::vector<std::string>>{{"A", "B"},
                                                                                       {"A", "B", "D"},
                                                                                       {"A", "A", "B", "C"},
                                                                                       {"A/4", "B", "C"},
                                                                                       {"A/4", "A%2", "B", "C"},
                                                                                       {"", "B", "C"},
                                                                                       {"A/0", "A%0", "B", "C"}})
        CHECK_THROWS_WITH(packed(wrong), Catch::Contains("error[bundle.packed]"));
}

TEST_CASE("bundle: a program whose calls take schedules of their own, and a module, are rebuilt") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "made").string(), file = (folder.path() / "b.tess").string();
    const Outcome module = stock_generator(
        "generate --kernel up=linear_gelu:N=64,K=48 --kernel layernorm --name layer --target avx2 --sources --quiet --out '" + out + "'");
    INFO(module.err);
    REQUIRE(module.code == 0);
    const Outcome program =
        stock_generator("generate feed_forward --target avx2 --derive-for M=32 --shape D=32 F=64 --sources --quiet --out '" + out + "'");
    INFO(program.err);
    REQUIRE(program.code == 0);
    const Outcome option = stock_generator("generate fft --option points=60 --target avx2 --sources --quiet --out '" + out + "'");
    INFO(option.err);
    REQUIRE(option.code == 0);
    REQUIRE(stock_generator("bundle make '" + file + "' --from '" + out + "'").code == 0);
    const Outcome rebuilt = stock_generator("bundle check '" + file + "' --rebuild", "cd / && TESSERA_CACHE= ");
    INFO(rebuilt.out << rebuilt.err);
    CHECK(rebuilt.code == 0);
    for (const char *member : {"code/avx2/liblayer.a", "include/avx2/layer.h", "code/avx2/libfeed_forward.a", "include/avx2/fft.h"})
        CHECK_THAT(rebuilt.out, Catch::Contains(std::string("ok: ") + member + " comes again"));
}

TEST_CASE("bundle: a signature vouches for the manifest, and a key can be demanded") {
    const Made m;
    // RFC 8410, section 10.3.
    write_file(
        m.path("release.key"),
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n");
    write_file(m.path("release.pub"),
               "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n");
    write_file(m.path("other.pub"),
               "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n");
    REQUIRE(m.make("plain.tess").code == 0);
    REQUIRE(m.make("signed.tess", {"--key", m.path("release.key"), "--name", "plain"}).code == 0);
    const Bundle plain(m.path("plain.tess")), with(m.path("signed.tess"));
    CHECK(plain.manifest_text() == with.manifest_text());
    CHECK(with.zip().members().back().path == "signature");
    const auto check = [&](const std::string &file, std::vector<std::string> more = {}) {
        std::vector<std::string> words = {"bundle", "check", m.path(file)};
        words.insert(words.end(), more.begin(), more.end());
        return generator(words, m.registry);
    };
    CHECK(check("signed.tess").code == 0);
    CHECK_THAT(
        check("signed.tess", {"--public-key", m.path("release.pub")}).out,
        Catch::Contains(
            "ok: the signature of key 'release', 19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1, which is trusted"));
    CHECK(check("signed.tess", {"--public-key", m.path("release.pub")}).code == 0);
    const Outcome other = check("signed.tess", {"--public-key", m.path("other.pub")}),
                  none = check("plain.tess", {"--public-key", m.path("release.pub")});
    CHECK((other.code == 1 && none.code == 1));
    CHECK_THAT(other.out, Catch::Contains("error[bundle.signature]") && Catch::Contains("not by the one that is trusted"));
    CHECK_THAT(none.out, Catch::Contains("expected a signature, and there is none"));
    CHECK_THAT(generator({"bundle", "list", m.path("signed.tess")}).out, Catch::Contains("signed: by key 'release'"));

    // One bundle's signature on another's manifest.
    REQUIRE(m.make("renamed.tess", {"--name", "renamed"}).code == 0);
    const Bundle renamed(m.path("renamed.tess"));
    std::vector<ZipContent> contents;
    for (const ZipMember &member : renamed.zip().members())
        contents.push_back({member.path, {}, renamed.zip().file(), member.offset, member.bytes});
    contents.push_back({"signature", *with.signature_text()});
    write_stored_zip(m.path("forged.tess"), contents);
    const Outcome forged = check("forged.tess");
    CHECK(forged.code == 1);
    CHECK_THAT(forged.out, Catch::Contains("it is no signature of this manifest by that key"));
    for (const char *key : {"release.pub", "weights", "none"})
        CHECK_THAT(m.make("x.tess", {"--key", m.path(key)}).err, Catch::Contains("error[bundle."));
    check_refused({"bundle", "make", m.path("x.tess"), "--from", m.path("gemm"), "--key", m.path("release.key"), "--key-name", "a b"},
                  {"error[bundle.key]"}, 2, m.registry);
    CHECK(!fs::exists(m.path("x.tess")));
}

TEST_CASE("bundle: any byte that is changed is found") {
    const Made m;
    REQUIRE(m.make("layer.tess").code == 0);
    const std::string bytes = read_file(m.path("layer.tess")), changed = m.path("changed.tess");
    for (size_t i = 1; i < bytes.size(); i += bytes.size() / 60) {
        std::string other = bytes;
        other[i] = static_cast<char>(other[i] ^ 0x20);
        write_file(changed, other);
        const Outcome outcome = generator({"bundle", "check", changed}, m.registry);
        INFO(i << "\n" << outcome.out << outcome.err);
        CHECK(outcome.code == 1);
    }
    write_file(changed, bytes.substr(0, bytes.size() / 2));
    CHECK(generator({"bundle", "check", changed}, m.registry).code == 1);
    check_refused({"bundle", "check", m.path("absent.tess")}, {"error[zip.file]"});
}

// The manifest of `file` with one change, in a bundle whose other members stay where they are.
static Outcome with_manifest(const Made &m, const std::function<void(nlohmann::ordered_json &)> &change) {
    const Bundle bundle(m.path("layer.tess"));
    nlohmann::ordered_json document = nlohmann::ordered_json::parse(bundle.manifest_text());
    change(document);
    std::vector<ZipContent> contents = {{"manifest.json", document.dump(1) + "\n"}};
    const auto &members = bundle.zip().members();
    for (size_t i = 1; i < members.size(); i++)
        contents.push_back({members[i].path, {}, bundle.zip().file(), members[i].offset, members[i].bytes});
    write_stored_zip(m.path("changed.tess"), contents);
    return generator({"bundle", "check", m.path("changed.tess")}, m.registry);
}

TEST_CASE("bundle: manifests that contradict themselves are refused in words") {
    const Made m;
    REQUIRE(m.make("layer.tess").code == 0);
    const struct {
        std::function<void(nlohmann::ordered_json &)> change;
        std::string id;
    } cases[] = {
        {[](auto &d) { d["version"] = 2; }, "bundle.version"},
        {[](auto &d) { d["more"] = 2; }, "json.unknown-field"},
        {[](auto &d) { d.erase("end"); }, "json.missing"},
        {[](auto &d) { d["end"] = -1; }, "json.value"},
        {[](auto &d) { d["end"] = d["end"].template get<int64_t>() + 64; }, "bundle.manifest"},
        {[](auto &d) { d["members"][0]["offset"] = 65; }, "bundle.manifest"},
        {[](auto &d) { d["members"][0]["bytes"] = int64_t{1} << 61; }, "bundle.manifest"},
        {[](auto &d) { d["members"][0]["path"] = "../x"; }, "bundle.manifest"},
        {[](auto &d) { d["members"][0]["path"] = "other/x"; }, "bundle.manifest"},
        {[](auto &d) { d["members"][1] = d["members"][0]; }, "bundle.manifest"},
        {[](auto &d) { d["members"][0]["sha256"] = "sha256:00"; }, "bundle.manifest"},
        {[](auto &d) { std::swap(d["members"][0], d["members"][1]); }, "bundle.manifest"},
        {[](auto &d) { d["targets"][0]["name"] = "a\"b"; }, "bundle.manifest"},
        {[](auto &d) { std::swap(d["targets"][0], d["targets"][1]); }, "bundle.manifest"},
        {[](auto &d) { d["libraries"][0]["archive"] = "code/none"; }, "bundle.manifest"},
        {[](auto &d) { d["kernels"][0]["code"][0]["library"] = 2; }, "bundle.manifest"},
        {[](auto &d) { d["kernels"][0]["code"][0]["target"] = "avx9"; }, "bundle.manifest"},
        {[](auto &d) { d["kernels"][0]["code"][1] = d["kernels"][0]["code"][0]; }, "bundle.manifest"},
        {[](auto &d) { d["kernels"][0]["weights"][0]["tensor"] = 9; }, "bundle.manifest"},
        {[](auto &d) { d["kernels"][0]["weights"][0]["argument"] = "z"; }, "bundle.manifest"},
        {[](auto &d) { d["kernels"][1]["name"] = "gemm"; }, "bundle.manifest"},
        {[](auto &d) { d["kernels"][0]["arguments"][0]["role"] = "inputs"; }, "bundle.manifest"},
        {[](auto &d) { d["kernels"] = nlohmann::ordered_json::array(); }, "bundle.manifest"},
        {[](auto &d) { d["tensors"][0]["offset"] = 64; }, "bundle.manifest"},
        {[](auto &d) { d["tensors"][0]["offset"] = d["tensors"][0]["offset"].template get<int64_t>() + 1; }, "bundle.manifest"},
        {[](auto &d) { d["packed"][0]["layout"] = "0x"; }, "bundle.manifest"},
        {[](auto &d) { d["packed"][0]["tensor"] = 2; }, "bundle.manifest"},
    };
    size_t number = 0;
    for (const auto &c : cases) {
        const Outcome outcome = with_manifest(m, c.change);
        INFO(number++ << ": " << outcome.out << outcome.err);
        CHECK(outcome.code == 1);
        CHECK_THAT(outcome.out, Catch::Contains("error[" + c.id + "]"));
    }
    // What a manifest may say, and what is not so: the same length, so that everything stays in its place.
    const struct {
        std::function<void(nlohmann::ordered_json &)> change;
        std::string id;
    } lies[] = {
        {[](auto &d) { std::swap(d["members"][0]["sha256"], d["members"][1]["sha256"]); }, "bundle.hash"},
        {[](auto &d) { d["kernels"][0]["code"][0]["bits"] = d["kernels"][0]["algorithm"]["semantic"]; }, "bundle.generated"},
        {[](auto &d) { d["kernels"][0]["algorithm"]["semantic"] = d["kernels"][0]["algorithm"]["surface"]; }, "bundle.generated"},
        {[](auto &d) {
             d["kernels"][0]["arguments"][0]["dims"] = {"K", "M"};
         },
         "bundle.generated"},
        {[](auto &d) { d["tensors"][0]["name"] = "gemm.v"; }, "bundle.weight"},
        {[](auto &d) { d["packed"][0]["layout"] = "0x0000000000000000"; }, "bundle.packed"},
    };
    for (const auto &c : lies) {
        const Outcome outcome = with_manifest(m, c.change);
        INFO(outcome.out << outcome.err);
        CHECK(outcome.code == 1);
        CHECK_THAT(outcome.out, Catch::Contains("error[" + c.id + "]"));
    }
    CHECK(with_manifest(m, [](auto &) {}).code == 0);
}

TEST_CASE("bundle: what does not go together is refused when it is made") {
    const Made m;
    const auto refuse = [&](std::vector<std::string> words, const std::string &id) {
        words.insert(words.begin(), {"bundle", "make", m.path("x.tess")});
        check_refused(words, {"error[" + id + "]"}, 2, m.registry);
        CHECK(!fs::exists(m.path("x.tess")));
    };
    write_file(m.path("release.key"), "a key");
    check_refused({"bundle", "make", m.path("release.key"), "--from", m.path("gemm")}, {"error[command.arguments]", "ends in .tess"}, 2,
                  m.registry);
    CHECK(read_file(m.path("release.key")) == "a key");
    refuse({}, "bundle.folder");
    refuse({"--from", m.path("none")}, "bundle.folder");
    refuse({"--from", m.folder.path().string()}, "bundle.folder");
    refuse({"--from", m.path("gemm"), m.path("gemm")}, "bundle.repeated");
    refuse({"--from", m.path("gemm"), "--name", "a b"}, "bundle.name");
    refuse({"--from", m.path("gemm"), "--weights", m.path("LICENSE")}, "safetensors.cut");
    refuse({"--from", m.path("gemm"), "--weight", "w=x"}, "bundle.weight");
    refuse({"--from", m.path("gemm"), "--weights", m.path("weights"), "--weight", "w=nothing"}, "safetensors.missing");
    refuse({"--from", m.path("gemm"), "--weights", m.path("weights"), "--weight", "v=other"}, "bundle.weight");
    refuse({"--from", m.path("gemm"), "--weights", m.path("weights"), "--weight", "gemm.w=other"}, "bundle.weight");
    refuse({"--from", m.path("gemm"), "--rebuild"}, "command.arguments");
    REQUIRE(generator({"generate", "matmul", "--name", "gemm", "--target", "avx512", "--shape", "N=24", "--out", m.path("fixed"), "--quiet",
                       "--schedule", "none"},
                      m.registry)
                .code == 0);
    refuse({"--from", m.path("gemm"), m.path("fixed")}, "bundle.kernel");
    REQUIRE(generator({"generate", "matmul", "--emit", "c", "--target", "avx2", "--out", m.path("c"), "--quiet"}, m.registry).code == 0);
    refuse({"--from", m.path("c")}, "bundle.generated");
    // A library that was changed behind its manifest.
    write_file(m.path("gemm/gemm.h"), "int x;\n");
    refuse({"--from", m.path("gemm")}, "bundle.hash");
    check_refused({"bundle", "list", m.path("LICENSE")}, {"error[zip.end]"});
    check_refused({"bundle", "list", m.path("weights"), "--from", "x"}, {"error[command.arguments]"});
}

TEST_CASE("bundle: runs to replay are taken along where they fit the kernels") {
    const Made m;
    fs::create_directories(m.path("replay"));
    const std::string x = floats(6), hash = sha256("");
    write_safetensors(m.path("replay/inputs.safetensors"), {{"run0.x", "F32", {2, 3}, x}}, {});
    json run = {{"kernel", "softmax"},
                {"extents", {{"M", 2}, {"N", 3}}},
                {"inputs", {{{"argument", "x"}, {"tensor", "run0.x"}}}},
                {"parameters", json::array()},
                {"outputs", {{{"argument", "y"}, {"bits", hash}, {"sha256", hash}}}}};
    const auto attempt = [&](const json &one) {
        write_file(m.path("replay/expected.json"), json{{"format", "tessera-replay"}, {"version", 1}, {"runs", {one}}}.dump());
        return m.make("r.tess", {"--replay", m.path("replay")});
    };
    const Outcome made = attempt(run);
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK(Bundle(m.path("r.tess")).manifest().replay == "replay/expected.json");
    CHECK_THAT(generator({"bundle", "check", m.path("r.tess")}, m.registry).out, Catch::Contains("ok: 1 file of runs to replay"));
    json seeded = run;
    seeded["inputs"] = {{{"argument", "x"}, {"seed", 7}, {"step", 0}}};
    CHECK(attempt(seeded).code == 0);
    for (const auto &[pointer, value] : std::vector<std::pair<const char *, json>>{{"/kernel", "none"},
                                                                                   {"/inputs", json::array()},
                                                                                   {"/inputs/0/tensor", "run1.x"},
                                                                                   {"/inputs/0/argument", "y"},
                                                                                   {"/extents/M", -1},
                                                                                   {"/outputs/0/argument", "x"},
                                                                                   {"/outputs/0/bits", "sha256:0"},
                                                                                   {"/parameters", {{{"name", "eps"}, {"value", "1"}}}}}) {
        json wrong = run;
        wrong[json::json_pointer(pointer)] = value;
        INFO(pointer);
        const Outcome refused = attempt(wrong);
        CHECK(refused.code == 2);
        CHECK_THAT(refused.err, Catch::Contains("error[replay.run]") || Catch::Contains("error[json."));
    }
}

}  // namespace tessera::test_bundle
