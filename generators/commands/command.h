// One command of a generator: what the command line says of it, and what it does.
#pragma once
#include <functional>

#include "generators/commands/command_line.h"
#include "generators/commands/exit_code.h"
#include "generators/registry/registry.h"

namespace tessera {

struct Command {
    CommandLine line;          // its part of the command line
    std::function<int()> run;  // gives an ExitCode; throws UserError and InternalError
};

}  // namespace tessera
