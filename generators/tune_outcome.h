// What comes of a campaign: the artifact, and what a person or a program is told.
#pragma once
#include "generators/tune_task.h"

namespace tessera {

// The winner as an artifact, with where and how it was measured, or what the model said; none where nothing surely faster was found.
std::optional<Schedule> artifact_of(const TuneRun &run, const CampaignResult &result);

// <folder>/<name>.json. UserError as OutputFolder.
std::filesystem::path write_artifact(const Schedule &artifact, const std::filesystem::path &folder);

// In words, or with options.json as a document. `file` is the artifact's.
std::string report_of(const TuneRun &run, const CampaignResult &result, const std::optional<Schedule> &artifact,
                      const std::filesystem::path &file);

// The same as a page of HTML, at options.page. UserError as OutputFolder.
void write_page(const TuneRun &run, const CampaignResult &result, const std::optional<Schedule> &artifact,
                const std::filesystem::path &file);

}  // namespace tessera
