#include "generators/tune/warm_starts.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "algorithms/text/hash.h"
#include "bench/measure/inputs.h"
#include "schedules/artifact/merge.h"
#include "schedules/target/nearest_targets.h"
#include "support/text/error.h"

namespace tessera {

static Extents joined(Extents a, const Extents &b) {
    a.insert(b.begin(), b.end());
    return a;
}

// What is for no machine like the target is infinitely far.
static double distance_of(const KernelTask &task, const KernelRequest &p, const Extents &extents) {
    const double shape = shape_distance(joined(task.fixed, task.extents), joined(p.fixed, extents));
    const Target other = target_named(task.target);
    if (other.arch != p.target.arch) return INFINITY;
    return shape + (task.numerics != p.declared.numerics.name) + (task.options != p.options) + (task.target != p.target.name);
}

std::vector<WarmStart> warm_starts_for(const ScheduledKernel &p, const Extents &extents, const Library &library, size_t most) {
    const KernelRequest &request = p.request;
    const std::string surface = surface_hash(request.declared), base = p.choice.match.schedule ? p.choice.match.schedule->name() : "";
    Chooser chooser(library, request.target, true);
    chooser.set_made_of(request.declared.name, request.made_of);
    auto taken = [&](const Schedule &schedule) { return chooser.take(schedule, request.declared, request.fixed).applied.resolved; };
    std::vector<WarmStart> all;
    for (const std::string &name : library.names()) {
        try {
            const Schedule schedule = library.find(name);
            const auto provenance = provenance_of(schedule);
            if (!provenance || name == base) continue;
            if (provenance->task.algorithm != request.declared.name && resolve_head(schedule, library).surface != surface) continue;
            const double distance = distance_of(provenance->task, request, extents);
            if (!std::isfinite(distance)) continue;
            const Extents every = all_extents(request.bound, extents);
            all.push_back({name, knobs_for(taken(schedule), request.bound, request.target, every), distance});
        } catch (const UserError &) {  // `check` says so
        }
    }
    std::sort(all.begin(), all.end(),
              [](const WarmStart &a, const WarmStart &b) { return std::tie(a.distance, a.name) < std::tie(b.distance, b.name); });
    for (const std::string &target : nearest_targets(request.target)) {
        const Target other = target_named(target);
        const auto family = Chooser(library, other).family(request.declared).schedule;
        if (!family || family->name() == base) continue;
        const bool known = std::any_of(all.begin(), all.end(), [&](const WarmStart &r) { return r.name == family->name(); });
        if (known) continue;
        try {
            all.push_back({family->name(), taken(*family).stages, all.empty() ? 0 : all.back().distance});
        } catch (const UserError &) {  // likewise
        }
    }
    if (all.size() > most) all.resize(most);
    return all;
}

}  // namespace tessera
