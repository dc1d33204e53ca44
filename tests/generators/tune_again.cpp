// What check asks people to run, run: a ctest of its own, since it tunes a dozen times.
#include <nlohmann/json.hpp>

#include "generators/choose/tuning_record.h"
#include "support/text/shell_words.h"
#include "tests/generators/harness.h"

namespace tessera::test_tune_again {

using namespace tessera::test;

namespace {

namespace fs = std::filesystem;

struct Kind {
    std::string name;                // of the artifact
    std::vector<std::string> words;  // what is asked of tune, after --shape
    std::string field;               // that `measured` has for it
    std::string base = "matmul/slow";
    int trials = 4;
};

class Repository {
public:
    Repository() {
        put(slow_matmul());
        put(Schedule("matmul/packed").stage("y", StageKnobs().micro({{"M", 8}, {"N", 8}}).vector({{"N", 4}}).pack("w", "root")));
    }
    void put(const Schedule &s) const { write_file(file(s.name()), s.text()); }
    fs::path file(const std::string &name) const { return dir_ / (name + ".json"); }
    std::string dir() const { return dir_.string(); }

    // `line` is of words that the shell takes as they are.
    Outcome tune(const std::string &line, int trials) const {
        return shell(shell_word(TESSERA_GENERATOR) + " " + line + " " + shell_words(quick(trials)));
    }
    // In this process, in which a worker is compiled once.
    Outcome tune(std::vector<std::string> words, int trials) const {
        for (const std::string &word : quick(trials)) words.push_back(word);
        return generator(words);
    }

private:
    TemporaryFolder folder_;
    fs::path dir_ = folder_.path() / "it's $(touch here)";
    std::vector<std::string> quick(int trials) const {
        return {"--quiet",
                "--measure-s",
                "0.03",
                "--population",
                "24",
                "--batch",
                "3",
                "--model",
                "none",
                "--trials",
                std::to_string(trials),
                "--records",
                (folder_.path() / "tune.db").string()};
    }
};

}  // namespace

TEST_CASE("the line that check prints tunes an artifact again as it was tuned", "[.again]") {
    const std::string at = "matmul/f32/avx2/M48_N64_K32";
    const Kind all[] = {
        {at, {"M=48", "N=64", "K=32"}, ""},
        {at, {"M=48", "N=64", "K=32", "--cold-caches"}, "caches"},
        {at + "_prepacked", {"M=48", "N=64", "K=32", "--prepack", "w"}, "prepack"},
        {at + "_threads2_throughput", {"M=48", "N=64", "K=32", "--metric", "throughput", "--threads", "2"}, "metric"},
        {at + "_code-size", {"M=48", "N=64", "K=32", "--metric", "code-size", "--least-speed", "0.05"}, "metric", "matmul/packed"},
        {"matmul/f32/avx2/M1-64_N64_K32_partly_fixed", {"M=1", "M=64", "N=64", "K=32"}, "shapes", "matmul/slow", 8}};
    for (const Kind &kind : all) {
        INFO(kind.name << " " << shell_words(kind.words));
        const Repository repository;
        const fs::path file = repository.file(kind.name);
        std::vector<std::string> words = {"tune",  "matmul",         "--target",       "avx2",           "--schedule", kind.base,
                                          "--out", repository.dir(), "--schedule-dir", repository.dir(), "--shape"};
        words.insert(words.end(), kind.words.begin(), kind.words.end());
        const Outcome first = repository.tune(words, kind.trials);
        INFO(first.out << first.err);
        REQUIRE(first.code == 0);
        REQUIRE(fs::exists(file));
        const Schedule tuned = read_schedule(file);

        // Somebody changes a knob, and what was measured is not what there is.
        const StageKnobs other = StageKnobs().vector({{"N", 4}}).unroll({{"K", 2}});
        const Schedule changed = Schedule(kind.name).stage("y", other).with_measured(tuned.document()["measured"]);
        repository.put(changed);
        const Outcome check = generator({"check", repository.dir()});
        INFO(check.out << check.err);
        CHECK(check.code == 1);
        const size_t line = check.out.find("to measure again (1):\n  tune ");
        REQUIRE(line != std::string::npos);
        const size_t from = check.out.find("  tune ", line) + 2;
        const Outcome again = repository.tune(check.out.substr(from, check.out.find('\n', from) - from), kind.trials);
        INFO(again.out << again.err);
        REQUIRE(again.code == 0);
        CHECK(!fs::exists("here"));

        const Schedule now = read_schedule(file);
        CHECK(!(now == changed));
        const auto how = tuning_record_of(tuned), how_now = tuning_record_of(now);
        const auto provenance = provenance_of(tuned), provenance_now = provenance_of(now);
        CHECK(tuning_words(provenance_now->task, *how_now) == tuning_words(provenance->task, *how));
        CHECK(how_now->base == kind.base);
        const nlohmann::json measured = tuned.document()["measured"], measured_now = now.document()["measured"];
        for (const char *field : {"metric", "caches", "prepack", "shapes"}) {
            CHECK(measured.contains(field) == (kind.field == field));
            CHECK(measured_now.contains(field) == (kind.field == field));
        }
        if (measured.contains("metric")) CHECK(measured_now["metric"]["name"] == measured["metric"]["name"]);
        if (measured.contains("shapes")) {
            CHECK(measured_now["shapes"].size() == 2);
            for (size_t i : {0, 1}) CHECK(measured_now["shapes"][i]["extents"] == measured["shapes"][i]["extents"]);
        }
        CHECK(generator({"check", repository.dir()}).code == 0);
    }
}

}  // namespace tessera::test_tune_again
