// registry: a folder of bundles, schedules and other files by names and tags (docs/bundle.md, "The registry").
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command registry_command(ProgramLine &program);

}  // namespace tessera
