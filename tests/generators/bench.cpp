#include "generators/commands/bench.h"

#include <nlohmann/json.hpp>

#include "tests/generators/harness.h"

namespace tessera::test_bench {

using namespace tessera::test;

TEST_CASE("bench times a kernel and counts its rates") {
    const Outcome outcome = generator({"bench", "matmul", "--schedule", "none", "--shape", "M=8", "N=8", "--extents", "K=8", "--seconds",
                                       "0.01", "--json", "--threads", "2"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto result = nlohmann::json::parse(outcome.out);
    CHECK(result["format"] == "tessera-bench");
    CHECK(result["extents"] == nlohmann::json({{"M", 8}, {"N", 8}, {"K", 8}}));
    CHECK(result["operations"] == 1024.0);
    CHECK(result["samples"] >= 5);
    CHECK(result["min_s"] > 0.0);
    CHECK(result["min_s"] <= result["median_s"]);
    CHECK(result["gflops"].get<double>() == Approx(1024 / result["median_s"].get<double>() * 1e-9));
    CHECK(result["threads"] == 2);
    const Outcome text = generator({"bench", "layernorm", "--schedule", "none", "--extents", "M=4", "N=4", "--seconds", "0.01"});
    CHECK_THAT(text.out, Catch::StartsWith("layernorm on ") && Catch::Contains(", f32, schedule none, M=4 N=4, 1 thread\n  median ") &&
                             Catch::Contains(" GFLOP/s; ") && Catch::EndsWith(" GB/s of arguments\n"));
}

// To fetch the weights takes several times as long as to multiply them where they lie in a cache.
TEST_CASE("bench with cold caches is slower, and says so") {
    auto seconds = [](std::vector<std::string> more) {
        std::vector<std::string> line = {"bench", "matmul", "--target", "avx2",      "--quiet", "--extents",
                                         "M=1",   "N=512",  "K=256",    "--seconds", "0.1",     "--json"};
        line.insert(line.end(), more.begin(), more.end());
        const auto result = nlohmann::json::parse(generator(line).out);
        CHECK(result.contains("caches") == !more.empty());
        return result["min_s"].get<double>();
    };
    CHECK(seconds({"--cold-caches"}) > seconds({}));
}

TEST_CASE("bench's errors") {
    check_refused({"bench", "matmul", "--schedule", "none"},
                  {"error[command.extents]: matmul: dim M has no extent; give one with --shape"});
    check_refused({"bench", "matmul", "--schedule", "none", "--extents", "M=1", "N=1", "K=1", "--threads", "0"},
                  {"error[command.arguments]: tessera-generator bench: --threads"});
    check_refused({"bench", "matmul", "--schedule", "none", "--extents", "M=64", "N=64", "K=64", "--seconds", "9", "--run-limit-s", "0.3"},
                  {"error[bench.limit]: matmul: timing was stopped; expected it to end within 0.3 s."});
}

}  // namespace tessera::test_bench
