// explain and diff: where a schedule's fields come from, and how two schedules differ, in their fields and in the bits of results.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command explain_command(ProgramLine &program, const Registry &registry);
Command diff_command(ProgramLine &program, const Registry &registry);  // ends with exit_check_failed where they differ

}  // namespace tessera
