#include "generators/tune.h"

#include <nlohmann/json.hpp>

#include "schedules/merge.h"
#include "tests/generators/harness.h"

using namespace tessera;
using namespace tessera::test;

static std::vector<std::string> tune(const TemporaryFolder &folder, const std::vector<std::string> &more) {
    const auto slow = folder.path() / "slow.json";
    write_file(slow, Schedule("matmul/slow").stage("y", StageKnobs().vector({{"N", 4}})).text());
    std::vector<std::string> all = {"tune", "matmul", "--target", "x86-64", "--schedule", slow.string(), "--quiet", "--records", (folder.path() / "tune.db").string(), "--out", (folder.path() / "out").string(),
                                    "--measure-s", "0.03", "--population", "24", "--batch", "3", "--model", "none"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

TEST_CASE("tune writes an artifact that is faster, and generate takes it") {
    const TemporaryFolder folder;
    const Outcome o = generator(tune(folder, {"--trials", "6", "--shape", "M=48", "N=64", "K=32"}));
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("matmul/f32/x86-64 M48_N64_K32: 6 trials"));
    CHECK_THAT(o.out, Catch::Contains("what each change is worth"));
    const auto file = folder.path() / "out/matmul/f32/x86-64/M48_N64_K32.json";
    REQUIRE(std::filesystem::exists(file));
    const Schedule tuned = read_schedule(file);
    CHECK(tuned.parent_name().empty());  // one stage's knobs differ in all but the lanes
    CHECK(tuned.document()["measured"]["trials"] == 6);
    CHECK(tuned.document()["algorithm"]["name"] == "matmul");
    CHECK(generator({"show", "matmul", "--target", "x86-64", "--schedule", file.string(), "--shape", "M=48", "N=64", "K=32", "--what", "tiles"}).code == 0);
    CHECK(generator({"generate", "matmul", "--target", "x86-64", "--schedule", file.string(), "--out", (folder.path() / "kernel").string()}).code == 0);
    CHECK_THAT(generator({"records", "list", (folder.path() / "tune.db").string()}).out, Catch::Contains("matmul/f32/x86-64 M48_N64_K32"));

    // What was measured trains a model, which the next campaign begins with.
    const std::string rows = (folder.path() / "rows.tsv").string(), model = (folder.path() / "model.json").string();
    write_file(rows, generator({"records", "export", (folder.path() / "tune.db").string()}).out);
    CHECK_THAT(generator({"cost-model", "train", rows, "--out", model}).out, Catch::Contains("learnt from 6 candidates of 1 tasks"));
    CHECK_THAT(generator({"cost-model", "judge", rows}).out, Catch::Contains("rank correlation"));
    std::vector<std::string> again = tune(folder, {"--trials", "3", "--shape", "M=48", "N=64", "K=32", "--json"});
    const Outcome json = generator(again);
    CHECK(nlohmann::json::parse(json.out)["trials"].size() == 3);
    const size_t at = static_cast<size_t>(std::find(again.begin(), again.end(), "--model") - again.begin());
    again[at + 1] = model;
    CHECK(nlohmann::json::parse(generator(again).out)["trials"].size() == 3);
}

TEST_CASE("a dry run lists the decisions of any algorithm's space") {
    const TemporaryFolder folder;
    const Outcome o = generator(tune(folder, {"--dry-run", "--shape", "M=48", "N=64", "K=32"}));
    CHECK(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("y.micro.N") && Catch::Contains("y.pack.w") && Catch::Contains("decisions; about 10^"));
    CHECK(!std::filesystem::exists(folder.path() / "tune.db"));
}

TEST_CASE("mistakes of tune's are refused with words") {
    const TemporaryFolder folder;
    const std::vector<std::string> shape = {"--shape", "M=48", "N=64", "K=32"};
    auto refuse = [&](std::vector<std::string> more, const std::vector<std::string> &parts) {
        more.insert(more.end(), shape.begin(), shape.end());
        check_refused(tune(folder, more), parts);
    };
    refuse({"--space", "y.micro.Q=4"}, {"error[tune.space]", "no decision has that answer", "Did you mean 'y.micro."});
    refuse({"--space", "nonsense"}, {"error[tune.space]", "expected <decision>=<value>"});
    check_refused({"tune", "matmul", "--target", "x86-64", "--records", "/proc/none/tune.db", "--quiet", "--shape", "M=48", "N=64", "K=32"}, {"error[records.open]"});
    check_refused(tune(folder, {"--shape", "M=48"}), {"error[command.extents]", "dim N has no extent"});
    check_refused({"tune", "matmul", "--target", "arm64", "--shape", "M=4", "N=4", "K=4"}, {"error[command.target]"});
    check_refused({"tune", "matmul", "--target", "x86-64", "--model", "/no/such/model.json", "--quiet", "--shape", "M=48", "N=64", "K=32"}, {"error[model.file]"});
    check_refused({"cost-model", "train", "-"}, {"error[command.arguments]", "--out"});
    check_refused({"cost-model", "judge", "/no/such/file"}, {"error[examples.file]"});
    check_refused({"records", "list", "/no/such/file"}, {"error[records.open]"});
    check_refused({"records", "merge", (folder.path() / "a.db").string()}, {"error[command.arguments]", "name one or more"});
}
