#include "generators/tune/tune_callees.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/text/hash.h"
#include "tests/generators/harness.h"
#include "tests/generators/programs.h"

namespace tessera::test_tune_callees {

using namespace tessera::test;

namespace {

class Workplace {
public:
    std::string path(const std::string &name) const { return (folder_.path() / name).string(); }
    Outcome tune(const std::vector<std::string> &more) const {
        std::vector<std::string> all = {"tune",          "layered", "--callees",   "--target",    "avx2", "--quiet",      "--records",
                                        path("tune.db"), "--out",   path("found"), "--measure-s", "0.02", "--population", "24",
                                        "--batch",       "3",       "--model",     "none"};
        all.insert(all.end(), more.begin(), more.end());
        return generator(all, program_registry());
    }

private:
    TemporaryFolder folder_;
};

const std::vector<std::string> shape = {"--shape", "L=3", "D=16", "--extents", "M=16"};

std::vector<std::string> with_shape(std::vector<std::string> more) {
    more.insert(more.begin(), shape.begin(), shape.end());
    return more;
}

}  // namespace

TEST_CASE("the callees of a program are tuned with one budget, and its calls take what was found") {
    const Workplace w;
    const Outcome o = w.tune(with_shape({"--trials", "6", "--json"}));
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    const auto result = nlohmann::json::parse(o.out);
    REQUIRE(result["tasks"].size() == 3);
    size_t trials = 0;
    for (const auto &task : result["tasks"]) {
        CHECK(task["trials"] >= 1);  // the base
        CHECK(task["share"] > 0);
        trials += task["trials"].get<size_t>();
    }
    CHECK(trials == 6);
    const auto &up = result["tasks"][0], &norm = result["tasks"][2];
    CHECK(up["scopes"] == nlohmann::json({"layers.up"}));
    CHECK(up["weight"] == 3);
    CHECK(norm["weight"] == 4);
    CHECK(result["program"]["name"] == "layered");
    CHECK(result["program"]["seconds"] > 0);
    CHECK(result["program"]["predicted_speed"] > 1);
    // The first batch is of the longest, a product. One element at a time is slow, so something faster was found.
    const auto &found = up["trials"] > 1 ? up : result["tasks"][1];
    CHECK(found["trials"] == 4);
    const std::string name = found["schedule"], scope = found["scopes"][0];
    CHECK(name == (scope == "layers.up" ? "product/f32/avx2/M16_N32_K16_partly_fixed" : "product/f32/avx2/M16_N16_K32_partly_fixed"));
    REQUIRE(std::filesystem::exists(w.path("found") + "/" + name + ".json"));

    const Outcome taken = generator({"show", "layered", "--target", "avx2", "--schedule", "layered/silent", "--schedule-dir",
                                     w.path("found"), "--shape", "L=3", "D=16", "--what", "tiles"},
                                    program_registry());
    CHECK(taken.code == 0);
    CHECK_THAT(taken.err, Catch::Contains("call '" + scope + "': schedule '" + name + "', the best match for product"));

    // All is in the records: the same trials again, none measured.
    const Outcome again = w.tune(with_shape({"--trials", "6", "--resume"}));
    INFO(again.err);
    CHECK(again.code == 0);
    CHECK_THAT(again.out, Catch::Contains("runs   share  trials") && Catch::Contains("product/f32/avx2 M16_N32_K16_partly_fixed") &&
                              Catch::Contains("\n6 trials in ") && Catch::Contains("\nlayered: ") &&
                              Catch::Contains("of which its callees by themselves take ") &&
                              Catch::Contains("\n  \"" + scope + "\": {\"use\": \"" + name + "\"}\n"));
}

TEST_CASE("callees of one name at the same extents have artifacts of their own, and a program that cannot be timed is no obstacle") {
    auto scaled = [](double by) {
        Builder f("scaled");
        const Tile x = f.input("x", {f.dim("N")});
        return f.output("y", x * by).build();  // (N)
    };
    Registry registry;
    registry.add("both", "y[N] = 6 x[N]", [=](const Numerics &numerics) {
        Builder f("both", numerics);
        const Tile x = f.input("x", {f.dim("N")});
        return f.output("y", f.call("b", scaled(3), {f.call("a", scaled(2), {x})[0]})[0]).build();  // (N)
    });
    const Workplace w;
    const std::string first = "scaled/f32/avx2/N64", second = first + "_" + semantic_hash(scaled(3)).substr(7, 8);
    for (const std::string &name : {first, second}) {
        std::filesystem::create_directories(w.path("found/scaled/f32/avx2"));
        write_file(w.path("found/" + name + ".json"), Schedule(name).text());
    }
    auto tune = [&](const std::vector<std::string> &more) {
        std::vector<std::string> all = {"tune",    "both",      "--callees",       "--shape", "N=64",          "--target", "avx2",
                                        "--quiet", "--records", w.path("tune.db"), "--out",   w.path("found"), "--trials", "2",
                                        "--model", "none",      "--measure-s",     "0.01",    "--runner",      "env"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome o = generator(all, registry);
        INFO(o.out << o.err);
        REQUIRE(o.code == 0);
        return o.out;
    };
    const auto result = nlohmann::json::parse(tune({"--json"}));
    CHECK(result["program"]["seconds"].is_null());
    CHECK(result["program"]["predicted_speed"].is_null());
    CHECK_THAT(result["program"]["message"].get<std::string>(), Catch::Contains("error[tune.runner]"));
    REQUIRE(result["tasks"].size() == 2);
    for (const auto &task : result["tasks"]) {
        CHECK(task["share"].is_null());
        CHECK(task["trials"] == 1);
    }
    CHECK_THAT(tune({"--resume"}), Catch::Contains(first + ".json stands: ") && Catch::Contains(second + ".json stands: ") &&
                                       Catch::Contains("\nboth as a whole was not timed: error[tune.runner]"));
}

TEST_CASE("what cannot be tuned of a program") {
    const Workplace w;
    auto refuse = [&](const std::vector<std::string> &more, const std::string &part) {
        const Outcome o = w.tune(more);
        CHECK(o.code == 2);
        CHECK_THAT(o.err, Catch::Contains(part));
    };
    refuse(with_shape({"--trials", "2"}), "error[campaign.budget]: tune: expected at least one trial for each of the 3 tasks, got 2.");
    refuse({"--shape", "L=3", "D=16"}, "error[command.extents]: layered: dim M has no extent");
    refuse(with_shape({"--all"}), "error[command.arguments]: tune: expected --callees or --all, got both. Choose one.");
    for (const std::vector<std::string> &one : {std::vector<std::string>{"--name", "a"},
                                                {"--schedule", "layered/silent"},
                                                {"--dry-run"},
                                                {"--report", "a.html"},
                                                {"--space", "a=b"},
                                                {"--prepack", "x"}})
        refuse(with_shape(one),
               "error[command.arguments]: tune: " + one[0] + " is for one kernel; the tasks of --callees say what is tuned. Leave it out.");
    refuse(with_shape({"--metric", "code-size"}), "tune: --metric code-size is for one kernel that is measured; leave out --callees.");
    refuse({"--shape", "L=0", "D=16", "--extents", "M=0"}, "error[campaign.tasks]: 1 of 1 tasks cannot be tuned");
    check_refused({"tune", "layered", "--callees", "--deterministic"},
                  {"tune: --deterministic is for one kernel; the tasks of --callees say"});
    check_refused({"tune", "--callees"}, {"error[command.arguments]: tune: expected an algorithm, --campaign or --all, got none"});
    check_refused({"tune", "matmul", "--callees", "--shape", "M=8", "N=8", "K=8"},
                  {"error[callees.none]: matmul: --callees: expected a program, which calls other algorithms; it calls nothing."});
    CHECK(generator({"records", "list", w.path("tune.db")}).out.find("product") == std::string::npos);
}

}  // namespace tessera::test_tune_callees
