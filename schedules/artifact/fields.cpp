#include "schedules/artifact/fields.h"

#include <algorithm>

#include "schedules/artifact/read.h"
#include "schedules/knobs/knob.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

namespace {

FieldPath under(FieldPath path, const std::string &key) {
    path.push_back(key);
    return path;
}

using Statements = std::vector<std::pair<FieldPath, json>>;

// The entries of a map, down to `depth` maps inside each other.
void state_map(Statements &out, const FieldPath &path, const json &value, int depth) {
    if (depth == 0 || value.is_null()) {
        out.emplace_back(path, value);
        return;
    }
    for (const auto &[key, entry] : value.items()) state_map(out, under(path, key), entry, depth - 1);
}

// What is no knob is refused where the document is read.
Merge merge_of(const std::string &name) {
    const std::optional<Knob> knob = knob_named(name);
    return knob ? rule_of(*knob).merge : Merge::whole;
}

void state_knob(Statements &out, const FieldPath &path, const json &value) {
    switch (merge_of(path.back())) {
    case Merge::whole: return state_map(out, path, value, 0);
    case Merge::entries: return state_map(out, path, value, 1);
    case Merge::nested: return state_map(out, path, value, 2);
    case Merge::by_id: break;
    }
    if (value.is_null()) return state_map(out, path, value, 0);
    for (const json &one : value) out.emplace_back(under(path, one["id"]), one["op"].is_null() ? json() : one);
}

bool is_inside(const FieldPath &path, const FieldPath &outer) {
    return path.size() >= outer.size() && std::equal(outer.begin(), outer.end(), path.begin());
}

}  // namespace

Statements statements(const json &document) {
    Statements out;
    for (const char *key : {"requires", "variants"})
        if (document.contains(key)) out.emplace_back(FieldPath{key}, document[key]);
    if (document.contains("algorithm")) state_map(out, {"algorithm"}, document["algorithm"], 1);
    if (!document.contains("stages")) return out;
    for (const auto &[stage, knobs] : document["stages"].items()) {
        if (knobs.is_null()) out.emplace_back(FieldPath{"stages", stage}, json());
        else
            for (const auto &[knob, value] : knobs.items()) state_knob(out, {"stages", stage, knob}, value);
    }
    return out;
}

bool never(const FieldPath &) { return false; }

void apply(Fields &fields, const json &document, const std::string &name, const std::vector<std::string> &ancestors,
           const MustDelete &must_delete) {
    size_t order = 0;
    for (const auto &[path, field] : fields) order = std::max(order, field.order + 1);
    for (const auto &[path, value] : statements(document)) {
        if (!value.is_null()) {
            auto [it, added] = fields.try_emplace(path);
            Field &field = it->second;
            if (added) field.order = order++;
            else field.overrode.insert(field.overrode.begin(), {field.set_by, field.value});
            field.value = value, field.set_by = name;
            continue;
        }
        const size_t erased = std::erase_if(fields, [&, &path = path](const auto &field) { return is_inside(field.first, path); });
        if (erased == 0 && must_delete(path))
            FieldPlace{name, pointer_of(path), ancestors}.fail(
                "schedule.nothing-to-delete",
                "it is deleted, but " +
                    std::string(ancestors.empty() ? "the schedule has no ancestors" : "none of the ancestors states it") +
                    ". Correct the name or remove the null.");
    }
}

json document_of(const Fields &fields) {
    json document = json::object();
    std::map<FieldPath, std::vector<const Field *>> lists;  // elements, by the knob that merges them by their ids
    for (const auto &[path, field] : fields) {
        if (path.size() == 4 && merge_of(path[2]) == Merge::by_id) {
            lists[{path.begin(), path.end() - 1}].push_back(&field);
            continue;
        }
        json *slot = &document;
        for (const std::string &key : path) slot = &(*slot)[key];
        *slot = field.value;
    }
    for (auto &[path, list] : lists) {
        std::sort(list.begin(), list.end(), [](const Field *a, const Field *b) { return a->order < b->order; });
        for (const Field *field : list) document[path[0]][path[1]][path[2]].push_back(field->value);
    }
    return document;
}

std::string pointer_of(const FieldPath &path) {
    FieldPlace place;
    for (const std::string &key : path) place = place / key;
    return place.pointer;
}

}  // namespace tessera
