// The options that commands share: which algorithm, in which policy, for which shape and target, with which schedule.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/build/option.h"
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"
#include "schedules/target/target.h"

namespace tessera {

struct KernelOptions {
    std::string algorithm;             // a name, or a file *.json
    std::string numerics;              // "" for a file's own, otherwise f32
    std::vector<std::string> options;  // "stride=2"
    std::vector<std::string> shape;    // "N=768"
    std::string target = "host";       // for generate also a list, "avx2,avx512"
    std::string schedule;              // a name, a file *.json, "none", "derived", or "" for the best match (best_match.h)
    std::vector<std::string> schedule_dirs;
    std::vector<std::string> derive_for;  // "M=512": what a derived schedule is for
    bool family_only = false;             // of what matches, nothing that was tuned for a shape
    bool derives = true;                  // where nothing matches
    bool quiet = false;
    std::vector<std::string> transforms;          // what is made of the algorithm, in order (transforms.h)
    std::vector<std::string> transform_files;     // that these were read from
    std::string made_of;                          // a name or a file: what the algorithm was made of; "" for what it is before transforms
    std::string inherit;                          // whose schedule stages take by role; "" for what that algorithm takes, or "none"
    std::vector<std::string> suspended;           // effects that the algorithm must not have
    std::shared_ptr<const Algorithm> given = {};  // the algorithm itself, in place of a name: a callee of a program
};

// "avx2=<schedule>": the schedule of one target of several, `named` as --target has them. UserError command.schedule-for: no '=', or a
// target twice.
std::map<std::string, std::string> parse_schedules(const std::vector<std::string> &schedules,
                                                   const std::function<Target(const std::string &)> &named);

// UserError command.shape: not "<dim>=<extent>", or a dim twice. `option` is what took them.
Extents parse_shape(const std::vector<std::string> &shape, const std::string &option = "--shape");

// "stride=2", "activation=relu", by what the algorithm declares. UserError command.option: not "<name>=<value>", or a name twice;
// option.value: neither a number nor one of the option's names; option.unknown.
Options parse_options(const std::vector<std::string> &options, const std::string &algorithm, const std::vector<Option> &declared);

// What both read: "stride=2", by name.
std::vector<std::string> assignments(const Extents &values);

// Tessera's own folder of schedules, where it is found: beside an installed generator, or in the checkout that this one was built from.
std::optional<std::filesystem::path> own_schedules();

// The cost model that ships with Tessera for a target, found in the same way; nothing where there is none.
std::optional<std::filesystem::path> shipped_model(const std::string &target);

}  // namespace tessera
