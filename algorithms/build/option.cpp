#include "algorithms/build/option.h"

#include <algorithm>

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
                                                ": expected " + std::to_string(it->min) + " ..= " + std::to_string(it->max) +
                                                "; the standard value is " + std::to_string(it->standard) + ".");
        values[name] = value;
    }
    return values;
}

}  // namespace tessera
