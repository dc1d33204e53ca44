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
    CHECK(a.trials(1).empty());  // they went with their campaign
    CHECK(a.trials(2).size() == 2);
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
                     "expected a database of measurements of version 3; it is of version 1. Name another file, and tune again."});
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

// What a child that is not root says of a database; root may write anywhere.
static std::string read_unprivileged(const std::filesystem::path &file) {
    int said[2];
    REQUIRE(pipe(said) == 0);
    const pid_t child = fork();
    if (child == 0) {
        constexpr uid_t nobody = 65534;
        if (geteuid() == 0 && setuid(nobody) != 0) _exit(1);
        std::string words;
        try {
            const Records records(file, true);
            for (const CampaignRow &row : records.campaigns()) words += row.task() + " " + std::to_string(row.trials) + " ";
        } catch (const std::exception &error) { words = error.what(); }
        _exit(write(said[1], words.data(), words.size()) > 0 ? 0 : 1);
    }
    close(said[1]);
    char words[1000];
    const ssize_t size = read(said[0], words, sizeof words);
    close(said[0]);
    waitpid(child, nullptr, 0);
    return std::string(words, static_cast<size_t>(std::max<ssize_t>(size, 0)));
}

TEST_CASE("a database is read where nothing can be written, with what is in its journal") {
    const TemporaryFolder folder;
    const auto place = folder.path() / "mount", file = place / "records.db";
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
    {
        Records r(file);
        r.add(r.campaign("key", {{"task", "one"}}), {trial(0, 1)});
    }
    const auto sealed = [&] {
        for (const auto &entry : std::filesystem::directory_iterator(place))
            std::filesystem::permissions(entry.path(), std::filesystem::perms(0444));
        std::filesystem::permissions(place, std::filesystem::perms(0555));
        const std::string said = read_unprivileged(file);
        std::filesystem::permissions(place, std::filesystem::perms(0755));
        for (const auto &entry : std::filesystem::directory_iterator(place))
            std::filesystem::permissions(entry.path(), std::filesystem::perms(0644));
        return said;
    };
    CHECK(sealed() == "one 1 ");
    // A process that was killed leaves a journal, which a copy of the files without its shared memory has too.
    const pid_t child = fork();
    if (child == 0) {
        Records r(file);
        r.add(r.campaign("another", {{"task", "two"}}), {trial(0, 1), trial(1, 1)});
        kill(getpid(), SIGKILL);
    }
    waitpid(child, nullptr, 0);
    REQUIRE(std::filesystem::file_size(file.string() + "-wal") > 0);
    std::filesystem::remove(file.string() + "-shm");
    CHECK(sealed() == "one 1 two 2 ");
}

TEST_CASE("a database that computes is refused, whatever it would compute") {
    const TemporaryFolder folder;
    const std::string endless = "with recursive t(n) as (select 1 union all select n + 1 from t) select ";
    int files = 0;
    const auto refuse = [&](const std::string &sql, const std::string &why) {
        const auto file = folder.path() / (std::to_string(files++) + ".db");
        {
            Records r(file);
            r.add(r.campaign("key", {{"task", "one"}}), {trial(0, 1)});
        }
        run_sql(file, sql);
        for (const bool read_only : {true, false})
            check_words(
                [&] { Records(file, read_only); },
                {"error[records.format]: records '" + file.string() + "': expected the tables of measurements and nothing else; " + why,
                 ", so it is damaged, or made to do harm. Restore it, or name another database."});
        Records here(folder.path() / "here.db");
        check_words([&] { here.merge(file); }, {"error[records.format]", why});
    };
    refuse("drop table campaign; create view campaign as " + endless + "n as id, 1 as key, 1 as document, 0 as base_seconds from t",
           "it has the view 'campaign'");
    refuse("create trigger endless after delete on campaign begin delete from trial where number in (" + endless + "n from t); end",
           "it has the trigger 'endless'");
    refuse("create index slow on trial(abs(number))", "it has the index 'slow'");
    refuse("create table notes(text)", "it has the table 'notes'");
    refuse("create virtual table words using fts5(text)", "it has the ");
    refuse("alter table trial add column more integer generated always as (abs(number)) virtual", "its table 'trial' is another one");
    refuse("drop table again", "it lacks the table 'again'");
    refuse("drop table claim; create table claim(campaign integer primary key, host, boot, process, started)",
           "its table 'claim' is another one");
}

// Twenty pages of a hundred references each, all to the next one: a table of 10^38 rows in a file of 100 kB.
static const char *endless_tree = R"(
import sqlite3, struct, sys
db = sqlite3.connect(sys.argv[1])
db.execute('pragma journal_mode = delete')
root = db.execute("select rootpage from sqlite_schema where name = 'campaign'").fetchone()[0]
size = db.execute('pragma page_size').fetchone()[0]
db.close()
data = bytearray(open(sys.argv[1], 'rb').read())
pages, depth, width = len(data) // size, 18, 100
leaf = bytes(data[(root - 1) * size:root * size])
def inner(child):
    page = bytearray(size)
    cells = size - 5 * width
    page[0:12] = struct.pack('>BHHHBI', 5, 0, width, cells, 0, child)
    for i in range(width):
        page[12 + 2 * i:14 + 2 * i] = struct.pack('>H', cells + 5 * i)
        page[cells + 5 * i:cells + 5 * i + 5] = struct.pack('>IB', child, i + 1)
    return page
data[(root - 1) * size:root * size] = inner(pages + 1)
for i in range(depth): data += inner(pages + 2 + i)
data += leaf
data[28:32] = struct.pack('>I', len(data) // size)
open(sys.argv[1], 'wb').write(data)
)";

TEST_CASE("a database whose pages have no end is not read for ever") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "records.db", script = folder.path() / "craft.py";
    {
        Records r(file);
        r.add(r.campaign("key", {{"task", "one"}}), {trial(0, 1)});
    }
    write_file(script, endless_tree);
    const Outcome crafted = shell("python3 " + script.string() + " " + file.string());
    INFO(crafted.err);
    REQUIRE(crafted.code == 0);
    check_words([&] { Records(file, true).campaigns(); },
                {"error[records.read]: records '" + file.string() +
                 "': expected to read its campaigns; that takes more steps than a file of its size can need. Restore it, or name another "
                 "database."});
    Records here(folder.path() / "here.db");
    check_words([&] { here.merge(file); }, {"error[records.read]", "more steps than a file of its size can need"});
    check_words([&] { Records(file).prune(2); }, {"error[records.write]"});
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
                     "': expected a campaign that no process is working on; process " + std::to_string(child) + " of '",
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
                {"error[records.claimed]", "' is working on it (last sign of life 30",
                 "it counts as ended after 600 s). Wait for it, or begin another one without --resume."});
    CHECK(here.prune(2).claimed == 1);
    run_sql(file, "update beat set seconds = seconds + 500");  // its clock is ahead of this one's
    check_words([&] { Claim(here, id); }, {"error[records.claimed]", "' is working on it (last sign of life 0 s ago"});
    run_sql(file, "update beat set seconds = seconds - 801");
    const Claim taken(here, id);
    run_sql(file, "update claim set boot = 1, host = 1");  // as if another had taken it
    claim.reset();
    CHECK_THROWS(Claim(here, id));
}

TEST_CASE("a sign of life from far in the future is none, and of this machine's processes more is known than when they were heard of") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "records.db";
    Records here(file);
    const int64_t id = here.campaign("key", {{"id", "0"}});
    for (const char *when : {"seconds + 86400", "9223372036854775807", "-9223372036854775808"}) {
        const Claim claim(here, id);
        run_sql(file, std::string("update beat set seconds = ") + when);
        check_words([&] { Claim(here, id); }, {"error[records.claimed]"});  // this process is alive
        run_sql(file, "update claim set boot = 0, host = 0");
        const Claim taken(here, id);
    }
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
            for (int64_t id : {one, two}) check_words([&] { Claim(here, id); }, {"error[records.claimed]", "sign of life"});
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
        run_sql(file, "drop table beat; pragma user_version = 2; insert into claim values(" + std::to_string(id) + ", 0, 0, 1, 0)");
    }
    CHECK(Records(file, true).campaigns().size() == 1);
    Records here(file);
    check_words([&] { Claim(here, id); }, {"error[records.claimed]"});
    run_sql(file, "update beat set seconds = seconds - 700");
    const Claim free(here, id);
}

}  // namespace tessera::test_records
