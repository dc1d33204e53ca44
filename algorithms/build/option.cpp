#include "algorithms/build/option.h"

#include <algorithm>
#include <charconv>

#include "support/text/error.h"

namespace tessera {

Options complete_options(const std::string &algorithm, const std::vector<Option> &declared, const Options &given) {
    Options values;
    std::vector<std::string> names;
    for (const Option &o : declared) names.push_back(o.name), values[o.name] = o.standard;
    for (const auto &[name, value] : given) {
        auto it = std::find_if(declared.begin(), declared.end(), [&, n = name](const Option &o) { return o.name == n; });
        if (it == declared.end())
            throw UserError("option.unknown", algorithm + ": there is no option '" + name + "'; " +
                                                  (names.empty() ? "it has no options."
                                                                 : "the options are " + join(names) + "." + did_you_mean(name, names)));
        if (value < it->min || value > it->max)
            throw UserError("option.range", algorithm + ": option " + name + " (" + it->summary + ") = " + std::to_string(value) +
                                                ": expected " + values_text(*it) + "; the default is " + value_text(*it, it->standard) +
                                                ".");
        values[name] = value;
    }
    return values;
}

Option yes_or_no(const std::string &name, const std::string &summary) { return {name, summary, 0, 0, 1, {"no", "yes"}}; }

std::string value_text(const Option &option, int64_t value) {
    const int64_t at = value - option.min;
    return at >= 0 && at < static_cast<int64_t>(option.values.size()) ? option.values[static_cast<size_t>(at)] : std::to_string(value);
}

std::optional<int64_t> parse_value(const Option &option, const std::string &text) {
    const auto named = std::find(option.values.begin(), option.values.end(), text);
    if (named != option.values.end()) return option.min + (named - option.values.begin());
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && stop == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::string values_text(const Option &option) {
    if (!option.values.empty()) return "one of " + join(option.values);
    return "a whole number of " + std::to_string(option.min) + " to " + std::to_string(option.max);
}

}  // namespace tessera
