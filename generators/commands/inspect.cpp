#include "generators/commands/inspect.h"

#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "generators/commands/kernel_line.h"
#include "generators/kernel/artifact_task.h"
#include "generators/kernel/kernel_bits.h"
#include "generators/kernel/prepare.h"
#include "generators/registry/options.h"
#include "schedules/artifact/explain.h"
#include "schedules/artifact/merge.h"
#include "schedules/artifact/provenance.h"
#include "support/files/json_text.h"
#include "support/text/error.h"

namespace tessera {

static Schedule existing(const std::string &name, const Library &library) {
    if (const std::optional<Schedule> schedule = named_schedule(name, library)) return *schedule;
    throw UserError("command.schedule", "'none' has no fields to show; expected a schedule's name or its file (*.json).");
}

// The algorithm that the schedule is for, where this generator knows it and it calls others.
static std::optional<Algorithm> program_of(const Registry &registry, const Schedule &schedule, const Library &library) {
    KernelTask task;
    if (const auto measured = provenance_of(schedule)) task = measured->task;
    else task.algorithm = resolve_head(schedule, library).algorithm;
    const std::string name = schedule.name(), rest = name.substr(std::min(name.size(), name.find('/') + 1));
    if (task.algorithm.empty()) task.algorithm = name.substr(0, name.find('/'));
    const std::string policy = rest.substr(0, rest.find('/'));
    for (const std::string &numerics : registry.numerics_names())
        if (policy.size() < rest.size() && base_name(policy) == numerics) task.numerics = policy;
    for (const Registry::Entry &entry : registry.entries())
        if (entry.name == task.algorithm) {
            const Algorithm algorithm =
                registry.make(task.algorithm, registry.numerics(task.numerics), complete_options(entry.name, entry.options, task.options));
            return algorithm.calls().empty() ? std::nullopt : std::optional(algorithm);
        }
    return std::nullopt;
}

Command explain_command(ProgramLine &program, const Registry &registry) {
    struct Options {
        std::string schedule;
        std::vector<std::string> dirs;
        bool json = false;
    };
    auto options = std::make_shared<Options>();
    const CommandLine line = program.command("explain", "Show which ancestor of a schedule sets each of its fields");
    line.option("schedule", options->schedule, "The schedule's name, or its file (*.json)").required();
    add_schedule_dirs(line, options->dirs);
    line.flag("--json", options->json, "Print JSON, for programs");
    return {
        line, [=, &registry] {
            const Library library = registry.library(registry.schedule_folders(options->dirs));
            const Schedule schedule = existing(options->schedule, library);
            if (const std::optional<Algorithm> program = program_of(registry, schedule, library)) {
                const ProgramSchedule all = applied_schedule(schedule, *program, {}, library, {}).program;
                std::cout << (options->json ? json_text(explain_json(schedule, library, all), 2) + "\n" : explain(schedule, library, all));
                return exit_ok;
            }
            std::cout << (options->json ? json_text(explain_json(schedule, library), 2) + "\n" : explain(schedule, library));
            return exit_ok;
        }};
}

struct Named {
    Schedule schedule;
    std::string as;  // a name or a file, as it was given
};

// Whether the second gives other bits than the first, for what the first is for.
static std::string bits_difference(const Registry &registry, const Library &library, const Named &a, const Named &b,
                                   const std::vector<std::string> &dirs) {
    try {
        const auto task = task_for(registry, a.schedule, library), other = task_for(registry, b.schedule, library);
        if (!task || !other || task->algorithm != other->algorithm || task->numerics != other->numerics)
            return "bits: not compared, as the schedules are not known to be for one algorithm of this generator\n";
        auto bits = [&](const Named &of, const std::string &target) {
            KernelOptions options = options_of(*task);
            options.target = target, options.schedule = of.as, options.schedule_dirs = dirs;
            const ScheduledKernel of_task = prepare_schedule(registry, options);
            return bits_of(of_task.request, of_task.choice);
        };
        const std::string text = difference_text(bits(a, task->target), bits(b, other->target));
        return text.empty() ? "bits: the same\n" : "bits: others come out, by the trees (-) of the first and (+) of the second\n" + text;
    } catch (const UserError &error) { return "bits: not compared: " + error.message() + "\n"; }
}

Command diff_command(ProgramLine &program, const Registry &registry) {
    struct Options {
        std::string a, b;
        std::vector<std::string> dirs;
    };
    auto options = std::make_shared<Options>();
    const CommandLine line =
        program.command("diff", "Show the fields in which two schedules differ, ancestors merged in. Exits 1 if they differ");
    line.option("a", options->a, "A schedule's name, or its file (*.json)").required();
    line.option("b", options->b, "The other schedule's name, or its file (*.json)").required();
    add_schedule_dirs(line, options->dirs);
    return {line, [=, &registry] {
                const Library library = registry.library(registry.schedule_folders(options->dirs));
                const Schedule a = existing(options->a, library), b = existing(options->b, library);
                const std::string differences = diff(a, b, library);
                std::cout << differences;
                if (!differences.empty()) std::cout << bits_difference(registry, library, {a, options->a}, {b, options->b}, options->dirs);
                return differences.empty() ? exit_ok : exit_check_failed;
            }};
}

}  // namespace tessera
