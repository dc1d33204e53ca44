// What verify, bench and tune are told of a kernel's data: --range and --inputs.
#pragma once
#include <string>
#include <vector>

#include "bench/measure/stated_inputs.h"
#include "generators/commands/command_line.h"

namespace tessera {

struct InputOptions {
    std::vector<std::string> ranges;  // words of stated_ranges
    std::string file;                 // of arrays, *.npz
};

void add_input_options(const CommandLine &line, InputOptions &options);

// What the options say of an algorithm's inputs. UserErrors of stated_ranges and Npz; command.inputs: an array of no such name or of
// another type, a value outside of a parameter's range, or a name that --range has too.
StatedInputs stated_inputs(const Algorithm &algorithm, const InputOptions &options);

}  // namespace tessera
