#include "generators/kernel/options.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdlib>
#include <optional>

#include "schedules/knobs/schedule.h"
#include "schedules/target/target_file.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

void add_algorithm_options(CLI::App &line, KernelOptions &options) {
    line.add_option("algorithm", options.algorithm, "Its name, as 'list' shows it")->required();
    line.add_option("--numerics", options.numerics, "Storage, compute and accumulate types, as 'list' shows them")->capture_default_str();
    line.add_option("--option", options.options, "What the algorithm is declared with, such as stride=2 padding=3, as 'list' shows it")
        ->type_name("NAME=INTEGER")
        ->delimiter(',');
    line.add_option("--shape", options.shape, "Extents to fix, such as N=768 K=3072; other dims stay dynamic")->type_name("DIM=EXTENT");
}

void add_schedule_dirs(CLI::App &line, std::vector<std::string> &dirs) {
    line.add_option("--schedule-dir", dirs, "Where schedules are looked up by name, before Tessera's own; may be repeated")
        ->expected(1)
        ->take_all()
        ->type_name("DIR");
}

void add_schedule_options(CLI::App &line, KernelOptions &options) {
    line.add_option("--schedule", options.schedule,
                    "A schedule's name or file (*.json), or 'none' for plain loops; default: what was tuned for the shape or, within 4 "
                    "times each extent, the nearest one, otherwise <algorithm>/<target>, of the nearest target that has any")
        ->type_name("NAME|FILE");
    line.add_option("--target", options.target,
                    "The machine to generate for: x86-64, avx2, avx512, avx512_bf16, arm64, wasm32, opencl, cuda-sm80, cuda-sm86 or host, "
                    "with features of the processor added by +; or a target file (*.json); for generate also several, as in avx2,avx512")
        ->capture_default_str();
    add_schedule_dirs(line, options.schedule_dirs);
    line.add_flag("--quiet", options.quiet, "No notes on stderr");
}

CLI::Option *add_seconds(CLI::App &line, const std::string &name, double &seconds, const std::string &meaning) {
    constexpr double least = 1e-6, most = 1e9;
    const auto check = [](const std::string &text) -> std::string {
        char *end = nullptr;
        const double given = std::strtod(text.c_str(), &end);
        return end != text.c_str() && *end == 0 && given >= least && given <= most
                   ? ""
                   : "expected seconds, in 0.000001 ..= 1e9, got '" + text + "'";
    };
    return line.add_option(name, seconds, meaning)->check(CLI::Validator(check, ""))->capture_default_str();
}

// "<name>=<integer>"; nothing when it is not that.
static std::optional<std::pair<std::string, int64_t>> assignment(const std::string &text) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0) return {};
    int64_t value = 0;
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + at + 1, end, value);
    if (error != std::errc() || stop != end) return {};
    return {{text.substr(0, at), value}};
}

Extents parse_shape(const std::vector<std::string> &shape, const std::string &option) {
    Extents extents;
    for (const std::string &text : shape) {
        const auto given = assignment(text);
        if (!given || given->second < 0 || given->second > max_extent)
            throw UserError("command.shape", option + " '" + text +
                                                 "': expected <dim>=<extent> with an extent in 0 ..= " + std::to_string(max_extent) +
                                                 ", such as N=768; "
                                                 "words that are no dims go before " +
                                                 option + ".");
        if (!extents.insert(*given).second)
            throw UserError("command.shape", option + " '" + text + "': dim " + given->first + " is given twice; give it once.");
    }
    return extents;
}

std::map<std::string, std::string> parse_schedules(const std::vector<std::string> &schedules) {
    std::map<std::string, std::string> all;
    for (const std::string &text : schedules) {
        const size_t at = text.find('=');
        if (at == std::string::npos || at == 0 || at + 1 == text.size())
            throw UserError("command.schedule-for",
                            "--schedule-for '" + text + "': expected <target>=<schedule>, such as avx2=schedules/mine.json.");
        const std::string target = target_or_file(text.substr(0, at)).name;
        if (!all.emplace(target, text.substr(at + 1)).second)
            throw UserError("command.schedule-for", "--schedule-for '" + text + "': target " + target + " is given twice; give it once.");
    }
    return all;
}

Options parse_options(const std::vector<std::string> &options) {
    Options values;
    for (const std::string &text : options) {
        const auto given = assignment(text);
        if (!given)
            throw UserError("command.option", "--option '" + text +
                                                  "': expected <name>=<integer>, such as stride=2; words that are no options go "
                                                  "before --option.");
        if (!values.insert(*given).second)
            throw UserError("command.option", "--option '" + text + "': option " + given->first + " is given twice; give it once.");
    }
    return values;
}

std::vector<std::string> assignments(const Extents &values) {
    std::vector<std::string> all;
    for (const auto &[name, value] : values) all.push_back(name + "=" + std::to_string(value));
    return all;
}

// Of two places, beside an installed generator and in the checkout, the first that is there.
static std::optional<fs::path> own_folder(const fs::path &from_program, const fs::path &in_checkout) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    for (const fs::path &own : {program.parent_path() / from_program, in_checkout})
        if (fs::is_directory(own, error)) return own;
    return std::nullopt;
}

std::vector<fs::path> schedule_folders(const std::vector<std::string> &given) {
    std::vector<fs::path> folders(given.begin(), given.end());
    if (const auto own = own_folder(TESSERA_SCHEDULES_FROM_BIN, TESSERA_SOURCE_SCHEDULES)) folders.push_back(*own);
    return folders;
}

std::optional<fs::path> shipped_model(const std::string &target) {
    const auto folder = own_folder(TESSERA_MODELS_FROM_BIN, TESSERA_SOURCE_MODELS);
    std::error_code error;
    if (!folder || !fs::is_regular_file(*folder / (target + ".json"), error)) return std::nullopt;
    return *folder / (target + ".json");
}

}  // namespace tessera
