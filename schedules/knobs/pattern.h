// Addresses with '*' in them, for algorithms whose stages and dims are not always the same ones: an FFT has a pass for each radix.
//
//     "fft*.pass*": {"micro": {"fft.k*": 16}, "vector": {"fft.q*": 8}}
//
// A stage's address with '*', which stands for any characters or none, is one of every stage that it matches; in any stage's
// knobs a dim with '*' is every one of that stage's dims that it matches. What matches nothing says nothing. Of two addresses of
// a stage, or of a dim in one knob, the longer one is over the shorter one, and the own name over both, field by field. Two of one
// length that disagree are UserError schedule.pattern.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

bool is_pattern(const std::string &name);
bool matches(const std::string &pattern, const std::string &name);

// The schedule with every pattern written out for `declared`, its variants' too. UserError schedule.pattern.
ResolvedSchedule without_patterns(const ResolvedSchedule &schedule, const Algorithm &declared);

// The patterns that match nothing in `declared`, in words: "'zzz*' matches no stage of fft; its stages are fft.first, y". No mistake,
// since one schedule serves transforms of all lengths, but worth a note.
std::vector<std::string> idle_patterns(const ResolvedSchedule &schedule, const Algorithm &declared);

}  // namespace tessera
