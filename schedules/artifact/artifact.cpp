#include "schedules/artifact/artifact.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schedules/artifact/read.h"
#include "schedules/artifact/write.h"
#include "schedules/knobs/canonical.h"
#include "schedules/knobs/former_names.h"
#include "schedules/knobs/notation.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

using nlohmann::json;

namespace {

// States `patch` over `own`: maps add up, directives by id, anything else is replaced. Nulls stay, as statements.
void state(json &own, const json &patch) {
    for (const auto &[knob, value] : patch.items()) {
        json &slot = own[knob];
        const std::optional<Knob> known = knob_named(knob);
        const Merge merge = known ? rule_of(*known).merge : Merge::entries;
        if (merge == Merge::by_id && slot.is_array() && value.is_array()) {
            for (const json &one : value) {
                auto same = std::find_if(slot.begin(), slot.end(), [&](const json &d) { return d["id"] == one["id"]; });
                if (same == slot.end()) slot.push_back(one);
                else *same = one;
            }
        } else if (value.is_object() && slot.is_object()) {
            for (const auto &[key, entry] : value.items()) {
                if (merge == Merge::nested && entry.is_object() && slot.contains(key) && slot[key].is_object()) slot[key].update(entry);
                else slot[key] = entry;
            }
        } else {
            slot = value;
        }
    }
}

json without_empty(json document) {
    if (document["stages"].empty()) document.erase("stages");
    return document;
}

void check_name(const std::string &name) { check_document({{"format", "tessera-schedule"}, {"version", 1}, {"name", name}}, "?"); }

}  // namespace

StageKnobs::StageKnobs() : StageKnobs(json::object()) {}
StageKnobs::StageKnobs(const json &knobs) : document_(std::make_shared<const json>(knobs)) {}

StageKnobs StageKnobs::with(Knob knob, const json &value) const {
    json document = *document_;
    state(document, json{{name_of(knob), value}});
    return StageKnobs(document);
}

StageKnobs StageKnobs::place(const std::string &where) const { return with(Knob::place, where); }
StageKnobs StageKnobs::block(const Extents &extents) const { return with(Knob::block, extents); }
StageKnobs StageKnobs::k(const Extents &extents) const { return with(Knob::k, extents); }
StageKnobs StageKnobs::micro(const Extents &extents) const { return with(Knob::micro, extents); }
StageKnobs StageKnobs::loops(const std::vector<std::string> &names) const { return with(Knob::loops, names); }
StageKnobs StageKnobs::vector(const Extents &lanes) const { return with(Knob::vector, lanes); }
StageKnobs StageKnobs::unroll(const Extents &iterations) const { return with(Knob::unroll, iterations); }
StageKnobs StageKnobs::parallel(const std::vector<std::string> &loops) const { return with(Knob::parallel, loops); }
StageKnobs StageKnobs::layout(const std::vector<std::string> &axes) const { return with(Knob::layout, axes); }
StageKnobs StageKnobs::instruction(const std::string &family) const { return with(Knob::instruction, family); }
StageKnobs StageKnobs::stream(const std::string &loop) const { return with(Knob::stream, loop); }
StageKnobs StageKnobs::call(const std::string &how) const { return with(Knob::call, how); }
StageKnobs StageKnobs::use(const std::string &schedule) const { return with(Knob::use, schedule); }
StageKnobs StageKnobs::warps(int64_t count) const { return with(Knob::warps, count); }
StageKnobs StageKnobs::remove(const std::string &knob) const {
    json document = *document_;
    document[knob] = nullptr;
    return StageKnobs(document);
}

StageKnobs StageKnobs::level(const std::string &name, const Extents &extents) const { return with(Knob::levels, json{{name, extents}}); }

StageKnobs StageKnobs::pack(const std::string &operand, const std::string &at, const std::vector<std::string> &layout) const {
    json pack = {{"at", at}};
    if (!layout.empty()) pack["layout"] = layout;
    return with(Knob::pack, json{{operand, pack}});
}

StageKnobs StageKnobs::prefetch(const std::string &operand, const std::string &loop, int64_t ahead) const {
    return with(Knob::prefetch, json{{operand, loop.empty() ? json::object() : json{{"loop", loop}, {"ahead", ahead}}}});
}

StageKnobs StageKnobs::tail(const std::string &dim, Tail policy) const {
    return with(Knob::tail, json_of(std::map<std::string, Tail>{{dim, policy}}));
}

StageKnobs StageKnobs::split(const std::string &dim, Split::How how, int64_t size) const {
    return with(Knob::split, json_of(std::map<std::string, Split>{{dim, {how, size}}}));
}

StageKnobs StageKnobs::tree(const std::string &dim, const std::vector<int64_t> &lanes) const {
    return with(Knob::split, json_of(std::map<std::string, Split>{{dim, {Split::How::tree, 0, lanes}}}));
}

StageKnobs StageKnobs::directive(const Directive &d) const { return with(Knob::directives, json_of(std::vector<Directive>{d})); }

StageKnobs StageKnobs::without_directive(const std::string &id) const {
    return with(Knob::directives, json::array({json{{"id", id}, {"op", nullptr}}}));
}

StageKnobs block(const Extents &extents) { return StageKnobs().block(extents); }
StageKnobs place(const std::string &where) { return StageKnobs().place(where); }

Schedule::Schedule(const std::string &name) {
    check_name(name);
    document_ = std::make_shared<const json>(json{{"format", "tessera-schedule"}, {"version", 1}, {"name", name}});
}

Schedule Schedule::parse(std::string_view text, const std::string &subject) { return from_json(parse_json(text, subject), subject); }

Schedule Schedule::from_json(const json &document, const std::string &subject) {
    check_document(document, subject);
    return Schedule().with(document);
}

Schedule Schedule::with(json document) const {
    Schedule result = *this;
    result.document_ = std::make_shared<const json>(std::move(document));
    return result;
}

Schedule Schedule::named(const std::string &name) const {
    check_name(name);
    json document = *document_;
    document["name"] = name;
    return with(std::move(document));
}

Schedule Schedule::extends(const std::string &parent) const {
    json document = *document_;
    document["extends"] = parent;
    check_document(document, name());
    Schedule result = with(std::move(document));
    result.parent_.reset();
    return result;
}

Schedule Schedule::extends(const Schedule &parent) const {
    Schedule result = extends(parent.name());
    result.parent_ = std::make_shared<const Schedule>(parent);
    return result;
}

Schedule Schedule::for_algorithm(const std::string &name, const std::string &surface) const {
    json document = *document_;
    document["algorithm"] = {{"name", name}};
    if (!surface.empty()) document["algorithm"]["surface"] = surface;
    return with(std::move(document));
}

Schedule Schedule::require(const std::vector<std::string> &features) const {
    json document = *document_;
    document["requires"] = features;
    return with(std::move(document));
}

Schedule Schedule::stage(const std::string &stage, const StageKnobs &knobs) const {
    if (knobs.document().empty()) return *this;
    json document = *document_;
    json &own = document["stages"][stage];
    if (!own.is_object()) own = json::object();
    state(own, knobs.document());
    return with(std::move(document));
}

Schedule Schedule::with_block(const std::string &name, const Extents &extents) const { return stage(name, StageKnobs().block(extents)); }
Schedule Schedule::with_k(const std::string &name, const Extents &extents) const { return stage(name, StageKnobs().k(extents)); }
Schedule Schedule::with_micro(const std::string &name, const Extents &extents) const { return stage(name, StageKnobs().micro(extents)); }
Schedule Schedule::with_vector(const std::string &name, const Extents &lanes) const { return stage(name, StageKnobs().vector(lanes)); }

Schedule Schedule::remove(const std::string &name, const std::string &knob) const {
    return parent_name().empty() ? unset(name, knob) : stage(name, StageKnobs().remove(knob));
}

Schedule Schedule::unset(const std::string &name, const std::string &knob) const {
    json document = *document_;
    json &own = document["stages"][name];
    if (own.is_object()) own.erase(knob);
    if (own.empty()) document["stages"].erase(name);
    return with(without_empty(std::move(document)));
}

Schedule Schedule::variant(const std::vector<std::string> &when, const std::string &stage, const StageKnobs &knobs) const {
    json document = *document_;
    json &variants = document["variants"];
    if (!variants.is_array()) variants = json::array();
    auto same = std::find_if(variants.begin(), variants.end(), [&](const json &v) { return v["when"] == json(when); });
    json &stages = (same == variants.end() ? variants.emplace_back(json{{"when", when}, {"stages", json::object()}}) : *same)["stages"];
    if (!knobs.document().empty()) state(stages[stage], knobs.document());
    return with(std::move(document));
}

Schedule Schedule::with_measured(const json &provenance) const {
    json document = *document_;
    document["measured"] = provenance;
    return with(std::move(document));
}

Schedule Schedule::from_file(const std::filesystem::path &file) const {
    Schedule result = *this;
    result.file_ = file;
    return result;
}

std::string Schedule::name() const { return current_schedule_name((*document_)["name"].get<std::string>()); }

std::string Schedule::parent_name() const { return current_schedule_name(document_->value("extends", std::string())); }

std::string Schedule::text() const { return canonical_text(*document_); }

std::string Schedule::hash() const { return sha256(text()); }

}  // namespace tessera
