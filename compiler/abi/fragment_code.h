// Instructions of AMX in machine code: whether a back end made of a program's fragments what the program says.
#pragma once
#include <string>

#include "compiler/tile/fragments.h"

namespace tessera {

// How many of each x86-64 code has. `tasks` are configurations of tiles (ldtilecfg).
FragmentCode fragment_code_in(const std::string &code);

// What stands in the way of the object being what is `meant`; "" if nothing does. Code that a back end finds twice, or finds never to
// run, may be there once or not at all; loops that it writes out, or versions of them, have all of it as often as steps, and loads that
// several versions share, or do not, are some more or fewer. Both more loads and more stores than these have are fragments that were
// spilled to the stack; more configurations stand inside of loops: each takes as long as 11 steps.
std::string unlike_fragment_code(const FragmentCode &meant, const FragmentCode &found);

}  // namespace tessera
