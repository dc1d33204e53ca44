#include "generators/tune/tune_campaign.h"

#include <algorithm>

#include <fmt/format.h>

#include "generators/commands/command.h"
#include "generators/tune/tune_many.h"
#include "generators/tune/tune_progress.h"
#include "generators/tune/tune_shapes.h"
#include "support/text/error.h"

namespace tessera {

namespace {

TuneOptions options_of_shapes(const CampaignEntry &entry, const TuneOptions &all) {
    TuneOptions one = options_for(entry, all);
    for (const Extents &shape : entry.shapes)
        for (const std::string &extent : assignments(shape)) one.kernel.shape.push_back(extent);
    return one;
}

}  // namespace

int tune_campaign(const Registry &registry, const TuneOptions &options, const CampaignFile &file) {
    CampaignFile single = file;
    single.tasks.clear();
    std::vector<CampaignEntry> shaped;
    size_t shapes = 0;
    for (const CampaignEntry &entry : file.tasks) {
        (entry.shapes.empty() ? single.tasks : shaped).push_back(entry);
        shapes += std::max<size_t>(entry.shapes.size(), 1);
    }
    if (shaped.empty()) return tune_many(registry, options, single);

    const auto part = [&](auto whole, size_t count) {
        return whole * static_cast<decltype(whole)>(count) / static_cast<decltype(whole)>(shapes);
    };
    int code = exit_ok;
    std::vector<std::function<int(Interruption &)>> prepared;
    for (const CampaignEntry &entry : shaped) {
        TuneOptions one = options_of_shapes(entry, options);
        one.campaign.trials = file.trials    ? static_cast<int>(part(int64_t{*file.trials}, entry.shapes.size()))
                              : file.seconds ? max_trials
                                             : 64 * static_cast<int>(entry.shapes.size());
        one.campaign.seconds = part(file.seconds.value_or(0), entry.shapes.size());
        try {
            prepared.push_back(prepared_shapes(registry, one));
        } catch (const UserError &error) {
            if (file.skips_foreign && is_foreign(error)) {
                warn(to_string(entry.task) + " is not tuned: " + error.what());
                code = exit_check_failed;
                continue;
            }
            throw UserError("campaign.tasks", fmt::format("the campaign's task {}: {}", to_string(entry.task), error.what()));
        }
    }
    {
        Interruption interruption;
        for (const auto &search : prepared) {
            if (interruption.asked()->load()) return code;
            code = std::max(code, search(interruption));
        }
        if (interruption.asked()->load()) return code;
    }
    if (single.tasks.empty()) return code;
    if (file.trials) single.trials = static_cast<int>(part(int64_t{*file.trials}, single.tasks.size()));
    if (file.seconds) single.seconds = part(*file.seconds, single.tasks.size());
    return std::max(code, tune_many(registry, options, single));
}

}  // namespace tessera
