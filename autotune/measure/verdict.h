// What came of a candidate.
#pragma once
#include <cstdint>
#include <string>

namespace tessera {

enum class Verdict : uint8_t {
    unmeasured,  // the measuring was stopped before
    measured,
    slow,        // far slower than the best in its first few rounds; timed, but not compared with its tile program
    refused,     // the tile program may not run
    uncompiled,  // the compiler failed, or reached a limit
    timed_out,   // it is too slow to be timed, or hangs: it had not answered when its time was over
    crashed,     // the program ended, or said what makes no sense
    wrong,       // its results are not those of its tile program, or it wrote where it may not
};
const char *name_of(Verdict verdict);
// It has a time: measured or slow.
bool is_timed(Verdict verdict);
Verdict verdict_named(const std::string &name);  // InternalError for any other

}  // namespace tessera
