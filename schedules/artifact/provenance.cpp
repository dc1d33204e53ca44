#include "schedules/artifact/provenance.h"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "schedules/knobs/canonical.h"
#include "schedules/knobs/former_names.h"
#include "support/files/json_reader.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

using nlohmann::json;
using nlohmann::ordered_json;

std::string stated_hash(const Schedule &schedule) {
    json document = schedule.document();
    document.erase("measured");
    return sha256(canonical_text(document));
}

ordered_json json_of(const KernelTask &t) {
    ordered_json j = {{"algorithm", t.algorithm}, {"numerics", t.numerics}, {"options", t.options}, {"fixed", t.fixed},
                      {"extents", t.extents},     {"target", t.target},     {"threads", t.threads}};
    if (!t.transforms.empty()) j["transforms"] = t.transforms;
    return j;
}

static std::map<std::string, int64_t> integers(const std::optional<JsonReader> &object, int64_t lo) {
    std::map<std::string, int64_t> all;
    if (!object) return all;
    for (const auto &[name, value] : object->fields()) all[name] = value.integer(lo, INT32_MAX);
    return all;
}

static std::string text_of(const std::optional<JsonReader> &value) { return value ? value->text() : ""; }

static KernelTask read_task(const JsonReader &reader) {
    KernelTask t;
    t.algorithm = reader.at("algorithm").text();
    if (auto numerics = reader.find("numerics")) t.numerics = numerics->text();
    t.options = integers(reader.find("options"), INT32_MIN);
    t.fixed = integers(reader.find("fixed"), 0);
    t.extents = integers(reader.find("extents"), 0);
    t.target = current_target_name(reader.at("target").text());
    if (auto transforms = reader.find("transforms")) t.transforms = transforms->texts();
    if (auto threads = reader.find("threads")) t.threads = threads->integer(1, 4096);
    return t;
}

KernelTask task_from_json(const json &document, const std::string &subject) { return read_task(JsonReader(document, subject)); }

ordered_json json_of(const Provenance &p) {
    ordered_json ancestors = ordered_json::array();
    for (const auto &[name, hash] : p.ancestors) ancestors.push_back({name, hash});
    ordered_json all = {{"task", json_of(p.task)},
                        {"resolved", p.resolved},
                        {"bits", p.bits},
                        {"from", {{"semantic", p.semantic}, {"stated", p.stated}, {"ancestors", ancestors}, {"tessera", p.version}}}};
    if (p.predicted)
        all["predicted"] = {{"draft_s", p.predicted->draft_s},
                            {"score", p.predicted->score},
                            {"model", p.predicted->model},
                            {"features", p.predicted->features}};
    if (!p.counts.empty()) all["counts"] = p.counts;
    return all;
}

static std::optional<Provenance> read_provenance(const JsonReader &reader) {
    const auto task = reader.find("task"), resolved = reader.find("resolved");
    if (!task || !resolved) return std::nullopt;
    Provenance p;
    p.task = read_task(*task);
    p.resolved = resolved->text(), p.bits = text_of(reader.find("bits"));
    if (const auto from = reader.find("from")) {
        p.semantic = text_of(from->find("semantic")), p.stated = text_of(from->find("stated")), p.version = text_of(from->find("tessera"));
        if (const auto ancestors = from->find("ancestors"))
            for (const JsonReader &pair : ancestors->items()) {
                const std::vector<std::string> two = pair.texts();
                if (two.size() != 2) pair.fail("json.value", "expected [name, hash], got an array of " + std::to_string(two.size()) + ".");
                p.ancestors.emplace_back(current_schedule_name(two[0]), two[1]);
            }
    }
    constexpr double most = std::numeric_limits<double>::max();
    if (const auto predicted = reader.find("predicted"))
        p.predicted = {predicted->at("draft_s").real(0, most), predicted->at("score").real(-most, most), text_of(predicted->find("model")),
                       text_of(predicted->find("features"))};
    if (const auto counts = reader.find("counts"))
        for (const auto &[name, value] : counts->fields()) p.counts[name] = value.real(0, most);
    return p;
}

std::optional<Provenance> provenance_from_json(const json &measured, const std::string &subject) {
    return read_provenance(JsonReader(measured, subject, "/measured"));
}

void read_measured(const Schedule &schedule, const std::function<void(const JsonReader &)> &read) {
    const json &document = schedule.document();
    const auto measured = document.find("measured");
    if (measured == document.end()) return;
    try {
        read(JsonReader(*measured, schedule.file() ? schedule.file()->string() : schedule.name(), "/measured"));
    } catch (const UserError &error) {
        throw UserError(error.id(), error.message() + " Tune the schedule again, or take its 'measured' out.");
    }
}

std::optional<Provenance> provenance_of(const Schedule &schedule) {
    std::optional<Provenance> provenance;
    read_measured(schedule, [&](const JsonReader &reader) { provenance = read_provenance(reader); });
    return provenance;
}

std::string to_string(const KernelTask &t) {
    std::string text = t.algorithm + "/" + t.numerics;
    for (const auto *values : {&t.options, &t.fixed, &t.extents})
        for (const auto &[name, value] : *values) text += " " + name + "=" + std::to_string(value);
    text += " on " + t.target;
    return t.threads > 1 ? text + ", " + std::to_string(t.threads) + " threads" : text;
}

double shape_distance(const Extents &a, const Extents &b) {
    constexpr double apart = std::numeric_limits<double>::infinity();
    if (a.size() != b.size()) return apart;
    double sum = 0;
    for (const auto &[dim, extent] : a) {
        const auto other = b.find(dim);
        if (other == b.end() || (extent == 0) != (other->second == 0)) return apart;
        if (extent == 0) continue;
        const double ratio = std::log2(static_cast<double>(extent) / static_cast<double>(other->second));
        sum += ratio * ratio;
    }
    return std::sqrt(sum);
}

}  // namespace tessera
