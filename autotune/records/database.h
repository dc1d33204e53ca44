// An SQLite file, which a stranger may have made, and statements over it.
//
// A database is code as much as data: a view, a trigger, a generated column or an index over an expression runs when a table is read or
// written, and what it computes may have no end. So a file has the tables that are declared here and nothing else, to the word; and each
// statement has a limit on its steps, which follows from the file's size, for what a crafted tree of pages makes endless.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace tessera {

// What makes a file one of ours.
struct DatabaseFormat {
    int application, version, oldest;  // version: of what is written; oldest: that can be read, and is made the newest when it is written
    std::string tables;                // SQL that makes them
    std::string newer;                 // SQL for those that files of older versions may lack
};

class Database {
public:
    // Opens the file and, unless it is read only, makes it if there is none. One that lies where nothing can be written, and whose journal
    // SQLite therefore cannot open, is read from a copy. UserError records.open, also for what SQLite would keep in memory;
    // records.format: not of this format.
    Database(const std::filesystem::path &file, const DatabaseFormat &format, bool read_only);
    ~Database();
    Database(const Database &) = delete;
    Database &operator=(const Database &) = delete;

    const std::filesystem::path &file() const;
    void run(const std::string &sql) const;  // UserError records.write
    // What SQLite last said, as a UserError: "records 'file': expected …; database is locked. <remedy>".
    [[noreturn]] void fail(const char *id, const std::string &expected, const std::string &remedy) const;
    [[noreturn]] void fail_writing() const;

private:
    friend class Statement;
    friend class Transaction;
    struct State;
    std::unique_ptr<State> state_;

    explicit Database(const DatabaseFormat &format);  // in memory, to compare others with
    void make(const DatabaseFormat &format) const;
    void read_from_copy_if_needed();
    int64_t number(const std::string &sql) const;
    void check_parts(const DatabaseFormat &format, bool is_old) const;
};

// One prepared statement: values in by position from 1, columns out from 0.
class Statement {
public:
    Statement(const Database &db, const std::string &sql);
    ~Statement();
    Statement(const Statement &) = delete;
    Statement &operator=(const Statement &) = delete;

    Statement &bind(const std::string &text);
    Statement &bind(double value);
    Statement &bind(int64_t value);
    // Whether there is a row; `ok` says whether that could be found out.
    bool step();
    bool ok() const { return ok_; }
    std::string text(int column) const;
    double real(int column) const;
    int64_t integer(int column) const;

private:
    const Database &db_;
    sqlite3_stmt *statement_ = nullptr;
    int at_ = 0;
    int64_t steps_ = 0, max_steps_;
    bool ok_ = false;
    Statement &bound(int status);
};

// What is done while it lives is done when it is committed, and otherwise not at all.
class Transaction {
public:
    explicit Transaction(const Database &db);
    ~Transaction();
    Transaction(const Transaction &) = delete;
    Transaction &operator=(const Transaction &) = delete;
    bool begun() const { return begun_; }
    bool commit();

private:
    const Database &db_;
    bool begun_, open_;
};

}  // namespace tessera
