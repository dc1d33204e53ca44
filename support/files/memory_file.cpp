#include "support/files/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "support/text/error.h"

namespace tessera {

MemoryFile::MemoryFile() : descriptor_(memfd_create("tessera", MFD_CLOEXEC)) {
    if (descriptor_ < 0) exhausted("a file in memory", errno);
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

std::string MemoryFile::text() const {
    std::string text;
    char part[1 << 16];
    for (ssize_t n; (n = pread(descriptor_, part, sizeof part, static_cast<off_t>(text.size()))) != 0;) {
        require(n > 0 || errno == EINTR, "a file in memory can be read");
        if (n > 0) text.append(part, static_cast<size_t>(n));
    }
    return text;
}

}  // namespace tessera
