// Runs another program to its end, such as a C compiler: under limits, and supervised, since it may hang as any candidate may.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/processes/limited_process.h"

namespace tessera {

// Runs the program of that name, or path, which is searched on the PATH. It reads nothing; what it says, on stdout and on stderr, goes to
// `log`. Gives its status as waitpid has it: exit code 127 where there is none of this name, 126 where it cannot be run. Gives nothing
// once `stopped` is true, which ends it. UserError of the activity's id at a limit; machine.exhausted.
std::optional<int> run_program(const Activity &activity, const Limits &limits, const std::vector<std::string> &arguments,
                               const std::filesystem::path &log, const std::function<bool()> &stopped = {});

bool succeeded(int status);
std::string ended_text(int status);  // "exit code 1", "signal 9"

}  // namespace tessera
