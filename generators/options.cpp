#include "generators/options.h"

#include <CLI/CLI.hpp>

#include <charconv>

#include "algorithms/error.h"
#include "schedules/target.h"

namespace tessera {

namespace fs = std::filesystem;

void add_algorithm_options(CLI::App &line, KernelOptions &options) {
    line.add_option("algorithm", options.algorithm, "Its name, as 'list' shows it")->required();
    line.add_option("--numerics", options.numerics, "Storage, compute and accumulate types, as 'list' shows them")->capture_default_str();
    line.add_option("--shape", options.shape, "Extents to fix, such as N=768 K=3072; other dims stay dynamic")->type_name("DIM=EXTENT");
}

void add_schedule_dirs(CLI::App &line, std::vector<std::string> &dirs) {
    line.add_option("--schedule-dir", dirs, "Where schedules are looked up by name, before Tessera's own; may be repeated")->expected(1)->take_all()->type_name("DIR");
}

void add_schedule_options(CLI::App &line, KernelOptions &options) {
    line.add_option("--schedule", options.schedule,
                    "A schedule's name or file (*.json), or 'none' for plain loops; default: <algorithm>/<target> of the nearest target, if there is one")
        ->type_name("NAME|FILE");
    line.add_option("--target", options.target, "The machine to generate for: x86-64, avx2, avx512, avx512_bf16, arm64 or host, with features added by +; or a target file (*.json); for generate also several, as in avx2,avx512")->capture_default_str();
    add_schedule_dirs(line, options.schedule_dirs);
    line.add_flag("--quiet", options.quiet, "No notes on stderr");
}

std::map<std::string, int64_t> parse_shape(const std::vector<std::string> &shape) {
    std::map<std::string, int64_t> extents;
    for (const std::string &text : shape) {
        const size_t at = text.find('=');
        int64_t extent = -1;
        const char *end = text.data() + text.size();
        if (at != std::string::npos && at > 0) {
            const auto [stop, error] = std::from_chars(text.data() + at + 1, end, extent);
            if (error != std::errc() || stop != end || extent > INT32_MAX) extent = -1;
        }
        if (extent < 0)
            throw UserError("command.shape", "--shape '" + text + "': expected <dim>=<extent> with an extent in 0 ..= 2147483647, such as N=768; "
                                                                  "words that are no dims go before --shape.");
        if (!extents.emplace(text.substr(0, at), extent).second)
            throw UserError("command.shape", "--shape '" + text + "': dim " + text.substr(0, at) + " is given twice; give it once.");
    }
    return extents;
}

std::map<std::string, std::string> parse_schedules(const std::vector<std::string> &schedules) {
    std::map<std::string, std::string> all;
    for (const std::string &text : schedules) {
        const size_t at = text.find('=');
        if (at == std::string::npos || at == 0 || at + 1 == text.size())
            throw UserError("command.schedule-for", "--schedule-for '" + text + "': expected <target>=<schedule>, such as avx2=schedules/mine.json.");
        const std::string target = target_named(text.substr(0, at)).name;
        if (!all.emplace(target, text.substr(at + 1)).second)
            throw UserError("command.schedule-for", "--schedule-for '" + text + "': target " + target + " is given twice; give it once.");
    }
    return all;
}

std::vector<fs::path> schedule_folders(const std::vector<std::string> &given) {
    std::vector<fs::path> folders(given.begin(), given.end());
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    for (const fs::path &own : {program.parent_path() / TESSERA_SCHEDULES_FROM_BIN, fs::path(TESSERA_SOURCE_SCHEDULES)}) {
        if (!fs::is_directory(own, error)) continue;
        folders.push_back(own);
        break;
    }
    return folders;
}

}  // namespace tessera
