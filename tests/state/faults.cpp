#include "tests/state/faults.h"

#include <unistd.h>

#include <cerrno>

namespace tessera::test_state {

Faults faults;

namespace {

bool fails(bool asked) {
    if (!asked) return false;
    faults.calls++;
    bool now = false;
    if (faults.one_in > 0) {
        faults.random = faults.random * 6364136223846793005u + 1442695040888963407u;
        now = (faults.random >> 33) % faults.one_in == 0;
    } else if (faults.countdown >= 0) {
        now = faults.countdown-- == 0;
    }
    if (!now) return false;
    faults.failed++;
    errno = faults.number;
    return true;
}

}  // namespace

}  // namespace tessera::test_state

using tessera::test_state::faults;

extern "C" {

ssize_t __real_write(int file, const void *data, size_t bytes);
int __real_fsync(int file);
int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);

ssize_t __wrap_write(int file, const void *data, size_t bytes) {
    if (!tessera::test_state::fails(faults.in_write)) return __real_write(file, data, bytes);
    const int number = errno;
    if (faults.is_short) (void)!__real_write(file, data, bytes / 2);
    errno = number;
    return -1;
}

int __wrap_fsync(int file) { return tessera::test_state::fails(faults.in_fsync) ? -1 : __real_fsync(file); }

int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return tessera::test_state::fails(faults.in_rename) ? -1 : __real_renameat(from_folder, from, to_folder, to);
}

}  // extern "C"
