#include "generators/output/benchmark_source.h"

#include "tests/generators/harness.h"

namespace tessera::test_benchmark_source {

using namespace tessera::test;

TEST_CASE("generate --benchmark writes a program of Google Benchmark and nothing else") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    const Outcome outcome = generator({"generate", "matmul", "--schedule", "none", "--target", "avx2", "--benchmark", "--benchmark-at",
                                       "M=3,N=8,K=2", "--benchmark-at", "M=1,N=1,K=1", "--name", "step", "--out", out});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(files_in(out) == "step.benchmark.cpp");
    CHECK_THAT(read_file(out + "/step.benchmark.cpp"),
               Catch::Contains("#include \"step.h\"\n") && Catch::Contains("\"step/K:2/M:3/N:8\"") &&
                   Catch::Contains("\"step/K:1/M:1/N:1\"") && Catch::Contains("nullptr, true, 96, "));
}

TEST_CASE("what a benchmark cannot be of is refused") {
    const TemporaryFolder folder;
    const std::string out = (folder.path() / "out").string();
    const auto refusal = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "generate");
        arguments.insert(arguments.end(), {"--schedule", "none", "--benchmark", "--out", out, "--quiet"});
        const Outcome outcome = generator(arguments);
        CHECK(outcome.code != 0);
        CHECK_FALSE(std::filesystem::exists(out + "/matmul.benchmark.cpp"));
        return outcome.err;
    };
    CHECK_THAT(refusal({"matmul", "--target", "opencl", "--benchmark-at", "M=2,N=3,K=4"}),
               Catch::Contains("error[command.target]") && Catch::Contains("--benchmark expected one whose kernels run on the processor"));
    CHECK_THAT(refusal({"matmul", "--benchmark-at", "M=2,N=3"}), Catch::Contains("error[command.extents]: matmul: dim K has no extent"));
    CHECK_THAT(refusal({"matmul", "--benchmark-at", "M"}), Catch::Contains("--benchmark-at"));
    const Outcome several = generator({"generate", "--kernel", "matmul", "--name", "both", "--benchmark", "--out", out});
    CHECK_THAT(several.err,
               Catch::Contains("error[command.benchmark]: generate: --benchmark is of one kernel, and with --kernel there may be "
                               "several. Name an algorithm in place of --kernel."));
}

}  // namespace tessera::test_benchmark_source
