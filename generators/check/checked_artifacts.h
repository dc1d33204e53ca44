// Whether schedules still resolve to the programs that were measured: every artifact is lowered again, nothing is compiled.
//
// An artifact is lowered for what it was tuned for, or for what its name says (artifact_task.h). What programs those had that say nothing
// themselves is recorded in the folder's tessera-programs.lock, which lies in its subfolder `tuned` where that is there.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "generators/choose/tuning_record.h"
#include "generators/kernel/program_record.h"
#include "generators/registry/registry.h"

namespace tessera {

struct CheckedArtifact {
    // unknown: named after no algorithm of this generator's, such as what only others extend. unrecorded: it lowers, and there is nothing
    // to compare it with.
    enum class State { broken, changed, unrecorded, unknown, unchanged } state = State::unknown;
    std::string name;
    std::filesystem::path file;
    std::string message;  // what is broken
    std::optional<Provenance> recorded, now;
    bool measured = false;  // the record is the artifact's own
    std::optional<TuningRecord> tuned;
    std::string base;                 // the schedule that it was tuned from, or "none"; "" where tune begins with that by itself
    std::string lost_base;            // one that is in none of the folders
    std::vector<std::string> causes;  // of a change: "its own fields", "ancestor 'matmul/avx2'", "the algorithm", "the compiler"
    struct Count {
        std::string name;
        double before = 0, after = 0;
    };
    std::vector<Count> counts;         // that differ by more than a thousandth
    std::optional<bool> bits_changed;  // of a change: whether results have other bits; nothing where the record does not say which they had
    std::optional<double> effect;      // predicted speed over the speed predicted for what was recorded
};
const char *name_of(CheckedArtifact::State state);

// Artifacts that resolve to one program at one shape: measuring the first measures all.
struct ToMeasure {
    std::vector<size_t> artifacts;  // positions in the list of the checked
    double effect = 1;
};

// `paths` are files of schedules and folders with them; folders are also where ancestors are found, then `more`, then Tessera's own.
// `model` predicts the effect of a change (model_choice.h). Sorted by state and name. UserError check.path: neither a file nor a folder;
// check.record for a lock that is none.
std::vector<CheckedArtifact> check_artifacts(const Registry &registry, const std::vector<std::string> &paths,
                                             const std::vector<std::string> &more, const std::string &model = "");

// The changed, without those whose program an unchanged artifact was measured with; what is predicted to lose most comes first.
std::vector<ToMeasure> to_measure(const std::vector<CheckedArtifact> &checked);

// Writes the folder's tessera-programs.lock: the programs of all artifacts of the folder that do not say themselves. A line for each,
// sorted by name.
void write_lock(const std::vector<CheckedArtifact> &checked, const std::filesystem::path &folder);

}  // namespace tessera
