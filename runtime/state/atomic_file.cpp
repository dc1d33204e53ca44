#include "runtime/state/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tessera::state {

AtomicFile::~AtomicFile() {
    if (file_ < 0) return;
    unlinkat(folder_, beside_, 0);
    close(file_);
}

TessStateStatus AtomicFile::begin(int folder, const char *name, TessStateError *error) {
    if (std::strlen(name) > max_name)
        return refuse(error, TESS_STATE_ARGUMENT, "file '%.60s...': expected a name of at most %d characters, got %zu.", name, max_name,
                      std::strlen(name));
    // A device or a link that a rename would put a file in place of.
    struct stat there;
    const bool is_there = fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !S_ISREG(there.st_mode))
        return refuse(error, TESS_STATE_ARGUMENT, "'%.200s': expected a regular file or none, got %s. Give the name of a file.", name,
                      S_ISLNK(there.st_mode)   ? "a symbolic link"
                      : S_ISDIR(there.st_mode) ? "a folder"
                                               : "a device or pipe");
    folder_ = folder;
    std::snprintf(name_, sizeof name_, "%s", name);
    std::snprintf(beside_, sizeof beside_, "%.240s.new", name);
    // A lock tells a writer that is at work from what a killed one left. The name may be renamed between opening and locking: then again.
    for (;;) {
        const int file = openat(folder, beside_, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0) return refuse_file(error, "write", name, errno);
        if (flock(file, LOCK_EX | LOCK_NB) != 0) {
            const int number = errno;
            close(file);
            if (number != EWOULDBLOCK) return refuse_file(error, "lock", name, number);
            return refuse(error, TESS_STATE_BUSY, "file '%.200s': somebody else writes it now. Let one of both write at a time.", name);
        }
        struct stat opened, named;
        if (fstat(file, &opened) == 0 && fstatat(folder, beside_, &named, AT_SYMLINK_NOFOLLOW) == 0 && opened.st_ino == named.st_ino &&
            opened.st_dev == named.st_dev) {
            file_ = file;
            if (ftruncate(file, 0) != 0 || (is_there && fchmod(file, there.st_mode & 07777) != 0))
                return refuse_file(error, "write", name, errno);
            return TESS_STATE_OK;
        }
        close(file);
    }
}

TessStateStatus AtomicFile::write(const void *data, uint64_t bytes, TessStateError *error) {
    const auto *at = static_cast<const char *>(data);
    while (bytes > 0) {
        const ssize_t done = ::write(file_, at, bytes < (UINT64_C(1) << 30) ? bytes : UINT64_C(1) << 30);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return refuse_file(error, "write", name_, done < 0 ? errno : ENOSPC);
        at += done, bytes -= static_cast<uint64_t>(done);
    }
    return TESS_STATE_OK;
}

TessStateStatus AtomicFile::finish(bool sync, TessStateError *error) {
    if (sync && fsync(file_) != 0) return refuse_file(error, "force to the disk", name_, errno);
    if (renameat(folder_, beside_, folder_, name_) != 0) return refuse_file(error, "rename", name_, errno);
    close(file_);
    file_ = -1;
    return TESS_STATE_OK;
}

TessStateStatus sync_folder(int folder, const char *name, TessStateError *error) {
    return fsync(folder) == 0 ? TESS_STATE_OK : refuse_file(error, "force to the disk", name, errno);
}

int64_t read_up_to(int file, void *data, uint64_t bytes) {
    uint64_t read = 0;
    while (read < bytes) {
        const ssize_t got =
            ::read(file, static_cast<char *>(data) + read, bytes - read < (UINT64_C(1) << 30) ? bytes - read : UINT64_C(1) << 30);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        read += static_cast<uint64_t>(got);
    }
    return static_cast<int64_t>(read);
}

}  // namespace tessera::state
