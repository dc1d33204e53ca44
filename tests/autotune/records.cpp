#include "autotune/records.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/output_folder.h"
#include "tests/bench/shell.h"
#include "tests/schedules/words.h"

using namespace tessera;
using namespace tessera::test;

static Trial trial(int64_t number, double ratio) {
    Trial t;
    t.number = number, t.schedule = "{\"y\":{}}", t.origin = "sample", t.resolved = "sha256:" + std::to_string(number);
    t.measurement.verdict = ratio > 0 ? Verdict::measured : Verdict::crashed;
    t.measurement.ratio = ratio, t.measurement.message = ratio > 0 ? "" : "it ended by signal 11";
    t.features = {1, 2.5f, static_cast<float>(number)}, t.draft = 0.25, t.bound = 0.125, t.score = -1;
    return t;
}

TEST_CASE("trials come back as they were added") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "a" / "records.db";
    {
        Records r(file);
        const int64_t id = r.campaign("key", {{"task", "matmul"}});
        CHECK(r.campaign("key", {}) == id);
        r.add(id, {trial(0, 1), trial(1, 0)});
        r.add(id, {trial(1, 5)});  // what is there stays
        r.set_base(id, 0.5);
        r.add_again(id, "sha256:1", trial(1, 3).measurement);
        r.add_again(id, "sha256:1", trial(1, 4).measurement);  // here too
    }
    Records r(file);
    const auto campaigns = r.campaigns();
    REQUIRE(campaigns.size() == 1);
    CHECK(campaigns[0].trials == 2);
    CHECK(campaigns[0].measured == 1);
    CHECK(campaigns[0].best_ratio == 1);
    CHECK(campaigns[0].base_seconds == 0.5);
    const auto trials = r.trials(campaigns[0].id);
    REQUIRE(trials.size() == 2);
    CHECK(trials[1].measurement.verdict == Verdict::crashed);
    CHECK(trials[1].measurement.message == "it ended by signal 11");
    CHECK(trials[1].features == std::vector<float>{1, 2.5f, 1});
    CHECK(trials[0].bound == 0.125);
    const auto again = r.measured_again(campaigns[0].id);
    REQUIRE(again.size() == 1);
    CHECK(again.at("sha256:1").ratio == 3);
    CHECK(r.measured_again(campaigns[0].id + 1).empty());
    // A database of before there were such rows has none, for who may only read it.
    CHECK(shell("python3 -c \"import sqlite3; sqlite3.connect('" + file.string() + "').execute('drop table again')\"").code == 0);
    CHECK(Records(file, true).measured_again(campaigns[0].id).empty());
    CHECK(Records(file).measured_again(campaigns[0].id).empty());
}

TEST_CASE("records of other machines are merged, and thin ones pruned") {
    const TemporaryFolder folder;
    Records a(folder.path() / "a.db");
    {
        Records b(folder.path() / "b.db");
        b.add(b.campaign("one", {{"id", "0"}}), {trial(0, 1), trial(1, 2)});
        b.add_again(b.campaign("one", {}), "sha256:1", trial(1, 3).measurement);
        a.add(a.campaign("two", {{"id", "0"}}), {trial(0, 1)});
    }
    a.merge(folder.path() / "b.db");
    a.merge(folder.path() / "b.db");
    REQUIRE(a.campaigns().size() == 2);
    CHECK(a.campaigns()[1].trials == 2);
    CHECK(a.measured_again(a.campaigns()[1].id).at("sha256:1").ratio == 3);
    CHECK(a.prune(2) == 1);
    CHECK(a.campaigns().size() == 1);
}

TEST_CASE("a process that is killed in the middle leaves whole trials behind") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "records.db";
    for (int round = 0; round < 6; round++) {
        const pid_t child = fork();
        if (child == 0) {
            Records r(file);
            const int64_t id = r.campaign("key", {{"id", "0"}});
            for (int64_t n = static_cast<int64_t>(r.trials(id).size());; n++) r.add(id, {trial(n, 1)});
        }
        usleep(30000 + 7000 * static_cast<useconds_t>(round));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    Records r(file);
    const auto trials = r.trials(r.campaign("key", {}));
    CHECK(trials.size() > 6);
    for (size_t i = 0; i < trials.size(); i++) REQUIRE(trials[i].number == static_cast<int64_t>(i));
}

TEST_CASE("what is no database of measurements is refused, and so is one that cannot be written") {
    const TemporaryFolder folder;
    write_file(folder.path() / "text", std::string(4000, 'x'));
    check_words([&] { Records(folder.path() / "text"); }, {"error[records.format]", "text': expected a database of measurements"});
    check_words([&] { Records(folder.path() / "none", true); }, {"error[records.open]", "none'", "Check its path and permissions"});
    check_words([&] { Records("/proc/no/such/folder/records.db"); }, {"error[records.open]"});
    for (const bool read_only : {false, true})
        for (const std::filesystem::path &no_file : {std::filesystem::path("/dev/null"), folder.path()})
            check_words([&] { Records(no_file, read_only); }, {"error[records.open]: records '" + no_file.string() + "': expected a regular file; it is a folder, a device, a pipe or a socket. Name another with --records."});
    shell("sqlite3 " + (folder.path() / "other.db").string() + " 'create table t(a)'");
    if (std::filesystem::exists(folder.path() / "other.db")) check_words([&] { Records(folder.path() / "other.db"); }, {"error[records.format]", "it is something else"});
}

TEST_CASE("a campaign that somebody works on is refused; one whose owner is gone is taken over") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "records.db";
    Records here(file);
    const int64_t id = here.campaign("key", {{"id", "0"}});
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        Records there(file);
        const Claim claim(there, id);
        write(ready[1], "x", 1);
        while (true) pause();
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    check_words([&] { Claim(here, id); }, {"error[records.claimed]: records '" + file.string() + "': expected a campaign that nobody works on, to go on with it; process " + std::to_string(child) + " of '",
                                           "Wait for it, or begin another one without --resume."});
    const int64_t other = here.campaign("another", {{"id", "1"}});
    { const Claim claim(here, other); }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    { const Claim claim(here, id); }
    const Claim again(here, id);
    CHECK_THROWS(Claim(here, id));
}
