// What comes of a campaign: the artifact, and what a person or a program is told.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "autotune/search/shape_cases.h"
#include "generators/tune/existing_artifact.h"
#include "support/text/error.h"

namespace tessera {

// The winner as an artifact, with where and how it was measured, or what the model said; none where nothing surely faster was found.
// UserError tune.wrong where it computes something else than the algorithm (comparison.h).
std::optional<Schedule> artifact_of(const TuneRun &run, const CampaignResult &result);

// One of the shapes that one kernel is tuned for; no result where it was not reached, or could not be tuned.
struct TunedShape {
    std::unique_ptr<TuneRun> run;
    std::optional<CampaignResult> result;
    std::string refusal;                       // why it could not be
    std::optional<ExistingArtifact> existing;  // what the artifact at its place keeps for it
    // Where what was found is used, if the schedule to beat is used elsewhere; and how fast it is near its shape, beside the latter.
    std::optional<ShapeBox> within;
    std::vector<std::pair<Extents, double>> probed;
    // The hash of the program that the artifact runs there and that was timed too, where it is not the one that was found: what its box
    // says of extents is known where code is made, and one row, say, is a simpler program than M rows.
    std::string confirmed;
};
// With a schedule to beat that has a name, its artifact is a child of it, which holds where nothing better was measured.
bool is_over_parent(const std::vector<TunedShape> &shapes);
void keep_existing(std::vector<TunedShape> &shapes);
// The kernel that the artifact of these shapes makes.
PreparedKernel kernel_of(const std::vector<TunedShape> &shapes);
// What was found for all of them, with a variant for each; nothing where no shape has anything surely faster. Over a parent, other extents
// than those measured keep its schedule and its variants; without one, they go to the nearest shape. A shape keeps the schedule
// of its existing artifact; without one, a shape that was not reached keeps the base, and `measured` names it apart. `cases` gets for
// each shape where its schedule runs, in words, unless there is none.
std::optional<Schedule> artifact_of(const std::vector<TunedShape> &shapes, std::vector<std::string> &cases);

// What became of an artifact's file.
struct Written {
    std::filesystem::path file;        // empty where none was written
    std::string kept;                  // why the existing one stays, as a line
    std::optional<UserError> failure;  // as OutputFolder, to be thrown once the report is out
    void check() const;
};
// To its place, if there is one to write.
Written write_artifact(const TuneRun &run, const std::optional<Schedule> &artifact);
// The same, unless the existing artifact stays (existing_artifact.h).
Written write_artifact(const TuneRun &run, const CampaignResult &result, const std::optional<Schedule> &artifact);
std::string kept_text(const TuneRun &run);
// In lines: the file, and how it is used.
std::string written_text(const TuneRun &run, const Written &written);

// "base_s", "best_s" and "ratio" with its interval; what nobody measured is null.
nlohmann::ordered_json times_json(const CampaignResult &result);

// In words, or with options.json as a document.
std::string report_of(const TuneRun &run, const CampaignResult &result, const std::optional<Schedule> &artifact, const Written &written);

// The same as a page of HTML, at options.page. UserError as OutputFolder.
void write_page(const TuneRun &run, const CampaignResult &result, const std::optional<Schedule> &artifact,
                const std::filesystem::path &file);

// The outcome of a search that was told to end before it had measured anything.
std::string stopped_report(const TuneRun &run, const UserError &stopped);

}  // namespace tessera
