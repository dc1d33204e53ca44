#include "autotune/records/records.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/files/json_text.h"
#include "support/processes/owner.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int format_version = 2;
constexpr int application = 0x54455353;  // "TESS"

constexpr const char *tables = R"(
create table campaign(id integer primary key, key text not null unique, document text not null, base_seconds real not null default 0);
create table trial(campaign integer not null references campaign(id) on delete cascade, number integer not null, schedule text not null,
    origin text not null, resolved text not null, verdict text not null, message text not null, seconds real not null, ratio real not null,
    lower real not null, upper real not null, workspace_bytes integer not null, code_bytes integer not null, compile_s real not null,
    draft real not null, bound real not null, score real not null, primary key(campaign, number)) without rowid;
create table again(campaign integer not null references campaign(id) on delete cascade, resolved text not null, verdict text not null,
    message text not null, seconds real not null, ratio real not null, lower real not null, upper real not null,
    workspace_bytes integer not null, code_bytes integer not null, compile_s real not null, primary key(campaign, resolved)) without rowid;
create table claim(campaign integer primary key references campaign(id) on delete cascade, host text not null, boot text not null,
    process integer not null, started text not null);
)";

// Where a database has claims and no such table, their owners are taken to have been heard of when it is made.
constexpr const char *beats = R"(
create table if not exists beat(campaign integer primary key references claim(campaign) on delete cascade, seconds integer not null);
insert or ignore into beat(campaign, seconds) select campaign, {} from claim;
)";
constexpr int64_t silent_s = 600;  // longer than what lies between two trials, or two finalists, under the limits that tune has by itself

constexpr const char *again_columns = "resolved, verdict, message, seconds, ratio, lower, upper, workspace_bytes, code_bytes, compile_s";

constexpr const char *columns =
    "number, schedule, origin, resolved, verdict, message, seconds, ratio, lower, upper, workspace_bytes, code_bytes, compile_s, draft, "
    "bound, score";

int64_t seconds_now() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Records::State {
    fs::path file;
    sqlite3 *db = nullptr;

    ~State() { sqlite3_close(db); }

    [[noreturn]] void fail(const char *id, const std::string &expected, const std::string &remedy) const {
        const std::string why = db ? sqlite3_errmsg(db) : "out of memory";
        throw UserError(id, "records '" + file.string() + "': expected " + expected + "; " + why + ". " + remedy);
    }
    [[noreturn]] void fail_writing() const {
        fail("records.write", "to write to it",
             "Make room, or correct its permissions; what was committed before is kept, and the same command goes on from there.");
    }

    void run(const std::string &sql) const {
        if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail_writing();
    }
    std::map<std::string, Measurement> measured_again(int64_t campaign) const;
};

namespace {

// One prepared statement: values in by position from 1, columns out from 0.
class Statement {
public:
    Statement(sqlite3 *db, const std::string &sql) { ok_ = sqlite3_prepare_v2(db, sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK; }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement &) = delete;
    Statement &operator=(const Statement &) = delete;

    Statement &bind(const std::string &text) {
        return bound(sqlite3_bind_text(statement_, ++at_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
    }
    Statement &bind(double value) { return bound(sqlite3_bind_double(statement_, ++at_, value)); }
    Statement &bind(int64_t value) { return bound(sqlite3_bind_int64(statement_, ++at_, value)); }
    Statement &bind(const Owner &o) { return bind(o.host).bind(o.boot).bind(o.process).bind(o.started); }
    // Nine columns, from the verdict on.
    Statement &bind(const Measurement &m) {
        bind(std::string(name_of(m.verdict))).bind(m.message).bind(m.seconds).bind(m.ratio).bind(m.lower).bind(m.upper);
        return bind(static_cast<int64_t>(m.workspace_bytes)).bind(static_cast<int64_t>(m.code_bytes)).bind(m.compile_s);
    }
    // Whether there is a row; `ok` says whether that could be found out.
    bool step() {
        const int status = ok_ ? sqlite3_step(statement_) : SQLITE_ERROR;
        ok_ = status == SQLITE_ROW || status == SQLITE_DONE;
        return status == SQLITE_ROW;
    }
    bool ok() const { return ok_; }
    std::string text(int column) const {
        const auto *t = reinterpret_cast<const char *>(sqlite3_column_text(statement_, column));
        return t ? std::string(t, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
    }
    double real(int column) const { return sqlite3_column_double(statement_, column); }
    int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
    // Of the columns from there on; InternalError for a verdict that there is not.
    Measurement measurement(int column) const {
        Measurement m;
        m.verdict = verdict_named(text(column)), m.message = printable(text(column + 1), true);
        m.seconds = real(column + 2), m.ratio = real(column + 3), m.lower = real(column + 4), m.upper = real(column + 5);
        m.workspace_bytes = static_cast<uint64_t>(integer(column + 6)), m.code_bytes = static_cast<uint64_t>(integer(column + 7)),
        m.compile_s = real(column + 8);
        return m;
    }

private:
    sqlite3_stmt *statement_ = nullptr;
    int at_ = 0;
    bool ok_ = false;
    Statement &bound(int status) {
        ok_ = ok_ && status == SQLITE_OK;
        return *this;
    }
};

Measurement measurement_in(const fs::path &file, const Statement &row, int column) {
    try {
        return row.measurement(column);
    } catch (const InternalError &) {
        throw UserError("records.format", "records '" + file.string() + "': expected a verdict, got '" + quotable(row.text(column)) +
                                              "'; the file is damaged. Restore it.");
    }
}

}  // namespace

Records::Records(const fs::path &file, bool read_only) : state_(new State{file, nullptr}) {
    State &s = *state_;
    std::error_code unknown;
    if (file.empty() || file == ":memory:")
        throw UserError("records.open", "records '" + file.string() +
                                            "': expected the name of a file that keeps what is measured; what has "
                                            "this name is gone when the command ends. Name another database.");
    if (fs::exists(file, unknown) && !fs::is_regular_file(file, unknown))
        throw UserError("records.open",
                        "records '" + file.string() +
                            "': expected a regular file; it is a folder, a device, a pipe or a socket. Name another database.");
    if (!read_only && file.has_parent_path()) {
        std::error_code ignored;
        fs::create_directories(file.parent_path(), ignored);
    }
    const int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    // SQLite takes a name that begins with "file:" for more than a name.
    const fs::path name = file.is_absolute() ? file : "." / file;
    if (sqlite3_open_v2(name.c_str(), &s.db, flags, nullptr) != SQLITE_OK)
        s.fail("records.open", read_only ? "a database of measurements" : "to open it, or to make it",
               "Check its path and permissions, or name another database.");
    sqlite3_busy_timeout(s.db, 20000);
    sqlite3_db_config(s.db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    auto number = [&](const char *pragma) {
        Statement q(s.db, pragma);
        const bool row = q.step();
        if (!q.ok()) s.fail("records.format", "a database of measurements", "Name another database.");
        return row ? q.integer(0) : 0;
    };
    auto empty = [&] { return number("select count(*) from sqlite_schema") == 0; };
    if (!read_only && empty()) {
        s.run("pragma journal_mode = wal");
        s.run("begin immediate");
        if (empty()) {
            s.run(tables);
            s.run("pragma application_id = " + std::to_string(application));
            s.run("pragma user_version = " + std::to_string(format_version));
        }
        s.run("commit");
    }
    const bool is_ours = number("pragma application_id") == application;
    if (const int64_t version = number("pragma user_version"); !is_ours || version != format_version)
        throw UserError("records.format", "records '" + file.string() + "': expected a database of measurements of version " +
                                              std::to_string(format_version) + "; it is " +
                                              (is_ours ? "of version " + std::to_string(version) + ". Name another file, and tune again."
                                                       : "something else. Name another file."));
    if (read_only) return;
    s.run("pragma foreign_keys = on; pragma synchronous = full");
    if (number("select count(*) from sqlite_schema where name = 'beat'") == 0)
        s.run("begin immediate;" + fmt::format(beats, seconds_now()) + "commit");
}

Records::~Records() = default;

namespace {

// What is done while it lives is done when it is committed, and otherwise not at all.
class Transaction {
public:
    explicit Transaction(sqlite3 *db)
        : db_(db), begun_(sqlite3_exec(db, "begin immediate", nullptr, nullptr, nullptr) == SQLITE_OK), open_(begun_) {}
    ~Transaction() {
        if (open_) sqlite3_exec(db_, "rollback", nullptr, nullptr, nullptr);
    }
    Transaction(const Transaction &) = delete;
    Transaction &operator=(const Transaction &) = delete;
    bool begun() const { return begun_; }
    bool commit() {
        open_ = sqlite3_exec(db_, "commit", nullptr, nullptr, nullptr) != SQLITE_OK;
        return !open_;
    }

private:
    sqlite3 *db_;
    bool begun_, open_;
};

bool is_measure(double value) { return std::isfinite(value) && value >= 0; }

bool inserted(sqlite3 *db, int64_t campaign, const Trial &t) {
    Statement insert(db, std::string("insert or replace into trial(campaign, ") + columns + ") values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    insert.bind(campaign).bind(t.number).bind(t.schedule).bind(t.origin).bind(t.resolved).bind(t.measurement);
    insert.bind(t.draft).bind(t.bound).bind(t.score).step();
    return insert.ok();
}

bool inserted_again(sqlite3 *db, int64_t campaign, const std::string &resolved, const Measurement &m) {
    Statement insert(db, std::string("insert or replace into again(campaign, ") + again_columns + ") values(?,?,?,?,?,?,?,?,?,?,?)");
    insert.bind(campaign).bind(resolved).bind(m).step();
    return insert.ok();
}

// The number of the campaign of this key, begun if there is none.
std::optional<int64_t> begun_campaign(sqlite3 *db, const std::string &key, const std::string &document) {
    Statement insert(db, "insert into campaign(key, document) values(?, ?) on conflict(key) do nothing");
    insert.bind(key).bind(document).step();
    Statement find(db, "select id from campaign where key = ?");
    if (!insert.ok() || !find.bind(key).step()) return std::nullopt;
    return find.integer(0);
}

// Who works on the campaign, as far as can be known.
struct Worker {
    Owner owner;
    int64_t silent_s = 0;  // since it was last heard of
};

std::optional<Worker> worker_on(sqlite3 *db, int64_t campaign) {
    Statement find(db,
                   "select host, boot, process, started, seconds from claim left join beat on beat.campaign = claim.campaign where "
                   "claim.campaign = ?");
    if (!find.bind(campaign).step()) return std::nullopt;
    const Worker worker{{find.text(0), find.text(1), find.integer(2), find.text(3)}, std::max<int64_t>(seconds_now() - find.integer(4), 0)};
    if (!is_alive(worker.owner) || (!is_here(worker.owner) && worker.silent_s > silent_s)) return std::nullopt;
    return worker;
}

constexpr const char *owned_by = " host = ? and boot = ? and process = ? and started = ?";

// A sign of this process on all that it has claimed.
bool beaten(sqlite3 *db) {
    const Owner here = this_process();
    Statement beat(db, std::string("update beat set seconds = ? where campaign in (select campaign from claim where") + owned_by + ")");
    beat.bind(seconds_now()).bind(here).step();
    return beat.ok();
}

}  // namespace

bool is_credible(const Measurement &m) {
    for (double value : {m.seconds, m.ratio, m.lower, m.upper, m.compile_s})
        if (!is_measure(value)) return false;
    if (!is_timed(m.verdict)) return m.verdict != Verdict::unmeasured;
    constexpr double min_s = 1e-10, max_s = 1e7;  // less than a cycle, more than a season
    constexpr double max_ratio = max_s / min_s;
    return min_s <= m.seconds && m.seconds <= max_s && 1 / max_ratio <= m.lower && m.lower <= m.ratio && m.ratio <= m.upper &&
           m.upper <= max_ratio;
}

bool is_credible(const Trial &t) {
    return t.number >= 0 && is_credible(t.measurement) && is_measure(t.draft) && is_measure(t.bound) && std::isfinite(t.score);
}

nlohmann::json CampaignRow::stated() const {
    try {
        return parse_json(document, key);
    } catch (const UserError &) {  // databases come from other machines, and from anybody
        return nullptr;
    }
}

std::string CampaignRow::task() const {
    const nlohmann::json all = stated();
    return all.is_object() && all.contains("task") && all["task"].is_string() ? printable(all["task"].get<std::string>()) : "unknown";
}

int64_t Records::campaign(const std::string &key, const nlohmann::ordered_json &document) {
    const auto campaign = begun_campaign(state_->db, key, json_text(document));
    if (!campaign) state_->fail_writing();
    return *campaign;
}

void Records::add(int64_t campaign, const std::vector<Trial> &trials, std::optional<int64_t> other_way) {
    State &s = *state_;
    Transaction all(s.db);
    if (!all.begun()) s.fail_writing();
    if (other_way) {
        Statement forget(s.db, "delete from trial where campaign = ? and number >= ?");
        forget.bind(campaign).bind(*other_way).step();
        if (!forget.ok()) s.fail_writing();
    }
    for (const Trial &t : trials)
        if (!inserted(s.db, campaign, t)) s.fail_writing();
    if (!beaten(s.db) || !all.commit()) s.fail_writing();
}

void Records::set_base(int64_t campaign, double seconds) {
    Statement update(state_->db, "update campaign set base_seconds = ? where id = ?");
    update.bind(seconds).bind(campaign).step();
    if (!update.ok()) state_->fail_writing();
}

std::vector<Trial> Records::trials(int64_t campaign) const {
    std::vector<Trial> all;
    Statement q(state_->db, std::string("select ") + columns + " from trial where campaign = ? order by number");
    q.bind(campaign);
    while (q.step()) {
        Trial t;
        t.number = q.integer(0), t.schedule = q.text(1), t.origin = q.text(2), t.resolved = q.text(3),
        t.measurement = measurement_in(state_->file, q, 4);
        t.draft = q.real(13), t.bound = q.real(14), t.score = q.real(15);
        all.push_back(std::move(t));
    }
    if (!q.ok()) state_->fail("records.read", "to read its trials", "Restore it, or name another database.");
    return all;
}

void Records::add_again(int64_t campaign, const std::string &resolved, const Measurement &measurement) {
    if (!inserted_again(state_->db, campaign, resolved, measurement) || !beaten(state_->db)) state_->fail_writing();
}

std::map<std::string, Measurement> Records::State::measured_again(int64_t campaign) const {
    std::map<std::string, Measurement> all;
    Statement q(db, std::string("select ") + again_columns + " from again where campaign = ?");
    q.bind(campaign);
    while (q.step()) all[q.text(0)] = measurement_in(file, q, 1);
    if (!q.ok()) fail("records.read", "to read what was measured again", "Restore it, or name another database.");
    return all;
}

std::map<std::string, Measurement> Records::measured_again(int64_t campaign) const {
    std::map<std::string, Measurement> all = state_->measured_again(campaign);
    std::erase_if(all, [](const auto &one) { return !is_credible(one.second); });
    return all;
}

std::vector<CampaignRow> Records::campaigns() const {
    std::vector<CampaignRow> all;
    Statement q(state_->db,
                "select id, key, document, base_seconds, count(number), count(case when verdict in ('measured', 'slow') then 1 end), "
                "max(case when verdict = 'measured' then ratio else 0 end) "
                "from campaign left join trial on trial.campaign = campaign.id group by id order by id");
    while (q.step()) all.push_back({q.integer(0), q.text(1), q.text(2), q.integer(4), q.integer(5), q.real(6), q.real(3)});
    if (!q.ok()) state_->fail("records.read", "to read its campaigns", "Restore it, or name another database.");
    return all;
}

void Records::merge(const fs::path &other) {
    const Records from(other, true);
    State &s = *state_;
    auto refuse = [&](const CampaignRow &row, const std::string &what) {
        throw UserError("records.format", "records '" + other.string() + "': campaign '" + row.task() + "': " + what +
                                              ", so the file is damaged, and nothing of it was merged. Restore it, or leave it out.");
    };
    Transaction all(s.db);
    if (!all.begun()) s.fail_writing();
    for (const CampaignRow &row : from.campaigns()) {
        if (!row.stated().is_object()) refuse(row, "it has no document that says what was tuned");
        if (!is_measure(row.base_seconds)) refuse(row, "its base has a time that cannot have been measured");
        const std::vector<Trial> theirs = from.trials(row.id);
        const std::map<std::string, Measurement> again = from.state_->measured_again(row.id);
        for (const Trial &t : theirs) {
            const std::string trial = "trial " + std::to_string(t.number);
            if (!is_credible(t)) refuse(row, trial + " has times or ratios that cannot have been measured");
            try {
                parse_json(t.schedule, trial);
            } catch (const UserError &error) { refuse(row, error.message()); }
        }
        for (const auto &[resolved, m] : again)
            if (!is_credible(m))
                refuse(row, "what was measured again of " + quotable(resolved) + " has times or ratios that cannot have been measured");
        const std::optional<int64_t> here = begun_campaign(s.db, row.key, row.document);
        if (!here) s.fail_writing();
        const int64_t id = *here;
        std::map<int64_t, std::string> ours;
        for (const Trial &t : trials(id)) ours[t.number] = t.resolved;
        const auto goes_another_way = std::find_if(theirs.begin(), theirs.end(),
                                                   [&](const Trial &t) { return ours.count(t.number) && ours.at(t.number) != t.resolved; });
        const std::map<std::string, Measurement> known = s.measured_again(id);
        for (auto t = theirs.begin(); t != goes_another_way; ++t)
            if (!ours.count(t->number) && !inserted(s.db, id, *t)) s.fail_writing();
        for (const auto &[resolved, m] : again)
            if (!known.count(resolved) && !inserted_again(s.db, id, resolved, m)) s.fail_writing();
        Statement base(s.db, "update campaign set base_seconds = ? where id = ? and base_seconds = 0");
        base.bind(row.base_seconds).bind(id).step();
        if (!base.ok()) s.fail_writing();
    }
    if (!all.commit()) s.fail_writing();
}

Pruned Records::prune(int64_t fewest) {
    State &s = *state_;
    Transaction all(s.db);
    if (!all.begun()) s.fail_writing();
    std::vector<int64_t> thin;
    Statement find(s.db,
                   "select id from campaign where "
                   "(select count(*) from trial where trial.campaign = campaign.id and verdict in ('measured', 'slow')) < ?");
    find.bind(fewest);
    while (find.step()) thin.push_back(find.integer(0));
    if (!find.ok()) s.fail_writing();
    Pruned pruned;
    for (int64_t id : thin) {
        if (worker_on(s.db, id)) {
            pruned.claimed++;
            continue;
        }
        Statement remove(s.db, "delete from campaign where id = ?");
        remove.bind(id).step();
        if (!remove.ok()) s.fail_writing();
        pruned.removed++;
    }
    if (!all.commit()) s.fail_writing();
    return pruned;
}

Claim::Claim(Records &records, int64_t campaign) : records_(records), campaign_(campaign) {
    const Records::State &s = *records.state_;
    const Owner here = this_process();
    Transaction all(s.db);
    if (!all.begun()) s.fail_writing();
    if (const std::optional<Worker> other = worker_on(s.db, campaign))
        throw UserError("records.claimed",
                        fmt::format("records '{}': expected a campaign that nobody works on, to go on with it; process {} of '{}' does{}. "
                                    "Wait for it, or begin another one without --resume.",
                                    s.file.string(), other->owner.process, quotable(other->owner.host),
                                    is_here(other->owner)
                                        ? ""
                                        : fmt::format(", which was heard of {} s ago, and is taken to have ended when that was {} s ago",
                                                      other->silent_s, silent_s)));
    Statement take(s.db, "insert or replace into claim(campaign, host, boot, process, started) values(?, ?, ?, ?, ?)");
    take.bind(campaign).bind(here).step();
    Statement beat(s.db, "insert or replace into beat(campaign, seconds) values(?, ?)");
    beat.bind(campaign).bind(seconds_now()).step();
    if (!take.ok() || !beat.ok() || !all.commit()) s.fail_writing();
}

Claim::~Claim() {
    // Another process may have taken it over from one that was silent for long.
    Statement leave(records_.state_->db, std::string("delete from claim where campaign = ? and") + owned_by);
    leave.bind(campaign_).bind(this_process()).step();
}

}  // namespace tessera
