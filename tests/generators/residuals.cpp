// Plans of gradients: within their budgets, with the workspace that kernels ask for.
#include <filesystem>
#include <list>

#include "algorithms/library/library.h"
#include "bench/measure/inputs.h"
#include "generators/output/loaded_kernel.h"
#include "generators/residuals/plan_of_gradient.h"
#include "generators/residuals/residuals_command.h"
#include "support/text/error.h"
#include "tests/generators/harness.h"

namespace tessera::test_residuals {

using namespace tessera::test;

namespace {

const Extents extents = {{"B", 1}, {"T", 8}};

KernelOptions encoder() {
    KernelOptions options;
    options.algorithm = "encoder", options.shape = {"L=8", "D=24", "F=96"}, options.target = "x86-64", options.schedule = "none";
    options.options = {"heads=2"}, options.transforms = {"grad x"};
    return options;
}

// What a kernel of these transforms asks for at the extents.
int64_t workspace_of(const KernelOptions &options) {
    const Registry known = sample_registry_with_encoder();
    const PreparedKernel prepared = prepare(known, options);
    const TemporaryFolder folder;
    const LoadedKernels loaded(library_to_load(prepared, {}, folder), prepared);
    const TileProgram &program = prepared.compiled.kernel.general();
    const Extents all = all_extents(program, extents);
    std::list<std::vector<int64_t>> shapes;
    std::vector<TessTensor> arguments;
    std::vector<double> nothing(1 << 16);
    for (const Argument &a : program.arguments) {
        shapes.push_back(shape_of(a.tensor, all));
        arguments.push_back(descriptor_of(a.tensor.dtype, shapes.back(), nothing.data()));
    }
    uint64_t bytes = 0;
    REQUIRE(loaded.kernel.workspace(arguments, tess_context(), bytes) == TESS_OK);
    return static_cast<int64_t>(bytes);
}

}  // namespace

TEST_CASE("plans stay within their budgets, and more memory takes less time") {
    const Registry known = sample_registry_with_encoder();
    const GradientPlan all = plan_of_gradient(known, encoder(), extents, int64_t{1} << 40);
    CHECK(all.peak == all.peak_of_all);
    CHECK(all.groups.empty());
    double before = all.seconds_again;  // attention within a layer runs again in any case
    std::vector<std::string> last;
    for (const double share : {0.9, 0.6, 0.45, 0.35}) {
        const auto budget = static_cast<int64_t>(share * static_cast<double>(all.peak));
        const GradientPlan plan = plan_of_gradient(known, encoder(), extents, budget);
        INFO(plan.text());
        CHECK(plan.peak <= budget);
        CHECK(plan.peak_of_all == all.peak);
        CHECK(plan.seconds_again >= before);
        CHECK(plan.seconds_again <= plan.seconds_most);
        before = plan.seconds_again, last = plan.words();
        KernelOptions planned = encoder();
        for (const std::string &word : plan.words()) planned.transforms[0] += " " + word;
        CHECK(peak_of(known, planned, extents) == plan.peak);
    }
    CHECK(before > all.seconds_again);
    // The workspace is that of the kernel.
    KernelOptions planned = encoder();
    const int64_t saved = workspace_of(planned);
    CHECK(saved == peak_of(known, planned, extents));
    for (const std::string &word : last) planned.transforms[0] += " " + word;
    CHECK(workspace_of(planned) == peak_of(known, planned, extents));
}

TEST_CASE("a budget that no plan has room in is refused with the least that one needs") {
    const Registry known = sample_registry_with_encoder();
    try {
        plan_of_gradient(known, encoder(), extents, 1000);
        FAIL("nothing needs so little");
    } catch (const UserError &e) {
        CHECK(e.id() == "residuals.budget");
        CHECK_THAT(e.message(),
                   Catch::Contains("at most 1000 bytes; the least that was found asks for ") && Catch::Contains("everything saved for "));
    }
    KernelOptions none = encoder();
    none.transforms.clear();
    CHECK_THROWS_WITH(plan_of_gradient(known, none, extents, 1000), Catch::Contains("error[residuals.gradient]"));
    none.transforms = {"grad x layers.*=save"};
    CHECK_THROWS_WITH(plan_of_gradient(known, none, extents, 1000), Catch::Contains("without --residuals"));
}

TEST_CASE("residuals writes a plan that --residuals takes, and says what it costs") {
    const TemporaryFolder folder;
    const std::string file = folder.path() / "plan.json";
    const std::vector<std::string> gradient = {"encoder", "--option", "heads=2", "--shape",    "L=8", "D=24",
                                               "F=96",    "--grad",   "x",       "--schedule", "none"};
    std::vector<std::string> words = gradient;
    words.insert(words.begin(), "residuals");
    for (const char *word : {"--extents", "B=1", "T=8", "--budget", "100kB", "--out"}) words.emplace_back(word);
    words.push_back(file);
    const Outcome outcome = generator(words, sample_registry_with_encoder());
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::Contains("layers.") && Catch::Contains("save") && Catch::Contains("everything computed again") &&
                                Catch::Contains("wrote "));
    words = gradient;
    words.insert(words.begin(), "show");
    for (const std::string &word : {std::string("--residuals"), file, std::string("--quiet"), std::string("--what"), std::string("memory"),
                                    std::string("--extents"), std::string("B=1"), std::string("T=8")})
        words.push_back(word);
    const Outcome shown = generator(words, sample_registry_with_encoder());
    INFO(shown.err);
    CHECK(shown.code == 0);
    words = {"residuals", "encoder", "--grad", "x", "--budget", "ten"};
    check_refused(words, {"error[command.arguments]", "--budget ten", "64MB"}, 2, sample_registry_with_encoder());
    words = {"residuals", "encoder", "--grad", "x", "--budget", "10", "--out", "plan.txt"};
    check_refused(words, {"error[command.arguments]", "plan.txt", ".json"}, 2, sample_registry_with_encoder());
    for (const std::string &out : {(folder.path() / "none/plan.json").string(), (folder.path() / "made.json").string()}) {
        std::filesystem::create_directory(folder.path() / "made.json");
        check_refused({"residuals", "none", "--grad", "x", "--budget", "10", "--out", out}, {"error[command.arguments]", "--out " + out}, 2,
                      sample_registry_with_encoder());  // before anything is planned: there is no such algorithm
    }
    CHECK(!std::filesystem::exists(folder.path() / "none"));
}

TEST_CASE("bytes are read in the usual spellings, and nothing else is") {
    for (const auto &[text, bytes] : {std::pair{"0", int64_t{0}},
                                      {"4096", 4096},
                                      {"64MB", 64000000},
                                      {"64mb", 64000000},
                                      {"64 MB", 64000000},
                                      {"1.5KiB", 1536},
                                      {"1.5kib", 1536},
                                      {"12.5MB", 12500000},
                                      {"2Gi", int64_t{2} << 30},
                                      {"1e6", 1000000},
                                      {"2T", int64_t{2000000000000}},
                                      {".5k", 500}})
        CHECK(parse_bytes(text, "--budget") == bytes);
    for (const char *text : {"", "ten", "0x10MB", "-1", "+1", " 1", "nan", "inf", "1..5", "12 M B", "12mbit", "MB", "1e", "1,5MB"})
        CHECK_THROWS_WITH(parse_bytes(text, "--budget"), Catch::Contains(std::string("--budget ") + text) && Catch::Contains("KiB, MiB"));
    for (const char *text : {"9223372036854775808", "1e400", "99999999TB"})
        CHECK_THROWS_WITH(parse_bytes(text, "--budget"), Catch::Contains("less than 2^63 bytes"));
}

}  // namespace tessera::test_residuals
