// Whether the threads of a GPU's block wait for one another where they have to: between two steps stands a barrier if a thread may read or
// overwrite what another thread has written. All threads of a block reach the same barriers, since all of them run what is outside of
// thread loops.
#pragma once
#include "compiler/check/team_accesses.h"

namespace tessera {

// Names what needs a barrier that is missing; "" if none is.
std::string missing_barrier(const TileBody &body, const std::vector<Dim> &dims);

// The same of a body within what `team` knows. `since`: what has been touched since the last barrier, before the body and after it.
std::string missing_barrier(const TileBody &body, TeamAccesses &team, TouchedBuffers &since);

}  // namespace tessera
