#include "generators/commands/bench.h"

#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>

#include <nlohmann/json.hpp>

#include "bench/measure/instruction_count.h"
#include "support/text/error.h"
#include "tests/generators/harness.h"
#include "tests/generators/programs.h"

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

TEST_CASE("bench refuses early what cannot be timed within its limits") {
    const auto refused = [](const std::vector<std::string> &extents, const std::vector<std::string> &parts) {
        std::vector<std::string> words = {"bench", "matmul", "--schedule", "none", "--target", "avx2", "--extents"};
        words.insert(words.end(), extents.begin(), extents.end());
        check_refused(words, parts);
    };
    refused({"M=100000", "N=100000", "K=100000"},
            {"error[bench.size]: matmul: expected at most 4.3 GB of arguments to time, got 120.0. Choose a smaller shape."});
    refused({"M=2000000000", "N=2000000000", "K=2000000000"}, {"error[bench.size]: matmul: expected at most 4.3 GB"});
    refused(
        {"M=18000", "N=18000", "K=18000", "--run-limit-s", "2"},
        {"error[bench.size]: matmul: expected a shape that is timed within 2 s, got 1.17e+13 operations a call, of which 6 calls take 35 s "
         "at least. Choose a smaller shape, or raise --run-limit-s."});
}

TEST_CASE("bench counts the same instructions every time, and more for more work") {
    auto counted = [](const std::string &rows) {
        const Outcome outcome = generator({"bench", "matmul", "--schedule", "none", "--target", "avx2", "--extents", "M=" + rows, "N=8",
                                           "K=8", "--seconds", "0.001", "--instructions", "--json"});
        INFO(outcome.err);
        REQUIRE(outcome.code == 0);
        return nlohmann::json::parse(outcome.out)["instructions"].get<int64_t>();
    };
    const int64_t few = counted("2"), many = counted("10");
    CHECK(few == counted("2"));
    CHECK(many - few >= 8 * 8 * 8);       // a multiply-add of each point takes one at least
    CHECK(many - few <= 20 * 8 * 8 * 8);  // and what is outside of the kernel does not count
    const Outcome endless =
        generator({"bench", "matmul", "--schedule", "none", "--extents", "M=2", "N=8", "K=8", "--seconds", "0.001", "--instructions"});
    CHECK_THAT(endless.out, Catch::Contains(" instructions in a call, on one thread\n"));
}

extern "C" const char __executable_start, etext;  // this program's code, by its linker

TEST_CASE("counting is refused in words where a call takes too many instructions or does not come back") {
    volatile int sink = 0;
    auto loop = [&] {
        for (int i = 0; i < 1000; i++) sink = sink + 1;
    };
    auto words = [&](const std::function<void()> &call, uint64_t most) -> std::string {
        try {
            count_instructions({reinterpret_cast<uintptr_t>(&__executable_start), reinterpret_cast<uintptr_t>(&etext)}, call, most);
        } catch (const UserError &e) { return e.words(); }
        return "";
    };
    CHECK_THAT(words(loop, 100), Catch::Contains("expected at most 100 in a call, got more"));
    CHECK_THAT(words([] { _exit(3); }, 100000), Catch::Contains("the call ended its process"));
    CHECK_THAT(words([] { std::raise(SIGFPE); }, 100000), Catch::Contains("got the signal"));
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

TEST_CASE("bench says where the time of a program goes, by callee") {
    const std::vector<std::string> line = {"bench", "layered",   "--target", "avx2",      "--quiet", "--shape",  "L=3",
                                           "D=8",   "--extents", "M=5",      "--seconds", "0.01",    "--callees"};
    auto bench = [&](std::vector<std::string> more) {
        more.insert(more.begin(), line.begin(), line.end());
        const Outcome outcome = generator(more, program_registry());
        INFO(outcome.err);
        REQUIRE(outcome.code == 0);
        return outcome.out;
    };
    const auto result = nlohmann::json::parse(bench({"--schedule", "layered/silent", "--json"}));
    CHECK(result["format"] == "tessera-bench");
    double seconds = 0, share = 0;
    std::map<std::vector<std::string>, nlohmann::json> by_scopes;
    for (const auto &callee : result["callees"]) {
        seconds += callee["median_s"].get<double>() * callee["runs"].get<double>();
        share += callee["share"].get<double>();
        by_scopes[callee["scopes"]] = callee;
    }
    REQUIRE(by_scopes.size() == 3);
    const auto &up = by_scopes.at({"layers.up"}), &norm = by_scopes.at({"layers.norm", "last"});
    CHECK(up["callee"] == "product");
    CHECK(up["extents"] == nlohmann::json({{"M", 5}, {"N", 16}, {"K", 8}}));
    CHECK(up["schedule"] == "product/f32/avx2");
    CHECK(up["schedule_is_own"] == true);
    CHECK(up["gflops"].get<double>() == Approx(2 * 5 * 16 * 8 / up["median_s"].get<double>() * 1e-9));
    CHECK(norm["runs"] == 4);
    CHECK(norm["schedule"] == "none");
    CHECK(result["uncounted"].empty());
    const double whole = result["median_s"];
    CHECK(share == Approx(seconds / whole));
    CHECK(result["remainder_s"].get<double>() == Approx(whole - seconds).margin(1e-12));

    CHECK_THAT(bench({"--schedule", "layered/silent"}),
               Catch::StartsWith("layered on avx2, f32, schedule layered/silent, D=8 L=3 M=5, 1 thread\n  median ") &&
                   Catch::Contains("\ncallee     shape         runs       us each   share   GFLOP/s  schedule\n") &&
                   Catch::Contains("\nproduct    K=8 M=5 N=16     3  ") && Catch::Contains("\nproduct    K=16 M=5 N=8     3  ") &&
                   Catch::Contains("\nnorm       M=5 N=8          4  ") && Catch::Contains("\nremainder  ") &&
                   Catch::Contains("  product/f32/avx2\n"));
    CHECK_THAT(bench({"--schedule", "layered/own"}), Catch::Contains("note: product: the program's schedule states its stages at "
                                                                     "'layers.up' itself; it was timed with its best match\n"));
}

TEST_CASE("bench's errors") {
    check_refused({"bench", "matmul", "--schedule", "none", "--extents", "M=1", "N=1", "K=1", "--callees"},
                  {"error[callees.none]: matmul: --callees: expected a program, which calls other algorithms; it calls nothing."});
    check_refused({"bench", "matmul", "--schedule", "none"},
                  {"error[command.extents]: matmul: dim M has no extent; give one with --shape"});
    check_refused({"bench", "matmul", "--schedule", "none", "--extents", "M=1", "N=1", "K=1", "--threads", "0"},
                  {"error[command.arguments]: tessera-generator bench: --threads"});
    check_refused({"bench", "matmul", "--schedule", "none", "--extents", "M=64", "N=64", "K=64", "--seconds", "9", "--run-limit-s", "0.3"},
                  {"error[bench.limit]: matmul: timing was stopped; expected it to end within 0.3 s."});
}

}  // namespace tessera::test_bench
