#include "generators/registry/options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "schedules/knobs/schedule.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

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

std::map<std::string, std::string> parse_schedules(const std::vector<std::string> &schedules,
                                                   const std::function<Target(const std::string &)> &named) {
    std::map<std::string, std::string> all;
    for (const std::string &text : schedules) {
        const size_t at = text.find('=');
        if (at == std::string::npos || at == 0 || at + 1 == text.size())
            throw UserError("command.schedule-for",
                            "--schedule-for '" + text + "': expected <target>=<schedule>, such as avx2=schedules/mine.json.");
        const std::string target = named(text.substr(0, at)).name;
        if (!all.emplace(target, text.substr(at + 1)).second)
            throw UserError("command.schedule-for", "--schedule-for '" + text + "': target " + target + " is given twice; give it once.");
    }
    return all;
}

Options parse_options(const std::vector<std::string> &options, const std::string &algorithm, const std::vector<Option> &declared) {
    Options values;
    for (const std::string &text : options) {
        const size_t equal = text.find('=');
        const std::string name = text.substr(0, equal), value = equal == std::string::npos ? "" : text.substr(equal + 1);
        if (name.empty() || value.empty())
            throw UserError("command.option", "--option '" + text +
                                                  "': expected <name>=<value>, such as stride=2; words that are no options go "
                                                  "before --option.");
        const auto option = std::find_if(declared.begin(), declared.end(), [&](const Option &o) { return o.name == name; });
        const std::optional<int64_t> parsed = parse_value(option == declared.end() ? Option{name, ""} : *option, value);
        if (!parsed && option == declared.end()) complete_options(algorithm, declared, {{name, 0}});  // says which options there are
        if (!parsed)
            throw UserError("option.value", algorithm + ": option " + name + " (" + option->summary + ") = '" + value + "': expected " +
                                                values_text(*option) + "; the default is " + value_text(*option, option->standard) + "." +
                                                did_you_mean(value, option->values));
        if (!values.emplace(name, *parsed).second)
            throw UserError("command.option", "--option '" + text + "': option " + name + " is given twice; give it once.");
    }
    return values;
}

std::vector<std::string> assignments(const Extents &values) {
    std::vector<std::string> all;
    for (const auto &[name, value] : values) all.push_back(name + "=" + std::to_string(value));
    return all;
}

// The first of two places that is there: beside an installed generator, and in the checkout.
static std::optional<fs::path> own_folder(const fs::path &from_program, const fs::path &in_checkout) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    for (const fs::path &own : {program.parent_path() / from_program, in_checkout})
        if (fs::is_directory(own, error)) return own;
    return std::nullopt;
}

std::optional<fs::path> own_schedules() { return own_folder(TESSERA_SCHEDULES_FROM_BIN, TESSERA_SOURCE_SCHEDULES); }

std::optional<fs::path> shipped_model(const std::string &target) {
    const auto folder = own_folder(TESSERA_MODELS_FROM_BIN, TESSERA_SOURCE_MODELS);
    std::error_code error;
    if (!folder || !fs::is_regular_file(*folder / (target + ".json"), error)) return std::nullopt;
    return *folder / (target + ".json");
}

}  // namespace tessera
