// Runs a generator's command line inside the test, or as a program of its own.
#pragma once
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "generators/output_folder.h"
#include "generators/registry.h"

namespace tessera::test {

struct Outcome {
    int code = 0;
    std::string out, err;
};

// A few algorithms of the standard library.
Registry sample_registry();
Outcome generator(const std::vector<std::string> &arguments, const Registry &registry = sample_registry());
// The stock generator as a process; `shell` may set its folder and environment ("cd /tmp && LC_ALL=C ").
Outcome stock_generator(const std::string &arguments, const std::string &shell = "");
Outcome shell(const std::string &command);

void write_file(const std::filesystem::path &file, const std::string &text);
// Names of the files in a folder, sorted, separated by a blank.
std::string files_in(const std::filesystem::path &folder);

// The command fails with this code, and stderr has each of the parts.
void check_refused(const std::vector<std::string> &arguments, const std::vector<std::string> &parts, int code = 2, const Registry &registry = sample_registry());

}  // namespace tessera::test
