#include "autotune/records/records.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <memory>

#include <nlohmann/json.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/files/output_folder.h"
#include "tests/support/shell.h"
#include "tests/support/words.h"

namespace tessera::test_records {

using namespace tessera::test;

static Trial trial(int64_t number, double ratio) {
    Trial t;
    t.number = number, t.schedule = "{\"y\":{}}", t.origin = "sample", t.resolved = "sha256:" + std::to_string(number);
    t.measurement.verdict = ratio > 0 ? Verdict::measured : Verdict::crashed;
    t.measurement.seconds = t.measurement.ratio = t.measurement.lower = t.measurement.upper = ratio;
    t.measurement.message = ratio > 0 ? "" : "it ended by signal 11";
    t.draft = 0.25, t.bound = 0.125, t.score = -1;
    return t;
}

static void run_sql(const std::filesystem::path &file, const std::string &sql) {
    REQUIRE(shell("python3 -c \"import sqlite3; c = sqlite3.connect('" + file.string() + "'); c.executescript('" + sql + "'); c.commit()\"")
                .code == 0);
}

TEST_CASE("trials come back as they were added") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "a" / "records.db";
    {
        Records r(file);
        const int64_t id = r.campaign("key", {{"task", "matmul"}});
        CHECK(r.campaign("key", {}) == id);
        r.add(id, {trial(0, 1), trial(1, 5)});
        r.add(id, {trial(1, 0)});  // what is there gives way
        r.set_base(id, 0.5);
        r.add_again(id, "sha256:1", trial(1, 4).measurement);
        r.add_again(id, "sha256:1", trial(1, 3).measurement);  // here too
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
    CHECK(trials[0].bound == 0.125);
    const auto again = r.measured_again(campaigns[0].id);
    REQUIRE(again.size() == 1);
    CHECK(again.at("sha256:1").ratio == 3);
    CHECK(r.measured_again(campaigns[0].id + 1).empty());
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
    CHECK(a.prune(2).removed == 1);
    CHECK(a.campaigns().size() == 1);
}

static std::vector<std::string> hashes(const std::vector<Trial> &trials) {
    std::vector<std::string> all;
    for (const Trial &t : trials) all.push_back(t.resolved);
    return all;
}

TEST_CASE("a database of another version says which") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "records.db";
    { Records r(file); }
    run_sql(file, "pragma user_version = 1");
    for (bool read_only : {false, true})
        check_words([&] { Records(file, read_only); },
                    {"error[records.format]",
                     "expected a database of measurements of version 2; it is of version 1. Name another file, and tune again."});
}

TEST_CASE("from where a campaign goes another way its records are the new ones") {
    const TemporaryFolder folder;
    Records r(folder.path() / "records.db");
    const int64_t id = r.campaign("key", {{"id", "0"}});
    r.add(id, {trial(0, 1), trial(1, 1), trial(2, 1), trial(3, 1)});
    Trial other = trial(2, 2);
    other.resolved = "sha256:other";
    Trial unwritable = other;
    unwritable.draft = NAN;
    check_words([&] { r.add(id, {other, unwritable}, 1); }, {"error[records.write]"});
    CHECK(r.trials(id).size() == 4);  // all or none
    r.add(id, {other}, 2);
    CHECK(hashes(r.trials(id)) == std::vector<std::string>{"sha256:0", "sha256:1", "sha256:other"});
}

TEST_CASE("what is merged changes nothing that is here, and continues no campaign that went another way") {
    const TemporaryFolder folder;
    Records here(folder.path() / "here.db");
    const int64_t one = here.campaign("one", {{"task", "here"}}), two = here.campaign("two", {{"task", "here"}});
    here.add(one, {trial(0, 1), trial(1, 1)}), here.set_base(one, 0.5), here.add_again(one, "sha256:0", trial(0, 7).measurement);
    here.add(two, {trial(0, 1)});
    {
        Records there(folder.path() / "there.db");
        Trial other = trial(1, 2);
        other.resolved = "sha256:other";
        const int64_t id = there.campaign("one", {{"task", "there"}}), more = there.campaign("two", {{"task", "there"}});
        there.add(id, {trial(0, 3), other, trial(2, 3)}), there.set_base(id, 9), there.add_again(id, "sha256:0", trial(0, 8).measurement);
        there.add(more, {trial(0, 3), trial(1, 3)}), there.set_base(more, 0.25);
    }
    here.merge(folder.path() / "there.db");
    CHECK(hashes(here.trials(one)) == std::vector<std::string>{"sha256:0", "sha256:1"});
    CHECK(here.trials(one)[0].measurement.ratio == 1);
    CHECK(here.measured_again(one).at("sha256:0").ratio == 7);
    CHECK(hashes(here.trials(two)) == std::vector<std::string>{"sha256:0", "sha256:1"});
    const auto rows = here.campaigns();
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].base_seconds == 0.5);
    CHECK(rows[1].base_seconds == 0.25);  // it had none
    CHECK(rows[0].task() == "here");
}

TEST_CASE("of a file that cannot have been measured nothing is merged") {
    const TemporaryFolder folder;
    Records here(folder.path() / "here.db");
    int files = 0;
    const auto refuse = [&](const Trial &second, const std::string &sql, const std::string &why) {
        const auto file = folder.path() / ("there" + std::to_string(files++) + ".db");
        {
            Records there(file);
            there.add(there.campaign("good", {{"task", "good"}}), {trial(0, 1), trial(1, 1)});
            const int64_t bad = there.campaign("bad", {{"task", "bad\x1b[2J"}});
            there.add(bad, {trial(0, 1), second});
            there.add_again(bad, "sha256:0", trial(0, 1).measurement);
        }
        run_sql(file, sql);
        check_words([&] { here.merge(file); }, {"error[records.format]: records '" + file.string() + "': ", why});
        CHECK(here.campaigns().empty());
    };
    const std::string said =
        "campaign 'bad\\u001b[2J': trial 1 has times or ratios that cannot have been measured, so the file is damaged, and nothing of it "
        "was merged. Restore it, or leave it out.";
    const auto with = [](const std::function<void(Trial &)> &change) {
        Trial t = trial(1, 1);
        change(t);
        return t;
    };
    refuse(with([](Trial &t) { t.measurement.ratio = 0; }), "", said);
    refuse(with([](Trial &t) { t.measurement.seconds = -1; }), "", said);
    refuse(with([](Trial &t) { t.measurement.upper = INFINITY; }), "", said);
    refuse(with([](Trial &t) { t.measurement.verdict = Verdict::unmeasured; }), "", said);
    refuse(with([](Trial &t) { t.measurement.lower = 1.5; }), "", said);
    refuse(with([](Trial &t) { t.measurement.upper = 0.5; }), "", said);
    refuse(with([](Trial &t) { t.measurement.compile_s = INFINITY; }), "", said);
    refuse(with([](Trial &t) { t.score = INFINITY; }), "", said);
    refuse(with([](Trial &t) { t.bound = -1; }), "", said);
    refuse(trial(1, 1), "update again set ratio = 0",
           "what was measured again of sha256:0 has times or ratios that cannot have been measured");
    refuse(trial(1, 1), "update again set upper = 0.5",
           "what was measured again of sha256:0 has times or ratios that cannot have been measured");
    refuse(trial(1, 1), "update campaign set base_seconds = -1 where id = 2", "its base has a time that cannot have been measured");
    refuse(trial(1, 1), "update campaign set document = 7 where id = 2", "it has no document that says what was tuned");
    const std::string deep = " = replace(hex(zeroblob(100000)), char(48, 48), char(91)) where ";
    refuse(trial(1, 1), "update campaign set document" + deep + "id = 2", "it has no document that says what was tuned");
    refuse(trial(1, 1), "update trial set schedule" + deep + "campaign = 2", "64 levels");
    refuse(trial(1, 1), "update trial set verdict = 7 where campaign = 2", "expected a verdict, got '7'; the file is damaged. Restore it.");
}

TEST_CASE("pruning leaves a campaign that somebody works on") {
    const TemporaryFolder folder;
    Records here(folder.path() / "records.db");
    const int64_t id = here.campaign("key", {{"id", "0"}});
    here.campaign("idle", {{"id", "1"}});
    {
        Records there(folder.path() / "records.db");
        const Claim claim(there, id);
        const Pruned pruned = here.prune(2);
        CHECK(pruned.removed == 1);
        CHECK(pruned.claimed == 1);
        there.add(id, {trial(0, 1)});
    }
    CHECK(here.prune(2).removed == 1);
    CHECK(here.campaigns().empty());
}

TEST_CASE("what SQLite would keep in memory is no database of measurements") {
    for (const char *name : {"", ":memory:"})
        check_words([&] { Records{name}; },
                    {"error[records.open]: records '" + std::string(name) + "': expected the name of a file that keeps what is measured",
                     "Name another database."});
    const TemporaryFolder folder;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    Records("file:a.db?mode=memory").campaign("key", {{"id", "0"}});
    std::filesystem::current_path(before);
    CHECK(Records(folder.path() / "file:a.db?mode=memory", true).campaigns().size() == 1);
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
            check_words([&] { Records(no_file, read_only); },
                        {"error[records.open]: records '" + no_file.string() +
                         "': expected a regular file; it is a folder, a device, a pipe or a socket. Name another database."});
    shell("sqlite3 " + (folder.path() / "other.db").string() + " 'create table t(a)'");
    if (std::filesystem::exists(folder.path() / "other.db"))
        check_words([&] { Records(folder.path() / "other.db"); }, {"error[records.format]", "it is something else"});
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
    check_words([&] { Claim(here, id); },
                {"error[records.claimed]: records '" + file.string() +
                     "': expected a campaign that nobody works on, to go on with it; process " + std::to_string(child) + " of '",
                 "Wait for it, or begin another one without --resume."});
    const int64_t other = here.campaign("another", {{"id", "1"}});
    { const Claim claim(here, other); }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    { const Claim claim(here, id); }
    const Claim again(here, id);
    CHECK_THROWS(Claim(here, id));
}

TEST_CASE("a campaign whose owner is in another container is free once nothing was heard of it for long") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "records.db";
    Records here(file);
    const int64_t id = here.campaign("key", {{"id", "0"}});
    auto claim = std::make_unique<Claim>(here, id);
    run_sql(file, "update claim set boot = 0, host = 0; update beat set seconds = seconds - 300");
    check_words([&] { Claim(here, id); },
                {"error[records.claimed]", "' does, which was heard of 30",
                 "is taken to have ended when that was 600 s ago. Wait for it, or begin another one without --resume."});
    CHECK(here.prune(2).claimed == 1);
    run_sql(file, "update beat set seconds = seconds - 301");
    const Claim taken(here, id);
    run_sql(file, "update claim set boot = 1, host = 1");  // as if another had taken it
    claim.reset();
    CHECK_THROWS(Claim(here, id));
}

TEST_CASE("whatever is added is a sign of life on all that a process has claimed") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "records.db";
    Records here(file);
    const int64_t one = here.campaign("one", {{"id", "0"}}), two = here.campaign("two", {{"id", "1"}});
    for (bool again : {false, true}) {
        {
            const Claim first(here, one), second(here, two);
            run_sql(file, "update beat set seconds = 0");
            if (again) here.add_again(one, "sha256:0", trial(0, 1).measurement);
            else here.add(one, {trial(0, 1)});
            run_sql(file, "update claim set boot = 0, host = 0");
            for (int64_t id : {one, two}) check_words([&] { Claim(here, id); }, {"error[records.claimed]", "heard of"});
        }
        run_sql(file, "delete from claim");
    }
}

TEST_CASE("what was claimed before there were signs of life is free in the end, and its database stays readable") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "records.db";
    int64_t id = 0;
    {
        Records before(file);
        id = before.campaign("key", {{"id", "0"}});
        run_sql(file, "drop table beat; insert into claim values(" + std::to_string(id) + ", 0, 0, 1, 0)");
    }
    CHECK(Records(file, true).campaigns().size() == 1);
    Records here(file);
    check_words([&] { Claim(here, id); }, {"error[records.claimed]"});
    run_sql(file, "update beat set seconds = seconds - 700");
    const Claim free(here, id);
}

}  // namespace tessera::test_records
