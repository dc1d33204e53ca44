#include "generators/registry/module.h"

#include <nlohmann/json.hpp>

#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_module {

using namespace tessera::test;

static Module read(const TemporaryFolder &folder, const std::string &text) {
    write_file(folder.path() / "module.json", text);
    KernelOptions common;
    common.target = "avx2", common.quiet = true;
    return read_module(folder.path() / "module.json", common);
}

static std::string with_kernels(const std::string &kernels) {
    return R"({"format": "tessera-module", "version": 1, "name": "layer", "kernels": [)" + kernels + "]}";
}

TEST_CASE("a module's file says each kernel's name, algorithm, shape, numerics and schedules") {
    const TemporaryFolder folder;
    const Module module = read(folder, with_kernels(R"(
        {"name": "up", "algorithm": "conv1d", "numerics": "bf16", "options": {"stride": 2}, "shape": {"N": 96, "K": 32},
         "derive_for": {"M": 512}, "schedule": "mine/up.json", "schedules": {"avx2": "none", "x86-64": "../base.json"}},
        {"algorithm": "models/layer.json"})"));
    CHECK(module.name == "layer");
    REQUIRE(module.kernels.size() == 2);
    const ModuleKernel &up = module.kernels[0], &layer = module.kernels[1];
    using Words = std::vector<std::string>;
    CHECK(up.name == "up");
    CHECK(up.options.algorithm == "conv1d");
    CHECK(up.options.numerics == "bf16");
    CHECK(up.options.options == Words{"stride=2"});
    CHECK(up.options.shape == Words{"K=32", "N=96"});
    CHECK(up.options.derive_for == Words{"M=512"});
    CHECK(up.options.schedule == (folder.path() / "mine/up.json").string());
    CHECK(up.schedules == Words{"avx2=none", "x86-64=" + (folder.path().parent_path() / "base.json").string()});
    CHECK((up.options.target == "avx2" && up.options.quiet));
    CHECK(layer.name == "");
    CHECK(layer.options.algorithm == (folder.path() / "models/layer.json").string());
    CHECK((layer.options.numerics == "" && layer.options.schedule == "" && layer.schedules.empty()));
}

TEST_CASE("mistakes in a module's file are refused with words") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "module.json").string();
    auto refuse = [&](const std::string &text, const std::vector<std::string> &parts) { check_words([&] { read(folder, text); }, parts); };
    refuse(with_kernels(""),
           {"error[module.kernels]: " + file + ": expected 1 to 1000 kernels, got 0. Add what the library shall export."});
    std::string many = R"({"algorithm": "a"})";
    for (int i = 0; i < 1000; i++) many += R"(, {"algorithm": "a"})";
    refuse(with_kernels(many), {"expected 1 to 1000 kernels, got 1001. Make several libraries."});
    refuse(with_kernels(R"({"algoritm": "a"})"), {"error[json.unknown-field]: " + file, "/kernels/0", "Did you mean 'algorithm'?"});
    refuse(with_kernels(R"({"name": "a"})"), {"error[json.missing]", "/kernels/0: the field 'algorithm' is missing"});
    refuse(
        with_kernels(R"({"name": "a b", "algorithm": "a"})"),
        {"error[json.value]", "/kernels/0/name: expected the name of a C function: letters, digits and '_', and no keyword; got 'a b'."});
    refuse(with_kernels(R"({"algorithm": "a", "shape": {"M": -1}})"), {"error[json.value]", "/kernels/0/shape/M"});
    refuse(with_kernels(R"({"algorithm": "a", "schedules": ["none"]})"), {"error[json.type]", "/kernels/0/schedules"});
    refuse(R"({"format": "tessera-campaign", "version": 1, "name": "a", "kernels": []})",
           {"error[json.version]: " + file, "write it by tessera-module.schema.json"});
    refuse(R"({"format": "tessera-module", "version": 1, "kernels": []})", {"error[json.missing]", "'name'"});
    refuse(with_kernels("{}").substr(0, 70), {"error[json.syntax]: " + file});
    refuse(with_kernels(std::string(100000, '[')), {"error[json.depth]: " + file});
    check_words([] { read_module("/no/such/module.json", {}); }, {"error[module.file]: module file '/no/such/module.json'"});
}

TEST_CASE("a kernel in a word: a name, an algorithm and extents") {
    auto parsed = [](const std::string &word) {
        KernelOptions common;
        common.numerics = "f64";
        const ModuleKernel kernel = parse_kernel(word, common);
        CHECK(kernel.options.numerics == "f64");
        std::string text = kernel.name + "|" + kernel.options.algorithm + "|";
        for (const std::string &extent : kernel.options.shape) text += " " + extent;
        return text;
    };
    CHECK(parsed("matmul") == "|matmul|");
    CHECK(parsed("matmul:N=8,K=4") == "|matmul| N=8 K=4");
    CHECK(parsed("up=linear_gelu:N=1536") == "up|linear_gelu| N=1536");
    CHECK(parsed("layer=a folder/x=1/it:8.json") == "layer|a folder/x=1/it| 8.json");  // which has no such extent, and is refused later
    CHECK(parsed("layer=C:/x.json") == "layer|C:/x.json|");
    CHECK(parsed("./x=1.json:N=8") == "|./x=1.json| N=8");
    for (const char *word : {"", "up=", "matmul:", ":N=8", "up=:N=8"})
        check_words([&] { parse_kernel(word, {}); },
                    {std::string("error[command.kernel]: --kernel '") + word +
                     "': expected [<name>=]<algorithm>[:<dim>=<extent>,…], such as "
                     "up=linear_gelu:N=1536,K=384. What does not fit in there is said in a file, --module."});
}

TEST_CASE("the published schema of modules has the fields that are read") {
    const auto schema = nlohmann::json::parse(read_file(TESSERA_SOURCE_DIR "/schedules/tessera-module.schema.json"));
    const nlohmann::json values = {{"name", "a"},
                                   {"algorithm", "a"},
                                   {"numerics", "f32"},
                                   {"options", {{"s", 1}}},
                                   {"shape", {{"M", 1}}},
                                   {"derive_for", {{"N", 1}}},
                                   {"schedule", "none"},
                                   {"schedules", {{"avx2", "none"}}},
                                   {"transforms", nlohmann::json::array({"grad x"})}};
    const TemporaryFolder folder;
    CHECK(read(folder, with_kernels(values.dump())).kernels.size() == 1);
    const auto &properties = schema["properties"]["kernels"]["items"]["properties"];
    CHECK(properties.size() == values.size());
    for (const auto &[name, value] : values.items()) CHECK(properties.contains(name));
    CHECK(schema["properties"]["kernels"]["maxItems"] == max_kernels);
}

}  // namespace tessera::test_module
