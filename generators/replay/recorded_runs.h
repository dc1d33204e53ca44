// Records of runs (docs/bundle.md, "replay") whose inputs are made of a seed.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "generators/replay/opened_bundle.h"

namespace tessera {

struct RecordRequest {
    std::vector<std::string> kernels;        // none: all that run here
    std::map<std::string, int64_t> extents;  // of dims that are not fixed; a name may be <kernel>.<dim>
    std::vector<std::string> parameters;     // "eps=1e-5", "<kernel>.<parameter>=<value>"
    uint64_t seed = 0, step = 0;
    std::optional<KeyBytes> public_key = {};  // that the bundle must be signed by
    int threads = 1;
};

struct Record {
    std::string text;                  // expected.json
    std::vector<std::string> targets;  // that ran
    size_t runs = 0, outputs = 0;      // outputs by hash of bits
};

// Runs every kernel once for each target that this machine runs. UserErrors bundle.*; record.kernel, record.extent, record.parameter for
// what is missing, not there, or no number of its type; record.bits where two targets with one hash of bits give two results, which is a
// defect of Tessera or of the machine.
Record record_runs(const std::string &file, const RecordRequest &request);

// The targets of a bundle that this machine runs, best first.
std::vector<BundledTarget> targets_here(const std::string &file, const std::optional<KeyBytes> &public_key = {});

}  // namespace tessera
