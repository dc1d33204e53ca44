#include "generators/residuals/plan_of_gradient.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/transform/bind_extents.h"
#include "algorithms/transform/given_extents.h"
#include "compiler/abi/workspace_need.h"
#include "generators/kernel/prepare.h"
#include "generators/registry/transforms.h"
#include "generators/residuals/residual_choices.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr size_t most_groupings = 32, most_asked = 12;  // of one grouping
constexpr int most_corrections = 3;

using Groups = std::map<std::string, int64_t>;

std::vector<std::string> words_of(const Groups &groups, const std::vector<std::string> &saved) {
    std::vector<std::string> words;
    for (const auto &[call, every] : groups) words.push_back(call + "=" + std::to_string(every));
    for (const std::string &stage : saved) words.push_back(stage + "=save");
    words.emplace_back("*=recompute");
    return words;
}

// Sizes of groups for a call of so many rounds: none, and powers of two and of two times three that its rounds are a multiple of. A number
// of rounds that none of them divides has the one next to its root, and rounds behind the last group.
std::vector<int64_t> group_sizes(const Dim &rounds, int64_t number) {
    const bool is_fixed = rounds.kind == DimKind::fixed;
    std::vector<int64_t> sizes = {0};
    for (int64_t power = 2; power < number; power *= 2)
        for (const int64_t size : {power, power + power / 2})
            if (size > 1 && size < number && number % size == 0 && (is_fixed || rounds.multiple_of % size == 0)) sizes.push_back(size);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    const auto root = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(number))));
    if (sizes.size() == 1 && is_fixed && number > 3) sizes.push_back(root);
    return sizes;
}

// One way to put rounds in groups, and what is chosen among there.
struct Grouping {
    Groups groups;
    ResidualChoices choices;
};

class Planner {
public:
    Planner(const Registry &registry, const KernelOptions &options, const Extents &extents, int64_t budget,
            const PreparationObserver &observer)
        : registry_(registry), options_(options), extents_(extents), budget_(budget), observer_(observer) {
        const auto refuse = [&](const std::string &got) {
            throw UserError("residuals.gradient",
                            options.algorithm +
                                ": a plan of residuals is one of a gradient; expected --grad <names> without --residuals as the last that "
                                "is made of the algorithm, got " +
                                got + ". Say by what the gradients are, such as --grad x w.");
        };
        if (options.transforms.empty()) refuse("no gradient");
        gradient_ = options.transforms.back();
        if (!gradient_.starts_with("grad") && !gradient_.starts_with("value_and_grad")) refuse("'" + gradient_ + "' behind all");
        by_ = gradient_words(gradient_);
        if (!by_.residuals.choices.empty() || !by_.residuals.groups.empty()) refuse("'" + gradient_ + "'");
        KernelOptions before = options;
        before.transforms.pop_back();
        const Extents fixed = parse_shape(options.shape);
        const Algorithm whole = load_algorithm(registry, before);
        Extents of_it;  // dims that the gradient alone has are none of the forward part
        for (const auto &[dim, extent] : fixed)
            if (whole.find_dim(dim)) of_it.insert({dim, extent});
        algorithm_ = bind_extents(whole, of_it);
        all_ = of_it;
        for (const auto &[dim, extent] : extents)
            if (algorithm_.find_dim(dim)) all_.insert({dim, extent});
    }

    GradientPlan run() {
        std::vector<Grouping> groupings = all_groupings();
        const Grouping first = groupings.front();
        const int64_t peak_of_all = asked(first, cheapest_plan(first.choices.graph, 0));
        const Found found = peak_of_all <= budget_ ? Found{first, cheapest_plan(first.choices.graph, 0), peak_of_all} : searched(groupings);
        if (found.peak > budget_)
            throw UserError(
                "residuals.budget",
                fmt::format("{}: expected a plan whose workspace is at most {} bytes; the least that was found asks for {} bytes{}, "
                            "and everything saved for {}. Give it more, or smaller extents.",
                            algorithm_.name, budget_, found.peak, in_words(found.grouping.groups), peak_of_all));
        GradientPlan plan;
        plan.groups = found.grouping.groups;
        plan.peak = found.peak, plan.peak_of_all = peak_of_all;
        plan.peak_of_none = asked(found.grouping, kept_always(found.grouping));
        const ResidualGraph &graph = found.grouping.choices.graph;
        plan.seconds_again = found.grouping.choices.seconds_before + seconds_of(graph, found.kept);
        plan.seconds_most = found.grouping.choices.seconds_before + seconds_of(graph, kept_always(found.grouping));
        const std::set<size_t> again = computed_again(graph, found.kept);
        for (size_t v = 0; v < graph.size(); v++)
            plan.stages.push_back({graph[v].name, graph[v].bytes, graph[v].seconds, found.kept.count(v) > 0, again.count(v) > 0});
        plan.lowered = peaks_.size();
        return plan;
    }

private:
    struct Found {
        Grouping grouping;
        Kept kept;
        int64_t peak = INT64_MAX;
        double seconds() const { return grouping.choices.seconds_before + seconds_of(grouping.choices.graph, kept); }
    };

    const Registry &registry_;
    const KernelOptions options_;
    const Extents extents_;
    const int64_t budget_;
    const PreparationObserver observer_;
    std::string gradient_;
    By by_;
    Algorithm algorithm_;                                                 // that it is the gradient of
    Extents all_;                                                         // of its symbolic dims
    std::map<std::pair<std::vector<std::string>, bool>, int64_t> peaks_;  // by words and whether in plain loops

    static std::string in_words(const Groups &groups) {
        std::string text;
        for (const auto &[call, every] : groups) text += fmt::format(" with rounds of '{}' in groups of {}", call, every);
        return text;
    }

    static Kept kept_always(const Grouping &grouping) {
        Kept kept;
        const ResidualGraph &graph = grouping.choices.graph;
        for (size_t v = 0; v < graph.size(); v++)
            if (graph[v].is_kept) kept.insert(v);
        return kept;
    }

    int64_t asked(const Grouping &grouping, const Kept &kept, bool in_plain_loops = false) {
        std::vector<std::string> saved;
        for (const size_t v : kept) saved.push_back(grouping.choices.graph[v].name);
        const std::vector<std::string> words = words_of(grouping.groups, saved);
        in_plain_loops |= options_.schedule == "none";
        const auto [peak, is_new] = peaks_.try_emplace({words, in_plain_loops});
        if (!is_new) return peak->second;
        KernelOptions options = options_;
        options.transforms.back() = gradient_;
        for (const std::string &word : words) options.transforms.back() += " " + word;
        if (in_plain_loops) options.schedule = "none";
        return peak->second = peak_of(registry_, options, extents_, in_plain_loops ? PreparationObserver() : observer_);
    }

    Grouping grouping_of(const Groups &groups) const {
        By by = by_;
        by.residuals.groups = groups;
        return {groups, residual_choices(forward_part(algorithm_, by), all_, registry_.target(options_.target))};
    }

    // The one without groups first, then those that take longer at least.
    std::vector<Grouping> all_groupings() const {
        std::vector<Groups> groups = {{}};
        const ForwardPart part = forward_part(algorithm_, by_);
        const Extents extents = all_extents(part.algorithm, symbolic_of(part.algorithm));
        for (const ForwardPart &inner : part.within) {
            std::vector<Groups> more;
            const std::string &dim = inner.call.repeat->dim;
            const auto number = extents.find(dim);
            if (number == extents.end()) continue;
            for (const Groups &before : groups)
                for (const int64_t size : group_sizes(part.algorithm.dim(dim), number->second)) {
                    more.push_back(before);
                    if (size > 0) more.back()[inner.call.scope] = size;
                }
            if (more.size() > most_groupings) break;
            groups = std::move(more);
        }
        std::vector<Grouping> all;
        for (const Groups &g : groups) {
            try {
                all.push_back(grouping_of(g));
            } catch (const UserError &) {
                if (g.empty()) throw;  // otherwise these rounds have no groups
            }
        }
        std::stable_sort(all.begin(), all.end(),
                         [](const Grouping &a, const Grouping &b) { return a.choices.seconds_before < b.choices.seconds_before; });
        return all;
    }

    Extents symbolic_of(const Algorithm &a) const {
        Extents symbolic;
        for (const auto &[dim, extent] : all_)
            if (const Dim *d = a.find_dim(dim); d && d->kind == DimKind::symbolic) symbolic.insert({dim, extent});
        return symbolic;
    }

    // The fastest of all groupings that fits by plain loops, or what has the least peak.
    Found in_plain_loops(const std::vector<Grouping> &groupings, int64_t budget) {
        std::optional<Found> best;
        for (const Grouping &grouping : groupings) {
            const bool fits_already = best && best->peak <= budget;
            if (fits_already && grouping.choices.seconds_before >= best->seconds()) continue;
            const ResidualPlan plan = plan_within(
                grouping.choices.graph, budget, [&](const Kept &kept) { return asked(grouping, kept, true); }, most_asked);
            const Found found{grouping, plan.kept, plan.peak};
            const bool is_better =
                !best || (plan.fits ? !fits_already || found.seconds() < best->seconds() : !fits_already && found.peak < best->peak);
            if (is_better) best = found;
        }
        return *best;
    }

    // Plain loops tell how plans differ; the schedule tells what they take. The budget of the former is moved by the difference.
    Found searched(const std::vector<Grouping> &groupings) {
        std::optional<Found> best;
        int64_t budget = budget_;
        for (int i = 0; i < most_corrections; i++) {
            const Found plain = in_plain_loops(groupings, budget);
            Found found = plain;
            found.peak = asked(found.grouping, found.kept);
            const bool fits = found.peak <= budget_;
            const bool is_better = !best || (fits ? best->peak > budget_ || found.seconds() < best->seconds()
                                                  : best->peak > budget_ && found.peak < best->peak);
            if (is_better) best = found;
            const int64_t moved = plain.peak + (budget_ - found.peak);
            if (options_.schedule == "none" || moved <= 0 || std::abs(moved - budget) < budget_ / 64 || (!fits && plain.peak > budget))
                break;
            budget = moved;
        }
        return *best;
    }
};

}  // namespace

int64_t peak_of(const Registry &registry, const KernelOptions &options, const Extents &extents, const PreparationObserver &observer) {
    const PreparedKernel prepared = prepare(registry, options, "", observer);
    return workspace_need(prepared.compiled.kernel, given_extents(prepared.request.bound, extents)).of(1);
}

GradientPlan plan_of_gradient(const Registry &registry, const KernelOptions &options, const Extents &extents, int64_t budget,
                              const PreparationObserver &observer) {
    return Planner(registry, options, extents, budget, observer).run();
}

std::vector<std::string> GradientPlan::words() const { return words_of(groups, saved()); }

std::string GradientPlan::text() const {
    std::vector<std::string> lines;
    for (const auto &[call, every] : groups) lines.push_back(nlohmann::json{{call, every}}.dump());
    for (const std::string &stage : saved()) lines.push_back(nlohmann::json{{stage, "save"}}.dump());
    lines.push_back(nlohmann::json{{"*", "recompute"}}.dump());
    return "[\n  " + fmt::format("{}", fmt::join(lines, ",\n  ")) + "\n]\n";
}

std::vector<std::string> GradientPlan::saved() const {
    std::vector<std::string> names;
    for (const PlannedResidual &s : stages)
        if (s.is_saved) names.push_back(s.stage);
    return names;
}

}  // namespace tessera
