#include "generators/commands/inspect.h"

#include <nlohmann/json.hpp>

#include "tests/generators/harness.h"

namespace tessera::test_inspect {

using namespace tessera::test;

static Registry with_schedules() {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/base").stage("y", block({{"M", 4}, {"N", 16}})); });
    registry.add_schedule([] { return Schedule("matmul/child").extends("matmul/base").stage("y", block({{"N", 8}})); });
    return registry;
}

TEST_CASE("explain shows which ancestor sets each field") {
    const Outcome outcome = generator({"explain", "matmul/child"}, with_schedules());
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::StartsWith("matmul/child -> matmul/base\n") && Catch::Contains("matmul/child, over 16 of matmul/base"));
    const auto json = nlohmann::json::parse(generator({"explain", "matmul/child", "--json"}, with_schedules()).out);
    CHECK(json["chain"] == std::vector<std::string>{"matmul/child", "matmul/base"});
}

TEST_CASE("explain takes a file, and its ancestors from the folders") {
    const TemporaryFolder folder;
    write_file(folder.path() / "parents" / "mine" / "base.json", Schedule("mine/base").stage("y", block({{"M", 4}})).text());
    write_file(folder.path() / "leaf.json", Schedule("leaf").extends("mine/base").text());
    const Outcome outcome =
        generator({"explain", (folder.path() / "leaf.json").string(), "--schedule-dir", (folder.path() / "parents").string()});
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::StartsWith("leaf -> mine/base\n"));
}

TEST_CASE("diff ends with 1 where schedules differ") {
    const Outcome different = generator({"diff", "matmul/base", "matmul/child"}, with_schedules());
    CHECK(different.code == 1);
    CHECK_THAT(different.out, Catch::Contains("/stages/y/block/N") && Catch::Contains("16 -> 8") && !Catch::Contains("/M"));
    const Outcome equal = generator({"diff", "matmul/child", "matmul/child"}, with_schedules());
    CHECK(equal.code == 0);
    CHECK(equal.out == "");
}

TEST_CASE("explain's and diff's errors") {
    check_refused({"explain", "none"},
                  {"error[command.schedule]: 'none' has no fields to show; expected a schedule's name or its file (*.json)."});
    check_refused({"explain", "matmul/bas"}, {"error[schedule.missing]: there is no schedule 'matmul/bas'", "Did you mean 'matmul/base'?"},
                  2, with_schedules());
    check_refused({"diff", "matmul/base"}, {"error[command.arguments]: tessera-generator diff: b is required"}, 2, with_schedules());
}

}  // namespace tessera::test_inspect
