// What becomes of an artifact that is where tune would write one.
#include <nlohmann/json.hpp>

#include "tests/generators/harness.h"

namespace tessera::test_existing_artifact {

using namespace tessera::test;

namespace {

namespace fs = std::filesystem;

class Bench {
public:
    Bench() { write_file(slow(), slow_matmul().text()); }
    std::vector<std::string> words(const std::vector<std::string> &more) const {
        std::vector<std::string> all = {"tune",      "matmul",        "--target", "avx2",      "--schedule",  slow(), "--quiet",
                                        "--records", path("tune.db"), "--out",    path("out"), "--measure-s", "0.03", "--population",
                                        "24",        "--batch",       "3",        "--model",   "none"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    std::string tune(const std::vector<std::string> &more) const {
        const Outcome o = generator(words(more));
        INFO(o.out << o.err);
        REQUIRE(o.code == 0);
        return o.out;
    }
    std::string path(const std::string &name) const { return (folder_.path() / name).string(); }
    fs::path artifact(const std::string &shape) const { return path("out/matmul/f32/avx2/" + shape + ".json"); }
    nlohmann::json document(const std::string &shape) const { return read_schedule(artifact(shape)).document(); }

    // As if it had been measured at this speed of the base's: of a case, where there are several.
    void claim(const std::string &shape, double speed, int at = -1) const {
        nlohmann::json all = document(shape);
        nlohmann::json &choice = at < 0 ? all["measured"] : all["measured"]["shapes"][static_cast<size_t>(at)];
        choice["over"]["speed"] = {speed, speed, speed};
        write_file(artifact(shape), all.dump());
    }

private:
    TemporaryFolder folder_;
    std::string slow() const { return path("slow.json"); }
};

}  // namespace

static std::vector<std::string> of_one(std::vector<std::string> words) {
    words.insert(words.end(), {"--shape", "M=48", "N=64", "K=32"});
    return words;
}

TEST_CASE("an artifact that a campaign did not measure is replaced only by one that is known to be better") {
    const Bench b;
    const std::string shape = "M48_N64_K32";
    CHECK_THAT(b.tune(of_one({"--trials", "6"})), Catch::Contains("\nkernels that name no schedule take it with --schedule-dir " +
                                                                  b.path("out") + "; in CMake, SCHEDULE_DIRS "));
    b.claim(shape, 1e6);
    const std::string stood = read_file(b.artifact(shape));
    const std::string kept = "kept " + b.artifact(shape).string() + ", since ";
    const std::vector<std::string> unseeded = of_one({"--trials", "6", "--seed", "2", "--unseeded"});
    CHECK_THAT(b.tune(unseeded), Catch::Contains(kept + "its schedule was not measured this time, and may be better. Give more --trials"));
    CHECK(read_file(b.artifact(shape)) == stood);
    const Outcome chosen =
        generator(of_one({"tune", "matmul", "--target", "avx2", "--schedule", b.path("slow.json"), "--quiet", "--out", b.path("out"),
                          "--population", "24", "--deterministic", "--trials", "50", "--name", "matmul/f32/avx2/" + shape}));
    CHECK_THAT(chosen.out, Catch::Contains(kept + "it was measured, and this choice is only predicted."));
    CHECK(read_file(b.artifact(shape)) == stood);
    // As a seed it is measured anew, if the space has it: which candidate won is a matter of times, and some have no like there.
    bool is_seed = false;
    for (int n = 2; n < 12 && !is_seed; n++) {
        b.claim(shape, 1);
        CHECK_THAT(b.tune(of_one({"--trials", "6", "--seed", std::to_string(n), "--unseeded"})), Catch::Contains("wrote "));
        b.claim(shape, 1e6);
        is_seed = b.tune(of_one({"--trials", "6", "--seed", "3"})).find("kept ") == std::string::npos;
    }
    CHECK(is_seed);
    CHECK_THAT(b.tune(of_one({"--trials", "6", "--name", "mine"})),
               Catch::Contains("\nit is taken with --schedule " + b.path("out/mine.json")));
}

TEST_CASE("of several shapes each that was not measured anew keeps what the artifact has for it") {
    const Bench b;
    const std::string shape = "M64-512_N64_K32_partly_fixed";
    const std::vector<std::string> at = {"--shape", "M=64", "M=512", "N=64", "K=32", "--trials"};
    auto with = [&](const std::vector<std::string> &more) {
        std::vector<std::string> words = at;
        words.insert(words.end(), more.begin(), more.end());
        return words;
    };
    const auto stages_of = [](const nlohmann::json &document) { return document["stages"]; };
    b.tune(with({"12"}));
    REQUIRE(b.document(shape)["measured"]["shapes"].size() == 2);
    b.claim(shape, 1, 0), b.claim(shape, 1e6, 1);
    const nlohmann::json before = b.document(shape);
    CHECK_THAT(b.tune(with({"12", "--seed", "2", "--unseeded"})),
               Catch::Contains("keeps what the artifact had, which was not measured") && Catch::Contains("wrote "));
    const nlohmann::json now = b.document(shape);
    CHECK(stages_of(now) == stages_of(before));
    CHECK(now["measured"]["shapes"][0]["over"]["speed"] != before["measured"]["shapes"][0]["over"]["speed"]);
    CHECK(now["measured"]["shapes"][1]["over"] == before["measured"]["shapes"][1]["over"]);
    CHECK(generator({"check", b.path("out")}).code == 0);

    // It is told to end before it reaches the second.
    std::string command = TESSERA_GENERATOR;
    for (const std::string &word : b.words(with({"2000", "--seed", "3"}))) command += " " + word;
    fs::remove(b.path("tune.db"));
    const Outcome o = shell(command + " & until [ \"$(" TESSERA_GENERATOR " records list " + b.path("tune.db") +
                            " 2> /dev/null | awk 'NR > 1 { n = $3 } END { print n + 0 }')\" -ge 8 ] || ! kill -0 $! 2> /dev/null; do sleep "
                            "0.1; done; kill $!; wait $!");
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("not reached; keeps what the artifact had"));
    CHECK(stages_of(b.document(shape)) == stages_of(before));
    CHECK(!b.document(shape)["measured"].contains("unreached"));
}

}  // namespace tessera::test_existing_artifact
