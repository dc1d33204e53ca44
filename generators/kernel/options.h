// The options that commands share: which algorithm, in which policy, for which shape and target, with which schedule.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/build/option.h"
#include "algorithms/ir/extents.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tessera {

struct KernelOptions {
    std::string algorithm;
    std::string numerics = "f32";
    std::vector<std::string> options;  // "stride=2"
    std::vector<std::string> shape;    // "N=768"
    std::string target = "host";       // for generate also a list, "avx2,avx512"
    std::string schedule;              // a name, a file *.json, "none", or "" for the best match (best_match.h)
    std::vector<std::string> schedule_dirs;
    bool family_only = false;  // of what matches, nothing that was tuned for a shape
    bool quiet = false;
};

void add_algorithm_options(CLI::App &line, KernelOptions &options);  // the algorithm, --numerics, --option, --shape
void add_schedule_options(CLI::App &line, KernelOptions &options);   // --schedule, --target, --schedule-dir, --quiet
void add_schedule_dirs(CLI::App &line, std::vector<std::string> &dirs);
// An option that takes seconds, in 0.000001 ..= 1e9.
CLI::Option *add_seconds(CLI::App &line, const std::string &name, double &seconds, const std::string &meaning);

// "avx2=<schedule>": the schedule of one target of several. UserError command.schedule-for: no '=', or a target twice.
std::map<std::string, std::string> parse_schedules(const std::vector<std::string> &schedules);

// UserError command.shape: not "<dim>=<extent>", or a dim twice. `option` is what took them.
Extents parse_shape(const std::vector<std::string> &shape, const std::string &option = "--shape");

// UserError command.option: not "<name>=<integer>", or a name twice.
Options parse_options(const std::vector<std::string> &options);

// What both read: "stride=2", by name.
std::vector<std::string> assignments(const Extents &values);

// The folders that were given, then Tessera's own where it is found: beside an installed generator, or in the checkout
// that this one was built from.
std::vector<std::filesystem::path> schedule_folders(const std::vector<std::string> &given);

// The cost model that ships with Tessera for a target, found in the same way; nothing where there is none.
std::optional<std::filesystem::path> shipped_model(const std::string &target);

}  // namespace tessera
