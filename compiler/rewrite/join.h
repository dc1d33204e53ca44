// Stages that share all loops: a schedule places one "beside" another, and both are computed in one pass.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "compiler/rewrite/accesses.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// The algorithm with every stage that is beside another one joined to it, in `stages` too. The joined stage has the host's name and
// knobs, and the results of all. Maps become one of several values, which use each other's values of the point and, of states, what the
// program says that they see; folds become one by the product of their monoids. Every value is what it was, to the bit.
// UserError schedule.join: dims, kinds or folds differ; one needs the other at another point, or by way of a third stage.
Algorithm join_stages(Algorithm algorithm, KnobsByStage &stages);

// What dims and the order of steps alone refuse, found without joining anything: a search asks about all pairs of stages. It reads the
// algorithm each time, which lives longer.
class KeptApart {
public:
    explicit KeptApart(const Algorithm &algorithm) : algorithm_(algorithm) {}
    // Whether join_stages refuses the guest beside the host, a later stage, whatever else is joined. Where not, it may refuse them still,
    // but not two Reduces by themselves.
    bool operator()(const Stage &guest, const Stage &host);

private:
    const Algorithm &algorithm_;
    std::vector<Accesses> steps_;  // when the first pair needs them
    std::map<std::string, size_t> positions_;
};

}  // namespace tessera
