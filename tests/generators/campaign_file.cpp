#include "generators/tune/campaign_file.h"

#include <nlohmann/json.hpp>

#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_campaign_file {

using namespace tessera::test;

static CampaignFile read(const TemporaryFolder &folder, const std::string &text) {
    write_file(folder.path() / "campaign.json", text);
    return read_campaign(folder.path() / "campaign.json");
}

static std::string with_tasks(const std::string &tasks) {
    return R"({"format": "tessera-campaign", "version": 1, "tasks": [)" + tasks + "]}";
}

TEST_CASE("a campaign file says tasks, weights and a budget") {
    const TemporaryFolder folder;
    const CampaignFile c = read(folder, R"({"format": "tessera-campaign", "version": 1, "budget": {"trials": 40, "seconds": 1.5},
        "tasks": [{"algorithm": "matmul", "fixed": {"M": 64, "N": 96, "K": 32}, "target": "avx2", "weight": 12},
                  {"algorithm": "conv1d", "numerics": "bf16", "options": {"stride": 2}, "extents": {"L": 100},
                   "threads": 2, "schedule": "none"}]})");
    CHECK(c.trials == 40);
    CHECK(c.seconds == 1.5);
    REQUIRE(c.tasks.size() == 2);
    CHECK(c.tasks[0].task == KernelTask{"matmul", "f32", {}, {{"M", 64}, {"N", 96}, {"K", 32}}, {}, "avx2", 1});
    CHECK(c.tasks[0].weight == 12);
    CHECK(c.tasks[1].task == KernelTask{"conv1d", "bf16", {{"stride", 2}}, {}, {{"L", 100}}, "host", 2});
    CHECK(c.tasks[1].schedule == "none");
    CHECK(!read(folder, with_tasks(R"({"algorithm": "matmul"})")).trials);
}

TEST_CASE("mistakes in a campaign file are refused with words") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "campaign.json").string();
    auto refuse = [&](const std::string &text, const std::vector<std::string> &parts) { check_words([&] { read(folder, text); }, parts); };
    refuse(with_tasks(""), {"error[campaign.tasks]: " + file + ": expected one task or more, got none. Add what shall be tuned."});
    refuse(with_tasks(R"({"algorithm": "a"}, {"algorithm": "b"}, {"algorithm": "a", "weight": 2})"),
           {"error[campaign.tasks]: " + file +
            ": expected each task once; tasks 0 and 2 are both a/f32 on host. Remove one, and add up their weights."});
    refuse(with_tasks(R"({"algoritm": "a"})"), {"error[json.unknown-field]", "/tasks/0", "Did you mean 'algorithm'?"});
    refuse(with_tasks(R"({"numerics": "f32"})"),
           {"error[json.missing]: " + file + ": /tasks/0: the field 'algorithm' is missing; the fields here are numerics. Add it."});
    refuse(with_tasks("{}"),
           {"error[json.missing]: " + file + ": /tasks/0: the field 'algorithm' is missing; the fields here are none. Add it."});
    refuse(with_tasks(R"({"algorithm": "a", "weight": 0})"), {"error[json.value]", "/tasks/0/weight"});
    refuse(with_tasks(R"({"algorithm": "a", "fixed": {"M": -1}})"), {"error[json.value]", "/tasks/0", "/fixed/M"});
    refuse(R"({"format": "tessera-schedule", "version": 1, "tasks": []})", {"error[json.version]", "tessera-campaign.schema.json"});
    refuse(R"({"format": "tessera-campaign", "version": 1, "budget": {"trials": 0}, "tasks": []})",
           {"error[json.value]", "/budget/trials"});
    auto refuse_shapes = [&](const std::string &shapes, const std::string &got) {
        refuse(with_tasks(R"({"algorithm": "a", "fixed": {"N": 3}, "shapes": )" + shapes + "}"),
               {"error[campaign.shapes]", "/tasks/0/shapes: expected two shapes or more, no two equal, of the same dims",
                "got " + got + ".", "For one shape, use"});
    };
    refuse_shapes(R"([{"M": 1}])", "1");
    refuse_shapes(R"([{"M": 1}, {"M": 1}])", "shape 1 twice");
    refuse_shapes(R"([{"M": 1}, {"K": 1}])", "different dims in shapes 0 and 1");
    refuse_shapes(R"([{"N": 1}, {"N": 2}])", "dim 'N' twice");
    refuse("{", {"error[json.syntax]"});
    check_words([&] { read_campaign("/no/such/campaign.json"); }, {"error[campaign.file]: campaign file '/no/such/campaign.json'"});
}

TEST_CASE("the published schema has the fields that are read") {
    const auto schema = nlohmann::json::parse(read_file(TESSERA_SOURCE_DIR "/schedules/tessera-campaign.schema.json"));
    const nlohmann::json values = {
        {"algorithm", "a"}, {"numerics", "f32"}, {"options", {{"s", 1}}}, {"fixed", {{"M", 1}}}, {"extents", {{"N", 1}}},
        {"target", "avx2"}, {"threads", 1},      {"weight", 1.5},         {"schedule", "none"},  {"shapes", {{{"K", 1}}, {{"K", 2}}}}};
    const TemporaryFolder folder;
    CHECK(read(folder, with_tasks(values.dump())).tasks.size() == 1);
    const auto &properties = schema["properties"]["tasks"]["items"]["properties"];
    CHECK(properties.size() == values.size());
    for (const auto &[name, value] : values.items()) CHECK(properties.contains(name));
}

TEST_CASE("all that artifacts were tuned for are tasks, once each") {
    Library library;
    const auto all = [](const std::string &) { return true; };
    check_words(
        [&] { tasks_of(library, all); },
        {"error[tune.all]: --all: expected artifacts of this generator's algorithms that say what they were tuned for", "--campaign"});
    Provenance p;
    p.task = {"matmul", "f32", {}, {{"M", 8}}, {}, "avx2", 1};
    p.resolved = "sha256:0";
    library.add(Schedule("a").with_measured(json_of(p)));
    library.add(Schedule("b").with_measured(json_of(p)));
    p.task.threads = 2;
    library.add(Schedule("c").with_measured(json_of(p)));
    library.add(Schedule("d"));
    const std::vector<CampaignEntry> tasks = tasks_of(library, all);
    REQUIRE(tasks.size() == 2);
    CHECK(tasks[0].task.threads == 1);
    CHECK(tasks[1].task.threads == 2);
    check_words([&] { tasks_of(library, [](const std::string &name) { return name != "matmul"; }); }, {"error[tune.all]"});
}

TEST_CASE("the campaigns that ship can be read, and each artifact that ships is of a task of one of them") {
    std::vector<CampaignEntry> asked;
    const std::filesystem::path folder = TESSERA_SOURCE_DIR "/schedules/campaigns";
    for (const auto &file : std::filesystem::directory_iterator(folder))
        if (file.path().extension() == ".json")
            for (const CampaignEntry &entry : read_campaign(file.path()).tasks) asked.push_back(entry);
    Library library;
    library.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    for (const CampaignEntry &made : tasks_of(library, [](const std::string &) { return true; })) {
        INFO(to_string(made.task));
        CHECK(std::any_of(asked.begin(), asked.end(), [&](const CampaignEntry &entry) {
            return entry.task.algorithm == made.task.algorithm && entry.task.numerics == made.task.numerics &&
                   entry.task.target == made.task.target && entry.task.options == made.task.options && entry.shapes == made.shapes;
        }));
    }
}

}  // namespace tessera::test_campaign_file
