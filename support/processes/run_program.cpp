#include "support/processes/run_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace tessera {

std::optional<int> run_program(const Activity &activity, const Limits &limits, const std::vector<std::string> &arguments,
                               const std::filesystem::path &log, const std::function<bool()> &stopped) {
    constexpr int none = 127, unrunnable = 126;  // as shells have it
    std::vector<char *> argv;
    for (const std::string &a : arguments) argv.push_back(const_cast<char *>(a.c_str()));
    argv.push_back(nullptr);
    LimitedProcess process(activity, limits, [&] {
        const int nothing = open("/dev/null", O_RDONLY), said = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(nothing, 0), dup2(said, 1), dup2(said, 2);
        close(nothing), close(said);
        execvp(argv[0], argv.data());
        _exit(errno == ENOENT ? none : unrunnable);
    });
    if (!LimitedProcess::wait_for_any({&process}, stopped)) return std::nullopt;
    return process.status();
}

bool succeeded(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

std::string ended_text(int status) {
    return WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status)) : "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace tessera
