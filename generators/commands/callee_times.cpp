#include "generators/commands/callee_times.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/certify/comparison.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::ordered_json;

double CalleeTimes::all_runs_s() const {
    return std::accumulate(all.begin(), all.end(), 0.0, [](double sum, const CalleeTime &t) { return sum + t.all_runs_s(); });
}

void check_calls(const Algorithm &program) {
    if (program.calls().empty())
        throw UserError("callees.none", program.name +
                                            ": --callees: expected a program, which calls other algorithms; it calls nothing. "
                                            "Leave out --callees.");
}

static bool is_within(const std::string &stage, const std::string &scope) { return stage.starts_with(scope + "."); }

// The schedule that a call takes, by name; "" where the program's own states the callee's stages.
static std::string schedule_at(const PreparedKernel &program, const std::string &scope) {
    for (const CalleeSchedule &taken : program.choice.applied.program.callees)
        if (taken.scope == scope) return taken.ancestry.front().name();
    auto states = [&](const KnobsByStage &stages) {
        return std::any_of(stages.begin(), stages.end(), [&](const auto &s) { return is_within(s.first, scope); });
    };
    const auto &variants = program.choice.applied.resolved.variants;
    const bool is_stated = states(program.choice.applied.resolved.stages) ||
                           std::any_of(variants.begin(), variants.end(), [&](const auto &variant) { return states(variant.stages); });
    return is_stated ? "" : "none";
}

CalleeTimes times_of_callees(const Registry &registry, const KernelOptions &options, const PreparedKernel &program, const Extents &symbolic,
                             const Timing &timing) {
    const Callees callees = callees_of(program.request.declared, program.request.fixed, symbolic);
    CalleeTimes times;
    times.uncounted = callees.uncounted;
    for (const CalledKernel &callee : callees.leaves()) {
        CalleeTime one{callee, schedule_at(program, callee.scopes.front()), true, {}};
        one.is_own = !one.schedule.empty();
        KernelOptions own;
        own.given = callee.algorithm, own.shape = assignments(callee.fixed), own.target = options.target, own.schedule = one.schedule;
        own.schedule_dirs = options.schedule_dirs;
        const PreparedKernel kernel = prepare(registry, own);
        one.schedule = kernel.choice.match.schedule ? kernel.choice.match.schedule->name() : "none";
        one.time = time_of(kernel, callee.dynamic, timing);
        times.all.push_back(std::move(one));
    }
    std::stable_sort(times.all.begin(), times.all.end(),
                     [](const CalleeTime &a, const CalleeTime &b) { return a.all_runs_s() > b.all_runs_s(); });
    return times;
}

std::optional<double> gflops_of(const KernelTime &time) {
    return time.operations ? std::optional(*time.operations / time.median_s * 1e-9) : std::nullopt;
}

static Extents shape_of(const CalledKernel &callee) {
    Extents shape = callee.fixed;
    shape.insert(callee.dynamic.begin(), callee.dynamic.end());
    return shape;
}

std::string text_of(const CalleeTimes &times, const KernelTime &whole) {
    constexpr const char *rest = "remainder";
    size_t name = std::string_view(rest).size(), shape = std::string_view("shape").size(), most_runs = 4;
    for (const CalleeTime &t : times.all) {
        name = std::max(name, t.callee.algorithm->name.size());
        shape = std::max(shape, to_string(shape_of(t.callee)).size());
        most_runs = std::max(most_runs, std::to_string(t.callee.runs).size());
    }
    std::string text = fmt::format("{:{}}  {:{}}  {:>{}}  {:>12}  {:>6}  {:>8}  {}\n", "callee", name, "shape", shape, "runs", most_runs,
                                   "us each", "share", "GFLOP/s", "schedule");
    auto share = [&](double seconds) { return fmt::format("{:.1f}%", seconds / whole.median_s * 100); };
    for (const CalleeTime &t : times.all) {
        const auto gflops = gflops_of(t.time);
        text += fmt::format("{:{}}  {:{}}  {:>{}}  {:>12.3f}  {:>6}  {:>8}  {}\n", t.callee.algorithm->name, name,
                            to_string(shape_of(t.callee)), shape, t.callee.runs, most_runs, t.time.median_s * 1e6, share(t.all_runs_s()),
                            gflops ? fmt::format("{:.1f}", *gflops) : "-", t.schedule);
    }
    const double left = whole.median_s - times.all_runs_s();
    text += fmt::format("{:{}}  {:{}}  {:>{}}  {:>12.3f}  {:>6}\n", rest, name, "", shape, "", most_runs, left * 1e6, share(left));
    for (const CalleeTime &t : times.all) {
        if (!t.is_own)
            text += fmt::format("note: {}: the program's schedule states its stages at '{}' itself; it was timed with its best match\n",
                                t.callee.algorithm->name, t.callee.scopes.front());
        if (t.callee.may_end_early)
            text += fmt::format("note: {}: its repetitions may stop early; all of them were counted\n", t.callee.algorithm->name);
    }
    for (const UncountedCall &u : times.uncounted)
        text += fmt::format("note: {} at '{}' is in the remainder: the extent of {} depends on data\n", u.callee, u.scope, u.dim);
    return text;
}

ordered_json json_of(const CalleeTimes &times, const KernelTime &whole) {
    ordered_json all = ordered_json::array(), uncounted = ordered_json::array();
    for (const CalleeTime &t : times.all) {
        ordered_json one = {{"callee", t.callee.algorithm->name},
                            {"extents", t.callee.extents},
                            {"runs", t.callee.runs},
                            {"may_end_early", t.callee.may_end_early},
                            {"scopes", t.callee.scopes},
                            {"schedule", t.schedule},
                            {"schedule_is_own", t.is_own},
                            {"median_s", t.time.median_s},
                            {"min_s", t.time.min_s},
                            {"share", t.all_runs_s() / whole.median_s}};
        if (const auto gflops = gflops_of(t.time)) one["gflops"] = *gflops;
        all.push_back(one);
    }
    for (const UncountedCall &u : times.uncounted) uncounted.push_back({{"scope", u.scope}, {"callee", u.callee}, {"dim", u.dim}});
    return {{"callees", all}, {"uncounted", uncounted}, {"remainder_s", whole.median_s - times.all_runs_s()}};
}

}  // namespace tessera
