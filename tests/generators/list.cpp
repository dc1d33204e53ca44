#include "generators/commands/list.h"

#include <nlohmann/json.hpp>

#include "algorithms/library/library.h"
#include "schedules/target/target.h"
#include "tests/generators/harness.h"

namespace tessera::test_list {

using namespace tessera::test;

TEST_CASE("list shows a line for each algorithm, in families, with targets and numerics") {
    Registry registry = sample_registry();
    registry.family("more products").add("linear", "y[M, N] = x[M, K] w[K, N] + b[N]", library::linear);
    registry.add_schedule([] { return Schedule("matmul/mine"); }).add_schedule([] { return Schedule("elsewhere/other"); });
    const Outcome outcome = generator({"list"}, registry);
    CHECK(outcome.code == 0);
    CHECK(outcome.err == "");
    for (const char *line : {"algorithms\n", "\n  matmul          y[M, N] = x[M, K] w[K, N]\n",
                             "\nmore products\n  linear          y[M, N]", "other schedules\n  ", "elsewhere/other",
                             "targets\n  x86-64, avx2, avx512, znver4, znver5, sapphirerapids, amx, arm64, wasm32, opencl, cuda-sm80, "
                             "cuda-sm86, cuda-sm90, host "
                             "(host is ",
                             "numerics\n  f32  ", "  nvfp4  ", "'list <algorithm>' shows its dims, arguments, options and schedules.\n"})
        CHECK_THAT(outcome.out, Catch::Contains(line));
    CHECK_THAT(outcome.out, !Catch::Contains("matmul/mine"));
}

TEST_CASE("list of one algorithm shows its arguments, options and schedules by target") {
    Registry registry = sample_registry();
    registry.add("fused", "gemm", {{"act", "what is applied last", 1, 0, 1, {"none", "relu"}}, {"step", "of rows", 2, 1, 4}},
                 [](const Numerics &numerics, const Options &) {
                     Algorithm a = library::layernorm(numerics);
                     a.name = "fused";
                     return a;
                 });
    for (const char *name : {"fused/mine", "fused/avx2", "fused/bf16/avx2", "fused/prepacked_avx2", "fused/f32/avx2/M64"})
        registry.add_schedule([name] { return Schedule(name); });
    const Outcome outcome = generator({"list", "fused"}, registry);
    CHECK(outcome.code == 0);
    CHECK(outcome.out ==
          "fused\n"
          "  gemm\n"
          "  dims        M, N\n"
          "  inputs      x[M, N], gamma[N], beta[N]\n"
          "  outputs     y[M, N]\n"
          "  parameters  epsilon: f32 above 0\n"
          "  options     act: none, relu, default relu; what is applied last\n"
          "              step: 1 to 4, default 2; of rows\n"
          "  schedules   any target: fused/mine\n"
          "              avx2: fused/avx2, fused/bf16/avx2, fused/f32/avx2/M64, fused/prepacked_avx2\n");
    check_refused({"list", "fussed"}, {"there is no algorithm 'fussed'", "Did you mean 'fused'?"}, 2, registry);
    CHECK_THAT(generator({"list", "ring"}, sample_registry()).err, Catch::Contains("there is no algorithm 'ring'"));
}

TEST_CASE("list gives the same as JSON") {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/mine"); });
    const Outcome outcome = generator({"list", "--json", "--numerics", "f64"}, registry);
    REQUIRE(outcome.code == 0);
    const auto all = nlohmann::json::parse(outcome.out);
    CHECK(all["format"] == "tessera-list");
    CHECK(all["algorithms"].size() == 5);
    const auto &layernorm = all["algorithms"][1];
    CHECK(layernorm["name"] == "layernorm");
    CHECK(layernorm["dims"] == std::vector<std::string>{"M", "N"});
    CHECK(layernorm["parameters"] == std::vector<std::string>{"epsilon: f64 above 0"});
    const auto &own = all["algorithms"][2]["schedules"];
    CHECK(std::find(own.begin(), own.end(), "matmul/mine") != own.end());
    CHECK(all["targets"].size() == target_names().size());
}

TEST_CASE("list refuses unknown numerics") { check_refused({"list", "--numerics", "f31"}, {"error[numerics.unknown]"}); }

TEST_CASE("list shows the others where an algorithm cannot be built, and says why it cannot") {
    Registry registry = sample_registry();
    registry.add("broken", "what throws", [](const Numerics &) -> Algorithm { throw std::runtime_error("no weights here"); });
    registry.add("odd", "what throws a number", [](const Numerics &) -> Algorithm { throw 7; });
    const Outcome text = generator({"list"}, registry);
    CHECK(text.code == 2);
    CHECK_THAT(text.out, Catch::Contains("  broken          what throws (cannot be built; see the error below)\n") &&
                             Catch::Contains("  matmul          y[M, N]") && Catch::Contains("numerics\n"));
    CHECK(text.err ==
          "error[generator.builder]: algorithm 'broken': expected the function that builds it to return it or to throw a "
          "tessera::UserError; it threw 'no "
          "weights here'. Correct it in the generator's source.\n"
          "error[generator.builder]: algorithm 'odd': expected the function that builds it to return it or to throw a tessera::UserError; "
          "it threw what is no "
          "std::exception. Correct it in the generator's source.\n");
    const Outcome json = generator({"list", "--json"}, registry);
    CHECK(json.code == 2);
    const auto all = nlohmann::json::parse(json.out);
    CHECK(all["algorithms"].size() == 7);
    CHECK(all["algorithms"][0]["name"] == "broken");
    CHECK_THAT(all["algorithms"][0]["error"].get<std::string>(), Catch::StartsWith("error[generator.builder]"));
    CHECK(!all["algorithms"][2].contains("error"));
    check_refused({"show", "broken"}, {"error[generator.builder]: algorithm 'broken'"}, 2, registry);
    registry.add_schedule([]() -> Schedule { throw std::runtime_error("no table"); });
    check_refused({"list"}, {"error[generator.builder]: a registered schedule: ", "it threw 'no table'."}, 2, registry);
}

}  // namespace tessera::test_list
