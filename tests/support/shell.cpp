#include "tests/support/shell.h"

#include <sys/wait.h>

#include <algorithm>
#include <fstream>

#include "support/files/output_folder.h"
#include "support/text/error.h"

namespace tessera::test {

namespace fs = std::filesystem;

Outcome shell(const std::string &command) {
    const TemporaryFolder folder;
    const fs::path out = folder.path() / "out", err = folder.path() / "err";
    const int status = std::system(("( " + command + " ) >" + out.string() + " 2>" + err.string()).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

void write_file(const fs::path &file, const std::string &text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
}

std::string files_in(const fs::path &folder) {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names.empty() ? "" : join(names, " ");
}

}  // namespace tessera::test
