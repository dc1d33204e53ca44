#include "generators/commands/notes.h"

#include "generators/commands/error_form.h"

namespace tessera {

void note(const std::string &text) { print(Note{"", text}); }

PreparationObserver printing_notes(const KernelOptions &options) {
    PreparationObserver observer;
    if (!options.quiet) observer.notes = [](const Note &one) { print(one); };
    return observer;
}

}  // namespace tessera
