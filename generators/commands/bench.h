// bench: how fast a compiled kernel runs on this machine.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command bench_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
