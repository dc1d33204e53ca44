#include "schedules/knobs/written_out.h"

#include "schedules/knobs/pattern.h"
#include "schedules/knobs/reduction_tree.h"

namespace tessera {

ResolvedSchedule written_out(const ResolvedSchedule &schedule, const Algorithm &declared) {
    return without_trees(without_patterns(schedule, declared), declared);
}

}  // namespace tessera
