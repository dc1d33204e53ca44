// The space of a task as a person sees it.
#pragma once
#include "autotune/search/campaign.h"

namespace tessera {

// Prints what may be asked, and how large the space is (Knuth, "Estimating the efficiency of backtrack programs", 1975).
void show_space(const CampaignTask &task);

// UserError tune.space: a restriction that no decision of the space has an answer for, or restrictions that leave no schedule.
void check_restrictions(const CampaignTask &task);

}  // namespace tessera
