#include "generators/commands/choice.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera {

CLI::Validator one_of(const std::vector<std::string> &names) {
    const auto position = [names](std::string &text) -> std::string {
        const auto at = std::find(names.begin(), names.end(), text);
        if (at == names.end()) return "expected " + join(names, " or ") + ", got '" + text + "'";
        text = std::to_string(at - names.begin());
        return "";
    };
    return {position, ""};
}

CLI::Validator integer_in(uint64_t lo, uint64_t hi) {
    const auto check = [lo, hi](std::string &text) -> std::string {
        uint64_t value = 0;
        const char *end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        const bool fits = error == std::errc() && stop == end && lo <= value && value <= hi;
        return fits ? "" : fmt::format("expected an integer in {} ..= {}, got '{}'", lo, hi, text);
    };
    return {check, ""};
}

CLI::Validator number_in(double lo, double hi) {
    const auto check = [lo, hi](std::string &text) -> std::string {
        char *end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool fits = end != text.c_str() && *end == 0 && lo <= value && value <= hi;
        return fits ? "" : fmt::format("expected a number in {} ..= {}, got '{}'", lo, hi, text);
    };
    return {check, ""};
}

}  // namespace tessera
