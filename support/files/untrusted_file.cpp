#include "support/files/untrusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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
    void replace(int value) {
        if (value_ >= 0) close(value_);
        value_ = value;
    }

private:
    int value_;
};

std::string read_open(const Descriptor &file, const std::string &name, const Handed &handed) {
    struct stat status {};
    if (file.get() < 0)
        refuse(handed, name, std::string("opening it failed: ") + std::strerror(errno), "Check its path and its permissions.");
    if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        refuse(handed, name, "it is a folder, a device, a pipe or a socket", "Put the file itself there.");
    std::string text;
    char part[1 << 14];
    while (true) {
        const ssize_t got = read(file.get(), part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse(handed, name, std::string("reading it failed: ") + std::strerror(errno), "Check the file system.");
        if (got == 0) return text;
        text.append(part, static_cast<size_t>(got));
        if (text.size() > handed.max_bytes)
            throw UserError(handed.id + ".too-large",
                            handed.what + " '" + name + "': expected at most " + std::to_string(handed.max_bytes) + " bytes; got more.",
                            handed.remedy);
    }
}

}  // namespace

void refuse(const Handed &handed, const std::string &file, const std::string &why, const std::string &remedy) {
    throw UserError(handed.id + ".file", handed.what + " '" + file + "': expected a regular file; " + why + ".", remedy);
}

std::string read_regular(const fs::path &file, const Handed &handed) {
    return read_open(Descriptor(open(file.c_str(), safe)), file.string(), handed);
}

std::string read_beneath(const fs::path &root, const fs::path &relative, const std::string &shown, const Handed &handed) {
    Descriptor at(open(root.c_str(), safe | O_DIRECTORY));
    for (auto part = relative.begin(); part != relative.end() && at.get() >= 0; ++part) {
        const bool last = std::next(part) == relative.end();
        at.replace(openat(at.get(), part->c_str(), safe | O_NOFOLLOW | (last ? 0 : O_DIRECTORY)));
    }
    return read_open(at, shown, handed);
}

}  // namespace tessera
