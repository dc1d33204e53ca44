// The options that commands share, as the command line says them.
#pragma once
#include "generators/commands/command_line.h"
#include "generators/registry/options.h"

namespace tessera {

// The algorithm, --numerics, --option, transform_options(), --shape. What is made of the algorithm is in the order of the line.
void add_algorithm_options(const CommandLine &line, KernelOptions &options);
std::vector<std::string> transform_options();
void add_schedule_options(const CommandLine &line, KernelOptions &options);  // --schedule, --target, --schedule-dir, --quiet
void add_schedule_dirs(const CommandLine &line, std::vector<std::string> &dirs);

}  // namespace tessera
