// tune: searches a schedule for one shape on this machine, and writes it as an artifact.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command tune_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
