// show: one kernel at one of its levels, as text: the algorithm, its schedule, its lowering, the tile programs, C, the assembly; or what a
// registered analyser says of its tile programs.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command show_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
