// Kernels of the standard library, each under several schedules, with shapes at which tiles end badly.
#pragma once
#include "tests/compiler/harness.h"

namespace tessera::test {

// `lanes`: f32 in one vector of the target.
std::vector<Case> library_cases(int64_t lanes);

// Scans that go on with a loop of their readers. library_cases has one or two ways of scanning for each kind of loop.
std::vector<Case> scan_cases(int64_t lanes, bool every_way);

// Stages beside others.
std::vector<Case> beside_cases(int64_t lanes);

// Tails that are computed in narrower tiles.
std::vector<Case> narrow_cases(int64_t lanes);

// Results that go past the caches.
std::vector<Case> stream_cases(int64_t lanes);

// Weights of 4 bits.
std::vector<Case> low_bit_cases(int64_t lanes);

// Calls that repeat, and calls of views.
std::vector<Case> repeat_cases(int64_t lanes);

// Folds to computed destinations.
std::vector<Case> scatter_cases(int64_t lanes);

// Nests over rows of segments.
std::vector<Case> rows_cases(int64_t lanes);

// The same for targets that are GPUs.
std::vector<Case> gpu_cases();
// A CPU's schedule without what only CPUs have: threads share out what was in vectors and in register tiles.
KnobsByStage for_gpu(KnobsByStage stages);

}  // namespace tessera::test
