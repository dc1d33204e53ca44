#include "autotune/records/records.h"

#include <sstream>

#include <nlohmann/json.hpp>

#include "algorithms/library/library.h"
#include "algorithms/text/hash.h"
#include "compiler/lower/lower.h"
#include "costmodel/model/examples.h"
#include "tests/generators/harness.h"

namespace tessera::test_records {

using namespace tessera::test;

TEST_CASE("records are listed and exported as far as they make sense, and pruned where nobody works") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "records.db").string();
    Records records(file);
    Trial trial;
    trial.schedule = "{}", trial.origin = "base", trial.resolved = "sha256:0", trial.draft = trial.bound = 1e-6;
    trial.measurement.verdict = Verdict::measured;
    trial.measurement.seconds = 1e-5, trial.measurement.ratio = trial.measurement.lower = trial.measurement.upper = 1;
    const Algorithm product = bind_extents(library::matmul({}), {{"M", 48}, {"N", 64}, {"K", 32}});
    nlohmann::ordered_json document = {{"algorithm", "matmul"},
                                       {"semantic", semantic_hash(product)},
                                       {"numerics", "f32"},
                                       {"options", nlohmann::json::object()},
                                       {"fixed", {{"M", 48}, {"N", 64}, {"K", 32}}},
                                       {"extents", nlohmann::json::object()},
                                       {"target", "avx2"},
                                       {"threads", 1}};
    trial.resolved = resolved_hash(lower(product, {}, target_named("avx2")));
    const auto begin = [&](const std::string &task, const std::string &field, const nlohmann::json &value) {
        nlohmann::ordered_json changed = document;
        changed["task"] = task;
        if (!field.empty()) changed[field] = value;
        const int64_t id = records.campaign(task, changed);
        records.set_base(id, 1e-5), records.add(id, {trial});
        return id;
    };
    const int64_t strange = begin("a\tb\n\x1b[2Jc", "", {});
    begin("other caches", "cache_bytes", {1 << 10, 1 << 11, 1 << 12});
    begin("cold", "caches", "cold");
    begin("no caches", "cache_bytes", {0, 0, 0});
    begin("no threads", "threads", 0);
    begin("a file's name", "target", "nobody.json");
    begin("another dim", "extents", {{"Q", 1}});
    begin("unknown", "algorithm", "nobody");
    begin("changed", "semantic", "sha256:0");
    begin("from a file", "target_file", "sha256:0");
    begin("damaged", "fixed", 7);
    for (const auto &damage : std::vector<std::function<void(Trial &)>>{
             [](Trial &t) { t.measurement.ratio = 0; }, [](Trial &t) { t.measurement.ratio = 5e-324; },
             [](Trial &t) { t.resolved = "sha256:0"; }, [](Trial &t) { t.schedule = "{\"y\": {\"micro\": 7}}"; }}) {
        trial.number++;
        Trial damaged = trial;
        damage(damaged);
        records.add(strange, {damaged});
    }
    const Outcome list = generator({"records", "list", file});
    CHECK_THAT(list.out, Catch::Contains("a\\u0009b\\u000a\\u001b[2Jc") && !Catch::Contains("\x1b") && !Catch::Contains("\t"));
    const Outcome rows = generator({"records", "export", file});
    CHECK(rows.code == 0);
    CHECK(std::count(rows.out.begin(), rows.out.end(), '\n') == 3);  // the names of the fields, and two trials
    std::istringstream text(rows.out);
    const std::vector<Example> examples = read_examples(text, "rows");
    REQUIRE(examples.size() == 2);
    CHECK(examples[0].task == "a\\u0009b\\u000a\\u001b[2Jc");
    CHECK(examples[0].seconds == 1e-5);
    const Target target = target_named("avx2");
    const Work work = work_of(product, lower(product, {}, target), {});
    CHECK(examples[0].features.draft == Approx(features_of(profile_of(lower(product, {}, target), {}, target, 1), work, target, 1).draft));
    CHECK(examples[1].features.values != examples[0].features.values);
    CHECK_THAT(
        rows.err,
        Catch::Contains("note: a\\u0009b\\u000a\\u001b[2Jc: 2 of its 5 trials are left out: they have times or ratios that cannot have "
                        "been measured\n") &&
            Catch::Contains("c: 2 of its 5 trials are left out: this version makes other tile programs of their schedules\n") &&
            Catch::Contains("note: unknown: its 1 trials are left out: there is no algorithm 'nobody'") &&
            Catch::Contains("note: changed: its 1 trials are left out: the algorithm 'matmul' is not the one that was measured\n") &&
            Catch::Contains("note: from a file: its 1 trials are left out: their target is a file, which is not recorded\n") &&
            Catch::Contains("note: cold: its 1 trials are left out: they were measured with cold caches, which features do not tell\n") &&
            Catch::Contains("note: no caches: its 1 trials are left out: what was tuned has a number that no machine can have\n") &&
            Catch::Contains("note: no threads: its 1 trials are left out: what was tuned has a number") &&
            Catch::Contains("note: a file's name: its 1 trials are left out: this version has no target 'nobody.json'\n") &&
            Catch::Contains("note: another dim: its 1 trials are left out: ") &&
            Catch::Contains("note: damaged: its 1 trials are left out: what was tuned is not stated as this version states it\n"));
    write_file(folder.path() / "rows.tsv", rows.out);
    CHECK(generator({"cost-model", "judge", (folder.path() / "rows.tsv").string()}).code == 0);

    const Claim claim(records, strange);
    CHECK(generator({"records", "prune", file, "--fewest", "9"}).out ==
          "removed 10 campaigns with fewer than 9 measured trials\nkept 1 of them, which a process works on\n");
    records.add(strange, {trial});
}

TEST_CASE("a task is judged by a model that saw nothing of its algorithm and shape") {
    const TemporaryFolder folder;
    const std::string rows = (folder.path() / "rows.tsv").string();
    const auto judged = [&](const std::vector<std::string> &tasks) {
        std::vector<Example> all;
        for (const std::string &task : tasks)
            for (int i = 0; i < 8; i++)
                all.push_back({task, {std::vector<float>(feature_table().size(), static_cast<float>(i)), 1e-5, 1e-5}, 1e-5 * (1 + i)});
        std::ostringstream text;
        write_examples(text, all);
        write_file(rows, text.str());
        return generator({"cost-model", "judge", rows}).out;
    };
    const std::vector<std::string> alike = {"a/f32/avx2 M8_N8",
                                            "a/bf16/avx2 M8_N8",
                                            "a/f32/avx512 M8_N8",
                                            "a/f32/avx2 M8_N8_threads2",
                                            "a/f32/avx2 M8_N8_partly_fixed_threads4",
                                            "a/f32/avx2 M8_N8_dynamic"};
    CHECK_THAT(judged(alike), Catch::Contains("no model was trained") && !Catch::Contains(" trained "));
    CHECK_THAT(judged({alike[0], "a/f32/avx2 M8_N80"}), Catch::Contains(" trained ") && !Catch::Contains("no model was trained"));
    CHECK_THAT(judged({alike[0], "ab/f32/avx2 M8_N8"}), Catch::Contains(" trained ") && !Catch::Contains("no model was trained"));
}

// Each campaign has its pace; ratios to one base program are of one task whichever campaign they are of.
TEST_CASE("campaigns of a task with the same base are exported at one pace") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "records.db").string();
    Records records(file);
    const Algorithm product = bind_extents(library::matmul({}), {{"M", 48}, {"N", 64}, {"K", 32}});
    Trial trial;
    trial.schedule = "{}", trial.origin = "base", trial.resolved = resolved_hash(lower(product, {}, target_named("avx2"))),
    trial.draft = trial.bound = 1e-6;
    trial.measurement.verdict = Verdict::measured;
    trial.measurement.seconds = 1e-5, trial.measurement.ratio = trial.measurement.lower = trial.measurement.upper = 0.5;
    const auto begin = [&](const std::string &key, const std::string &base, double seconds) {
        const int64_t id = records.campaign(key, {{"task", "t"},
                                                  {"algorithm", "matmul"},
                                                  {"semantic", semantic_hash(product)},
                                                  {"numerics", "f32"},
                                                  {"options", nlohmann::json::object()},
                                                  {"fixed", {{"M", 48}, {"N", 64}, {"K", 32}}},
                                                  {"extents", nlohmann::json::object()},
                                                  {"target", "avx2"},
                                                  {"threads", 1},
                                                  {"base", base}});
        records.set_base(id, seconds), records.add(id, {trial});
    };
    begin("a", "sha256:0", 1e-5), begin("b", "sha256:0", 4e-5), begin("c", "sha256:1", 1e-3);
    std::istringstream text(generator({"records", "export", file}).out);
    const std::vector<Example> examples = read_examples(text, "rows");
    REQUIRE(examples.size() == 3);
    CHECK(examples[0].seconds == Approx(4e-5));
    CHECK(examples[1].seconds == Approx(4e-5));
    CHECK(examples[2].seconds == Approx(2e-3));
}

}  // namespace tessera::test_records
