// The features of what a campaign measured: of each recorded schedule, lowered again by this version. They are not recorded, since a
// model can only learn from those of one version.
#pragma once
#include <memory>
#include <optional>

#include "autotune/records/records.h"
#include "autotune/search/search.h"
#include "generators/registry/registry.h"

namespace tessera {

class RecordedFeatures {
public:
    RecordedFeatures(const Registry &registry, const CampaignRow &campaign);
    ~RecordedFeatures();

    // Why there are none of the whole campaign, for a person; "" where there are: this generator has not the algorithm, or not as it was.
    const std::string &problem() const { return problem_; }
    // The features of one trial; nothing where its schedule makes another tile program than the one that was measured.
    std::optional<Featured> of(const Trial &trial) const;

private:
    std::string problem_;
    SearchSpace space_;
    std::unique_ptr<CostModel> model_;
    std::unique_ptr<Search> search_;
};

}  // namespace tessera
