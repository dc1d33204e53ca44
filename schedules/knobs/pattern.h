// Addresses with '*', for algorithms whose stages and dims vary: an FFT has a pass for each radix.
//
//     "fft*.pass*": {"micro": {"fft.k*": 16}, "vector": {"fft.q*": 8}}
//
// '*' stands for any characters or none. A stage's address with '*' addresses every stage that it matches; a dim with '*' in a
// stage's knobs is every dim of that stage that it matches. What matches nothing says nothing. Where two patterns match one stage,
// or one dim in a knob, the longer one wins, and the plain name wins over both, field by field. Two of the same length that
// disagree are UserError schedule.pattern.
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
