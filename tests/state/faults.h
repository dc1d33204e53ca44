// Calls of the system that fail when a test says so: this program links write, fsync and renameat through these (--wrap).
#pragma once
#include <cstdint>

namespace tessera::test_state {

struct Faults {
    int countdown = -1;  // so many calls succeed before one fails; -1: none fails
    int number = 0;      // its errno
    bool in_write = false, in_fsync = false, in_rename = false;
    bool is_short = false;  // before it fails, `write` writes half
    uint64_t calls = 0, failed = 0;
    uint64_t random = 0, one_in = 0;  // instead: one in so many calls fails, by this generator
};
extern Faults faults;

}  // namespace tessera::test_state
