// What campaigns measured, in one SQLite database: trial by trial, committed as they are made, so that a campaign that is killed
// at any moment goes on where it was. Many campaigns share a file, also at one time.
//
//   campaign  a key: the hash of everything that its proposals depend on beside its measurements
//   trial     what was proposed, and what came of it
//   again     what a campaign measured again, more closely: its finalists, and the winner without one of its changes
//   claim     who works on a campaign
//   beat      when that one was last heard of; databases that were made without it get it when they are opened to be written to
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autotune/measure/measurement.h"
#include "autotune/measure/measurement_task.h"

namespace tessera {

struct Trial {
    int64_t number = 0;    // from 0, in the order of proposing
    std::string schedule;  // the canonical text of its stages
    std::string origin;    // "base", "seed", "sample", "mutation", "crossover"
    std::string resolved;  // hash of its tile program
    Measurement measurement;
    double draft = 0, bound = 0, score = 0;  // what was predicted
};

// Whether it can be what was measured: a verdict of something that was; finite numbers, none below 0; and of what was timed, a time above
// 0, and a ratio above 0 within its interval.
bool is_credible(const Measurement &measurement);
bool is_credible(const Trial &trial);

struct CampaignRow {
    int64_t id = 0;
    std::string key, document;  // JSON: what is tuned, where, with what
    int64_t trials = 0, measured = 0;
    double best_ratio = 0, base_seconds = 0;

    nlohmann::json stated() const;  // the document; null where it is none that was written here
    std::string task() const;       // its name in the document, as a terminal may show it; "unknown" where there is none
};

struct Pruned {
    int64_t removed = 0;
    int64_t claimed = 0;  // stay, since somebody works on them
};

class Records {
public:
    // Opens the file, and makes it if there is none. UserError records.open, also for what SQLite would keep in memory; records.format: not
    // a database of ours, or of another version. Every call throws UserError records.write or records.read when the file system does not
    // play along; what was committed before stays.
    explicit Records(const std::filesystem::path &file, bool read_only = false);
    ~Records();
    Records(const Records &) = delete;
    Records &operator=(const Records &) = delete;

    // The campaign of this key; begun if there is none.
    int64_t campaign(const std::string &key, const nlohmann::ordered_json &document);
    // All or none, each in place of what has its number. What is there from number `other_way` on goes: the campaign proposes something
    // else from there.
    void add(int64_t campaign, const std::vector<Trial> &trials, std::optional<int64_t> other_way = {});
    void set_base(int64_t campaign, double seconds);
    std::vector<Trial> trials(int64_t campaign) const;
    // By the hash of the tile program and, of finalists, among how many; in place of what is there.
    void add_again(int64_t campaign, const std::string &subject, const Measurement &measurement);
    std::map<std::string, Measurement> measured_again(int64_t campaign) const;  // what is credible
    std::vector<CampaignRow> campaigns() const;
    // Copies what the other file has and this one has not, or nothing of it: UserError records.format where it has what is not credible.
    // What is here stays as it is, and a campaign that has other trials there is not continued with them.
    void merge(const std::filesystem::path &other);
    // Removes campaigns with fewer than so many measured trials, but none that somebody works on.
    Pruned prune(int64_t fewest);

private:
    friend class Claim;
    struct State;
    std::unique_ptr<State> state_;
};

// While it lives, nobody else works on the campaign. What a process that has ended left claimed is free; of another machine's, or another
// container's, it is known to have ended when nothing was heard of it for ten minutes: whatever is added to the records is a sign of all
// that its process has claimed.
class Claim {
public:
    // UserError records.claimed when somebody does. `records` outlives it.
    Claim(Records &records, int64_t campaign);
    ~Claim();
    Claim(const Claim &) = delete;
    Claim &operator=(const Claim &) = delete;

private:
    Records &records_;
    int64_t campaign_;
};

}  // namespace tessera
