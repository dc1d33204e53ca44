#include "generators/tune/tune_many.h"

#include <nlohmann/json.hpp>

#include "tests/generators/harness.h"

namespace tessera::test_tune_many {

using namespace tessera::test;

namespace {

class Workplace {
public:
    std::string path(const std::string &name) const { return (folder_.path() / name).string(); }
    Outcome tune(std::vector<std::string> more) const {
        std::vector<std::string> all = {"tune", "--quiet",      "--records", path("tune.db"), "--out", path("out"), "--measure-s",
                                        "0.03", "--population", "24",        "--batch",       "3",     "--model",   "none"};
        all.insert(all.end(), more.begin(), more.end());
        return generator(all);
    }
    nlohmann::json tune_json(std::vector<std::string> more, int code = 0) const {
        more.push_back("--json");
        const Outcome o = tune(more);
        INFO(o.out << o.err);
        CHECK(o.code == code);
        return nlohmann::json::parse(o.out);
    }

private:
    TemporaryFolder folder_;
};

// Two small kernels with slow schedules to beat.
std::string two(const Workplace &w) {
    write_file(w.path("matmul.json"), slow_matmul().text());
    write_file(w.path("layernorm.json"), Schedule("layernorm/slow").text());
    return R"({"format": "tessera-campaign", "version": 1, "budget": {"trials": 14}, "tasks": [
        {"algorithm": "matmul", "fixed": {"M": 48, "N": 64, "K": 32}, "target": "avx2", "weight": 5, "schedule": ")" +
           w.path("matmul.json") + R"("},
        {"algorithm": "layernorm", "fixed": {"M": 16, "N": 64}, "target": "avx2", "schedule": ")" +
           w.path("layernorm.json") + R"("}]})";
}

}  // namespace

TEST_CASE("a campaign shares its budget, writes artifacts by canonical names, and goes on from its records") {
    const Workplace w;
    write_file(w.path("campaign.json"), two(w));
    const nlohmann::json first = w.tune_json({"--campaign", w.path("campaign.json")});
    REQUIRE(first["tasks"].size() == 2);
    size_t trials = 0;
    for (const auto &task : first["tasks"]) {
        CHECK(task["trials"] >= 4);  // the base and a first batch
        trials += task["trials"].get<size_t>();
    }
    CHECK(trials == 14);
    CHECK(first["speed"] > 1);
    const auto artifact = w.path("out") + "/matmul/f32/avx2/M48_N64_K32.json";
    REQUIRE(std::filesystem::exists(artifact));
    CHECK(generator({"check", w.path("out")}).code == 0);

    // All is in the records: the same trials again, none measured.
    const nlohmann::json second = w.tune_json({"--campaign", w.path("campaign.json"), "--resume"});
    for (size_t i = 0; i < 2; i++) CHECK(second["tasks"][i]["trials"] == first["tasks"][i]["trials"]);
    CHECK(second["tasks"][0]["base_s"] == first["tasks"][0]["base_s"]);
    CHECK(second["stopped"] == false);
    const nlohmann::json fewer = w.tune_json({"--campaign", w.path("campaign.json"), "--resume", "--trials", "4"});
    for (size_t i = 0; i < 2; i++) CHECK(fewer["tasks"][i]["trials"] == first["tasks"][i]["trials"]);

    // All are those that ship too, for several shapes each.
    const Outcome all = w.tune({"--all", "--trials", "6"});
    CHECK(all.code == 2);
    CHECK_THAT(all.err, Catch::Contains("error[campaign."));
    const Outcome text = w.tune({"--campaign", w.path("campaign.json"), "--trials", "6"});
    CHECK(text.code == 0);
    CHECK_THAT(text.out, Catch::Contains("matmul/f32/avx2 M48_N64_K32") && Catch::Contains("6 trials in") &&
                             Catch::Contains("of the speed of their bases"));
}

TEST_CASE("a task for several shapes is one artifact, beside tasks for one") {
    const Workplace w;
    write_file(w.path("matmul.json"), slow_matmul().text());
    write_file(w.path("layernorm.json"), Schedule("layernorm/slow").text());
    write_file(w.path("campaign.json"),
               R"({"format": "tessera-campaign", "version": 1, "budget": {"trials": 15}, "tasks": [
        {"algorithm": "layernorm", "fixed": {"M": 16, "N": 64}, "target": "avx2", "schedule": ")" +
                   w.path("layernorm.json") + R"("},
        {"algorithm": "matmul", "target": "avx2", "schedule": ")" +
                   w.path("matmul.json") + R"(", "shapes": [{"M": 4, "N": 64, "K": 32}, {"M": 64, "N": 64, "K": 32}]}]})");
    const Outcome o = w.tune({"--campaign", w.path("campaign.json")});
    INFO(o.out << o.err);
    CHECK(o.code == 0);
    CHECK(o.out.find("layernorm/f32/avx2 M16_N64") != std::string::npos);
    const auto artifact = w.path("out") + "/matmul/f32/avx2/M4-64_N64_K32_dynamic.json";
    REQUIRE(std::filesystem::exists(artifact));
    const auto measured = nlohmann::json::parse(read_file(artifact))["measured"];
    CHECK(measured["shapes"].size() == 2);
    CHECK(measured["shapes"][0]["trials"] == 5);
    CHECK(measured["shapes"][1]["trials"] == 5);
    CHECK(std::filesystem::exists(w.path("out") + "/layernorm/f32/avx2/M16_N64.json"));
    // What a campaign made is tuned again by --all, shapes and all.
    Library library;
    library.add_folder(w.path("out"));
    const std::vector<CampaignEntry> again = tasks_of(library, [](const std::string &) { return true; });
    REQUIRE(again.size() == 2);
    CHECK(again[1].shapes == std::vector<Extents>{{{"K", 32}, {"M", 4}, {"N", 64}}, {{"K", 32}, {"M", 64}, {"N", 64}}});
    CHECK(again[1].task.extents.empty());
}

TEST_CASE("a campaign that is interrupted ends in order, with the best of each task so far") {
    const Workplace w;
    write_file(w.path("campaign.json"), two(w));
    // The other task has been begun by the time that one of them is taken further.
    const std::string arguments = " tune --campaign campaign.json --trials 5000 --measure-s 0.03 --population 24 --batch 3 --model none";
    const Outcome o = shell("cd '" + w.path("") + "' && { '" TESSERA_GENERATOR "'" + arguments +
                            " 2> log & } && until grep -q 'of 5000 trials' log; do sleep 0.1; done; kill -TERM $!; wait $!");
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("matmul/f32/avx2 M48_N64_K32") && Catch::Contains("layernorm/f32/avx2 M16_N64") &&
                          Catch::Contains("of the speed of their bases"));
    CHECK_THAT(o.out, Catch::Contains("\nstopped after ") && Catch::Contains(" of 5000 trials; --resume goes on from here\n"));
    CHECK_THAT(generator({"records", "list", w.path("tune.db")}).out, Catch::Contains("layernorm/f32/avx2 M16_N64"));
}

TEST_CASE("all tasks are checked before the first is measured") {
    const Workplace w;
    auto refuse = [&](const std::string &tasks, const std::vector<std::string> &more, const std::vector<std::string> &parts) {
        write_file(w.path("campaign.json"), R"({"format": "tessera-campaign", "version": 1, "tasks": [)" + tasks + "]}");
        std::vector<std::string> words = {"--campaign", w.path("campaign.json")};
        words.insert(words.end(), more.begin(), more.end());
        const Outcome o = w.tune(words);
        CHECK(o.code == 2);
        CHECK(o.out.empty());
        for (const std::string &part : parts) CHECK_THAT(o.err, Catch::Contains(part));
    };
    const std::string good = R"({"algorithm": "layernorm", "fixed": {"M": 16, "N": 64}, "target": "avx2", "schedule": "none"})";
    refuse(R"({"algorithm": "matmull", "fixed": {"M": 48}}, )" + good + R"(, {"algorithm": "matmul", "fixed": {"M": 8, "K": 8}})", {},
           {"error[campaign.tasks]: 2 of 3 tasks cannot be tuned, and nothing was measured:\n  matmull/f32 M=48 on host: "
            "error[generator.unknown-algorithm]",
            "error[campaign.extents]: matmul: dim N has no extent; give one in \"fixed\", which fixes it in the kernel, or in \"extents\"",
            "\nCorrect or remove them."});
    refuse(good + R"(, {"algorithm": "matmul", "fixed": {"M": 8, "K": 8, "N": 8}})", {"--trials", "1"},
           {"error[campaign.budget]: tune: expected at least one trial for each of the 2 tasks, got 1. Raise --trials"});
    CHECK(generator({"records", "list", w.path("tune.db")}).out.find("layernorm") == std::string::npos);
}

TEST_CASE("a campaign none of whose schedules can be measured says so") {
    const Workplace w;
    write_file(w.path("campaign.json"), two(w));
    const std::vector<std::string> words = {"--campaign", w.path("campaign.json"), "--runner", "false"};
    const Outcome o = w.tune(words);
    CHECK(o.code == 1);
    CHECK_THAT(o.out, Catch::Contains("error[tune.runner]") && Catch::Contains("\nno task was tuned\n") && !Catch::Contains("1.000"));
    CHECK(w.tune_json(words, 1)["speed"].is_null());
}

TEST_CASE("what is for one kernel does not go with a campaign") {
    const Workplace w;
    check_refused({"tune"}, {"error[command.arguments]: tune: expected an algorithm, --campaign or --all, got none"});
    check_refused({"tune", "--all", "--campaign", "c.json"},
                  {"error[command.arguments]: tune: expected --all or --campaign, got both. Choose one."});
    check_refused({"tune", "matmul", "--all"},
                  {"error[command.arguments]: tune: an algorithm is for one kernel; the tasks of --all say what is tuned. Leave it out."});
    check_refused({"tune", "--campaign", "c.json", "--name", "a"},
                  {"error[command.arguments]: tune: --name is for one kernel; the tasks of --campaign say"});
    for (const std::vector<std::string> &more :
         {std::vector<std::string>{"--target", "avx2"}, {"--threads", "2"}, {"--numerics", "f32"}, {"--option", "padding=1"}}) {
        std::vector<std::string> words = {"tune", "--all"};
        words.insert(words.end(), more.begin(), more.end());
        check_refused(words, {"error[command.arguments]: tune: " + more[0] +
                              " is for one kernel; the tasks of --all say what is tuned. Leave it out."});
    }
    check_refused({"tune", "--campaign", "/no/such.json"}, {"error[campaign.file]"});
}

TEST_CASE("a deterministic choice is one artifact for one seed, and needs no runner") {
    const Workplace w;
    auto choose = [&](const std::string &out, const std::string &seed) {
        const Outcome o = generator({"tune", "matmul",          "--target", "arm64",   "--shape",      "M=48",     "N=64",
                                     "K=32", "--deterministic", "--trials", "20",      "--population", "24",       "--seed",
                                     seed,   "--schedule",      "none",     "--quiet", "--out",        w.path(out)});
        INFO(o.err);
        REQUIRE(o.code == 0);
        CHECK_THAT(o.out,
                   Catch::Contains("20 candidates judged by the cost model alone; nothing was measured") && Catch::Contains("predicted "));
        return read_file(w.path(out) + "/matmul/f32/arm64/M48_N64_K32_predicted.json");
    };
    const std::string first = choose("a", "1");
    CHECK(choose("a", "1") == first);  // which lies among the schedules by then
    CHECK(choose("b", "1") == first);
    const auto measured = nlohmann::json::parse(first)["measured"];
    CHECK(measured["chosen_by"] == "the cost model alone");
    CHECK(measured["seed"] == 1);
    CHECK(!measured.contains("seconds"));
    CHECK(!measured.contains("machine"));
    CHECK(generator({"check", w.path("a")}).code == 0);
    const Outcome taken = generator(
        {"show", "matmul", "--target", "arm64", "--shape", "M=48", "N=64", "K=32", "--schedule-dir", w.path("a"), "--what", "tiles"});
    CHECK_THAT(taken.err, Catch::Contains("schedule 'matmul/f32/arm64/M48_N64_K32_predicted', predicted, not measured, for this shape"));
    for (const std::vector<std::string> &more : {std::vector<std::string>{"--budget-s", "3"},
                                                 {"--resume"},
                                                 {"--runner", "qemu-aarch64"},
                                                 {"--records", "none.db"},
                                                 {"--jobs", "2"},
                                                 {"--measure-s", "1"},
                                                 {"--cc", "gcc"},
                                                 {"--compile-limit-s", "9"},
                                                 {"--run-limit-s", "9"}}) {
        std::vector<std::string> words = {"tune", "matmul", "--target", "arm64", "--shape", "M=48", "N=64", "K=32", "--deterministic"};
        words.insert(words.end(), more.begin(), more.end());
        check_refused(words,
                      {"error[command.arguments]: tune: " + more[0] + " is for a search that measures; --deterministic measures nothing"});
    }
}

}  // namespace tessera::test_tune_many
