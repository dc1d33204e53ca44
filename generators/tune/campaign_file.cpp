#include "generators/tune/campaign_file.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "generators/kernel/tuning_record.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"

namespace tessera {

static const Handed campaign_file{"campaign", "campaign file", "Split it into several."};

static CampaignEntry read_entry(const JsonReader &reader) {
    reader.only({"algorithm", "numerics", "options", "fixed", "extents", "target", "threads", "weight", "schedule"});
    reader.at("algorithm").text();
    nlohmann::json document = reader.value();
    if (!document.contains("target")) document["target"] = "host";
    CampaignEntry entry;
    entry.task = reader.located([&] { return task_from_json(document, "the task"); });
    if (auto weight = reader.find("weight")) entry.weight = weight->real(1e-9, 1e9);
    if (auto schedule = reader.find("schedule")) entry.schedule = schedule->text();
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
        campaign.tasks.push_back(read_entry(one));
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

std::vector<CampaignEntry> tasks_of(const Library &library) {
    std::map<std::string, CampaignEntry> all;
    for (const std::string &name : library.names()) {
        const Schedule schedule = library.find(name);
        const auto provenance = provenance_of(schedule);
        const auto record = tuning_record_of(schedule);
        if (provenance && record->goal.metric == Metric::latency && record->shapes.empty() && record->prepack.empty())
            all[json_text(json_of(provenance->task))].task = provenance->task;
    }
    if (all.empty())
        throw UserError("tune.all",
                        "--all: expected artifacts that say what they were tuned for in the schedule folders, found none. Name the folder "
                        "with --schedule-dir, or the kernels in a file with --campaign.");
    std::vector<CampaignEntry> tasks;
    for (auto &[key, entry] : all) tasks.push_back(entry);
    return tasks;
}

}  // namespace tessera
