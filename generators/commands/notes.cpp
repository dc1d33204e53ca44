#include "generators/commands/notes.h"

#include <unistd.h>

#include <iostream>

#include "generators/commands/error_form.h"

namespace tessera {

void note(const std::string &text) { print(Note{"", text}); }

PreparationObserver printing_notes(const KernelOptions &options) {
    PreparationObserver observer;
    if (options.quiet) return observer;
    const bool is_terminal = isatty(2) == 1;
    observer.notes = [=](const Note &one) {
        if (is_terminal) std::cerr << "\r\033[K";
        print(one);
    };
    if (is_terminal)
        observer.derives = [](const std::string &algorithm, size_t candidates) {
            std::cerr << "\r\033[K" << algorithm << ": deriving a schedule, " << candidates << " candidates judged\r" << std::flush;
        };
    return observer;
}

}  // namespace tessera
