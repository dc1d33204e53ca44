#include "schedules/artifact/explain.h"

#include <algorithm>

#include "schedules/artifact/merge.h"
#include "schedules/knobs/canonical.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

namespace {

std::vector<std::string> names_in(const std::vector<Schedule> &chain) {
    std::vector<std::string> names;
    for (const Schedule &s : chain) names.push_back(s.name());
    return names;
}

std::string chain_text(const std::vector<Schedule> &chain) { return join(names_in(chain), " -> ") + "\n"; }

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

std::string table_of(const Fields &fields) {
    std::vector<std::vector<std::string>> rows;
    for (const auto &[path, field] : fields) {
        std::string from = field.set_by;
        for (const auto &[ancestor, value] : field.overrode) from += ", over " + one_line(value) + " of " + ancestor;
        rows.push_back({pointer_of(path), one_line(field.value), from});
    }
    return table(rows);
}

json json_of(const Schedule &schedule, const Library &library, const Fields &all) {
    json fields = json::array();
    for (const auto &[path, field] : all) {
        json over = json::array();
        for (const auto &[ancestor, value] : field.overrode) over.push_back({{"from", ancestor}, {"value", value}});
        fields.push_back({{"field", pointer_of(path)}, {"value", field.value}, {"from", field.set_by}, {"over", over}});
    }
    return {{"name", schedule.name()}, {"chain", names_in(library.ancestry(schedule))}, {"fields", fields}};
}

}  // namespace

std::string explain(const Schedule &schedule, const Library &library) {
    return chain_text(library.ancestry(schedule)) + table_of(merged(schedule, library));
}

json explain_json(const Schedule &schedule, const Library &library) { return json_of(schedule, library, merged(schedule, library)); }

std::string explain(const Schedule &schedule, const Library &library, const ProgramSchedule &program) {
    std::string text = chain_text(library.ancestry(schedule));
    for (const CalleeSchedule &callee : program.callees)
        text += callee.scope + ": " + (callee.is_named ? "" : "the best match, ") + chain_text(callee.ancestry);
    return text + table_of(program.fields);
}

json explain_json(const Schedule &schedule, const Library &library, const ProgramSchedule &program) {
    json document = json_of(schedule, library, program.fields);
    document["calls"] = json::array();
    for (const CalleeSchedule &callee : program.callees)
        document["calls"].push_back({{"call", callee.scope}, {"chain", names_in(callee.ancestry)}, {"named", callee.is_named}});
    return document;
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
