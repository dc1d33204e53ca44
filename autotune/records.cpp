#include "autotune/records.h"

#include <sqlite3.h>

#include <cstring>
#include <optional>

#include <nlohmann/json.hpp>

#include "algorithms/error.h"
#include "algorithms/json_parse.h"
#include "autotune/owner.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int format_version = 1;
constexpr int application = 0x54455353;  // "TESS"

constexpr const char *tables = R"(
create table campaign(id integer primary key, key text not null unique, document text not null, base_seconds real not null default 0);
create table trial(campaign integer not null references campaign(id) on delete cascade, number integer not null, schedule text not null,
    origin text not null, resolved text not null, verdict text not null, message text not null, seconds real not null, ratio real not null,
    lower real not null, upper real not null, workspace_bytes integer not null, code_bytes integer not null, compile_s real not null,
    features blob not null, draft real not null, bound real not null, score real not null, primary key(campaign, number)) without rowid;
)";

constexpr const char *claims = "create table if not exists claim(campaign integer primary key references campaign(id) on delete cascade, host text not null, boot text not null, "
                               "process integer not null, started text not null)";

// Databases that were begun before there was this table have none until somebody writes to them.
constexpr const char *agains = "create table if not exists again(campaign integer not null references campaign(id) on delete cascade, resolved text not null, verdict text not null, "
                               "message text not null, seconds real not null, ratio real not null, lower real not null, upper real not null, workspace_bytes integer not null, "
                               "code_bytes integer not null, compile_s real not null, primary key(campaign, resolved)) without rowid";

constexpr const char *again_columns = "resolved, verdict, message, seconds, ratio, lower, upper, workspace_bytes, code_bytes, compile_s";

constexpr const char *columns = "number, schedule, origin, resolved, verdict, message, seconds, ratio, lower, upper, workspace_bytes, code_bytes, compile_s, features, draft, bound, score";

}  // namespace

struct Records::State {
    fs::path file;
    sqlite3 *db = nullptr;

    ~State() { sqlite3_close(db); }

    [[noreturn]] void fail(const char *id, const std::string &expected, const std::string &remedy) const {
        const std::string why = db ? sqlite3_errmsg(db) : "out of memory";
        throw UserError(id, "records '" + file.string() + "': expected " + expected + "; " + why + ". " + remedy);
    }
    [[noreturn]] void fail_writing() const { fail("records.write", "to write to it", "Make room, or correct its permissions; what was committed before is kept, and the same command goes on from there."); }

    void run(const std::string &sql) const {
        if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail_writing();
    }
};

namespace {

// One prepared statement: values in by position from 1, columns out from 0.
class Statement {
public:
    Statement(sqlite3 *db, const std::string &sql) { ok_ = sqlite3_prepare_v2(db, sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK; }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement &) = delete;
    Statement &operator=(const Statement &) = delete;

    Statement &bind(const std::string &text) { return bound(sqlite3_bind_text(statement_, ++at_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT)); }
    Statement &bind(double value) { return bound(sqlite3_bind_double(statement_, ++at_, value)); }
    Statement &bind(int64_t value) { return bound(sqlite3_bind_int64(statement_, ++at_, value)); }
    // Nine columns, from the verdict on.
    Statement &bind(const Measurement &m) {
        bind(std::string(name_of(m.verdict))).bind(m.message).bind(m.seconds).bind(m.ratio).bind(m.lower).bind(m.upper);
        return bind(static_cast<int64_t>(m.workspace_bytes)).bind(static_cast<int64_t>(m.code_bytes)).bind(m.compile_s);
    }
    Statement &bind(const std::vector<float> &values) { return bound(sqlite3_bind_blob(statement_, ++at_, values.data(), static_cast<int>(values.size() * sizeof(float)), SQLITE_TRANSIENT)); }
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
        m.verdict = verdict_named(text(column)), m.message = text(column + 1);
        m.seconds = real(column + 2), m.ratio = real(column + 3), m.lower = real(column + 4), m.upper = real(column + 5);
        m.workspace_bytes = static_cast<uint64_t>(integer(column + 6)), m.code_bytes = static_cast<uint64_t>(integer(column + 7)), m.compile_s = real(column + 8);
        return m;
    }
    std::vector<float> floats(int column) const {
        std::vector<float> values(static_cast<size_t>(sqlite3_column_bytes(statement_, column)) / sizeof(float));
        if (!values.empty()) std::memcpy(values.data(), sqlite3_column_blob(statement_, column), values.size() * sizeof(float));
        return values;
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
        throw UserError("records.format", "records '" + file.string() + "': expected a verdict, got '" + quotable(row.text(column)) + "'; the file is damaged. Restore it.");
    }
}

}  // namespace

Records::Records(const fs::path &file, bool read_only) : state_(new State{file, nullptr}) {
    State &s = *state_;
    std::error_code unknown;
    if (fs::exists(file, unknown) && !fs::is_regular_file(file, unknown))
        throw UserError("records.open", "records '" + file.string() + "': expected a regular file; it is a folder, a device, a pipe or a socket. Name another with --records.");
    if (!read_only && file.has_parent_path()) {
        std::error_code ignored;
        fs::create_directories(file.parent_path(), ignored);
    }
    const int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(file.c_str(), &s.db, flags, nullptr) != SQLITE_OK)
        s.fail("records.open", read_only ? "a database of measurements" : "to open it, or to make it", "Check its path and permissions, or name another with --records.");
    sqlite3_busy_timeout(s.db, 20000);
    sqlite3_db_config(s.db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    auto number = [&](const char *pragma) {
        Statement q(s.db, pragma);
        const bool row = q.step();
        if (!q.ok()) s.fail("records.format", "a database of measurements", "Name another with --records.");
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
    if (number("pragma application_id") != application || number("pragma user_version") != format_version)
        throw UserError("records.format", "records '" + file.string() + "': expected a database of measurements of version " + std::to_string(format_version) + "; it is something else. Name another with --records.");
    if (read_only) return;
    s.run("pragma foreign_keys = on; pragma synchronous = full");
    s.run(claims);
    s.run(agains);
}

Records::~Records() = default;

int64_t Records::campaign(const std::string &key, const nlohmann::ordered_json &document) {
    State &s = *state_;
    Statement insert(s.db, "insert into campaign(key, document) values(?, ?) on conflict(key) do nothing");
    insert.bind(key).bind(document.dump()).step();
    if (!insert.ok()) s.fail_writing();
    Statement find(s.db, "select id from campaign where key = ?");
    if (!find.bind(key).step()) s.fail_writing();
    return find.integer(0);
}

void Records::add(int64_t campaign, const std::vector<Trial> &trials) {
    State &s = *state_;
    s.run("begin immediate");
    for (const Trial &t : trials) {
        Statement insert(s.db, std::string("insert into trial(campaign, ") + columns + ") values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) on conflict do nothing");
        insert.bind(campaign).bind(t.number).bind(t.schedule).bind(t.origin).bind(t.resolved).bind(t.measurement);
        insert.bind(t.features).bind(t.draft).bind(t.bound).bind(t.score).step();
        if (insert.ok()) continue;
        const std::string why = sqlite3_errmsg(s.db);
        sqlite3_exec(s.db, "rollback", nullptr, nullptr, nullptr);
        throw UserError("records.write", "records '" + s.file.string() + "': expected to write to it; " + why + ". Make room, or correct its permissions; what was committed before is kept, and the same command goes on from there.");
    }
    s.run("commit");
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
        t.number = q.integer(0), t.schedule = q.text(1), t.origin = q.text(2), t.resolved = q.text(3), t.measurement = measurement_in(state_->file, q, 4);
        t.features = q.floats(13), t.draft = q.real(14), t.bound = q.real(15), t.score = q.real(16);
        all.push_back(std::move(t));
    }
    if (!q.ok()) state_->fail("records.read", "to read its trials", "Restore it, or name another with --records.");
    return all;
}

void Records::add_again(int64_t campaign, const std::string &resolved, const Measurement &measurement) {
    Statement insert(state_->db, std::string("insert into again(campaign, ") + again_columns + ") values(?,?,?,?,?,?,?,?,?,?,?) on conflict do nothing");
    insert.bind(campaign).bind(resolved).bind(measurement).step();
    if (!insert.ok()) state_->fail_writing();
}

std::map<std::string, Measurement> Records::measured_again(int64_t campaign) const {
    std::map<std::string, Measurement> all;
    if (Statement there(state_->db, "select 1 from sqlite_schema where name = 'again'"); !there.step()) return all;
    Statement q(state_->db, std::string("select ") + again_columns + " from again where campaign = ?");
    q.bind(campaign);
    while (q.step()) all[q.text(0)] = measurement_in(state_->file, q, 1);
    if (!q.ok()) state_->fail("records.read", "to read its finalists", "Restore it, or name another with --records.");
    return all;
}

std::vector<CampaignRow> Records::campaigns() const {
    std::vector<CampaignRow> all;
    Statement q(state_->db,
                "select id, key, document, base_seconds, count(number), count(case when verdict in ('measured', 'slow') then 1 end), max(case when verdict = 'measured' then ratio else 0 end) "
                "from campaign left join trial on trial.campaign = campaign.id group by id order by id");
    while (q.step()) all.push_back({q.integer(0), q.text(1), q.text(2), q.integer(4), q.integer(5), q.real(6), q.real(3)});
    if (!q.ok()) state_->fail("records.read", "to read its campaigns", "Restore it, or name another with --records.");
    return all;
}

void Records::merge(const fs::path &other) {
    const Records from(other, true);
    for (const CampaignRow &row : from.campaigns()) {
        const int64_t id = campaign(row.key, nlohmann::ordered_json::parse(row.document, nullptr, false));
        add(id, from.trials(row.id));
        for (const auto &[resolved, measurement] : from.measured_again(row.id)) add_again(id, resolved, measurement);
        if (row.base_seconds > 0) set_base(id, row.base_seconds);
    }
}

int64_t Records::prune(int64_t fewest) {
    Statement q(state_->db, "delete from campaign where (select count(*) from trial where trial.campaign = campaign.id and verdict in ('measured', 'slow')) < ?");
    q.bind(fewest).step();
    if (!q.ok()) state_->fail_writing();
    return sqlite3_changes(state_->db);
}

Claim::Claim(Records &records, int64_t campaign) : records_(records), campaign_(campaign) {
    const Records::State &s = *records.state_;
    const Owner here = this_process();
    s.run("begin immediate");
    std::optional<Owner> other;
    {
        Statement find(s.db, "select host, boot, process, started from claim where campaign = ?");
        if (find.bind(campaign).step()) other = Owner{find.text(0), find.text(1), find.integer(2), find.text(3)};
    }
    if (other && is_alive(*other)) {
        s.run("rollback");
        throw UserError("records.claimed", "records '" + s.file.string() + "': expected a campaign that nobody works on, to go on with it; process " + std::to_string(other->process) + " of '" +
                                               quotable(other->host) + "' does. Wait for it, or begin another one without --resume.");
    }
    {
        Statement take(s.db, "insert or replace into claim(campaign, host, boot, process, started) values(?, ?, ?, ?, ?)");
        take.bind(campaign).bind(here.host).bind(here.boot).bind(here.process).bind(here.started).step();
        if (!take.ok()) {
            sqlite3_exec(s.db, "rollback", nullptr, nullptr, nullptr);
            s.fail_writing();
        }
    }
    s.run("commit");
}

Claim::~Claim() {
    Statement leave(records_.state_->db, "delete from claim where campaign = ?");
    leave.bind(campaign_).step();
}

}  // namespace tessera
