#include "costmodel/examples.h"

#include <charconv>
#include <cmath>
#include <istream>
#include <ostream>

#include <fmt/format.h>

#include "algorithms/error.h"

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
    if (!std::getline(in, line) || !line.starts_with("task\tseconds\t")) throw UserError("examples.format", subject + ": expected a first line that names the fields, as `records export` writes it.");
    if (line != heading()) throw UserError("examples.features", subject + ": its fields are those of another table of features than this version's. Measure again with this version.");
    for (size_t number = 2; std::getline(in, line); number++) {
        auto refuse = [&](const std::string &why) { throw UserError("examples.format", fmt::format("{}:{}: {}. Export it again.", subject, number, why)); };
        std::vector<std::string> fields;
        for (size_t at = 0; at <= line.size();) {
            const size_t tab = std::min(line.find('\t', at), line.size());
            fields.push_back(line.substr(at, tab - at));
            at = tab + 1;
        }
        if (fields.size() != feature_table().size() + 4) refuse(fmt::format("expected {} fields, got {}", feature_table().size() + 4, fields.size()));
        auto number_in = [&](const std::string &text) {
            double value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) refuse("expected a number, got '" + text.substr(0, 40) + "'");
            return value;
        };
        Example e;
        e.task = fields[0], e.seconds = number_in(fields[1]), e.features.draft = number_in(fields[2]), e.features.bound = number_in(fields[3]);
        if (e.seconds < 0 || e.features.draft <= 0 || e.features.bound <= 0) refuse("expected times above 0");
        for (size_t i = 4; i < fields.size(); i++) e.features.values.push_back(static_cast<float>(number_in(fields[i])));
        all.push_back(std::move(e));
    }
    return all;
}

}  // namespace tessera
