#include "autotune/records/records.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autotune/records/database.h"
#include "support/files/json_parse.h"
#include "support/files/json_text.h"
#include "support/processes/owner.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int format_version = 3, oldest_version = 2;  // which has neither heartbeats, in all files, nor candidates that timed out
constexpr int application = 0x54455353;                // "TESS"

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
    Database db;
    std::map<std::string, Measurement> measured_again(int64_t campaign) const;
};

namespace {

Statement &bind(Statement &s, const Owner &o) { return s.bind(o.host).bind(o.boot).bind(o.process).bind(o.started); }
// Nine columns, from the verdict on.
Statement &bind(Statement &s, const Measurement &m) {
    s.bind(std::string(name_of(m.verdict))).bind(m.message).bind(m.seconds).bind(m.ratio).bind(m.lower).bind(m.upper);
    return s.bind(static_cast<int64_t>(m.workspace_bytes)).bind(static_cast<int64_t>(m.code_bytes)).bind(m.compile_s);
}

// Reads the columns from there on.
Measurement measurement_in(const fs::path &file, const Statement &row, int column) {
    Measurement m;
    try {
        m.verdict = verdict_named(row.text(column));
    } catch (const InternalError &) {
        throw UserError("records.format", "records '" + file.string() + "': expected a verdict, got '" + quotable(row.text(column)) +
                                              "'; the file is damaged. Restore it.");
    }
    m.message = printable(row.text(column + 1), true);
    m.seconds = row.real(column + 2), m.ratio = row.real(column + 3), m.lower = row.real(column + 4), m.upper = row.real(column + 5);
    m.workspace_bytes = static_cast<uint64_t>(row.integer(column + 6)), m.code_bytes = static_cast<uint64_t>(row.integer(column + 7));
    m.compile_s = row.real(column + 8);
    return m;
}

DatabaseFormat format() { return {application, format_version, oldest_version, tables, fmt::format(beats, seconds_now())}; }

}  // namespace

Records::Records(const fs::path &file, bool read_only) : state_(new State{Database(file, format(), read_only)}) {}

Records::~Records() = default;

namespace {

bool is_measure(double value) { return std::isfinite(value) && value >= 0; }

bool inserted(const Database &db, int64_t campaign, const Trial &t) {
    Statement insert(db, std::string("insert or replace into trial(campaign, ") + columns + ") values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    bind(insert.bind(campaign).bind(t.number).bind(t.schedule).bind(t.origin).bind(t.resolved), t.measurement);
    insert.bind(t.draft).bind(t.bound).bind(t.score).step();
    return insert.ok();
}

bool inserted_again(const Database &db, int64_t campaign, const std::string &resolved, const Measurement &m) {
    Statement insert(db, std::string("insert or replace into again(campaign, ") + again_columns + ") values(?,?,?,?,?,?,?,?,?,?,?)");
    bind(insert.bind(campaign).bind(resolved), m).step();
    return insert.ok();
}

// The number of the campaign of this key, begun if there is none.
std::optional<int64_t> begun_campaign(const Database &db, const std::string &key, const std::string &document) {
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

std::optional<Worker> worker_on(const Database &db, int64_t campaign) {
    Statement find(db,
                   "select host, boot, process, started, seconds from claim left join beat on beat.campaign = claim.campaign where "
                   "claim.campaign = ?");
    if (!find.bind(campaign).step()) return std::nullopt;
    const Owner owner{find.text(0), find.text(1), find.integer(2), find.text(3)};
    // The clocks of two machines differ by little: what is far ahead is no sign of life either.
    const int64_t beat = find.integer(4), now = seconds_now();
    const bool is_heard_of = beat >= now - silent_s && beat <= now + silent_s;
    if (!is_alive(owner) || (!is_here(owner) && !is_heard_of)) return std::nullopt;
    return Worker{owner, now - std::clamp<int64_t>(beat, 0, now)};
}

constexpr const char *owned_by = " host = ? and boot = ? and process = ? and started = ?";

// A sign of this process on all that it has claimed.
bool beaten(const Database &db) {
    const Owner here = this_process();
    Statement beat(db, std::string("update beat set seconds = ? where campaign in (select campaign from claim where") + owned_by + ")");
    bind(beat.bind(seconds_now()), here).step();
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
    if (!campaign) state_->db.fail_writing();
    return *campaign;
}

void Records::add(int64_t campaign, const std::vector<Trial> &trials, std::optional<int64_t> other_way) {
    State &s = *state_;
    Transaction all(s.db);
    if (!all.begun()) s.db.fail_writing();
    if (other_way) {
        Statement forget(s.db, "delete from trial where campaign = ? and number >= ?");
        forget.bind(campaign).bind(*other_way).step();
        if (!forget.ok()) s.db.fail_writing();
    }
    for (const Trial &t : trials)
        if (!inserted(s.db, campaign, t)) s.db.fail_writing();
    if (!beaten(s.db) || !all.commit()) s.db.fail_writing();
}

void Records::set_base(int64_t campaign, double seconds) {
    Statement update(state_->db, "update campaign set base_seconds = ? where id = ?");
    update.bind(seconds).bind(campaign).step();
    if (!update.ok()) state_->db.fail_writing();
}

std::vector<Trial> Records::trials(int64_t campaign) const {
    std::vector<Trial> all;
    Statement q(state_->db, std::string("select ") + columns + " from trial where campaign = ? order by number");
    q.bind(campaign);
    while (q.step()) {
        Trial t;
        t.number = q.integer(0), t.schedule = q.text(1), t.origin = q.text(2), t.resolved = q.text(3),
        t.measurement = measurement_in(state_->db.file(), q, 4);
        t.draft = q.real(13), t.bound = q.real(14), t.score = q.real(15);
        all.push_back(std::move(t));
    }
    if (!q.ok()) state_->db.fail("records.read", "to read its trials", "Restore it, or name another database.");
    return all;
}

void Records::add_again(int64_t campaign, const std::string &resolved, const Measurement &measurement) {
    if (!inserted_again(state_->db, campaign, resolved, measurement) || !beaten(state_->db)) state_->db.fail_writing();
}

std::map<std::string, Measurement> Records::State::measured_again(int64_t campaign) const {
    std::map<std::string, Measurement> all;
    Statement q(db, std::string("select ") + again_columns + " from again where campaign = ?");
    q.bind(campaign);
    while (q.step()) all[q.text(0)] = measurement_in(db.file(), q, 1);
    if (!q.ok()) db.fail("records.read", "to read what was measured again", "Restore it, or name another database.");
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
    if (!q.ok()) state_->db.fail("records.read", "to read its campaigns", "Restore it, or name another database.");
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
    if (!all.begun()) s.db.fail_writing();
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
        if (!here) s.db.fail_writing();
        const int64_t id = *here;
        std::map<int64_t, std::string> ours;
        for (const Trial &t : trials(id)) ours[t.number] = t.resolved;
        const auto goes_another_way = std::find_if(theirs.begin(), theirs.end(),
                                                   [&](const Trial &t) { return ours.count(t.number) && ours.at(t.number) != t.resolved; });
        const std::map<std::string, Measurement> known = s.measured_again(id);
        for (auto t = theirs.begin(); t != goes_another_way; ++t)
            if (!ours.count(t->number) && !inserted(s.db, id, *t)) s.db.fail_writing();
        for (const auto &[resolved, m] : again)
            if (!known.count(resolved) && !inserted_again(s.db, id, resolved, m)) s.db.fail_writing();
        Statement base(s.db, "update campaign set base_seconds = ? where id = ? and base_seconds = 0");
        base.bind(row.base_seconds).bind(id).step();
        if (!base.ok()) s.db.fail_writing();
    }
    if (!all.commit()) s.db.fail_writing();
}

Pruned Records::prune(int64_t fewest) {
    State &s = *state_;
    Transaction all(s.db);
    if (!all.begun()) s.db.fail_writing();
    std::vector<int64_t> thin;
    Statement find(s.db,
                   "select id from campaign where "
                   "(select count(*) from trial where trial.campaign = campaign.id and verdict in ('measured', 'slow')) < ?");
    find.bind(fewest);
    while (find.step()) thin.push_back(find.integer(0));
    if (!find.ok()) s.db.fail_writing();
    Pruned pruned;
    for (int64_t id : thin) {
        if (worker_on(s.db, id)) {
            pruned.claimed++;
            continue;
        }
        Statement remove(s.db, "delete from campaign where id = ?");
        remove.bind(id).step();
        if (!remove.ok()) s.db.fail_writing();
        pruned.removed++;
    }
    if (!all.commit()) s.db.fail_writing();
    return pruned;
}

Claim::Claim(Records &records, int64_t campaign) : records_(records), campaign_(campaign) {
    const Records::State &s = *records.state_;
    const Owner here = this_process();
    Transaction all(s.db);
    if (!all.begun()) s.db.fail_writing();
    if (const std::optional<Worker> other = worker_on(s.db, campaign))
        throw UserError("records.claimed",
                        fmt::format("records '{}': expected a campaign that no process is working on; process {} of '{}' is working on "
                                    "it{}. Wait for it, or begin another one without --resume.",
                                    s.db.file().string(), other->owner.process, quotable(other->owner.host),
                                    is_here(other->owner)
                                        ? ""
                                        : fmt::format(" (last sign of life {} s ago; it counts as ended after {} s)",
                                                      other->silent_s, silent_s)));
    Statement take(s.db, "insert or replace into claim(campaign, host, boot, process, started) values(?, ?, ?, ?, ?)");
    bind(take.bind(campaign), here).step();
    Statement beat(s.db, "insert or replace into beat(campaign, seconds) values(?, ?)");
    beat.bind(campaign).bind(seconds_now()).step();
    if (!take.ok() || !beat.ok() || !all.commit()) s.db.fail_writing();
}

Claim::~Claim() {
    // Another process may have taken it over from one that was silent for long.
    Statement leave(records_.state_->db, std::string("delete from claim where campaign = ? and") + owned_by);
    bind(leave.bind(campaign_), this_process()).step();
}

}  // namespace tessera
