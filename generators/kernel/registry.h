// What a generator binary knows: algorithms by name, and schedules written in C++.
//
// Registering never throws, so that a main needs no handler; what is wrong with a registration is reported when the
// generator starts, as a UserError like any other.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "algorithms/build/option.h"
#include "algorithms/ir/algorithm.h"
#include "schedules/artifact/library.h"
#include "support/text/error.h"

namespace tessera {

class Registry {
public:
    struct Entry {
        std::string name;
        std::string summary;  // one line: what is computed, with its dims
        std::vector<Option> options;
        std::function<Algorithm(const Numerics &, const Options &)> make;  // with a value for each option
    };

    // The algorithm that `make` gives must carry the name it is registered by.
    Registry &add(const std::string &name, const std::string &summary, std::function<Algorithm(const Numerics &)> make);
    // One that is declared with named integers (option.h).
    Registry &add(const std::string &name, const std::string &summary, std::vector<Option> options,
                  std::function<Algorithm(const Numerics &, const Options &)> make);
    Registry &add_schedule(std::function<Schedule()> make);

    // UserError generator.duplicate: a name is registered twice.
    void check() const;
    // UserError generator.unknown-algorithm.
    const Entry &find(const std::string &name) const;
    // The algorithm in this policy, with these options. UserError as find and complete_options, generator.name when the
    // algorithm calls itself otherwise, generator.builder when what builds it throws something else, and those of the algorithm itself.
    Algorithm make(const std::string &name, const Numerics &numerics, const Options &options = {}) const;
    // Sorted by name.
    std::vector<Entry> entries() const;
    // The registered schedules, then files of the folders in this order. UserError schedule.folder, schedule.duplicate,
    // generator.builder.
    Library library(const std::vector<std::filesystem::path> &folders) const;

private:
    std::vector<Entry> entries_;
    std::vector<std::function<Schedule()>> schedules_;
};

// What an error says, for a reader whom one like it told before which algorithms there are.
std::string told_again(const UserError &error);

}  // namespace tessera
