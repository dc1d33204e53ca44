#include "tests/support/left_running.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <thread>

#include "support/files/output_folder.h"
#include "support/text/error.h"

namespace tessera::test {

std::string long_sleep() {
    return "sleep 36000." + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count() % 1000000000);
}

size_t running(const std::string &command) {
    size_t count = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
        if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0]))) continue;
        std::string line;
        try {
            line = read_file(entry.path() / "cmdline");
        } catch (const InternalError &) { continue; }
        std::replace(line.begin(), line.end(), '\0', ' ');
        count += line == command + " ";
    }
    return count;
}

bool becomes(size_t count, const std::string &command) {
    for (int i = 0; i < 200; i++) {
        if (running(command) == count) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

}  // namespace tessera::test
