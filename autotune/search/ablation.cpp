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
using Changes = std::vector<std::pair<std::string, std::string>>;

// Nothing where the knobs do not fit each other.
std::optional<Candidate> candidate_of(const Search &search, const std::optional<Stages> &stages) {
    return stages ? search.candidate_of(*stages, "ablation") : std::nullopt;
}

std::optional<Stages> without(const std::optional<Stages> &stages, const Candidate &base, const Changes &changes) {
    if (!stages) return std::nullopt;
    try {
        Stages rest = *stages;
        for (const auto &[stage, knob] : changes) rest = with_knob_of(rest, base.stages, stage, knob);
        return rest;
    } catch (const UserError &) { return std::nullopt; }
}

// Changes that can be taken back together, and none of which the others can do without: the first, and what goes with it.
class Groups {
public:
    Groups(const Candidate &winner, const Candidate &base, const Search &search) : winner_(winner), base_(base), search_(search) {}

    std::optional<Candidate> made_without(const Changes &changes) const {
        return candidate_of(search_, without(winner_.stages, base_, changes));
    }

    // From the smallest of `wholes` that goes, parts are left out as long as the rest goes, large ones first (Zeller's delta debugging).
    std::optional<Changes> of(const std::pair<std::string, std::string> &first, const std::vector<Changes> &wholes) const {
        for (const Changes &whole : wholes) {
            Changes rest = whole;
            std::erase(rest, first);
            if (!goes(first, rest)) continue;
            for (size_t part = (rest.size() + 1) / 2; part > 0; part /= 2)
                for (size_t at = 0; at < rest.size();) {
                    Changes fewer = rest;
                    const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(at);
                    fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(part, rest.size() - at)));
                    if (goes(first, fewer)) rest = std::move(fewer);
                    else at += part;
                }
            rest.insert(rest.begin(), first);
            return rest;
        }
        return std::nullopt;
    }

private:
    const Candidate &winner_, &base_;
    const Search &search_;

    bool goes(const std::pair<std::string, std::string> &first, Changes rest) const {
        rest.push_back(first);
        return made_without(rest).has_value();
    }
};

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

static std::string name_of(const std::pair<std::string, std::string> &change) { return change.first + "." + change.second; }

std::string changes_text(const Ablation &ablation) {
    std::vector<std::string> names;
    for (const auto &change : ablation.changes) names.push_back(name_of(change));
    return join(names) + (names.size() > 1 ? " together" : "");
}

std::vector<std::pair<std::string, std::string>> ablation_rows(const std::vector<Ablation> &ablations) {
    std::vector<std::pair<std::string, std::string>> rows;
    std::vector<std::string> unmeasured;
    for (const Ablation &a : ablations) {
        if (a.gain > 0) rows.emplace_back(fmt::format("{:.3f}", a.gain), changes_text(a));
        else if (a.without == Verdict::unmeasured) unmeasured.push_back(changes_text(a));
        else if (a.without == Verdict::refused) rows.emplace_back("-", changes_text(a) + " (the others need it)");
        else rows.emplace_back("-", fmt::format("{} (without it: {})", changes_text(a), name_of(a.without)));
    }
    if (!unmeasured.empty()) rows.emplace_back("-", join(unmeasured, "; ") + " (not measured)");
    return rows;
}

void sort_by_worth(std::vector<Ablation> &ablations) {
    std::stable_sort(ablations.begin(), ablations.end(), [](const Ablation &a, const Ablation &b) { return a.gain > b.gain; });
}

std::vector<AblationCandidate> ablations_of(const Candidate &winner, const Candidate &base, const Search &search, const CostModel &model,
                                            int most) {
    std::vector<AblationCandidate> all;
    if (most <= 0) return all;
    const Groups groups(winner, base, search);
    const Changes changes = differing_knobs(winner.stages, base.stages);
    Changes needed;
    auto add = [&](const Changes &of, std::optional<Candidate> without) {
        if (!without || without->resolved != winner.resolved) all.push_back({{of}, std::move(without)});
    };
    for (const auto &change : changes)
        if (auto one = groups.made_without({change})) add({change}, std::move(one));
        else needed.push_back(change);
    for (Changes left = needed; !left.empty();) {
        const auto first = left.front();
        const Changes group = groups.of(first, {left, needed, changes}).value_or(Changes{first});
        add(group, groups.made_without(group));
        std::erase_if(left, [&](const auto &change) { return std::find(group.begin(), group.end(), change) != group.end(); });
    }
    std::vector<Featured> featured = {winner.features};
    for (const AblationCandidate &a : all)
        if (a.without) featured.push_back(a.without->features);
    const std::vector<double> scores = model.predict(featured);
    std::vector<std::pair<double, size_t>> expected;  // how much worse it is expected to be without it
    for (size_t i = 0, next = 1; i < all.size(); i++)
        if (all[i].without) expected.emplace_back(scores[0] - scores[next++], i);
    std::stable_sort(expected.begin(), expected.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
    for (size_t i = static_cast<size_t>(most); i < expected.size(); i++) {
        AblationCandidate &one = all[expected[i].second];
        one.without.reset(), one.ablation.without = Verdict::unmeasured;
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
        rest = without(rest, base, a.ablation.changes);
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
