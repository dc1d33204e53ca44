// check: whether the schedules of a repository still resolve to what was measured; what a pull request runs.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command check_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
