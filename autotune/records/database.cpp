#include "autotune/records/database.h"

#include <sqlite3.h>

#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "support/files/json_parse.h"
#include "support/processes/owned_folder.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

static constexpr const char *in_memory = ":memory:";

struct Database::State {
    fs::path file;
    sqlite3 *db = nullptr;
    std::unique_ptr<OwnedFolder> copy;  // where it is read from one

    ~State() { sqlite3_close(db); }

    // A statement takes fewer than one step for each byte.
    int64_t max_steps() const {
        int64_t bytes = 0;
        for (const char *part : {"", "-wal"}) {
            std::error_code none;
            const uintmax_t size = fs::file_size(file.string() + part, none);
            if (!none) bytes += static_cast<int64_t>(size);
        }
        return 100000000 + 10 * bytes;
    }
};

namespace {

// Counts the steps that SQLite takes while it lives, and interrupts it after so many.
class StepLimit {
public:
    StepLimit(sqlite3 *db, int64_t &steps, int64_t most) : db_(db), steps_(steps), most_(most) {
        sqlite3_progress_handler(
            db, every, [](void *self) { return static_cast<StepLimit *>(self)->is_over() ? 1 : 0; }, this);
    }
    ~StepLimit() { sqlite3_progress_handler(db_, 0, nullptr, nullptr); }
    StepLimit(const StepLimit &) = delete;
    StepLimit &operator=(const StepLimit &) = delete;

private:
    static constexpr int every = 1000;
    sqlite3 *db_;
    int64_t &steps_, most_;
    bool is_over() { return (steps_ += every) > most_; }
};

// SQLite takes a name that begins with "file:" for more than a name.
bool opened(const fs::path &file, int flags, sqlite3 *&db) {
    const fs::path name = file.is_absolute() ? file : "." / file;
    if (sqlite3_open_v2(name.c_str(), &db, flags, nullptr) != SQLITE_OK) return false;
    sqlite3_busy_timeout(db, 20000);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    for (int power : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_TRIGGER})
        sqlite3_db_config(db, power, 0, nullptr);
    return true;
}

std::string one_spaced(const std::string &text) {
    std::string all;
    for (const char c : text)
        if (std::isspace(static_cast<unsigned char>(c)) == 0) all += c;
        else if (!all.empty() && all.back() != ' ') all += ' ';
    return all;
}

// What a database is made of: "table 'trial'", and the SQL that makes it.
using Parts = std::map<std::string, std::string>;

// Nothing where it cannot be read.
std::optional<Parts> parts_of(const Database &db) {
    Parts parts;
    Statement all(db, "select type, name, coalesce(sql, '') from sqlite_schema");
    while (all.step()) parts[all.text(0) + " '" + all.text(1) + "'"] = one_spaced(all.text(2));
    return all.ok() ? std::optional(parts) : std::nullopt;
}

}  // namespace

Database::Database(const fs::path &file, const DatabaseFormat &format, bool read_only) : state_(new State{file, nullptr, nullptr}) {
    std::error_code unknown;
    if (file.empty() || file == in_memory)
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
    if (!opened(file, read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, state_->db))
        fail("records.open", read_only ? "a database of measurements" : "to open it, or to make it",
             "Check its path and permissions, or name another database.");
    if (read_only) read_from_copy_if_needed();
    auto empty = [&] { return number("select count(*) from sqlite_schema") == 0; };
    if (!read_only && empty()) {
        run("pragma journal_mode = wal");
        run("begin immediate");
        if (empty()) make(format);
        run("commit");
    }
    const bool is_ours = number("pragma application_id") == format.application;
    const int64_t version = number("pragma user_version");
    if (!is_ours || version < format.oldest || version > format.version)
        throw UserError("records.format", "records '" + file.string() + "': expected a database of measurements of version " +
                                              std::to_string(format.version) + "; it is " +
                                              (is_ours ? "of version " + std::to_string(version) + ". Name another file, and tune again."
                                                       : "something else. Name another file."));
    check_parts(format, version < format.version);
    if (read_only) return;
    run("pragma foreign_keys = on; pragma synchronous = full");
    if (version < format.version) run(fmt::format("begin immediate; {}; pragma user_version = {}; commit", format.newer, format.version));
}

Database::Database(const DatabaseFormat &format) : state_(new State{in_memory, nullptr, nullptr}) {
    if (sqlite3_open(in_memory, &state_->db) != SQLITE_OK) fail("machine.exhausted", "memory for a database", "Let less run at a time.");
    make(format);
}

Database::~Database() = default;

void Database::make(const DatabaseFormat &format) const {
    run(fmt::format("{}; {}; pragma application_id = {}; pragma user_version = {}", format.tables, format.newer, format.application,
                    format.version));
}

// A journal cannot be opened where nothing can be written, such as on a read-only mount.
void Database::read_from_copy_if_needed() {
    State &s = *state_;
    Statement first(*this, "select count(*) from sqlite_schema");
    first.step();
    if (first.ok() || (sqlite3_errcode(s.db) != SQLITE_CANTOPEN && sqlite3_errcode(s.db) != SQLITE_READONLY)) return;
    auto copy = std::make_unique<OwnedFolder>();
    const fs::path file = copy->path() / "records.db";
    for (const char *part : {"", "-wal"}) {
        std::error_code none;
        fs::copy_file(s.file.string() + part, file.string() + part, none);
    }
    sqlite3 *db = nullptr;
    if (!opened(file, SQLITE_OPEN_READONLY, db)) {
        sqlite3_close(db);
        return;
    }
    sqlite3_close_v2(std::exchange(s.db, db));  // with its statement
    s.copy = std::move(copy);
}

int64_t Database::number(const std::string &sql) const {
    Statement q(*this, sql);
    const bool row = q.step();
    if (!q.ok()) fail("records.format", "a database of measurements", "Name another database.");
    return row ? q.integer(0) : 0;
}

void Database::check_parts(const DatabaseFormat &format, bool is_old) const {
    const std::optional<Parts> parts = parts_of(*this);
    if (!parts) fail("records.format", "a database of measurements", "Name another database.");
    DatabaseFormat old = format;
    old.newer = "";
    const Parts all = *parts_of(Database(format)), needed = *parts_of(Database(is_old ? old : format));
    auto refuse = [&](const std::string &got) {
        throw UserError("records.format", "records '" + file().string() + "': expected the tables of measurements and nothing else; " +
                                              got + ", so it is damaged, or made to do harm. Restore it, or name another database.");
    };
    for (const auto &[name, sql] : *parts) {
        const auto known = all.find(name);
        if (known == all.end()) refuse("it has the " + quotable(name));
        if (known->second != sql) refuse("its " + quotable(name) + " is another one");
    }
    for (const auto &[name, sql] : needed)
        if (!parts->count(name)) refuse("it lacks the " + name);
}

const fs::path &Database::file() const { return state_->file; }

void Database::run(const std::string &sql) const {
    int64_t steps = 0;
    const StepLimit limit(state_->db, steps, state_->max_steps());
    if (sqlite3_exec(state_->db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail_writing();
}

void Database::fail(const char *id, const std::string &expected, const std::string &remedy) const {
    sqlite3 *db = state_->db;
    const std::string why = !db                                       ? "out of memory"
                            : sqlite3_errcode(db) == SQLITE_INTERRUPT ? "that takes more steps than a file of its size can need"
                                                                      : sqlite3_errmsg(db);
    throw UserError(id, "records '" + file().string() + "': expected " + expected + "; " + why + ". " + remedy);
}

void Database::fail_writing() const {
    fail("records.write", "to write to it",
         "Make room, or correct its permissions; what was committed before is kept, and the same command goes on from there.");
}

Statement::Statement(const Database &db, const std::string &sql) : db_(db), max_steps_(db.state_->max_steps()) {
    const StepLimit limit(db.state_->db, steps_, max_steps_);
    ok_ = sqlite3_prepare_v2(db.state_->db, sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK;
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement &Statement::bound(int status) {
    ok_ = ok_ && status == SQLITE_OK;
    return *this;
}

Statement &Statement::bind(const std::string &text) {
    return bound(sqlite3_bind_text(statement_, ++at_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
}
Statement &Statement::bind(double value) { return bound(sqlite3_bind_double(statement_, ++at_, value)); }
Statement &Statement::bind(int64_t value) { return bound(sqlite3_bind_int64(statement_, ++at_, value)); }

bool Statement::step() {
    if (!ok_) return false;
    const StepLimit limit(db_.state_->db, steps_, max_steps_);
    const int status = sqlite3_step(statement_);
    ok_ = status == SQLITE_ROW || status == SQLITE_DONE;
    return status == SQLITE_ROW;
}

std::string Statement::text(int column) const {
    const auto *t = reinterpret_cast<const char *>(sqlite3_column_text(statement_, column));
    return t ? std::string(t, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
}
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

static bool executed(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }

Transaction::Transaction(const Database &db) : db_(db), begun_(executed(db.state_->db, "begin immediate")), open_(begun_) {}
Transaction::~Transaction() {
    if (open_) executed(db_.state_->db, "rollback");
}
bool Transaction::commit() {
    open_ = !executed(db_.state_->db, "commit");
    return !open_;
}

}  // namespace tessera
