// Commands and files, for tests.
#pragma once
#include <filesystem>
#include <string>

namespace tessera::test {

struct Outcome {
    int code = 0;
    std::string out, err;
};
Outcome shell(const std::string &command);

// Options for what is linked with Tessera's libraries: they may be instrumented.
#ifdef __SANITIZE_ADDRESS__
constexpr const char *instrumented = " -fsanitize=address,undefined ";
#else
constexpr const char *instrumented = " ";
#endif

void write_file(const std::filesystem::path &file, const std::string &text);
// Names of the files in a folder, sorted, separated by a blank.
std::string files_in(const std::filesystem::path &folder);

}  // namespace tessera::test
