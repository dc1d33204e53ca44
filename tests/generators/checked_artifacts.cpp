#include "generators/checked_artifacts.h"

#include <nlohmann/json.hpp>

#include "algorithms/builder.h"
#include "algorithms/error.h"
#include "algorithms/tile_functions.h"
#include "tests/generators/harness.h"
#include "tests/schedules/words.h"

using namespace tessera;
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
    CHECK(changed["counts"].contains("loads"));
    CHECK(row(now, "matmul/f32/avx2/alone")["programs"] == "unchanged");
    REQUIRE(now["measure_again"].size() == 1);
    CHECK(now["measure_again"][0]["schedules"] == nlohmann::json({child.name(), "matmul/f32/avx2/twin"}));
    const std::string text = generator({"check", r.path()}).out;
    CHECK_THAT(text, Catch::Contains("changed") && Catch::Contains(" times") && Catch::Contains("ancestor 'matmul/avx2' changed"));
    CHECK_THAT(text, Catch::Contains("to measure again (1):\n  tune matmul --numerics f32 --target avx2 --shape K=32 M=48 N=64 --name "
                                     "matmul/f32/avx2/M48_N64_K32 --out " + r.path() + " --schedule-dir " + r.path() + "\n    the same program: matmul/f32/avx2/twin\n"));
    CHECK_THAT(text, Catch::Contains("4 schedules: 2 changed, 1 unrecorded, 1 unchanged\n"));

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
    write_file(file, "{");
    check_refused({"check", r.path()}, {"error[json.syntax]", " Delete it, and write it again with check --record."}, 2, registry(true));
    write_file(file, "{\"format\": \"other\", \"version\": 1, \"programs\": []}");
    check_refused(
        {"check", r.path()},
        {"error[check.record]: '" + file + "': expected format tessera-programs, version 1; got another. Delete it, and write it again with check --record."}, 2,
        registry(true));
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
    check_refused({"check", empty.path().string()},
                  {"error[check.path]: '" + empty.path().string() + "': expected a schedule or more (*.json), found none. Correct the path."});
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
               Catch::Contains("error[schedule.file]: schedule file '" + r.path() + "/loop.json': expected a regular file; opening it failed: Too many levels"));
    CHECK_THAT(row(now, "dangling")["message"].get<std::string>(), Catch::Contains("error[schedule.file]") && Catch::Contains("No such file"));
    CHECK(r.check(sample_registry(), {"--record"})["counts"]["broken"] == 2);
    CHECK(generator({"check", r.path() + "/loop.json"}).code == 1);
    check_refused({"check", r.path() + "/loop.json", "--record"}, {"error[command.arguments]", "is a file. Name the folder."});

    fs::remove(r.path() + "/tessera-programs.lock");
    fs::create_symlink("tessera-programs.lock", r.path() + "/tessera-programs.lock");
    check_refused({"check", r.path()}, {"error[check.file]: record of programs '" + r.path() + "/tessera-programs.lock': expected a regular file"});
}

TEST_CASE("every schedule that ships still lowers") {
    const Outcome o = stock_generator("check '" TESSERA_SOURCE_DIR "/schedules' --json");
    const auto document = nlohmann::json::parse(o.out);
    INFO(o.err);
    CHECK(document["counts"]["broken"] == 0);
    CHECK(document["counts"]["unknown"] == 0);
    CHECK(document["schedules"].size() >= 86);
}
