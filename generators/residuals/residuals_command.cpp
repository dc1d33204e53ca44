#include "generators/residuals/residuals_command.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "generators/commands/kernel_line.h"
#include "generators/commands/notes.h"
#include "generators/residuals/plan_of_gradient.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/printable.h"
#include "support/text/time_text.h"

namespace tessera {

namespace {

struct ResidualsOptions {
    KernelOptions kernel;
    std::vector<std::string> extents;
    std::string budget, out;
};

std::string text_of(const GradientPlan &plan, int64_t budget) {
    size_t width = 5;
    for (const PlannedResidual &s : plan.stages) width = std::max(width, s.stage.size());
    std::string text = fmt::format("{:<{}}  {:>14}  {:<9}  {}\n", "stage", width, "bytes", "choice", "time of its copies");
    for (const PlannedResidual &s : plan.stages)
        if (s.is_saved || s.is_again)
            text += fmt::format("{:<{}}  {:>14.0f}  {:<9}  {:>10}\n", s.stage, width, s.bytes, s.is_saved ? "save" : "recompute",
                                time_text(s.seconds));
    for (const auto &[call, every] : plan.groups) text += fmt::format("rounds of {} in groups of {}\n", call, every);
    text += fmt::format(
        "peak of the lowered program, of {} bytes\n  everything saved             {:>14}\n  this plan                    {:>14}\n  "
        "everything "
        "computed again    {:>14}\ntime that copies add at least  {} (everything computed again: {})\n",
        budget, plan.peak_of_all, plan.peak, plan.peak_of_none, time_text(plan.seconds_again), time_text(plan.seconds_most));
    return text;
}

}  // namespace

int64_t parse_bytes(const std::string &text, const std::string &option) {
    struct Unit {
        const char *name;
        double bytes;
    };
    constexpr Unit units[] = {{"", 1},     {"B", 1},   {"k", 1e3},  {"kB", 1e3},      {"KB", 1e3},      {"M", 1e6},
                              {"MB", 1e6}, {"G", 1e9}, {"GB", 1e9}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    char *end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    const std::string suffix = end;
    const auto *unit = std::find_if(std::begin(units), std::end(units), [&](const Unit &u) { return suffix == u.name; });
    if (end == text.c_str() || unit == std::end(units) || !std::isfinite(number) || number < 0 || number * unit->bytes > 9e18)
        throw UserError("command.arguments", option + " " + printable(text) + ": expected bytes, such as 64MB, 1.5GiB or 4096.");
    return static_cast<int64_t>(number * unit->bytes);
}

Command residuals_command(ProgramLine &program, const Registry &registry) {
    auto o = std::make_shared<ResidualsOptions>();
    const CommandLine line = program.command(
        "residuals", "Choose which stages a gradient keeps and which it computes again, the fastest within a budget of workspace");
    add_algorithm_options(line, o->kernel);
    add_schedule_options(line, o->kernel);
    line.option("--extents", o->extents, "Extents of dynamic dims, at which memory and time are counted").takes("DIM=EXTENT");
    line.option("--budget", o->budget, "The most workspace that the kernel may ask for in one thread, such as 64MB or 1.5GiB")
        .takes("BYTES")
        .required();
    line.option("-o,--out", o->out, "Where to write the plan, which --residuals takes").takes("FILE.json");
    return {line, [=, &registry] {
                const std::filesystem::path out(o->out);
                if (!o->out.empty() && out.extension() != ".json")
                    throw UserError("command.arguments", "residuals: --out " + o->out +
                                                             ": expected a name that ends in .json, as --residuals takes it. Name it so.");
                const int64_t budget = parse_bytes(o->budget, "--budget");
                const GradientPlan plan =
                    plan_of_gradient(registry, o->kernel, parse_shape(o->extents, "--extents"), budget, printing_notes(o->kernel));
                std::cout << text_of(plan, budget);
                if (o->out.empty()) return exit_ok;
                const OutputFolder folder(out.has_parent_path() ? out.parent_path() : ".");
                folder.write(out.filename().string(), plan.text());
                folder.publish(out.filename().string());
                std::cout << "wrote " << o->out << "\n";
                return exit_ok;
            }};
}

}  // namespace tessera
