// What comes of a campaign: the artifact, and what a person or a program is told.
#pragma once
#include "generators/tune_task.h"

namespace tessera {

// The winner as an artifact, with where and how it was measured, or what the model said; none where nothing surely faster was found.
std::optional<Schedule> artifact_of(const TuneRun &run, const CampaignResult &result);

// One of the shapes that one kernel is tuned for; no result where it was not reached, or could not be tuned.
struct TunedShape {
    std::unique_ptr<TuneRun> run;
    std::optional<CampaignResult> result;
    std::string refusal;  // why it could not be
};
// What was found for all of them, with a variant for each; none where nothing surely faster was found for any. A shape that was not reached
// keeps the base, and `measured` names it apart. `cases` gets for each shape where its schedule runs, in words, unless there is none.
std::optional<Schedule> artifact_of(const std::vector<TunedShape> &shapes, std::vector<std::string> &cases);

// <folder>/<name>.json. UserError as OutputFolder.
std::filesystem::path write_artifact(const Schedule &artifact, const std::filesystem::path &folder);

// In words, or with options.json as a document. `file` is the artifact's.
std::string report_of(const TuneRun &run, const CampaignResult &result, const std::optional<Schedule> &artifact,
                      const std::filesystem::path &file);

// The same as a page of HTML, at options.page. UserError as OutputFolder.
void write_page(const TuneRun &run, const CampaignResult &result, const std::optional<Schedule> &artifact,
                const std::filesystem::path &file);

}  // namespace tessera
