#include "support/processes/installed_program.h"

#include <unistd.h>

#include <cstdlib>
#include <regex>
#include <sstream>

#include "support/files/output_folder.h"
#include "support/processes/run_program.h"

namespace tessera {

namespace fs = std::filesystem;

static std::optional<fs::path> on_path(const std::string &name) {
    const char *path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const fs::path file = fs::path(folder.empty() ? "." : folder) / name;
        std::error_code error;
        if (fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0) return file;
    }
    return {};
}

static std::string answer(const fs::path &program, const std::string &argument) {
    const TemporaryFolder folder;
    const fs::path out = folder.path() / "out";
    try {
        run_program({program.string(), "asking for its version", "doctor.limit", "", ""}, {10}, {program.string(), argument}, out);
    } catch (const std::exception &) {
        // What it said before it failed may still have the version.
    }
    std::error_code error;
    return fs::exists(out, error) ? read_file(out) : "";
}

std::string version_in(const std::string &text) {
    static const std::regex version("[0-9]+(\\.[0-9]+)+");
    std::smatch found;
    return std::regex_search(text, found, version) ? found.str() : "";
}

std::optional<InstalledProgram> installed_program(const std::vector<std::string> &names, const std::string &argument) {
    for (const std::string &name : names)
        if (const auto path = on_path(name)) return InstalledProgram{*path, version_in(answer(*path, argument).substr(0, 1000))};
    return {};
}

}  // namespace tessera
