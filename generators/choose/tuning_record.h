// How an artifact was tuned, as its `measured` says beside its provenance: what it takes to tune it again in the same way.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "autotune/measure/metric.h"
#include "schedules/artifact/provenance.h"

namespace tessera {

struct TuningRecord {
    Goal goal;
    bool is_cold = false;              // calls were timed with cold caches
    bool is_predicted = false;         // a cost model chose it alone
    int64_t seed = 1, candidates = 0;  // of which it did; 0 where it does not say
    std::vector<std::string> prepack;  // operands that it may take packed ahead of time
    std::vector<std::string> ranges;   // in which data was stated to lie
    std::vector<Extents> shapes;       // of the dynamic dims, where it is for several
    std::optional<std::string> base;   // the schedule to beat, "" where that was none; nothing where it does not say
};

// Nothing where nobody tuned the schedule (no provenance). UserError json.* where a field is not what tune writes.
std::optional<TuningRecord> tuning_record_of(const Schedule &schedule);

// The words of a command that tunes a kernel in the same way: "tune", the algorithm, options; without the schedule to beat, the
// artifact's name, folders and budget.
std::vector<std::string> tuning_words(const KernelTask &task, const TuningRecord &record);

}  // namespace tessera
