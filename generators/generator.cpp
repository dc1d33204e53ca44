#include "generators/generator.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "generators/bundle/bundle_command.h"
#include "generators/check/check_command.h"
#include "generators/commands/bench.h"
#include "generators/commands/cost_model_command.h"
#include "generators/commands/error_form.h"
#include "generators/commands/export_command.h"
#include "generators/commands/generate.h"
#include "generators/commands/import_command.h"
#include "generators/commands/inspect.h"
#include "generators/commands/list.h"
#include "generators/commands/quantize.h"
#include "generators/commands/show.h"
#include "generators/commands/verify_kernel.h"
#include "generators/doctor/doctor.h"
#include "generators/oci/registry_command.h"
#include "generators/registry/versions.h"
#include "generators/replay/replay_command.h"
#include "generators/residuals/residuals_command.h"
#include "generators/tune/records_command.h"
#include "generators/tune/tune.h"
#include "support/processes/deep_stack.h"
#include "support/text/error.h"

namespace tessera {

static int run(int argc, char **argv, const Registry &registry) {
    registry.check();
    ProgramLine program(
        std::filesystem::path(argc > 0 ? argv[0] : "tessera-generator").filename().string(),
        "Generates kernels ahead of time: an algorithm, a schedule and a target give a static library and a C header.",
        std::string("tessera ") + tessera_version() + ", Halide " + halide_version(),
        "It ends with 0 when all is well, 1 when a check failed, 2 on a mistake of the caller's, 3 on an error of Tessera's.");
    const std::vector<Command> commands = {
        list_command(program, registry),    show_command(program, registry), generate_command(program, registry),
        explain_command(program, registry), diff_command(program, registry), verify_command(program, registry),
        bench_command(program, registry),   tune_command(program, registry), check_command(program, registry),
        records_command(program, registry), cost_model_command(program),     quantize_command(program),
        doctor_command(program, registry),  import_command(program),         export_command(program, registry),
        bundle_command(program, registry),  registry_command(program),       replay_command(program),
        residuals_command(program, registry)};
    if (const auto answered = program.parse(argc, argv)) return *answered;
    for (const Command &command : commands)
        if (command.line.is_given()) return command.run();
    throw InternalError("a command line names a command");
}

static int run_reporting(int argc, char **argv, const Registry &registry) {
    set_error_form(error_form_of(argc, argv));
    std::signal(SIGXFSZ, SIG_IGN);  // writing then fails, with a reason
    try {
        const int code = run(argc, argv, registry);
        errno = 0;
        if (!std::cout.flush())
            throw UserError("output.stdout", "standard output: expected to write all of it; " +
                                                 std::string(errno ? std::strerror(errno) : "writing failed") +
                                                 ". Free some space, or send it elsewhere.");
        return code;
    } catch (const UserError &error) {
        print(error);
        return exit_user_error;
    } catch (const InternalError &error) { print(error); } catch (const std::exception &error) {
        print(InternalError(error.what()));
    } catch (...) { print(InternalError("something unknown was thrown")); }
    return exit_internal_error;
}

int generator_main(int argc, char **argv, const Registry &registry) {
    return on_deep_stack([&] { return run_reporting(argc, argv, registry); });
}

}  // namespace tessera
