#include "generators/commands/notes.h"

#include <iostream>

namespace tessera {

void note(const std::string &text) { std::cerr << "note: " << text << "\n"; }

PreparationObserver printing_notes(const KernelOptions &options) {
    PreparationObserver observer;
    if (!options.quiet) observer.notes = [](const Note &one) { note(one.text); };
    return observer;
}

}  // namespace tessera
