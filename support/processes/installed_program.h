// Programs on the PATH, and what version they say they are.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct InstalledProgram {
    std::filesystem::path path;
    std::string version;  // "12.2.0"; "" where it says none
};

// The first of `names` that some folder of the PATH has as an executable file, asked for its version by `argument`.
// A program that does not answer within 10 s has none.
std::optional<InstalledProgram> installed_program(const std::vector<std::string> &names, const std::string &argument = "--version");

// The first number with a point in it, as a version has: "12.4" in "release 12.4, V12.4.131"; "" where there is none.
std::string version_in(const std::string &text);

}  // namespace tessera
