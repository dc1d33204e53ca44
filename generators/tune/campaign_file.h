// A campaign over several kernels, as a file (tessera-campaign.schema.json):
//
//   { "format": "tessera-campaign", "version": 1, "budget": {"trials": 256, "seconds": 3600},
//     "tasks": [{"algorithm": "matmul", "numerics": "f32", "options": {}, "fixed": {"M": 512, "N": 768, "K": 3072},
//                "extents": {}, "target": "host", "threads": 1, "weight": 12, "schedule": "matmul/avx512"}] }
//
// All of a task but its algorithm may be left out: f32, no extents, host, one thread, weight 1, and the family's schedule to beat.
// "shapes": [{"M": 1, "N": 768}, {"M": 64, "N": 768}] are extents of dims that the kernel leaves dynamic: one artifact with a variant for
// each, as `tune --shape M=1 M=64 N=768 N=768` makes it.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/provenance.h"

namespace tessera {

struct CampaignEntry {
    KernelTask task;
    double weight = 1;                 // how often the kernel runs, relative to the others
    std::string schedule;              // to beat; "" for the family's
    std::vector<Extents> shapes = {};  // for which one artifact has variants, two or more; none where the task is for one shape
    // For a program's callee: the algorithm, which no name leads to, and the scopes of its calls.
    std::shared_ptr<const Algorithm> callee = {};
    std::vector<std::string> scopes = {};
};

struct CampaignFile {
    std::vector<CampaignEntry> tasks;
    std::optional<int> trials;      // of all tasks together
    std::optional<double> seconds;  // of all
    bool skips_foreign = false;     // tasks for targets that this machine does not run are reported, not refused
};

// UserError campaign.file, campaign.too-large, json.*, campaign.tasks: no task, or one twice; campaign.shapes: shapes that are fewer than
// two, of different dims, twice there, or of dims that the task gives elsewhere too.
CampaignFile read_campaign(const std::filesystem::path &file);

// What the library's artifacts of known algorithms were tuned for, once each, sorted; those for another metric than time or with operands
// that are packed ahead are left out. UserError tune.all: none says so.
std::vector<CampaignEntry> tasks_of(const Library &library, const std::function<bool(const std::string &)> &is_known);

}  // namespace tessera
