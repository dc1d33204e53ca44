// Libraries give notes, and commands print them.
#pragma once
#include <string>

#include "generators/choose/preparation_observer.h"
#include "generators/registry/options.h"

namespace tessera {

// A line on stderr.
void note(const std::string &text);

// Prints each note as soon as it is known, and on a terminal how far the deriving of a schedule is; nothing with --quiet.
PreparationObserver printing_notes(const KernelOptions &options);

}  // namespace tessera
