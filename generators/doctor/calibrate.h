// Measures what a machine can do at most: operations, bandwidths, the price of a parallel loop.
#pragma once
#include <functional>
#include <string>

#include "bench/measure/machine.h"
#include "bench/measure/stable_timing.h"
#include "schedules/target/target.h"

namespace tessera {

// The target with this machine's caches and measured rates (bench/measure/machine_rates.h). Peaks are of vectors as wide as the target's,
// for each instruction that the processor has. `note` is told what is measured next, in a few words. UserError command.target when this
// processor lacks a feature of the target.
Target calibrated(const Target &target, const Machine &machine, const Precision &precision,
                  const std::function<void(const std::string &)> &note);

}  // namespace tessera
