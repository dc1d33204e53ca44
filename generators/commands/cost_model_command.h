// cost-model: what the cost models see, training one, and how well it orders what it has not seen.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command cost_model_command(ProgramLine &program);

}  // namespace tessera
