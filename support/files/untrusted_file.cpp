#include "support/files/untrusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int safe = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

class Descriptor {
public:
    explicit Descriptor(int value) : value_(value) {}
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() {
        if (value_ >= 0) close(value_);
    }
    int get() const { return value_; }
    int release() { return std::exchange(value_, -1); }
    void replace(int value) {
        if (value_ >= 0) close(value_);
        value_ = value;
    }

private:
    int value_;
};

// The bytes of an open file.
uint64_t check_open(int file, const std::string &name, const Handed &handed) {
    struct stat status {};
    if (file < 0) refuse(handed, name, std::string("opening it failed: ") + std::strerror(errno), "Check its path and its permissions.");
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        refuse(handed, name, "it is a folder, a device, a pipe or a socket", "Put the file itself there.");
    return static_cast<uint64_t>(status.st_size);
}

[[noreturn]] void refuse_large(const std::string &name, const Handed &handed) {
    throw UserError(handed.id + ".too-large",
                    handed.what + " '" + name + "': expected at most " + std::to_string(handed.max_bytes) + " bytes; got more.",
                    handed.remedy);
}

std::string read_open(const Descriptor &file, const std::string &name, const Handed &handed) {
    check_open(file.get(), name, handed);
    std::string text;
    char part[1 << 14];
    while (true) {
        const ssize_t got = read(file.get(), part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse(handed, name, std::string("reading it failed: ") + std::strerror(errno), "Check the file system.");
        if (got == 0) return text;
        text.append(part, static_cast<size_t>(got));
        if (text.size() > handed.max_bytes) refuse_large(name, handed);
    }
}

// Follows no link below `root`.
int open_beneath(const fs::path &root, const fs::path &relative) {
    Descriptor at(open(root.c_str(), safe | O_DIRECTORY));
    for (auto part = relative.begin(); part != relative.end() && at.get() >= 0; ++part) {
        const bool last = std::next(part) == relative.end();
        at.replace(openat(at.get(), part->c_str(), safe | O_NOFOLLOW | (last ? 0 : O_DIRECTORY)));
    }
    return at.release();
}

}  // namespace

void refuse(const Handed &handed, const std::string &file, const std::string &why, const std::string &remedy) {
    throw UserError(handed.id + ".file", handed.what + " '" + file + "': expected a regular file; " + why + ".", remedy);
}

std::string read_regular(const fs::path &file, const Handed &handed) {
    return read_open(Descriptor(open(file.c_str(), safe)), file.string(), handed);
}

std::string read_beneath(const fs::path &root, const fs::path &relative, const std::string &shown, const Handed &handed) {
    return read_open(Descriptor(open_beneath(root, relative)), shown, handed);
}

RegularFile::RegularFile(const fs::path &file, const Handed &handed) : handed_(handed), shown_(file.string()) {
    open_checked(open(file.c_str(), safe));
}

RegularFile::RegularFile(const fs::path &root, const fs::path &relative, const std::string &shown, const Handed &handed)
    : handed_(handed), shown_(shown) {
    open_checked(open_beneath(root, relative));
}

void RegularFile::open_checked(int descriptor) {
    Descriptor kept(descriptor);
    bytes_ = check_open(descriptor, shown_, handed_);
    if (bytes_ > handed_.max_bytes) refuse_large(shown_, handed_);
    descriptor_ = kept.release();
}

RegularFile::~RegularFile() {
    if (descriptor_ >= 0) close(descriptor_);
}

void RegularFile::each(uint64_t offset, uint64_t count, const std::function<void(std::string_view)> &take) const {
    require(offset <= bytes_ && count <= bytes_ - offset, "bytes that are read lie inside of the file");
    std::string part(std::min<uint64_t>(count, 1 << 18), '\0');
    while (count > 0) {
        const ssize_t got = pread(descriptor_, part.data(), std::min<uint64_t>(count, part.size()), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse(handed_, shown_, std::string("reading it failed: ") + std::strerror(errno), "Check the file system.");
        if (got == 0) refuse(handed_, shown_, "it has become shorter while it was read", "Leave it alone meanwhile.");
        take(std::string_view(part).substr(0, static_cast<size_t>(got)));
        offset += static_cast<uint64_t>(got), count -= static_cast<uint64_t>(got);
    }
}

std::string RegularFile::read(uint64_t offset, uint64_t count) const {
    std::string text;
    text.reserve(count);
    each(offset, count, [&](std::string_view part) { text += part; });
    return text;
}

}  // namespace tessera
