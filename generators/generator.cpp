#include "generators/generator.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

#include "generators/check/check_command.h"
#include "generators/commands/bench.h"
#include "generators/commands/cost_model_command.h"
#include "generators/commands/generate.h"
#include "generators/commands/inspect.h"
#include "generators/commands/list.h"
#include "generators/commands/show.h"
#include "generators/commands/verify_kernel.h"
#include "generators/doctor/doctor.h"
#include "generators/kernel/manifest.h"
#include "generators/tune/records_command.h"
#include "generators/tune/tune.h"
#include "support/text/error.h"

namespace tessera {

// The command line's own errors have the form of all others.
static UserError command_error(const CLI::ParseError &error, const CLI::App &app, const std::vector<Command> &commands, int argc,
                               char **argv) {
    std::vector<std::string> names;
    for (const Command &c : commands) names.push_back(c.line->get_name());
    const std::string first = argc > 1 ? argv[1] : "";
    if (app.get_subcommands().empty()) {
        const std::string got = first.empty() ? "no command" : "'" + first + "'";
        return UserError("command.unknown", app.get_name() + ": expected a command, got " + got + "; the commands are " + join(names) +
                                                "." + did_you_mean(first, names) + " --help describes them.");
    }
    const std::string command = app.get_name() + " " + app.get_subcommands().front()->get_name();
    return UserError("command.arguments", command + ": " + error.what() + "; " + command + " --help describes the arguments.");
}

static int run(int argc, char **argv, const Registry &registry) {
    registry.check();
    CLI::App app("Generates kernels ahead of time: an algorithm, a schedule and a target give a static library and a C header.");
    app.name(std::filesystem::path(argc > 0 ? argv[0] : "tessera-generator").filename().string());
    app.set_version_flag("--version", std::string("tessera ") + tessera_version() + ", Halide " + halide_version());
    app.footer("It ends with 0 when all is well, 1 when a check failed, 2 on a mistake of the caller's, 3 on an error of Tessera's.");
    app.require_subcommand(1);
    const std::vector<Command> commands = {list_command(app, registry),    show_command(app, registry), generate_command(app, registry),
                                           explain_command(app, registry), diff_command(app, registry), verify_command(app, registry),
                                           bench_command(app, registry),   tune_command(app, registry), check_command(app, registry),
                                           records_command(app, registry), cost_model_command(app),     doctor_command(app, registry)};
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success &asked) {  // --help, --version
        return app.exit(asked);
    } catch (const CLI::ParseError &error) { throw command_error(error, app, commands, argc, argv); }
    for (const Command &command : commands)
        if (command.line->parsed()) return command.run();
    throw InternalError("a command line names a command");
}

int generator_main(int argc, char **argv, const Registry &registry) {
    std::signal(SIGXFSZ, SIG_IGN);  // writing then fails, with a reason
    try {
        const int code = run(argc, argv, registry);
        errno = 0;
        if (!std::cout.flush())
            throw UserError("output.stdout", "standard output: expected to write all of it; " +
                                                 std::string(errno ? std::strerror(errno) : "writing failed") +
                                                 ". Make room, or send it elsewhere.");
        return code;
    } catch (const UserError &error) {
        std::cerr << error.what() << "\n";
        return exit_user_error;
    } catch (const InternalError &error) { std::cerr << error.what() << "\n"; } catch (const std::exception &error) {
        std::cerr << InternalError(error.what()).what() << "\n";
    } catch (...) { std::cerr << InternalError("something unknown was thrown").what() << "\n"; }
    return exit_internal_error;
}

}  // namespace tessera
