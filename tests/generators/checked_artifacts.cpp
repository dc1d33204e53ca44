#include "generators/check/checked_artifacts.h"

#include <nlohmann/json.hpp>
#include <set>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "generators/kernel/prepare.h"
#include "support/text/error.h"
#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_checked_artifacts {

using namespace tessera::test;

namespace {

// A folder of schedules for the algorithms of the sample registry.
class Repository {
public:
    std::string path() const { return (folder_.path() / "schedules").string(); }
    void put(const Schedule &s) const {
        const std::filesystem::path file = std::filesystem::path(path()) / (s.name() + ".json");
        std::filesystem::create_directories(file.parent_path());
        write_file(file, s.text());
    }
    nlohmann::json check(const Registry &registry = sample_registry(), const std::vector<std::string> &more = {}) const {
        std::vector<std::string> words = {"check", path(), "--json"};
        words.insert(words.end(), more.begin(), more.end());
        const Outcome o = generator(words, registry);
        INFO(o.out << o.err);
        const auto document = nlohmann::json::parse(o.out);
        const auto &counts = document["counts"];
        if (more.empty()) CHECK(o.code == (counts["broken"] == 0 && counts["changed"] == 0 ? 0 : 1));
        return document;
    }

private:
    TemporaryFolder folder_;
};

nlohmann::json row(const nlohmann::json &document, const std::string &schedule) {
    for (const auto &one : document["schedules"])
        if (one["schedule"] == schedule) return one;
    return nullptr;
}

Schedule base(int64_t rows) {
    return Schedule("matmul/avx2")
        .require({"avx2", "fma"})
        .stage("y", StageKnobs().micro({{"M", rows}, {"N", 16}}).vector({{"N", 8}}).loops({"micro.N", "micro.M"}));
}

// As tune leaves it: for one shape, with what was resolved.
Schedule measured(const Repository &repository, const Schedule &s, const Extents &fixed) {
    Provenance p;
    p.task = {"matmul", "f32", {}, fixed, {}, "avx2", 1};
    p.resolved = "sha256:unknown";
    repository.put(s.with_measured(json_of(p)));
    return s.with_measured(row(repository.check(), s.name())["now"]);
}

}  // namespace

TEST_CASE("check tells the broken, the changed and the unchanged apart, and says what to measure again") {
    const Repository r;
    const Extents shape = {{"K", 32}, {"M", 48}, {"N", 64}};
    r.put(base(4));
    const Schedule child = Schedule("matmul/f32/avx2/M48_N64_K32")
                               .extends("matmul/avx2")
                               .stage("y", block({{"N", 32}}).loops({"block.N", "micro.N", "micro.M"}));
    for (const Schedule &s :
         {child, child.named("matmul/f32/avx2/twin"), child.named("matmul/f32/avx2/alone").with_micro("y", {{"M", 2}, {"N", 8}})})
        r.put(measured(r, s, shape));
    nlohmann::json now = r.check();
    CHECK(now["counts"] == nlohmann::json({{"broken", 0}, {"changed", 0}, {"unchanged", 3}, {"unknown", 0}, {"unrecorded", 1}}));
    CHECK(row(now, "matmul/avx2")["programs"] == "unrecorded");

    // A parent's change reaches the children that do not override it.
    r.put(base(2));
    now = r.check();
    CHECK(now["counts"]["changed"] == 2);
    const nlohmann::json changed = row(now, child.name());
    CHECK(changed["causes"] == nlohmann::json({"ancestor 'matmul/avx2'"}));
    CHECK(changed["predicted_speed"] > 0);
    CHECK(changed["bits_changed"] == false);
    CHECK(changed["counts"].contains("loads"));
    CHECK(row(now, "matmul/f32/avx2/alone")["programs"] == "unchanged");
    REQUIRE(now["measure_again"].size() == 1);
    CHECK(now["measure_again"][0]["schedules"] == nlohmann::json({child.name(), "matmul/f32/avx2/twin"}));
    const std::string text = generator({"check", r.path()}).out;
    CHECK_THAT(text, Catch::Contains("changed") && Catch::Contains(" times") && Catch::Contains("ancestor 'matmul/avx2' changed"));
    CHECK_THAT(text, Catch::Contains("to measure again (1):\n  tune matmul --numerics f32 --target avx2 --shape K=32 M=48 N=64 --name "
                                     "matmul/f32/avx2/M48_N64_K32 --out " +
                                     r.path() + " --schedule-dir " + r.path() + "\n    the same program: matmul/f32/avx2/twin\n"));
    CHECK_THAT(text, Catch::Contains("4 schedules: 2 changed, 1 unrecorded, 1 unchanged\n"));

    // So does one that changes bits, and that is said.
    r.put(base(2).stage("y", StageKnobs(base(2).document()["stages"]["y"]).split("K", Split::How::lanes, 8)));
    CHECK(row(r.check(), child.name())["bits_changed"] == true);
    CHECK_THAT(generator({"check", r.path()}).out, Catch::Contains("ancestor 'matmul/avx2' changed; the bits of its results too") &&
                                                       Catch::Contains(" of them give other bits than before: 'diff'"));
    r.put(base(2));

    // What was measured already need not be measured again under another name.
    r.put(measured(r, child.named("matmul/f32/avx2/later"), shape));
    CHECK(r.check()["measure_again"].empty());

    r.put(Schedule("matmul/broken_avx2").stage("z", block({{"M", 4}})));
    now = r.check();
    CHECK(now["counts"]["broken"] == 1);
    CHECK_THAT(row(now, "matmul/broken_avx2")["message"].get<std::string>(), Catch::Contains("error[schedule.unknown-stage]"));
    r.put(Schedule("elsewhere/avx2"));
    CHECK(row(r.check(), "elsewhere/avx2")["programs"] == "unknown");
}

TEST_CASE("check names its own fields, the algorithm and the compiler as causes") {
    const Repository r;
    auto registry = [](bool squared) {
        Registry all;
        all.add("scaled", "y[M] of x[M]", [squared](const Numerics &numerics) {
            Builder f("scaled", numerics);
            const Dim m = f.dim("M");
            Tile x = f.input("x", {m});
            return f.output("y", squared ? x * x : x + x).build();
        });
        return all;
    };
    const Schedule plain = Schedule("scaled/avx2").stage("y", StageKnobs().vector({{"M", 8}}));
    r.put(plain);
    r.check(registry(true), {"--record"});
    CHECK(r.check(registry(true))["counts"]["unchanged"] == 1);
    CHECK(row(r.check(registry(false)), "scaled/avx2")["causes"] == nlohmann::json({"the algorithm"}));
    r.put(plain.with_vector("y", {{"M", 4}}));
    CHECK(row(r.check(registry(true)), "scaled/avx2")["causes"] == nlohmann::json({"its own fields"}));
    CHECK_THAT(generator({"check", r.path()}, registry(true)).out,
               Catch::Contains("to measure again (1):\n  scaled/avx2: scaled/f32 on avx2\n"));

    r.put(plain);
    const std::string file = r.path() + "/tessera-programs.lock";
    std::string lock = read_file(file);
    const size_t at = lock.find("\"resolved\":\"sha256:") + 19;
    lock.replace(at, 4, lock.substr(at, 4) == "0000" ? "1111" : "0000");
    write_file(file, lock);
    CHECK(row(r.check(registry(true)), "scaled/avx2")["causes"] == nlohmann::json({"the compiler"}));
    // It lies apart where the folder has a place for what machines write.
    std::filesystem::create_directory(r.path() + "/tuned");
    CHECK(r.check(registry(true))["counts"]["unrecorded"] == 1);
    r.check(registry(true), {"--record"});
    CHECK(std::filesystem::exists(r.path() + "/tuned/tessera-programs.lock"));
    CHECK(r.check(registry(true))["counts"]["unchanged"] == 1);
    std::filesystem::remove_all(r.path() + "/tuned");

    write_file(file, "{");
    check_refused({"check", r.path()}, {"error[json.syntax]", " Delete it, and write it again with check --record."}, 2, registry(true));
    write_file(file, "{\"format\": \"other\", \"version\": 1, \"programs\": []}");
    check_refused({"check", r.path()},
                  {"error[check.record]: '" + file +
                   "': expected format tessera-programs, version 1; got another. Delete it, and write it again with check --record."},
                  2, registry(true));
}

TEST_CASE("an artifact that says nonsense of how it was tuned is broken, and the others are checked") {
    const Repository r;
    r.put(base(4));
    const Schedule good = measured(r, Schedule("matmul/f32/avx2/good").extends("matmul/avx2"), {{"K", 32}, {"M", 48}, {"N", 64}});
    r.put(good);
    struct Nonsense {
        const char *name, *fields;
        std::vector<std::string> words;
    };
    const std::vector<Nonsense> all = {
        {"metric", R"({"metric": 5})", {"error[json.type]", "/measured/metric: expected an object, got an integer."}},
        {"metric_name",
         R"({"metric": {"name": 1, "least_speed": 0.5}})",
         {"error[json.type]", "/measured/metric/name: expected a string, got an integer."}},
        {"metric_unknown",
         R"({"metric": {"name": "x; touch y", "least_speed": 0.5}})",
         {"error[json.value]", "/measured/metric/name: expected one of latency, throughput, code-size, workspace, got 'x; touch y'."}},
        {"metric_missing", R"({"metric": {}})", {"error[json.missing]", "/measured/metric: the field 'name' is missing"}},
        {"least_speed",
         R"({"metric": {"name": "code-size", "least_speed": "x"}})",
         {"error[json.type]", "/measured/metric/least_speed: expected a number, got a string."}},
        {"callers",
         R"({"metric": {"name": "throughput", "callers": -1}})",
         {"error[json.value]", "/measured/metric/callers: expected an integer in 1 ..= 4096, got -1."}},
        {"caches", R"({"caches": "`id`"})", {"error[json.value]", "/measured/caches: expected 'cold', got '`id`'."}},
        {"prepack", R"({"prepack": "w"})", {"error[json.type]", "/measured/prepack: expected an array, got a string."}},
        {"over", R"({"over": [1]})", {"error[json.type]", "/measured/over: expected an object, got an array."}},
        {"over_name",
         R"({"over": {"schedule": "a; b", "hash": "sha256:0"}})",
         {"error[json.value]", "/measured/over/schedule: expected a schedule's name, got 'a; b'."}},
        {"chosen_by", R"({"chosen_by": {}})", {"error[json.type]", "/measured/chosen_by: expected a string, got an object."}},
        {"seed", R"({"chosen_by": "it", "seed": 1.5})", {"error[json.type]", "/measured/seed: expected an integer, got a float."}},
        {"shapes", R"({"shapes": {"M": 1}})", {"error[json.type]", "/measured/shapes: expected an array, got an object."}},
        {"shapes_dims",
         R"({"shapes": [{"extents": {"M": 1}}, {"extents": {"N": 1}}]})",
         {"error[json.value]", "/measured/shapes/1/extents: expected the same dims in each shape, got others than in the first."}},
        {"shapes_metric",
         R"({"shapes": [{"extents": {"M": 1}, "metric": null}]})",
         {"error[json.type]", "/measured/shapes/0/metric: expected an object, got null."}},
        {"unreached", R"({"unreached": [7]})", {"error[json.type]", "/measured/unreached/0: expected an object, got an integer."}},
        {"task", R"({"task": 3})", {"error[json.type]", "/measured/task: expected an object, got an integer."}},
        {"counts", R"({"counts": {"loads": "many"}})", {"error[json.type]", "/measured/counts/loads: expected a number, got a string."}},
        {"ancestors",
         R"({"from": {"ancestors": [["a"]]}})",
         {"error[json.value]", "/measured/from/ancestors/0: expected [name, hash], got an array of 1."}},
    };
    for (const Nonsense &one : all) {
        nlohmann::json said = good.document()["measured"];
        said.update(nlohmann::json::parse(one.fields));
        r.put(good.named(std::string("matmul/f32/avx2/") + one.name).with_measured(said));
    }
    const nlohmann::json now = r.check();
    CHECK(now["counts"]["broken"] == all.size());
    CHECK(now["counts"]["unchanged"] == 1);
    CHECK(now["counts"]["unrecorded"] == 1);
    for (const Nonsense &one : all) {
        const std::string name = std::string("matmul/f32/avx2/") + one.name;
        const std::string message = row(now, name)["message"];
        INFO(message);
        for (const std::string &words : one.words) CHECK_THAT(message, Catch::Contains(words));
        CHECK_THAT(message, Catch::Contains(": " + r.path() + "/" + name + ".json: /measured/") &&
                                Catch::EndsWith(" Tune the schedule again, or take its 'measured' out."));
    }
    const Outcome text = generator({"check", r.path()});
    CHECK(text.code == 1);
    CHECK(text.err.empty());
    CHECK_THAT(text.out, Catch::Contains(std::to_string(all.size() + 2) + " schedules: " + std::to_string(all.size()) +
                                         " broken, 1 unrecorded, 1 unchanged\n"));

    // Who looks for a match passes them by, and says so; who wants all of them is told.
    KernelOptions options;
    options.algorithm = "matmul", options.target = "avx2", options.shape = {"K=32", "M=48", "N=64"}, options.schedule_dirs = {r.path()},
    options.quiet = true;
    const Match match = prepare_schedule(sample_registry(), options).choice.match;
    CHECK(match.schedule->name() == good.name());
    CHECK(match.passed_over.size() == all.size());
    CHECK_THAT(join(match.passed_over), Catch::Contains("matmul/f32/avx2/metric: error[json.type]: "));
    check_refused({"tune", "--all", "--out", r.path(), "--quiet"},
                  {"error[json.value]", "/measured/from/ancestors/0", " Tune the schedule again, or take its 'measured' out."});
}

TEST_CASE("what was measured in one way has to be measured again in another") {
    const Repository r;
    const Extents shape = {{"K", 32}, {"M", 48}, {"N", 64}};
    r.put(base(4));
    const Schedule plain = measured(r, Schedule("matmul/f32/avx2/plain").extends("matmul/avx2"), shape);
    auto tuned = [&](const std::string &name, const nlohmann::json &more) {
        nlohmann::json said = plain.document()["measured"];
        said.update(more);
        r.put(plain.named("matmul/f32/avx2/" + name).with_measured(said));
    };
    const nlohmann::json base_of_it = {{"schedule", "matmul/avx2"}, {"hash", "sha256:0"}};
    r.put(plain);
    tuned("twin", {{"over", base_of_it}});
    tuned("cold", {{"caches", "cold"}});
    tuned("small", {{"metric", {{"name", "code-size"}, {"least_speed", 0.7}, {"bytes", 3}}}});
    tuned("many", {{"metric", {{"name", "throughput"}, {"callers", 1}, {"calls_per_second", 3.5}}}});
    tuned("packed", {{"prepack", {"w"}}, {"over", {{"schedule", "matmul/gone"}, {"hash", "sha256:0"}}}});
    tuned("predicted", {{"chosen_by", "the cost model alone"},
                        {"seed", 7},
                        {"candidates", 64},
                        {"over", {{"schedule", "the space's most likely"}, {"hash", ""}}}});
    tuned("shapes", {{"shapes", {{{"extents", {{"M", 1}, {"N", 64}}}, {"over", base_of_it}}, {{"extents", {{"M", 64}, {"N", 64}}}}}},
                     {"unreached", {{{"M", 128}, {"N", 64}}}}});
    CHECK(r.check()["measure_again"].empty());
    r.put(base(2));
    const nlohmann::json again = r.check()["measure_again"];
    std::set<std::vector<std::string>> groups;
    for (const auto &one : again) groups.insert(one["schedules"].get<std::vector<std::string>>());
    const std::string at = "matmul/f32/avx2/";
    CHECK(
        groups ==
        std::set<std::vector<std::string>>{
            {at + "cold"}, {at + "many"}, {at + "packed"}, {at + "plain", at + "predicted", at + "twin"}, {at + "shapes"}, {at + "small"}});
    auto line_of = [&](const std::string &name) {
        const std::string text = generator({"check", r.path() + "/" + at + name + ".json", "--schedule-dir", r.path()}).out;
        const size_t from = text.find("  tune ");
        return from == std::string::npos ? text : text.substr(from + 2);
    };
    const std::string head = "tune matmul --numerics f32 --target avx2 --shape K=32 M=48 N=64 ", before_name = "--name " + at,
                      end = " --out " + r.path() + " --schedule-dir " + r.path() + "\n";
    CHECK(line_of("plain") == head + before_name + "plain" + end);
    CHECK(line_of("twin") == head + before_name + "twin" + end);
    CHECK(line_of("cold") == head + "--cold-caches " + before_name + "cold" + end);
    CHECK(line_of("small") == head + "--metric code-size --least-speed 0.7 " + before_name + "small" + end);
    CHECK(line_of("many") == head + "--metric throughput " + before_name + "many" + end);
    CHECK(line_of("packed") == head + "--prepack w " + before_name + "packed" + end +
                                   "    tuned from 'matmul/gone', which is in none of the folders: name its file with --schedule\n");
    CHECK(line_of("predicted") == head + "--deterministic --seed 7 --trials 64 --schedule none " + before_name + "predicted" + end);
    CHECK(line_of("shapes") ==
          "tune matmul --numerics f32 --target avx2 --shape K=32 M=48 N=64 --extents M=1 M=64 M=128 N=64 " + before_name + "shapes" + end);

    // Small code is not what a kernel takes that wants to be fast, also where each shape says so.
    auto taken = [&] {
        return generator(
                   {"show", "matmul", "--target", "avx2", "--shape", "K=32", "M=48", "N=64", "--schedule-dir", r.path(), "--what", "tiles"})
            .err;
    };
    tuned("a", {{"shapes", {{{"extents", {{"M", 1}}}}, {{"extents", {{"M", 64}}}}}}});
    CHECK_THAT(taken(), Catch::Contains("schedule 'matmul/f32/avx2/a'"));
    tuned("a", {{"shapes",
                 {{{"extents", {{"M", 1}}}, {"metric", {{"name", "code-size"}}}},
                  {{"extents", {{"M", 64}}}, {"metric", {{"name", "code-size"}}}}}}});
    CHECK_THAT(taken(), Catch::Contains("schedule 'matmul/f32/avx2/cold'"));
}

TEST_CASE("check takes files, and refuses what is not there") {
    const Repository r;
    r.put(base(4));
    const Outcome o = generator({"check", r.path() + "/matmul/avx2.json"});
    CHECK(o.code == 0);
    CHECK(o.out == "1 schedules: 1 unrecorded\nnothing to compare with, until --record keeps it:\n  matmul/avx2\n");
    check_refused({"check", r.path() + "/matmul/avx2.json", "--record"},
                  {"error[command.arguments]: check: --record keeps the programs of a whole folder beside them, and '" + r.path() +
                   "/matmul/avx2.json' is a file. Name the folder."});
    const TemporaryFolder empty;
    check_refused({"check", empty.path().string()}, {"error[check.path]: '" + empty.path().string() +
                                                     "': expected a schedule or more (*.json), found none. Correct the path."});
    check_refused({"check", "/no/such"},
                  {"error[check.path]: '/no/such': expected a schedule's file or a folder of them; there is none. Correct the path."});
    std::filesystem::rename(r.path() + "/matmul/avx2.json", r.path() + "/matmul/avx.json");
    CHECK_THAT(row(r.check(), "matmul/avx")["message"].get<std::string>(),
               Catch::Contains("error[schedule.name-mismatch]") && Catch::Contains("got 'matmul/avx2'"));
}

TEST_CASE("check reports links that lead nowhere as broken, beside the others") {
    const Repository r;
    r.put(base(4));
    namespace fs = std::filesystem;
    fs::create_symlink("loop.json", r.path() + "/loop.json");
    fs::create_symlink("nothing.json", r.path() + "/dangling.json");
    fs::create_symlink(".", r.path() + "/folder");
    const nlohmann::json now = r.check();
    CHECK(now["counts"]["broken"] == 2);
    CHECK(now["counts"]["unrecorded"] == 1);
    CHECK_THAT(row(now, "loop")["message"].get<std::string>(),
               Catch::Contains("error[schedule.file]: schedule file '" + r.path() +
                               "/loop.json': expected a regular file; opening it failed: Too many levels"));
    CHECK_THAT(row(now, "dangling")["message"].get<std::string>(),
               Catch::Contains("error[schedule.file]") && Catch::Contains("No such file"));
    CHECK(r.check(sample_registry(), {"--record"})["counts"]["broken"] == 2);
    CHECK(generator({"check", r.path() + "/loop.json"}).code == 1);
    check_refused({"check", r.path() + "/loop.json", "--record"}, {"error[command.arguments]", "is a file. Name the folder."});

    fs::remove(r.path() + "/tessera-programs.lock");
    fs::create_symlink("tessera-programs.lock", r.path() + "/tessera-programs.lock");
    check_refused({"check", r.path()},
                  {"error[check.file]: record of programs '" + r.path() + "/tessera-programs.lock': expected a regular file"});
}

TEST_CASE("every schedule that ships still lowers") {
    const Outcome o = stock_generator("check '" TESSERA_SOURCE_DIR "/schedules/library' --json");
    const auto document = nlohmann::json::parse(o.out);
    INFO(o.err);
    CHECK(document["counts"]["broken"] == 0);
    CHECK(document["counts"]["unknown"] == 0);
    CHECK(document["schedules"].size() >= 86);
}

}  // namespace tessera::test_checked_artifacts
