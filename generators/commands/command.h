// One command of a generator: what the command line says of it, and what it does.
#pragma once
#include <functional>

#include "generators/commands/exit_code.h"
#include "generators/kernel/registry.h"

namespace CLI {
class App;
}

namespace tessera {

struct Command {
    CLI::App *line = nullptr;  // its part of the command line
    std::function<int()> run;  // gives an ExitCode; throws UserError and InternalError
};

}  // namespace tessera
