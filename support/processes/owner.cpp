#include "support/processes/owner.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tessera {

static std::string first_line(const std::string &file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

// The 22nd field of the process's status; the second is its name in brackets, which may hold anything. Empty for a process that is
// gone, and for one that is dead and not yet buried.
static std::string started(int64_t process) {
    const std::string line = first_line("/proc/" + std::to_string(process) + "/stat");
    const size_t name_ends = line.rfind(')');
    if (name_ends == std::string::npos) return "";
    std::istringstream fields(line.substr(name_ends + 1));
    std::string field, state;
    for (int i = 3; i <= 22; i++) {
        fields >> field;
        if (i == 3) state = field;
    }
    return state == "Z" || state == "X" ? "" : field;
}

// That numbers processes: in another container of the machine the same number is another process.
static std::string process_namespace() {
    std::error_code none;
    return std::filesystem::read_symlink("/proc/self/ns/pid", none).string();
}

Owner this_process() {
    utsname names{};
    uname(&names);
    return {std::string(names.nodename) + " " + process_namespace(), first_line("/proc/sys/kernel/random/boot_id"), getpid(),
            started(getpid())};
}

bool is_here(const Owner &owner) {
    const Owner here = this_process();
    return owner.boot == here.boot ? owner.host.ends_with(" " + process_namespace()) : owner.host == here.host;
}

bool is_alive(const Owner &owner) {
    if (!is_here(owner)) return true;
    return owner.boot == this_process().boot && !owner.started.empty() && started(owner.process) == owner.started;
}

}  // namespace tessera
