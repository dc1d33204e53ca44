#include "schedules/artifact/explain.h"

#include <algorithm>

#include "schedules/artifact/merge.h"
#include "schedules/knobs/canonical.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

namespace {

std::vector<std::string> chain_of(const Schedule &schedule, const Library &library) {
    std::vector<std::string> names;
    for (const Schedule &s : library.ancestry(schedule)) names.push_back(s.name());
    return names;
}

// Rows of cells as lines, the columns aligned.
std::string table(const std::vector<std::vector<std::string>> &rows) {
    std::vector<size_t> widths;
    for (const auto &row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto &row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); i++)
            line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - row[i].size() + 2, ' ') : "");
        text += line + "\n";
    }
    return text;
}

}  // namespace

std::string explain(const Schedule &schedule, const Library &library) {
    std::vector<std::vector<std::string>> rows;
    for (const auto &[path, field] : merged(schedule, library)) {
        std::string from = field.set_by;
        for (const auto &[ancestor, value] : field.overrode) from += ", over " + one_line(value) + " of " + ancestor;
        rows.push_back({pointer_of(path), one_line(field.value), from});
    }
    return join(chain_of(schedule, library), " -> ") + "\n" + table(rows);
}

json explain_json(const Schedule &schedule, const Library &library) {
    json fields = json::array();
    for (const auto &[path, field] : merged(schedule, library)) {
        json over = json::array();
        for (const auto &[ancestor, value] : field.overrode) over.push_back({{"from", ancestor}, {"value", value}});
        fields.push_back({{"field", pointer_of(path)}, {"value", field.value}, {"from", field.set_by}, {"over", over}});
    }
    return {{"name", schedule.name()}, {"chain", chain_of(schedule, library)}, {"fields", fields}};
}

std::string diff(const Schedule &a, const Schedule &b, const Library &library) {
    const Fields before = merged(a, library), after = merged(b, library);
    std::map<FieldPath, std::pair<const Field *, const Field *>> all;
    for (const auto &[path, field] : before) all[path].first = &field;
    for (const auto &[path, field] : after) all[path].second = &field;
    auto shown = [](const Field *field) { return field ? one_line(field->value) : "(none)"; };
    std::vector<std::vector<std::string>> rows;
    for (const auto &[path, pair] : all) {
        const auto [left, right] = pair;
        if (left && right && left->value == right->value) continue;
        rows.push_back({pointer_of(path), shown(left) + " -> " + shown(right)});
    }
    return table(rows);
}

}  // namespace tessera
