// What campaigns measured, in one SQLite database: trial by trial, committed as they are made, so that a campaign that is killed
// at any moment goes on where it was. Many campaigns share a file, also at one time.
//
//   campaign  a key: the hash of everything that its proposals depend on beside its measurements
//   trial     what was proposed, and what came of it
//   again     what a campaign measured again, more closely: its finalists, and the winner without one of its changes
//   claim     who works on a campaign
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autotune/measure.h"

namespace tessera {

struct Trial {
    int64_t number = 0;        // from 0, in the order of proposing
    std::string schedule;      // the canonical text of its stages
    std::string origin;        // "base", "sample", "mutation", "crossover"
    std::string resolved;      // hash of its tile program
    Measurement measurement;
    std::vector<float> features;
    double draft = 0, bound = 0, score = 0;  // what was predicted
};

struct CampaignRow {
    int64_t id = 0;
    std::string key, document;  // JSON: what is tuned, where, with what
    int64_t trials = 0, measured = 0;
    double best_ratio = 0, base_seconds = 0;
};

class Records {
public:
    // Opens the file, and makes it if there is none. UserError records.open, records.format: not a database of ours, or of another
    // version. Every call throws UserError records.write or records.read when the file system does not play along; what was committed
    // before stays.
    explicit Records(const std::filesystem::path &file, bool read_only = false);
    ~Records();
    Records(const Records &) = delete;
    Records &operator=(const Records &) = delete;

    // The campaign of this key; begun if there is none.
    int64_t campaign(const std::string &key, const nlohmann::ordered_json &document);
    void add(int64_t campaign, const std::vector<Trial> &trials);  // all or none
    void set_base(int64_t campaign, double seconds);
    std::vector<Trial> trials(int64_t campaign) const;
    // By the hash of the tile program; what is there stays.
    void add_again(int64_t campaign, const std::string &resolved, const Measurement &measurement);
    std::map<std::string, Measurement> measured_again(int64_t campaign) const;
    std::vector<CampaignRow> campaigns() const;
    // Copies what the other file has and this one has not.
    void merge(const std::filesystem::path &other);
    // Removes campaigns with fewer than so many measured trials; gives how many.
    int64_t prune(int64_t fewest);

private:
    friend class Claim;
    struct State;
    std::unique_ptr<State> state_;
};

// While it lives, nobody else works on the campaign. What a process that has ended left claimed is free.
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
