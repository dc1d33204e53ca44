// doctor: what this machine is, what is missing for what, and with --calibrate what it can do at most.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command doctor_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
