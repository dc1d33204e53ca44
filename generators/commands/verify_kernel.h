// verify: compiles a kernel and compares it with its tile program and its algorithm, on shapes that tend to break kernels.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command verify_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
