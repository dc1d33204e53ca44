// What is lowered: all that is known before the first loop and never changes.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "compiler/lower/context/stage_facts.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

class Mapping;

struct Lowering {
    const Algorithm &algorithm;  // after every rewrite
    const KnobsByStage &stated;  // by the schedule
    std::shared_ptr<const Mapping> mapping;
    bool tells_borders;  // tiles at the border of an image are told from those inside, which need no guards
    std::map<const Stage *, StageFacts> stages;
    std::map<std::string, const Stage *> producers;  // by tensor

    // The algorithm and the knobs have to outlive it.
    Lowering(const Algorithm &algorithm, const KnobsByStage &stated, std::shared_ptr<const Mapping> mapping, bool tells_borders);

    const StageFacts &facts(const Stage &stage) const { return stages.at(&stage); }
    const std::vector<Tensor> &results(const Stage &stage) const { return stages.at(&stage).results; }
    // Those that are stored: of a scan, what somebody reads.
    std::vector<Tensor> stored_results(const Stage &stage) const;
    // What the schedule states for the stage; no knobs where it says nothing.
    const Knobs &knobs(const std::string &stage) const;
    // A dim as a schedule calls it.
    std::string plain(const std::string &dim) const;
};

}  // namespace tessera
