// A zip whose members are stored at multiples of 64, so that it can be mapped and read in place (docs/bundle.md, "The file"; PKWARE's
// APPNOTE). Everything but paths and contents follows from these, so equal members make equal bytes, and a reader knows what every other
// byte must be: it refuses a file with one that differs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/files/untrusted_file.h"

namespace tessera {

inline constexpr size_t zip_max_members = 100'000, zip_max_path = 255;
inline constexpr uint64_t zip_alignment = 64, zip_max_bytes = uint64_t{1} << 62;

// Why no member can have this path; "" for one that can.
std::string zip_path_problem(std::string_view path);

// Where a member's data are.
struct ZipPlace {
    uint64_t offset = 0, bytes = 0;
};
// Those of members of these paths and sizes, in this order. UserError zip.too-large.
std::vector<ZipPlace> zip_places(const std::vector<std::pair<std::string, uint64_t>> &members);

// A member to be written: bytes in memory, or a part of a file.
struct ZipContent {
    std::string path;
    std::string text = {};
    std::shared_ptr<const RegularFile> file = {};
    uint64_t offset = 0, count = 0;  // of the file

    uint64_t bytes() const { return file ? count : text.size(); }
    void each(const std::function<void(std::string_view part)> &take) const;
};

// Writes the file, whole or not at all. UserErrors: zip.path for a path that cannot be, or one twice, also where upper and lower case are
// one; zip.members for too many; zip.too-large; output.write.
void write_stored_zip(const std::filesystem::path &file, const std::vector<ZipContent> &members);

struct ZipMember {
    std::string path;
    uint64_t offset = 0, bytes = 0;  // of its data in the file
    uint32_t crc = 0;                // as the file says; read() and each() compare it
};

class StoredZip {
public:
    // UserErrors: zip.file; zip.end where the file is no whole zip; zip.compressed; zip.path, zip.members; zip.form where a byte is another
    // than write_stored_zip writes.
    explicit StoredZip(const std::filesystem::path &file);

    const std::vector<ZipMember> &members() const { return members_; }  // in the order of the file
    const ZipMember *find(std::string_view path) const;                 // null where there is none
    const std::shared_ptr<const RegularFile> &file() const { return file_; }
    // UserError zip.checksum. InternalError where there are more than `most` bytes: compare bytes first.
    std::string read(const ZipMember &member, uint64_t most) const;
    void each(const ZipMember &member, const std::function<void(std::string_view part)> &take) const;

private:
    [[noreturn]] void refuse(const char *id, const std::string &why) const;
    std::vector<ZipMember> directory(uint64_t &at) const;
    void compare(uint64_t at, const std::string &expected, const std::string &what) const;
    std::shared_ptr<const RegularFile> file_;
    std::string subject_;
    std::vector<ZipMember> members_;
};

}  // namespace tessera
