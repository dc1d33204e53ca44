// replay: runs what a bundle recorded, and compares; or records.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command replay_command(ProgramLine &program);

}  // namespace tessera
