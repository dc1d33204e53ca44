// The callees of a program as tasks of one campaign (tune_many.h): each distinct one at its shape, weighted by how often it runs.
#pragma once
#include "generators/tune/tune_many.h"

namespace tessera {

// A task for each callee that calls nothing itself, without a budget. Says unless quiet which calls it leaves out. UserError callees.none:
// the algorithm calls nothing, or only what nobody knows the extents of; those of load_algorithm and callees_of.
CampaignFile campaign_of_callees(const Registry &registry, const TuneOptions &options);

// The program itself, timed on this machine with the schedules to beat: that of its family, or where there is none those of its
// callees' families. `registry` outlives it.
TunedProgram program_of(const Registry &registry, const TuneOptions &options);

}  // namespace tessera
