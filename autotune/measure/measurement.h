// What measuring is told, and what it finds out of one candidate.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "autotune/measure/verdict.h"
#include "support/processes/limited_process.h"

namespace tessera {

struct MeasureOptions {
    std::vector<std::string> runners = {""};  // commands of the shell's that run the program whose path is their last word; "": as it is
    std::string cc;                           // with options, for the runners' machines; "": none, or 'cc' where one is needed
    int jobs = 1;                             // programs built at a time
    double seconds = 0.6;                     // for timing one candidate, but for the fewest calls that tell anything
    double precision = 0.01;                  // of the ratio: half its 95% interval
    bool cold = false;                        // each call that is timed finds nothing of its data in the caches; of one caller
    Limits compile;
    double widest = 0.05;     // half an interval of a ratio that is believed; a wider one is measured again, twice at most
    double run_limit_s = 20;  // for all that one program does in one place of memory
    uint64_t run_memory_bytes = uint64_t{16} << 30;
    const std::atomic<bool> *stop = nullptr;        // once it is set, what compiles or runs is ended, unless it `stops` no more
    const std::atomic<bool> *abandon = nullptr;     // the same, whatever stops
    std::function<void(const std::string &)> warn;  // is told of a runner that is given up
};

struct Measurement {
    Verdict verdict = Verdict::unmeasured;
    std::string message;  // of what failed
    double seconds = 0;   // of one call: the median
    // The base's time divided by the candidate's, with its 95% interval where it is `measured`: above 1 is faster.
    double ratio = 0, lower = 0, upper = 0;
    uint64_t workspace_bytes = 0, code_bytes = 0;
    double compile_s = 0;
};

}  // namespace tessera
