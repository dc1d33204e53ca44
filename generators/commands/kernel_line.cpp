#include "generators/commands/kernel_line.h"

#include "schedules/target/target.h"
#include "support/text/error.h"

namespace tessera {

void add_algorithm_options(const CommandLine &line, KernelOptions &options) {
    line.option("algorithm", options.algorithm, "The algorithm's name, as 'list' shows it, or a file (*.json) such as show --json writes")
        .required();
    line.option("--numerics", options.numerics,
                "Numerics policy: in which types numbers are kept and computed. A name that 'list' shows, or a file (*.json)")
        .shows_default("f32");
    line.option("--option", options.options,
                "Values of the algorithm's options, such as stride=2 activation=relu; 'list <algorithm>' shows them")
        .takes("NAME=VALUE")
        .separated_by(',');
    line.option(
            "--grad", options.grad,
            "In place of the algorithm its gradients by these inputs, states or parameters: it takes <output>.grad, and gives <input>.grad")
        .takes("NAME")
        .separated_by(',');
    line.option("--tangent", options.tangent,
                "The algorithm and how its outputs change: it takes <input>.tangent of these, and gives <output>.tangent too")
        .takes("NAME")
        .separated_by(',');
    std::vector<std::string> effects;
    for (const Effect e : all_effects) effects.emplace_back(name_of(e));
    line.option("--suspend", options.suspended, "Refuse an algorithm that has one of these effects: " + join(effects))
        .one_of(effects)
        .separated_by(',');
    line.option("--shape", options.shape, "Extents to fix, such as N=768 K=3072; other dims stay dynamic").takes("DIM=EXTENT");
}

void add_schedule_dirs(const CommandLine &line, std::vector<std::string> &dirs) {
    line.option("--schedule-dir", dirs, "A folder in which schedules are looked up by name, before Tessera's own; may be repeated")
        .one_value_each()
        .takes("DIR");
}

void add_schedule_options(const CommandLine &line, KernelOptions &options) {
    line.option("--schedule", options.schedule,
                "A schedule's name or file (*.json), 'none' for plain loops, 'derived' for the cost model's choice; default: what was "
                "tuned for the shape or, within 4 "
                "times each extent, the nearest one, otherwise <algorithm>/<target>, of the nearest target that has any, otherwise "
                "'derived'")
        .takes("NAME|FILE");
    line.option("--derive-for", options.derive_for,
                "Extents that the kernel mostly runs with, such as M=512: what a derived schedule is for; of other dynamic dims it is for "
                "small and large ones")
        .takes("DIM=EXTENT");
    line.option("--target", options.target,
                "The machine to generate for: " + join(target_names()) +
                    ", with features of the processor added by +; or a target file (*.json); for generate also several, as in avx2,avx512")
        .shows_default();
    add_schedule_dirs(line, options.schedule_dirs);
    line.flag("--quiet", options.quiet, "Print no notes on stderr");
}

}  // namespace tessera
