#include "generators/registry/registry.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/convolution.h"
#include "algorithms/library/library.h"
#include "algorithms/text/hash.h"
#include "generators/kernel/prepare.h"
#include "schedules/target/target_file.h"
#include "support/files/output_folder.h"
#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_registry {

using namespace tessera::test;

TEST_CASE("a registry finds algorithms by name and lists them sorted") {
    const Registry registry = sample_registry();
    CHECK(registry.find("matmul").summary == "y[M, N] = x[M, K] w[K, N]");
    CHECK(registry.make("matmul", numerics_named("f64")).tensors[0].dtype == DType::f64);
    std::vector<std::string> names;
    for (const auto &entry : registry.entries()) names.push_back(entry.name);
    CHECK(names == std::vector<std::string>{"cumulative_sum", "layernorm", "matmul", "ring_append", "segmented_sum"});
}

TEST_CASE("a registry's schedules come before files and have their names once") {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/mine").stage("y", block({{"M", 4}})); });
    CHECK(registry.library({}).find("matmul/mine").text() != "");
    registry.add_schedule([] { return Schedule("matmul/mine").stage("y", block({{"M", 8}})); });
    check_words([&] { registry.library({}); }, {"error[schedule.duplicate]", "'matmul/mine'"});
}

TEST_CASE("a numerics policy of one's own is registered, or a file that is named in place of a policy") {
    Registry registry = sample_registry();
    Numerics strict = numerics_named("bf16");
    strict.name = "strict", strict.denormals = Denormals::gradual;
    registry.add_numerics(strict);
    registry.check();
    CHECK(registry.numerics("strict") == strict);
    CHECK(registry.numerics("f64").compute == DType::f64);
    check_words([&] { registry.numerics("strikt"); },
                {"error[numerics.unknown]", "This generator's own are strict. Did you mean 'strict'?"});
    const Outcome listed = generator({"list"}, registry);
    CHECK_THAT(listed.out, Catch::Contains("strict") && Catch::Contains("storage bf16, compute f32, accumulate f32, nearest_even\n"));

    const TemporaryFolder folder;
    const std::string file = (folder.path() / "mine.json").string();
    std::ofstream(file) << R"({"format": "tessera-numerics", "version": 1, "name": "mine", "storage": "bf16", "outputs": "f32"})";
    const std::string depfile = (folder.path() / "made.d").string();
    const Outcome made = generator(
        {"generate", "matmul", "--target", "avx2", "--numerics", file, "--out", folder.path().string(), "--depfile", depfile}, registry);
    INFO(made.err);
    REQUIRE(made.code == 0);
    const auto manifest = nlohmann::json::parse(read_file(folder.path() / "matmul.manifest.json"));
    CHECK(manifest["numerics"] == "mine");
    CHECK(manifest["policy"] == "storage bf16, outputs f32, compute f32, accumulate f32, nearest_even, denormals any");
    CHECK_THAT(read_file(depfile), Catch::Contains("mine.json"));
    check_refused({"generate", "matmul", "--target", "avx2", "--numerics", (folder.path() / "none.json").string(), "--out", "x"},
                  {"error[numerics.file]", "none.json'"});

    check_words([&] { Registry(registry).add_numerics(strict).check(); }, {"error[generator.duplicate]: numerics policy 'strict'"});
    strict.storage = DType::i8;
    check_words([&] { Registry().add_numerics(strict).check(); }, {"error[numerics.policy]"});
}

TEST_CASE("options reach the algorithm, complete and in range") {
    Registry registry;
    registry.add("conv2d_nhwc", "a convolution", window_options(), library::conv2d_nhwc);
    auto hash = [&](const Options &options) { return semantic_hash(registry.make("conv2d_nhwc", {}, options)); };
    CHECK(hash({}) == hash({{"stride", 1}, {"padding", 0}}));
    CHECK(hash({}) != hash({{"stride", 2}}));
    check_words(
        [&] {
            registry.make("conv2d_nhwc", {}, {{"stride", 65}});
        },
        {"error[option.range]: conv2d_nhwc: option stride (step between windows) = 65: expected a whole number of 1 to 64; the default is "
         "1."});
    check_words(
        [&] {
            registry.make("conv2d_nhwc", {}, {{"groups", 2}});
        },
        {"error[option.unknown]: conv2d_nhwc: there is no option 'groups'; the options are stride, padding, dilation."});
    KernelOptions kernel;
    kernel.algorithm = "conv2d_nhwc", kernel.target = "avx2", kernel.schedule = "none", kernel.options = {"padding=1"};
    CHECK(prepare_schedule(registry, kernel).request.options == Options{{"stride", 1}, {"padding", 1}, {"dilation", 1}});
}

TEST_CASE("a registry's errors") {
    Registry registry = sample_registry();
    check_words([&] { registry.find("matmull"); },
                {"error[generator.unknown-algorithm]: there is no algorithm 'matmull'; the algorithms "
                 "are cumulative_sum, layernorm, matmul, ring_append, segmented_sum.",
                 "Did you mean 'matmul'?", "One of your own is registered in a generator of your own, or is a file (*.json)."});
    registry.add("product", "another name", library::matmul);
    check_words([&] { registry.make("product", {}); }, {"error[generator.name]: algorithm 'product': expected it to carry the name that it "
                                                        "is registered by; got 'matmul'. Register it by that name,"});
    registry.add("product", "again", library::matmul);
    check_words([&] { registry.check(); },
                {"error[generator.duplicate]: algorithm 'product': expected one registration of each name; got two."});
    check_refused({"list"}, {"error[generator.duplicate]"}, 2, registry);
}

static Target laptop() {
    Target target = target_named("avx2");
    target.l2_bytes = 256 << 10;
    return target;
}

TEST_CASE("a monoid that breaks a law is refused by every command, with the values that break it") {
    Registry registry;
    registry.add("doubled", "y[M] = sums, of which combine knows nothing", [](const Numerics &numerics) {
        Monoid m = sum_monoid(DType::f32);
        m.name = "doubled", m.step = {fma(input(0, DType::f32), constant(DType::f32, 2), left(0, DType::f32))};
        m.batch.clear(), m.batch_parts.clear();
        Builder f("doubled", numerics);
        const Dim M = f.dim("M"), K = f.dim("K");
        return f.output("y", f.fold(m, {f.input("x", {M, K})}, {K.name})[0]).build();
    });
    for (const std::vector<std::string> &command :
         {std::vector<std::string>{"show"}, {"verify"}, {"bench"}, {"tune"}, {"generate", "--out", "none"}}) {
        std::vector<std::string> line = {command[0], "doubled"};
        line.insert(line.end(), command.begin() + 1, command.end());
        check_refused(line,
                      {"error[algorithm.monoid-law]: doubled.y: the monoid 'doubled': step is not combine after lift: for a = 0.0, x = "
                       "0.75, step(a, x) is 1.5, and combine(a, lift(x)) is 0.75."},
                      2, registry);
    }
}

TEST_CASE("a registered target stands wherever one is named, as the one whose code it has") {
    Registry registry = sample_registry();
    registry.add_target("laptop", laptop());
    CHECK(registry.target("laptop") == laptop());
    CHECK(registry.target("avx512") == target_named("avx512"));
    check_words([&] { registry.target("lapdog"); }, {"error[target.unknown]: there is no target 'lapdog'; the targets are x86-64, ",
                                                     "This generator's own are laptop.", "Did you mean 'laptop'?"});
    CHECK(generator({"show", "matmul", "--quiet", "--target", "laptop", "--what", "tiles"}, registry).out ==
          generator({"show", "matmul", "--quiet", "--target", "avx2", "--what", "tiles"}, registry).out);
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "t.json";
    std::ofstream(file) << target_text(laptop());
    registry.add_target("from_file", file);
    CHECK(registry.target("from_file") == laptop());
    CHECK(registry.target_file("from_file") == file);
    CHECK(registry.target_file("laptop") == std::nullopt);
    CHECK_THAT(generator({"list"}, registry).out,
               Catch::Contains("targets of this generator\n  laptop     avx2 with caches of 32 KiB, 256 KiB"));

    Target other = laptop();
    other.name = "mine";
    check_refused({"list"},
                  {"error[generator.target]: target 'other': expected one of Tessera's targets, with other numbers at most; got one "
                   "that is called 'mine'. Begin with target_named(\"avx2\")"},
                  2, Registry(registry).add_target("other", other));
    other = laptop(), other.vector_bytes = 64;
    check_refused({"list"}, {"error[generator.target]: target 'wide': ", "got vectors that 'avx2' does not have."}, 2,
                  Registry(registry).add_target("wide", other));
}

TEST_CASE("a registered folder of schedules comes after those that are given and before Tessera's own") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.path() / "matmul");
    std::ofstream(folder.path() / "matmul" / "avx2.json") << Schedule("matmul/avx2").stage("y", block({{"M", 4}})).text();
    Registry registry = sample_registry();
    registry.add_schedules(folder.path());
    const auto folders = registry.schedule_folders({"mine"});
    REQUIRE(folders.size() >= 2);
    CHECK(folders[0] == "mine");
    CHECK(folders[1] == folder.path());
    CHECK_THAT(generator({"show", "matmul", "--quiet", "--target", "avx2", "--what", "schedule"}, registry).out,
               Catch::Contains("\"M\": 4"));
    check_refused({"list"}, {"error[schedule.folder]"}, 2, Registry(registry).add_schedules(folder.path() / "none"));
}

TEST_CASE("a registered file or folder that is missing stops only the commands that need it") {
    const TemporaryFolder folder;
    Registry registry = sample_registry();
    registry.add_target("lost", folder.path() / "none.json").add_target("laptop", laptop());
    const Outcome listed = generator({"list"}, registry);
    CHECK(listed.code == 2);
    CHECK_THAT(listed.out, Catch::Contains("matmul          y[M, N]") &&
                               Catch::Contains("  lost    cannot be read; see the error below\n  laptop  avx2 with caches of ") &&
                               Catch::Contains("numerics\n"));
    CHECK_THAT(listed.err, Catch::StartsWith("error[target.file]: ") && Catch::Contains("none.json"));
    for (const std::vector<std::string> &line : std::vector<std::vector<std::string>>{
             {"--help"}, {"show", "--help"}, {"show", "matmul"}, {"show", "matmul", "--quiet", "--target", "laptop", "--what", "tiles"}})
        CHECK(generator(line, registry).code == 0);
    check_refused({"show", "matmul", "--target", "lost", "--what", "tiles"}, {"error[target.file]: ", "none.json"}, 2, registry);

    registry = sample_registry();
    registry.add_schedules(folder.path() / "none");
    CHECK_THAT(generator({"list", "matmul"}, registry).out, Catch::Contains("  y[M, N] = ") && Catch::Contains("  schedules "));
    for (const std::vector<std::string> &line : std::vector<std::vector<std::string>>{{"--help"}, {"show", "matmul"}})
        CHECK(generator(line, registry).code == 0);
    check_refused({"show", "matmul", "--what", "tiles"}, {"error[schedule.folder]: schedule folder '"}, 2, registry);
}

TEST_CASE("an empty function is refused when it is registered") {
    auto empty = [](const std::string &what, const std::function<void(Registry &)> &add) {
        Registry registry = sample_registry();
        add(registry);
        check_refused({"list"},
                      {"error[generator.entry]: " + what + ": expected a function; got an empty one. Register one that can be called."}, 2,
                      registry);
    };
    empty("algorithm 'mine'", [](Registry &r) { r.add("mine", "", std::function<Algorithm(const Numerics &)>()); });
    empty("algorithm 'mine'", [](Registry &r) { r.add("mine", "", {}, std::function<Algorithm(const Numerics &, const Options &)>()); });
    empty("a registered schedule", [](Registry &r) { r.add_schedule({}); });
    empty("cost model 'mine'", [](Registry &r) { r.add_cost_model("mine", "", {}); });
    empty("mutator 'mine'", [](Registry &r) { r.add_mutator("mine", "", {}); });
    empty("analyser 'mine'", [](Registry &r) { r.add_analyser("mine", "", {}); });
}

TEST_CASE("the numbers of a registered target are possible ones") {
    const std::string begin = "error[generator.target]: target 'mine': ";
    auto refused = [&](const char *base, const std::function<void(Target &)> &change, const std::string &got) {
        Target target = target_named(base);
        change(target);
        check_refused({"list"}, {begin, got}, 2, sample_registry().add_target("mine", target));
    };
    refused(
        "opencl", [](Target &t) { t.max_threads = 0; }, "got blocks of 0 threads that share 32768 bytes.");
    refused(
        "cuda-sm80", [](Target &t) { t.shared_bytes = -1; }, "got blocks of 1024 threads that share -1 bytes.");
    refused(
        "avx2", [](Target &t) { t.max_threads = 8; }, "got blocks of 8 threads that share 0 bytes.");
    refused(
        "cuda-sm80", [](Target &t) { t.compute_capability = 90; }, "got one that is called 'cuda-sm80' and has not its features.");
    for (const char *base : {"avx2", "opencl"}) {
        refused(
            base, [](Target &t) { t.l1_bytes = 0; }, "got a cache of no bytes.");
        refused(
            base, [](Target &t) { t.l3_bytes = -1; }, "got a cache of no bytes.");
    }
    Target large = target_named("opencl");
    large.max_threads = 1024, large.shared_bytes = 64 << 10;
    CHECK(generator({"list"}, sample_registry().add_target("large", large)).code == 0);
}

TEST_CASE("a registered target among others: the words") {
    Registry registry = sample_registry();
    registry.add_target("small", laptop());
    check_refused(
        {"generate", "matmul", "--out", "nowhere", "--target", "small,avx2"},
        {"error[target.repeated]: targets 'small,avx2': 'small' and 'avx2' both stand for the code of 'avx2', which a library has "
         "once; name one of them."},
        2, registry);
    check_refused({"generate", "matmul", "--out", "nowhere", "--target", "small,arm64"}, {"'small' is for x86-64, 'arm64' for arm64."}, 2,
                  registry);
    check_refused(
        {"show", "matmul", "--target", "small+avx512f", "--what", "tiles"},
        {"error[target.unknown-feature]: target 'small+avx512f': expected one of Tessera's targets before '+'; got 'small', which "
         "this generator registers. Register another for 'avx2+avx512f'."},
        2, registry);
}

// Wants the most code, so that nobody takes it for another.
class Longest : public CostModel {
public:
    std::vector<double> predict(const std::vector<Featured> &candidates) const override {
        std::vector<double> scores;
        for (const Featured &candidate : candidates) scores.push_back(-draft_score(candidate));
        return scores;
    }
    void update(const std::vector<Example> &) override {}
    void load(const std::filesystem::path &) override {}
    void save(const std::filesystem::path &) const override {}
};

TEST_CASE("a registered cost model chooses for tune and predicts for check") {
    const TemporaryFolder folder;
    Registry registry = sample_registry();
    registry.add_cost_model("slowest", "the slowest by the roofline", [](const Target &) { return std::make_unique<Longest>(); });
    const Outcome tuned = generator({"tune", "matmul", "--target", "avx2", "--quiet", "--shape", "M=16", "N=16", "K=16", "--deterministic",
                                     "--trials", "8", "--model", "slowest", "--out", folder.path().string(), "--name", "matmul/slowest"},
                                    registry);
    INFO(tuned.out << tuned.err);
    CHECK(tuned.code == 0);
    const Schedule artifact = read_schedule(folder.path() / "matmul" / "slowest.json");
    CHECK_THAT(artifact.text(), Catch::Contains("registered:slowest"));
    CHECK(generator({"check", folder.path().string(), "--model", "slowest"}, registry).code == 0);
    CHECK_THAT(generator({"list"}, registry).out,
               Catch::Contains("cost models of this generator\n  slowest  the slowest by the roofline\n"));

    registry.add_cost_model("nothing", "none", [](const Target &) { return std::unique_ptr<CostModel>(); });
    check_refused(
        {"tune", "matmul", "--target", "avx2", "--quiet", "--shape", "M=16", "N=16", "K=16", "--deterministic", "--model", "nothing"},
        {"error[generator.builder]: cost model 'nothing': expected the function that makes it to return one; it returned none."}, 2,
        registry);
    check_refused({"list"},
                  {"error[generator.duplicate]: cost model 'none': expected a name that is not Tessera's own; those are none, "
                   "roofline. Give it another name."},
                  2, Registry(registry).add_cost_model("none", "", [](const Target &) { return roofline_model(); }));
}

TEST_CASE("tune asks the decisions of registered mutators") {
    Registry registry = sample_registry();
    registry.add_mutator("serial", "one thread or all", [](const Algorithm &, const Extents &, const auto &ask, KnobsByStage &stages) {
        if (ask({"y", "serial", {{"yes", 1}, {"no", 1}}}) == "yes") stages["y"].parallel.clear();
    });
    const Outcome space =
        generator({"tune", "matmul", "--target", "avx2", "--quiet", "--shape", "M=16", "N=16", "K=16", "--dry-run"}, registry);
    CHECK(space.code == 0);
    CHECK_THAT(space.out, Catch::Contains("y.serial                                 no yes\n"));
    CHECK_THAT(generator({"list"}, registry).out, Catch::Contains("mutators of this generator\n  serial  one thread or all\n"));
    auto nothing = [](const Algorithm &, const Extents &, const auto &, KnobsByStage &) {};
    check_refused({"list"}, {"error[generator.duplicate]: mutator 'serial': expected one registration of each name; got two."}, 2,
                  Registry(registry).add_mutator("serial", "", nothing));
    for (const std::vector<Answer> &answers : std::vector<std::vector<Answer>>{{}, {{"yes", 1}, {"yes", 1}}, {{"yes", 0}}})
        check_refused(
            {"tune", "matmul", "--target", "avx2", "--quiet", "--shape", "M=16", "N=16", "K=16", "--dry-run"},
            {"error[tune.decision]: the decision 'y.odd': expected at least one answer, each once and with a prior above 0; got "}, 2,
            sample_registry().add_mutator("odd", "", [answers](const Algorithm &, const Extents &, const auto &ask, KnobsByStage &) {
                ask({"y", "odd", answers});
            }));
}

TEST_CASE("a registered analyser is one more view of show") {
    Registry registry = sample_registry();
    registry.add_analyser("names", "arguments by name", [](const TileProgram &program) {
        std::string text;
        for (const Argument &argument : program.arguments) text += argument.tensor.name + "\n";
        return text;
    });
    CHECK(generator({"show", "matmul", "--quiet", "--target", "avx2", "--schedule", "none", "--what", "names"}, registry).out ==
          "x\nw\ny\n");
    CHECK_THAT(generator({"show", "--help"}, registry).out, Catch::Contains("names: arguments by name"));
    CHECK_THAT(generator({"list"}, registry).out, Catch::Contains("analysers of this generator\n  names  arguments by name\n"));
    const auto all = nlohmann::json::parse(generator({"list", "--json"}, registry).out);
    CHECK(all["analysers"] == nlohmann::json::parse(R"([{"name": "names", "summary": "arguments by name"}])"));
    CHECK(all["cost_models"].empty());

    auto nothing = [](const TileProgram &) { return std::string(); };
    check_refused({"list"}, {"error[generator.duplicate]: analyser 'tiles': expected a name that is not Tessera's own"}, 2,
                  Registry(registry).add_analyser("tiles", "", nothing));
    check_refused({"list"}, {"error[generator.entry]: analyser 'Cache lines': expected a name of lower-case letters, digits and '_'"}, 2,
                  Registry(registry).add_analyser("Cache lines", "", nothing));
    registry.add_analyser("broken", "what throws", [](const TileProgram &) -> std::string { throw std::runtime_error("no table"); });
    check_refused({"show", "matmul", "--quiet", "--what", "broken"},
                  {"error[generator.builder]: analyser 'broken'", "it threw 'no table'."}, 2, registry);
}

}  // namespace tessera::test_registry
