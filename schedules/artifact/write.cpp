#include "schedules/artifact/write.h"

#include <nlohmann/json.hpp>

#include "schedules/knobs/knob.h"
#include "schedules/knobs/notation.h"

namespace tessera {

using nlohmann::json;

namespace {

json json_of(const std::optional<Place> &place) { return to_string(*place); }
json json_of(const std::optional<std::string> &text) { return *text; }
json json_of(const std::optional<int64_t> &number) { return *number; }
template <typename Other>
json json_of(const std::optional<Other> &) = delete;  // one that converts to these is none of them
json json_of(const Extents &extents) { return extents; }
json json_of(const std::map<std::string, Extents> &levels) { return levels; }
json json_of(const std::vector<std::string> &names) { return names; }

json json_of(const std::vector<LayoutAxis> &layout) {
    json axes = json::array();
    for (const LayoutAxis &axis : layout) axes.push_back(to_string(axis));
    return axes;
}

json json_of(const std::map<std::string, Pack> &packs) {
    json all = json::object();
    for (const auto &[operand, pack] : packs) {
        all[operand] = {{"at", pack.at}};
        if (!pack.layout.empty()) all[operand]["layout"] = json_of(pack.layout);
        if (pack.stages != 1) all[operand]["stages"] = pack.stages;
    }
    return all;
}

json json_of(const std::map<std::string, PrefetchRule> &rules) {
    json all = json::object();
    for (const auto &[operand, rule] : rules)
        all[operand] = rule.loop.empty() ? json::object() : json{{"loop", rule.stage + "." + rule.loop}, {"ahead", rule.ahead}};
    return all;
}

}  // namespace

json json_of(const std::map<std::string, Tail> &tails) {
    json all = json::object();
    for (const auto &[dim, policy] : tails) all[dim] = name_of(policy);
    return all;
}

json json_of(const std::map<std::string, Split> &splits) {
    static const char *const ways[] = {"chunks", "threads", "lanes", "online", "passes"};
    json all = json::object();
    for (const auto &[dim, split] : splits) {
        if (split.how == Split::How::tree) {
            all[dim] = {{"lanes", split.levels}};
            continue;
        }
        all[dim] = {{"how", ways[static_cast<size_t>(split.how)]}};
        if (split.how != Split::How::passes) all[dim]["size"] = split.size;
    }
    return all;
}

json json_of(const std::vector<Directive> &directives) {
    json all = json::array();
    for (const Directive &d : directives) {
        json one = {{"id", d.id}, {"op", d.op}, {"loop", d.loop}};
        if (!d.after.empty()) one["after"] = d.after;
        if (d.factor != 0) one["factor"] = d.factor;
        all.push_back(one);
    }
    return all;
}

json json_of(const Knobs &knobs) {
    json document = json::object();
    for_each_knob(knobs, [&](Knob knob, const auto &field) {
        if (is_stated(field)) document[name_of(knob)] = json_of(field);
    });
    return document;
}

}  // namespace tessera
