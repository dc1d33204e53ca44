#include "support/processes/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera {

LineProcess::LineProcess(const std::string &command, uint64_t memory_bytes, const std::filesystem::path &log,
                         const std::function<bool()> &stopped)
    : log_(log), stopped_(stopped) {
    int in[2], out[2];
    // A socket, since writing to one whose reader is gone can be told not to raise a signal.
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0) exhausted("a socket to another process", errno);
    if (pipe2(out, O_CLOEXEC) != 0) {
        const int error = errno;
        close(in[0]), close(in[1]);
        exhausted("a pipe from another process", error);
    }
    const int errors = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const std::string shell_command = "exec " + command;
    auto close_there = [&] {
        close(in[1]), close(out[1]);
        if (errors >= 0) close(errors);
    };
    try {
        process_ = std::make_unique<Supervised>([&] {
            const rlimit no_core{0, 0};
            setrlimit(RLIMIT_CORE, &no_core);
            if (memory_bytes > 0) {
                const rlimit memory{memory_bytes, memory_bytes};
                setrlimit(RLIMIT_AS, &memory);
            }
            dup2(in[1], 0), dup2(out[1], 1);
            if (errors >= 0) dup2(errors, 2);
            execl("/bin/sh", "sh", "-c", shell_command.c_str(), static_cast<char *>(nullptr));
            _exit(127);
        });
    } catch (...) {
        close_there();
        close(in[0]), close(out[0]);
        throw;
    }
    close_there();
    in_ = in[0], out_ = out[0];
    fcntl(in_, F_SETFL, O_NONBLOCK);
    fcntl(out_, F_SETFL, O_NONBLOCK);
}

LineProcess::~LineProcess() { end(); }

// Waits for the descriptor; false when the time is over.
bool LineProcess::wait_for(int descriptor, short events, Clock::time_point end) const {
    constexpr int64_t asked_every_ms = 50;
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0 || (stopped_ && stopped_())) return false;
        pollfd wait{descriptor, events, 0};
        const int ready = poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, asked_every_ms)));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

bool LineProcess::write(std::string_view bytes, Clock::time_point end) {
    while (!bytes.empty()) {
        if (!wait_for(in_, POLLOUT, end)) {
            late_ = true;
            return false;
        }
        const ssize_t n = send(in_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) return false;
        bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
}

bool LineProcess::fill(Clock::time_point end) {
    char part[65536];
    while (true) {
        if (!wait_for(out_, POLLIN, end)) {
            late_ = true;
            return false;
        }
        const ssize_t n = ::read(out_, part, sizeof part);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return false;
        buffered_.append(part, static_cast<size_t>(n));
        return true;
    }
}

std::optional<std::string> LineProcess::line(Clock::time_point end) {
    constexpr size_t longest = 4096;
    size_t newline;
    while ((newline = buffered_.find('\n')) == std::string::npos)
        if (buffered_.size() > longest || !fill(end)) return std::nullopt;
    if (newline > longest) return std::nullopt;
    const std::string text = buffered_.substr(0, newline);
    buffered_.erase(0, newline + 1);
    return text;
}

bool LineProcess::read(void *bytes, size_t count, Clock::time_point end) {
    auto *to = static_cast<char *>(bytes);
    while (count > 0) {
        if (buffered_.empty() && !fill(end)) return false;
        const size_t n = std::min(count, buffered_.size());
        std::memcpy(to, buffered_.data(), n);
        buffered_.erase(0, n);
        to += n, count -= n;
    }
    return true;
}

// How it ended, as waitpid tells it.
int LineProcess::end() {
    if (!process_) return 0;
    close(in_);
    close(out_);
    // One that says no more is about to end by itself: how it does is worth knowing.
    if (!late_) process_->ends_within(std::chrono::milliseconds(200));
    const int status = process_->end();
    process_.reset();
    return status;
}

// The last bytes of a file, which may be of any size; "" where it cannot be read.
static std::string tail_of(const std::filesystem::path &file, std::streamoff most) {
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    const std::streamoff size = in.tellg();
    if (size <= 0) return "";
    std::string text(static_cast<size_t>(std::min(size, most)), 0);
    in.seekg(-static_cast<std::streamoff>(text.size()), std::ios::end).read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
    return text;
}

std::string LineProcess::ended() {
    if (!process_) return "it had ended";
    const int status = end();
    std::string how = "it ended in the middle";
    late_ = late_ || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    if (late_) how = "it did not answer in time";
    else if (WIFSIGNALED(status)) how = fmt::format("it ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) how = fmt::format("it ended with code {}", WEXITSTATUS(status));
    constexpr size_t told = 300, looked_at = 4096;  // newlines at the end are not told
    std::string text = tail_of(log_, looked_at);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.empty() ? how : how + ": " + text.substr(text.size() - std::min(text.size(), told));
}

}  // namespace tessera
