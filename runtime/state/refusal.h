// How everything here says no.
#pragma once
#include "runtime/state/state.h"

namespace tessera::state {

// Writes the sentence where `error` is not null, and gives the status.
TessStateStatus refuse(TessStateError *error, TessStateStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));

// The same of a call of the system that failed with `number`: TESS_STATE_SPACE where the disk or a quota is full, else TESS_STATE_FILE.
TessStateStatus refuse_file(TessStateError *error, const char *what, const char *name, int number);

}  // namespace tessera::state
