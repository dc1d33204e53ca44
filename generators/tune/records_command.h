// records: what tuning campaigns measured.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command records_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
