#include "runtime/state/refusal.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace tessera::state {

TessStateStatus refuse(TessStateError *error, TessStateStatus status, const char *format, ...) {
    if (!error) return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    for (char *c = error->text; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return status;
}

TessStateStatus refuse_file(TessStateError *error, const char *what, const char *name, int number) {
    if (number == ENOSPC || number == EDQUOT || number == EFBIG)
        return refuse(error, TESS_STATE_SPACE, "file '%.200s': no room to %s it (error %d of the system). Free some of the disk.", name,
                      what, number);
    return refuse(error, TESS_STATE_FILE, "file '%.200s': the system refuses to %s it (error %d, %s).", name, what, number,
                  number == ENOENT    ? "there is none, or its folder is not there"
                  : number == EACCES  ? "no permission"
                  : number == EROFS   ? "it is on a disk that cannot be written"
                  : number == EMFILE  ? "too many files are open"
                  : number == ENOTDIR ? "a part of its path is no folder"
                                      : "see errno.h");
}

}  // namespace tessera::state

namespace {

struct Words {
    const char *id, *message;
};

constexpr Words words[] = {
    {"ok", "Done."},
    {"state.argument", "An argument is null, or a number is outside of what is allowed. The error's text says which."},
    {"state.memory", "The system gives no memory or no thread. Ask for fewer pages or sequences."},
    {"state.sequence", "There is no such sequence. It was never opened, or was closed."},
    {"state.sequences", "As many sequences are open as there may be. Close one, or create the cache with more."},
    {"state.full", "Not enough pages are free. Close, prune or offload a sequence, or give reserve time to send some outside."},
    {"state.length", "The sequence does not have this length, or may not have it."},
    {"state.reserved", "Tokens of the sequence are reserved. Commit or truncate it first."},
    {"state.pinned", "A step reads the sequence. Release the step first."},
    {"state.moving", "The sequence's pages are on their way. Wait for it."},
    {"state.out", "The sequence's pages are outside. Prefetch it, and wait."},
    {"state.lost", "Pages of the sequence that were outside are missing or damaged. Close it, and compute its tokens again."},
    {"state.steps", "As many steps run as there may be. Release one, or create the cache with more."},
    {"state.time", "It was not done within the time that was given. Try again, or give more."},
    {"state.space", "There is no room outside. Allow more pages there, or free some of the disk."},
    {"state.file", "The system refuses to read or write a file. The error's text says which, and why."},
    {"state.busy", "Another cache uses the folder. Give each one a folder of its own."},
    {"state.damaged", "The file is cut short or damaged. Use the one before it."},
    {"state.foreign", "The file was not written by this library, or by a later version of it."},
    {"state.mismatch", "The file holds other tensors than were asked for. The error's text says which."},
};

}  // namespace

extern "C" {

const char *tess_state_status_id(TessStateStatus status) {
    return static_cast<unsigned>(status) < sizeof words / sizeof *words ? words[status].id : "state.unknown";
}

const char *tess_state_status_message(TessStateStatus status) {
    return static_cast<unsigned>(status) < sizeof words / sizeof *words ? words[status].message : "This is no status of tessera_state.";
}

}  // extern "C"
