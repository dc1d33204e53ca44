// Reads a file that a stranger may have put there: never more than a limit, never a device or a pipe that would not end.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

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

// A regular file that is read in parts, for one that is larger than memory should be. The size is that at opening: a file that gets shorter
// is refused where bytes are missing, one that gets longer is read as far as it was.
class RegularFile {
public:
    // UserErrors as read_regular and, with `root`, as read_beneath.
    RegularFile(const std::filesystem::path &file, const Handed &handed);
    RegularFile(const std::filesystem::path &root, const std::filesystem::path &relative, const std::string &shown, const Handed &handed);
    RegularFile(const RegularFile &) = delete;
    RegularFile &operator=(const RegularFile &) = delete;
    ~RegularFile();

    uint64_t bytes() const { return bytes_; }
    // `count` bytes from `offset` on, which lie inside. UserError <id>.file where they cannot be read any more.
    std::string read(uint64_t offset, uint64_t count) const;
    // The same, a part at a time.
    void each(uint64_t offset, uint64_t count, const std::function<void(std::string_view part)> &take) const;

private:
    void open_checked(int descriptor);
    Handed handed_;
    std::string shown_;
    int descriptor_ = -1;
    uint64_t bytes_ = 0;
};

// UserError <id>.file: "<what> '<file>': expected a regular file; <why>. <remedy>"
[[noreturn]] void refuse(const Handed &handed, const std::string &file, const std::string &why, const std::string &remedy);

}  // namespace tessera
