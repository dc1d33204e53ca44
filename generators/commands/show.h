// show: one kernel at one of its levels, as text: the algorithm, its schedule, the tile programs, the assembly.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command show_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
