#include "generators/commands/kernel_line.h"

#include <algorithm>
#include <memory>

#include "generators/registry/transforms.h"
#include "schedules/target/target.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

// What the short forms say, until the whole line is known.
struct TransformLine {
    std::vector<std::string> grad, tangent, vmap, checkpoint, residuals, transform;
};

std::string with_names(std::string words, const std::vector<std::string> &names) {
    for (const std::string &name : names) words += " " + name;
    return words;
}

void add_transform_options(const CommandLine &line, KernelOptions &options) {
    const auto said = std::make_shared<TransformLine>();
    line.option("--grad", said->grad,
                "In place of the algorithm its gradients by these inputs, states or parameters: it takes <output>.grad, and gives "
                "<input>.grad")
        .takes("NAME")
        .separated_by(',');
    line.option("--tangent", said->tangent,
                "The algorithm and how its outputs change: it takes <input>.tangent of these, and gives <output>.tangent too")
        .takes("NAME")
        .separated_by(',');
    line.option("--vmap", said->vmap,
                "The algorithm for many inputs, states or parameters at once, all inputs and states where none is named: DIM in front of "
                "them and of what comes out; may be repeated")
        .one_value_each()
        .takes("DIM[=NAME,...]");
    line.option("--checkpoint", said->checkpoint,
                "With the rounds of a call that repeats in groups, so that gradients keep less of them; may be repeated")
        .one_value_each()
        .takes("CALL=ROUNDS");
    line.option(
            "--residuals", said->residuals,
            "Stages that are kept for --grad, or computed again: 'layers.*=save', the first pattern that fits counts; or a file (*.json), "
            "such as 'residuals' writes")
        .takes("STAGES=save|recompute|FILE");
    line.option("--transform", said->transform,
                "One of these as artifacts and modules say it, such as 'grad x w' or 'vmap B x'; may be repeated. All are applied in the "
                "order of the command line")
        .one_value_each()
        .takes("WORDS");
    line.once_parsed([line, said, &options] {
        const auto next = [](std::vector<std::string> &words) {
            const std::string first = words.front();
            words.erase(words.begin());
            return first;
        };
        if (!said->residuals.empty() && said->grad.empty())
            throw UserError(
                "command.arguments",
                "--residuals requires --grad, whose stages it is about; expected --grad <names> --residuals <stages>=save, got " +
                    (said->transform.empty() ? "no --grad. Say by what the gradients are, such as --grad x w."
                                             : "--transform '" + printable(said->transform.front()) +
                                                   "'. Words of a transform have them behind its names: 'grad x layers.*=save'."));
        std::vector<std::string> residuals;
        for (const std::string &text : said->residuals) {
            const std::vector<std::string> words = residual_words(text);
            residuals.insert(residuals.end(), words.begin(), words.end());
            if (text.ends_with(".json")) options.transform_files.push_back(text);
        }
        std::vector<std::string> &all = options.transforms;
        for (const std::string &name : line.given_in_order()) {
            if (name == "--vmap") all.push_back(vmap_words(next(said->vmap)));
            if (name == "--checkpoint") all.push_back(checkpoint_words(next(said->checkpoint)));
            if (name == "--transform") all.push_back(next(said->transform));
            if (name == "--tangent" && !said->tangent.empty()) all.push_back(with_names("tangent", said->tangent)), said->tangent.clear();
            if (name == "--grad" && !said->grad.empty())
                all.push_back(with_names(with_names("grad", said->grad), residuals)), said->grad.clear();
        }
    });
}

}  // namespace

std::vector<std::string> transform_options() { return {"--grad", "--tangent", "--vmap", "--checkpoint", "--residuals", "--transform"}; }

void add_algorithm_options(const CommandLine &line, KernelOptions &options) {
    line.option("algorithm", options.algorithm, "The algorithm's name, as 'list' shows it, or a file (*.json) such as show --json writes")
        .required();
    line.option("--numerics", options.numerics,
                "Numerics policy: in which types numbers are kept and computed. A name that 'list' shows, with words that license more, "
                "such as "
                "f32+contraction+functions, or a file (*.json)")
        .shows_default("f32");
    line.option("--option", options.options,
                "Values of the algorithm's options, such as stride=2 activation=relu; 'list <algorithm>' shows them")
        .takes("NAME=VALUE")
        .separated_by(',');
    add_transform_options(line, options);
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
    line.option("--inherit", options.inherit,
                "The schedule whose fields a gradient's products take by their roles, or 'none'. Default: what the algorithm that it was "
                "made of "
                "would take, unless there is a schedule of its own")
        .takes("NAME");
    line.option("--made-of", options.made_of, "The algorithm that one in a file was made of, by its name or file (*.json)")
        .takes("NAME|FILE");
    add_schedule_dirs(line, options.schedule_dirs);
    line.flag("--quiet", options.quiet, "Print no notes on stderr");
}

}  // namespace tessera
