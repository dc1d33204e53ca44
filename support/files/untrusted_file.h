// Reads a file that a stranger may have put there: never more than a limit, never a device or a pipe that would not end.
#pragma once
#include <filesystem>
#include <string>

namespace tessera {

// What the file should be, for messages.
struct Handed {
    std::string id;      // of the UserErrors: "schedule" gives schedule.file and schedule.too-large
    std::string what;    // "schedule file"
    std::string remedy;  // for one that is too large
    size_t max_bytes = 1 << 20;
};

// The bytes of a regular file. UserError <id>.file when it cannot be opened or is something else, <id>.too-large.
std::string read_regular(const std::filesystem::path &file, const Handed &handed);

// The same for root/relative. It follows no link below `root`, so a link that is put there between check and use is refused too.
// `shown` names the file in messages.
std::string read_beneath(const std::filesystem::path &root, const std::filesystem::path &relative, const std::string &shown,
                         const Handed &handed);

// UserError <id>.file: "<what> '<file>': expected a regular file; <why>. <remedy>"
[[noreturn]] void refuse(const Handed &handed, const std::string &file, const std::string &why, const std::string &remedy);

}  // namespace tessera
