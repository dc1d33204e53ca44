// A file that is there whole or not at all: written beside its name, forced to the disk, and renamed.
#pragma once
#include <cstdint>

#include "runtime/state/refusal.h"

namespace tessera::state {

class AtomicFile {
public:
    AtomicFile() = default;
    ~AtomicFile();  // what was not finished is removed
    AtomicFile(const AtomicFile &) = delete;
    AtomicFile &operator=(const AtomicFile &) = delete;

    // `folder` is a descriptor that outlives the file, `name` has at most max_name characters. TESS_STATE_BUSY where somebody else
    // writes it.
    TessStateStatus begin(int folder, const char *name, TessStateError *error);
    TessStateStatus write(const void *data, uint64_t bytes, TessStateError *error);
    // Without `sync` it outlives the process and not the machine. The folder is the caller's to sync.
    TessStateStatus finish(bool sync, TessStateError *error);

    static constexpr int max_name = 240;

private:
    int folder_ = -1, file_ = -1;
    char name_[256] = {}, beside_[256] = {};
};

// Forces what was renamed and removed in it to the disk.
TessStateStatus sync_folder(int folder, const char *name, TessStateError *error);

// Reads until `bytes` are there or the file ends; gives how many, or -1 with errno.
int64_t read_up_to(int file, void *data, uint64_t bytes);

}  // namespace tessera::state
