// Measures what a machine can do at most: operations, bandwidths, the price of a parallel loop.
#pragma once
#include <functional>
#include <string>

#include "bench/measure/machine.h"
#include "bench/measure/stable_timing.h"
#include "schedules/target/target.h"

namespace tessera {

// The target with this machine's caches and measured rates. Peaks are of vectors as wide as the target's, for each
// instruction that the processor has. For bandwidths, a thread goes again and again over half of L1; over half of L2;
// over its share of half of L3, or one and a half L2 where that is more; and over four times L3, of which threads together
// take one share each. `note` is told what is measured next, in a few words. UserError command.target when this
// processor lacks a feature of the target.
Target calibrated(const Target &target, const Machine &machine, const Precision &precision,
                  const std::function<void(const std::string &)> &note);

}  // namespace tessera
