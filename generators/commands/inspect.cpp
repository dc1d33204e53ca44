#include "generators/commands/inspect.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "generators/kernel/options.h"
#include "generators/kernel/prepare.h"
#include "schedules/artifact/explain.h"
#include "support/text/error.h"

namespace tessera {

static Schedule existing(const std::string &name, const Library &library) {
    if (const std::optional<Schedule> schedule = named_schedule(name, library)) return *schedule;
    throw UserError("command.schedule", "'none' is no schedule to look at; expected a schedule's name or its file (*.json).");
}

Command explain_command(CLI::App &app, const Registry &registry) {
    struct Options {
        std::string schedule;
        std::vector<std::string> dirs;
        bool json = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App *line = app.add_subcommand("explain", "Show which ancestor of a schedule sets each of its fields");
    line->add_option("schedule", options->schedule, "Its name, or its file (*.json)")->required();
    add_schedule_dirs(*line, options->dirs);
    line->add_flag("--json", options->json, "For programs");
    return {line, [=, &registry] {
                const Library library = registry.library(schedule_folders(options->dirs));
                const Schedule schedule = existing(options->schedule, library);
                std::cout << (options->json ? explain_json(schedule, library).dump(2) + "\n" : explain(schedule, library));
                return exit_ok;
            }};
}

Command diff_command(CLI::App &app, const Registry &registry) {
    struct Options {
        std::string a, b;
        std::vector<std::string> dirs;
    };
    auto options = std::make_shared<Options>();
    CLI::App *line = app.add_subcommand("diff", "Show the fields in which two schedules differ, ancestors merged in; 1 if they do");
    line->add_option("a", options->a, "A schedule's name, or its file (*.json)")->required();
    line->add_option("b", options->b, "The other's")->required();
    add_schedule_dirs(*line, options->dirs);
    return {line, [=, &registry] {
                const Library library = registry.library(schedule_folders(options->dirs));
                const std::string differences = diff(existing(options->a, library), existing(options->b, library), library);
                std::cout << differences;
                return differences.empty() ? exit_ok : exit_check_failed;
            }};
}

}  // namespace tessera
