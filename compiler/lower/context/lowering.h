// What is lowered: all that is known before the first loop and never changes.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "compiler/lower/context/stage_facts.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

class Mapping;

// A fold that accumulates in its result, as a scatter does: the result begins with the identities, and then the elements step there.
struct InPlaceFold {
    Stage begin;  // a Map of all dims
    Stage step;   // the fold, with its ordinary dims alone
};

struct Lowering {
    const Algorithm &algorithm;  // after every rewrite
    const KnobsByStage &stated;  // by the schedule
    std::shared_ptr<const Mapping> mapping;
    bool tells_borders;  // tiles at the border of an image are told from those inside, which need no guards
    std::map<const Stage *, StageFacts> stages;
    std::map<std::string, const Stage *> producers;                        // by tensor
    std::map<const Stage *, std::shared_ptr<const InPlaceFold>> in_place;  // of scatters, and of what is folded beside another stage
    std::map<std::string, std::vector<const Stage *>> beside;              // by stage, those that stand in its loops
    // What writes 0 to elements that no point of a stage has which keeps rows, where somebody reads them.
    std::map<const Stage *, std::vector<std::shared_ptr<const Stage>>> rests;

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
