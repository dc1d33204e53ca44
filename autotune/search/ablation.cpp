#include "autotune/search/ablation.h"

#include <algorithm>

#include <fmt/format.h>

#include "autotune/search/tuned_schedule.h"
#include "autotune/space/decisions_from_schedule.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr double harm = 0.98;  // a gain below it is harm; processes differ by less

using Stages = KnobsByStage;

// Nothing where the knobs do not fit each other.
std::optional<Candidate> candidate_of(const Search &search, const std::optional<Stages> &stages) {
    return stages ? search.candidate_of(*stages, "ablation") : std::nullopt;
}

std::optional<Stages> without(const std::optional<Stages> &stages, const Candidate &base, const Ablation &ablation) {
    if (!stages) return std::nullopt;
    try {
        return with_knob_of(*stages, base.stages, ablation.stage, ablation.knob);
    } catch (const UserError &) { return std::nullopt; }
}

// Whether the restricted space has it too.
bool is_allowed(const Candidate &c, const Search &search, const SearchSpace &space) {
    if (space.restrictions.empty()) return true;
    try {
        const std::optional<Candidate> inside =
            search.candidate_of(realize(space, decisions_from_schedule(c.stages, most_likely)), "ablation");
        return inside && inside->resolved == c.resolved;
    } catch (const UserError &) { return false; }
}

}  // namespace

std::string ablation_text(const Ablation &ablation) {
    if (ablation.gain > 0) return fmt::format("{:.3f}", ablation.gain);
    if (ablation.without == Verdict::refused) return "the others need it";
    return ablation.without == Verdict::unmeasured ? "not measured" : std::string("without it: ") + name_of(ablation.without);
}

std::vector<AblationCandidate> ablations_of(const Candidate &winner, const Candidate &base, const Search &search, int most) {
    std::vector<AblationCandidate> all;
    for (const auto &[stage, knob] : differing_knobs(winner.stages, base.stages)) {
        if (static_cast<int>(all.size()) >= most) break;
        AblationCandidate one{{stage, knob}, {}};
        one.without = candidate_of(search, without(winner.stages, base, one.ablation));
        if (!one.without || one.without->resolved != winner.resolved) all.push_back(std::move(one));
    }
    return all;
}

std::vector<Candidate> without_harm(const std::vector<AblationCandidate> &ablations, const Candidate &winner, const Candidate &base,
                                    const Search &search, const SearchSpace &space) {
    const AblationCandidate *worst = nullptr;
    std::optional<Stages> rest = winner.stages;
    int harmful = 0;
    for (const AblationCandidate &a : ablations) {
        if (a.ablation.without != Verdict::measured || a.ablation.gain >= harm) continue;
        if (!worst || a.ablation.gain < worst->ablation.gain) worst = &a;
        rest = without(rest, base, a.ablation);
        harmful++;
    }
    std::vector<Candidate> all;
    if (worst) all.push_back(*worst->without);
    if (harmful > 1)
        if (auto c = candidate_of(search, rest); c && c->resolved != all[0].resolved) all.push_back(std::move(*c));
    std::erase_if(all, [&](const Candidate &c) { return !is_allowed(c, search, space); });
    return all;
}

}  // namespace tessera
