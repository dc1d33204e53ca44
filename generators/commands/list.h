// list: the algorithms, with their dims, arguments and schedules, and the targets and numerics to choose from.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command list_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
