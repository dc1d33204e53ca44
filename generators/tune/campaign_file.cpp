#include "generators/tune/campaign_file.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "generators/choose/tuning_record.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"

namespace tessera {

static const Handed campaign_file{"campaign", "campaign file", "Split it into several."};

static std::vector<Extents> read_shapes(const JsonReader &shapes, const KernelTask &task) {
    std::vector<Extents> all;
    auto fail = [&](const std::string &got) {
        shapes.fail("campaign.shapes",
                    "expected two shapes or more, no two equal, of the same dims, which \"fixed\" and \"extents\" do not name; got " + got +
                        ". For one shape, use \"fixed\" or \"extents\".");
    };
    for (const JsonReader &one : shapes.items()) {
        Extents shape;
        for (const auto &[dim, extent] : one.fields()) {
            shape[dim] = extent.integer(0, INT32_MAX);
            if (task.fixed.count(dim) || task.extents.count(dim)) fail("dim '" + dim + "' twice");
        }
        const bool alike = all.empty() || std::equal(shape.begin(), shape.end(), all[0].begin(), all[0].end(),
                                                     [](const auto &a, const auto &b) { return a.first == b.first; });
        if (!alike) fail("different dims in shapes 0 and " + std::to_string(all.size()));
        if (std::find(all.begin(), all.end(), shape) != all.end()) fail("shape " + std::to_string(all.size()) + " twice");
        all.push_back(shape);
    }
    if (all.size() < 2) fail(std::to_string(all.size()));
    return all;
}

static CampaignEntry read_entry(const JsonReader &reader, const std::filesystem::path &folder) {
    reader.only({"algorithm", "numerics", "options", "fixed", "extents", "target", "threads", "weight", "schedule", "shapes"});
    reader.at("algorithm").text();
    nlohmann::json document = reader.value();
    document.erase("shapes");
    if (!document.contains("target")) document["target"] = "host";
    CampaignEntry entry;
    entry.task = reader.located([&] { return task_from_json(document, "the task"); });
    // A policy's file stands beside the campaign's.
    if (std::string &policy = entry.task.numerics; policy.ends_with(".json")) policy = (folder / policy).lexically_normal().string();
    if (auto weight = reader.find("weight")) entry.weight = weight->real(1e-9, 1e9);
    if (auto schedule = reader.find("schedule")) entry.schedule = schedule->text();
    if (auto shapes = reader.find("shapes")) entry.shapes = read_shapes(*shapes, entry.task);
    return entry;
}

CampaignFile read_campaign(const std::filesystem::path &file) {
    const std::string subject = file.string();
    const nlohmann::json document = parse_json(read_regular(file, campaign_file), subject);
    const JsonReader reader(document, subject);
    reader.only({"format", "version", "budget", "tasks"});
    if (reader.at("format").text() != "tessera-campaign" || reader.at("version").integer() != 1)
        reader.fail("json.version", "expected \"format\": \"tessera-campaign\", \"version\": 1; write it by tessera-campaign.schema.json");
    CampaignFile campaign;
    if (const auto budget = reader.find("budget")) {
        budget->only({"trials", "seconds"});
        if (auto trials = budget->find("trials")) campaign.trials = static_cast<int>(trials->integer(1, 1000000));
        if (auto seconds = budget->find("seconds")) campaign.seconds = seconds->real(1e-3, 1e9);
    }
    std::map<std::string, size_t> seen;
    for (const JsonReader &one : reader.at("tasks").items()) {
        const size_t at = campaign.tasks.size();
        campaign.tasks.push_back(read_entry(one, file.parent_path()));
        const std::string key = json_text(json_of(campaign.tasks.back().task));
        if (auto [first, fresh] = seen.emplace(key, at); !fresh)
            throw UserError("campaign.tasks", subject + ": expected each task once; tasks " + std::to_string(first->second) + " and " +
                                                  std::to_string(at) + " are both " + to_string(campaign.tasks.back().task) +
                                                  ". Remove one, and add up their weights.");
    }
    if (campaign.tasks.empty())
        throw UserError("campaign.tasks", subject + ": expected one task or more, got none. Add what shall be tuned.");
    return campaign;
}

std::vector<CampaignEntry> tasks_of(const Library &library, const std::function<bool(const std::string &)> &is_known) {
    std::map<std::string, CampaignEntry> all;
    for (const std::string &name : library.names()) {
        const Schedule schedule = library.find(name);
        const auto provenance = provenance_of(schedule);
        const auto record = tuning_record_of(schedule);
        if (provenance && is_known(provenance->task.algorithm) && record->goal.metric == Metric::latency && record->prepack.empty()) {
            CampaignEntry entry;
            entry.task = provenance->task, entry.shapes = record->shapes;
            if (!entry.shapes.empty())
                for (const auto &[dim, extent] : entry.shapes[0]) entry.task.extents.erase(dim);
            std::string key = json_text(json_of(entry.task));
            for (const Extents &shape : entry.shapes)
                for (const auto &[dim, extent] : shape) key += " " + dim + "=" + std::to_string(extent);
            all[key] = entry;
        }
    }
    if (all.empty())
        throw UserError(
            "tune.all",
            "--all: expected artifacts of this generator's algorithms that say what they were tuned for in the schedule folders, "
            "found none. Name the folder "
            "with --schedule-dir, or the kernels in a file with --campaign.");
    std::vector<CampaignEntry> tasks;
    for (auto &[key, entry] : all) tasks.push_back(entry);
    return tasks;
}

}  // namespace tessera
