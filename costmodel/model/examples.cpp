#include "costmodel/model/examples.h"

#include <charconv>
#include <cmath>
#include <istream>
#include <limits>
#include <ostream>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera {

static std::string heading() {
    std::string line = "task\tseconds\tdraft\tbound";
    for (const Feature &f : feature_table()) line += "\t" + f.name;
    return line;
}

void write_examples(std::ostream &out, const std::vector<Example> &examples) {
    out << heading() << "\n";
    for (const Example &e : examples) {
        out << fmt::format("{}\t{:.9g}\t{:.9g}\t{:.9g}", e.task, e.seconds, e.features.draft, e.features.bound);
        for (float v : e.features.values) out << fmt::format("\t{:.7g}", v);
        out << "\n";
    }
}

std::vector<Example> read_examples(std::istream &in, const std::string &subject) {
    std::vector<Example> all;
    std::string line;
    if (!std::getline(in, line) || !line.starts_with("task\tseconds\t"))
        throw UserError("examples.format", subject + ": expected a first line that names the fields, as `records export` writes it.");
    if (line != heading())
        throw UserError(
            "examples.features",
            subject + ": its fields are those of another table of features than this version's. Measure again with this version.");
    for (size_t number = 2; std::getline(in, line); number++) {
        auto refuse = [&](const std::string &why) {
            throw UserError("examples.format", fmt::format("{}:{}: {}. Export it again.", subject, number, why));
        };
        std::vector<std::string> fields;
        for (size_t at = 0; at <= line.size();) {
            const size_t tab = std::min(line.find('\t', at), line.size());
            fields.push_back(line.substr(at, tab - at));
            at = tab + 1;
        }
        if (fields.size() != feature_table().size() + 4)
            refuse(fmt::format("expected {} fields, got {}", feature_table().size() + 4, fields.size()));
        auto read = [&](const std::string &text, auto &value) {
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
                refuse("expected a number, got '" + text.substr(0, 40) + "'");
        };
        Example e;
        e.task = fields[0];
        read(fields[1], e.seconds), read(fields[2], e.features.draft), read(fields[3], e.features.bound);
        if (e.seconds < 0 || e.features.draft <= 0 || e.features.bound <= 0) refuse("expected times above 0");
        // Models see the logarithms of these ratios.
        for (const double ratio : {e.features.draft / e.features.bound, e.features.bound / (e.seconds > 0 ? e.seconds : e.features.bound)})
            if (!std::isfinite(std::log2(ratio)))
                refuse("expected times of one kernel, got " + fields[1] + ", " + fields[2] + " and " + fields[3]);
        for (size_t i = 4; i < fields.size(); i++) {
            float &value = e.features.values.emplace_back();
            read(fields[i], value);
            // Trees compare with the middle of two values, by way of their sum.
            if (std::abs(value) > std::numeric_limits<float>::max() / 2) refuse("expected a number, got '" + fields[i].substr(0, 40) + "'");
        }
        all.push_back(std::move(e));
    }
    return all;
}

}  // namespace tessera
