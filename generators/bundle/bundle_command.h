// bundle: makes, lists and checks bundles (docs/bundle.md).
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command bundle_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
