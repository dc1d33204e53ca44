#include "autotune/search/campaign.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "autotune/space/decisions_from_schedule.h"
#include "compiler/lower/lower.h"
#include "support/files/output_folder.h"
#include "tests/autotune/kernels.h"
#include "tests/support/shell.h"
#include "tests/support/words.h"

namespace tessera::test_campaign {

using namespace tessera::test;

// A base that computes each activation for every column again: it is tens of times slower than nearly all of the space, so that no
// other load of the machine can make it look faster.
static CampaignTask task() {
    Builder f("active", {});
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N});
    const Tile active = gelu(x).named("active");
    CampaignTask t;
    t.space = {
        bind_extents(f.output("y", dot(active, w)).build(), {{"M", 4}, {"N", 48}, {"K", 32}}), target_named("x86-64"), {}, 1, {}, {}};
    t.name = "active/f32/x86-64 M4_N48_K32";
    t.identity = {{"task", t.name}};
    Knobs again;
    again.place = Place{Place::Kind::inlined, "", ""};
    t.base = KnobsByStage{{"active", again}};
    return t;
}

static CampaignOptions quick(int trials) {
    CampaignOptions o;
    o.trials = trials, o.batch = 4, o.ablations = 2, o.finalists = 2, o.search.population = 24;
    o.measure.seconds = 0.01, o.measure.jobs = 2;
    return o;
}

static std::vector<std::string> hashes(const CampaignResult &r) {
    std::vector<std::string> all;
    for (const Trial &t : r.trials) all.push_back(t.resolved);
    return all;
}

TEST_CASE("a campaign finds a faster schedule, and goes on from its records") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    auto model = boosted_model();
    int shown = 0;
    const CampaignResult first = run_campaign(task(), quick(9), *model, records, [&](const Progress &p) {
        shown++;
        CHECK(p.budget == 9);
    });
    CHECK(shown >= 9);
    CHECK(first.trials.size() == 9);
    CHECK(first.trials[0].origin == "base");
    CHECK(first.improved);
    CHECK(first.measurement.lower > 1);
    CHECK(first.best.resolved != first.base.resolved);
    CHECK(records.campaigns().at(0).trials == 9);

    // With all of its measurements there, the same search proposes the same, measures nothing again, and goes on.
    CampaignOptions more = quick(13);
    more.resume = true;
    model = boosted_model();
    const CampaignResult second = run_campaign(task(), more, *model, records, {});
    CHECK(second.trials.size() == 13);
    std::vector<std::string> again = hashes(second);
    again.resize(9);
    CHECK(again == hashes(first));
    for (size_t i = 0; i < 9; i++) CHECK(second.trials[i].measurement.seconds == first.trials[i].measurement.seconds);
    CHECK(records.campaigns().size() == 1);

    model = boosted_model();
    CHECK(run_campaign(task(), quick(2), *model, records, {}).trials.size() == 2);
    CHECK(records.campaigns().size() == 2);
}

TEST_CASE("a finished campaign is replayed without measuring anything again") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    auto model = boosted_model();
    const CampaignResult first = run_campaign(task(), quick(11), *model, records, {});
    CampaignOptions again = quick(11);
    again.resume = true;
    model = boosted_model();
    const CampaignResult second = run_campaign(task(), again, *model, records, {});
    CHECK(hashes(second) == hashes(first));
    for (size_t i = 0; i < 11; i++) CHECK(second.trials[i].measurement.seconds == first.trials[i].measurement.seconds);
    CHECK(second.best.resolved == first.best.resolved);
    CHECK(second.measurement.seconds == first.measurement.seconds);
    REQUIRE(first.finalists.size() >= 2);  // two of the search, and what is the winner without what harms it
    REQUIRE(second.finalists.size() == first.finalists.size());
    for (size_t i = 0; i < first.finalists.size(); i++) {
        CHECK(second.finalists[i].first == first.finalists[i].first);
        CHECK(second.finalists[i].second.lower == first.finalists[i].second.lower);
    }
    REQUIRE(second.ablations.size() == first.ablations.size());
    for (size_t i = 0; i < first.ablations.size(); i++) CHECK(second.ablations[i].gain == first.ablations[i].gain);
}

// A runner that says of each call of the candidate a tenth of what one of the base took, also where that is the base itself.
TEST_CASE("a runner that favours the candidate makes nothing faster than it is") {
    const TemporaryFolder folder;
    const auto runner = folder.path() / "runner";
    write_file(runner, R"(#!/usr/bin/env python3
import subprocess, sys, threading
program = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
calls = (1, 1)
def ask():
    global calls
    while line := sys.stdin.buffer.readline():
        words = line.split()
        if words[0] == b"time": calls = int(words[1]), int(words[2])
        program.stdin.write(line)
        if words[0] == b"tensor": program.stdin.write(sys.stdin.buffer.read(int(words[2])))
        program.stdin.flush()
    program.stdin.close()
threading.Thread(target=ask, daemon=True).start()
while True:
    line = program.stdout.readline()
    if not line: break
    data = program.stdout.read(int(line.split()[1])) if line.startswith(b"part ") else b""
    if line.startswith(b"took "):
        base = float(line.split()[2])
        line = b"took %.9g %.9g\n" % (base / calls[1] * calls[0] / 10, base)
    sys.stdout.buffer.write(line + data)
    sys.stdout.buffer.flush()
)");
    std::filesystem::permissions(runner, std::filesystem::perms::owner_all);
    CampaignTask same = task();
    same.base.reset();  // the space's most likely schedule, which is good
    std::vector<std::string> said;
    CampaignOptions options = quick(5);
    options.ablations = 0, options.measure.runners = {runner.string()},
    options.measure.warn = [&](const std::string &text) { said.push_back(text); };
    Records records(folder.path() / "records.db");
    auto model = boosted_model();
    const CampaignResult r = run_campaign(same, options, *model, records, {});
    CHECK(r.trials[0].measurement.ratio > 5);
    CHECK(r.measurement.ratio < 3);
    REQUIRE(said.size() == 1);
    CHECK_THAT(said[0], Catch::Contains("the schedule to beat, measured beside itself, is at ") &&
                            Catch::Contains("the ratios of others are divided by that"));
}

// A search, and the number that it has in the records, which it is the first in.
static std::pair<CampaignResult, int64_t> recorded_campaign(Records &records, int trials) {
    const auto model = boosted_model();
    CampaignResult result = run_campaign(task(), quick(trials), *model, records, {});
    return {std::move(result), records.campaigns().at(0).id};
}

// The same search again, with all that is recorded.
struct Resumed {
    CampaignResult result;
    std::vector<std::string> notes, warnings;  // of what there are records
};
static Resumed resume(Records &records, CampaignOptions options) {
    Resumed r;
    options.resume = true;
    options.note = [&](const std::string &text) { r.notes.push_back(text); };
    options.measure.warn = [&](const std::string &text) {
        if (text.find("another way") != std::string::npos) r.warnings.push_back(text);
    };
    const auto model = boosted_model();
    r.result = run_campaign(task(), options, *model, records, {});
    return r;
}

TEST_CASE("all recorded trials count, however few are asked for") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    auto model = boosted_model();
    const CampaignResult first = run_campaign(task(), quick(9), *model, records, {});
    CHECK_FALSE(first.stopped);
    const Resumed again = resume(records, quick(3));
    CHECK(hashes(again.result) == hashes(first));
    CHECK(again.result.best.resolved == first.best.resolved);
    CHECK(again.notes == std::vector<std::string>{"active/f32/x86-64 M4_N48_K32: goes on with 9 recorded trials"});
    CHECK(again.warnings.empty());
    CHECK(records.campaigns().at(0).trials == 9);

    CampaignOptions other = quick(2);
    other.search.seed = 7;
    CHECK(
        resume(records, other).notes ==
        std::vector<std::string>{
            "active/f32/x86-64 M4_N48_K32: nothing to resume: the recorded campaign of this task differs in seed; a new campaign begins"});
    other = quick(2);
    other.measure.seconds = 0.04;
    CHECK(resume(records, other).notes.at(0).find("differs in measure_s; a new") != std::string::npos);  // the most like one
    CHECK(records.campaigns().size() == 3);
    Records none(folder.path() / "none.db");
    CHECK(resume(none, quick(1)).notes.at(0).find("nothing to resume: the records have no campaign of this task; a new") !=
          std::string::npos);
}

TEST_CASE("a campaign that goes another way than its records says so once, and keeps what it measures") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    const auto [first, id] = recorded_campaign(records, 9);
    Trial other = records.trials(id).at(4);
    other.resolved = "sha256:of another compiler";
    records.add(id, {other});

    const Resumed parted = resume(records, quick(11));
    REQUIRE(parted.warnings.size() == 1);
    CHECK(parted.warnings[0].find("the campaign goes another way than its records from trial 4 on, since the program, the target, the "
                                  "compiler or the search changed") != std::string::npos);
    REQUIRE(parted.result.trials.size() == 11);
    for (size_t i = 0; i < 4; i++) CHECK(parted.result.trials[i].measurement.seconds == first.trials[i].measurement.seconds);
    const std::vector<Trial> recorded = records.trials(id);
    REQUIRE(recorded.size() == 11);
    for (size_t i = 0; i < 11; i++) {
        CHECK(recorded[i].resolved == parted.result.trials[i].resolved);
        CHECK(recorded[i].measurement.seconds == parted.result.trials[i].measurement.seconds);
    }

    const Resumed again = resume(records, quick(11));
    CHECK(again.warnings.empty());
    for (size_t i = 0; i < 11; i++) CHECK(again.result.trials[i].measurement.seconds == recorded[i].measurement.seconds);

    // Trials that were recorded on another way are no budget.
    records.add(id, {other});
    const Resumed fewer = resume(records, quick(2));
    CHECK(fewer.result.trials.size() == 4);
    CHECK(records.trials(id).size() == 11);  // nothing was measured in their place
}

TEST_CASE("a recorded trial that cannot have been measured is measured again") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    const auto [first, id] = recorded_campaign(records, 5);
    Trial damaged = records.trials(id).at(2);
    damaged.measurement = first.trials[0].measurement, damaged.measurement.ratio = 0;
    records.add(id, {damaged});
    const Resumed again = resume(records, quick(5));
    CHECK(again.warnings.empty());
    CHECK(hashes(again.result) == hashes(first));
    const std::vector<Trial> repaired = records.trials(id);
    CHECK(repaired.size() == 5);
    CHECK(is_credible(repaired.at(2)));
    CHECK(repaired.at(1).measurement.seconds == first.trials[1].measurement.seconds);
}

TEST_CASE("a base that cannot be measured ends the campaign, which then goes on from there") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    const auto model = roofline_model();
    CampaignOptions options = quick(5);
    options.measure.runners = {"false"};
    check_words([&] { run_campaign(task(), options, *model, records, {}); },
                {"error[tune.runner]: active: expected a runner that runs the schedule to beat; runner 'false': it ended with code 1. Fix "
                 "it and go on with --resume"});
    CHECK(records.campaigns().at(0).trials == 0);
}

TEST_CASE("a budget of seconds ends inside a batch, at what runs") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    const auto model = roofline_model();
    CampaignOptions options = quick(64);
    options.batch = 64, options.measure.seconds = 1, options.measure.precision = 1e-9, options.finalists = 0, options.seconds = 4;
    const auto start = std::chrono::steady_clock::now();
    const CampaignResult r = run_campaign(task(), options, *model, records, {});
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(40));
    CHECK(r.trials.size() >= 1);
    CHECK(r.trials.size() < 64);
    CHECK(static_cast<size_t>(records.campaigns().at(0).trials) == r.trials.size());
}

TEST_CASE("a campaign that is stopped ends in order with the best so far") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    const auto model = roofline_model();
    std::atomic<bool> stop{false};
    CampaignOptions options = quick(40);
    options.stop = options.measure.stop = &stop;
    const CampaignResult r = run_campaign(task(), options, *model, records, [&](const Progress &p) { stop = p.trials >= 6; });
    CHECK(r.trials.size() >= 6);
    CHECK(r.trials.size() < 12);
    CHECK(static_cast<size_t>(records.campaigns().at(0).trials) == r.trials.size());
    CHECK(r.improved);  // the best is confirmed all the same
    CHECK(r.stopped);
    CHECK(r.progress.budget == 40);
}

TEST_CASE("what like kernels were given is among the first that are proposed") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    CampaignTask t = task();
    Knobs like;
    like.micro = {{"M", 2}, {"N", 24}}, like.vector = {{"N", 4}}, like.loops = {"micro.N", "micro.M"};
    t.warm_starts = {{{"y", like}}};
    const std::string image =
        resolved_hash(lower(t.space.algorithm, realize(t.space, decisions_from_schedule(t.warm_starts[0], most_likely)), t.space.target));
    auto model = boosted_model();
    const CampaignResult first = run_campaign(t, quick(4), *model, records, {});
    const std::vector<std::string> proposed = hashes(first);
    const auto at = std::find(proposed.begin() + 1, proposed.end(), image);
    REQUIRE(at != proposed.end());
    CHECK(first.trials[static_cast<size_t>(at - proposed.begin())].origin == "seed");

    // A campaign goes on with the seeds that it began with: by then its own artifact may be one of them.
    t.warm_starts.clear();
    CampaignOptions more = quick(5);
    more.resume = true;
    model = boosted_model();
    std::vector<std::string> again = hashes(run_campaign(t, more, *model, records, {}));
    REQUIRE(again.size() == 5);
    again.resize(4);
    CHECK(again == proposed);
    CHECK(records.campaigns().size() == 1);
}

TEST_CASE("a campaign is taken further in parts") {
    const TemporaryFolder folder;
    Records records(folder.path() / "records.db");
    const auto model = roofline_model();
    const CampaignTask t = task();
    const CampaignOptions options = quick(8);
    Campaign campaign(t, options, *model, records, {});
    CHECK(campaign.progress().trials == 1);  // the base
    CHECK(campaign.step(2));
    CHECK(campaign.progress().trials == 3);
    while (campaign.step()) {}
    CHECK(campaign.finish().trials.size() == 8);
}

}  // namespace tessera::test_campaign
