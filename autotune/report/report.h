// What a campaign found, as one page of HTML: the search curve, predicted against measured, the winner's place on the roofline, what
// differs and what it is worth, the winner's tile program, what failed. It needs no other file and no network, and has no script.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "autotune/search/campaign.h"
#include "bench/measure/work.h"

namespace tessera {

struct Report {
    std::string task, base;  // names
    const CampaignResult &result;
    Target target;
    int threads = 1;
    Work work;
    std::string changes;                                      // as `diff` tells them
    std::string artifact;                                     // its file; "" where there is none
    std::vector<std::pair<std::string, std::string>> origin;  // machine, versions, …: name and value
};

std::string report_page(const Report &report);

}  // namespace tessera
