#include "generators/commands/show.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "algorithms/mesh/program_json.h"
#include "algorithms/mesh/shard.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/text/shapes.h"
#include "algorithms/transform/given_extents.h"
#include "compiler/emit/emitter.h"
#include "compiler/lower/lower.h"
#include "generators/commands/generate.h"
#include "generators/commands/kernel_line.h"
#include "generators/commands/lockstep_text.h"
#include "generators/commands/lowering_text.h"
#include "generators/commands/memory_text.h"
#include "generators/commands/notes.h"
#include "generators/commands/slow_text.h"
#include "generators/kernel/kernel_bits.h"
#include "generators/output/emitted.h"
#include "generators/registry/author_made.h"
#include "schedules/artifact/explain.h"
#include "schedules/artifact/merge.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

namespace tessera {

static std::string schedule_text(const Registry &registry, const KernelOptions &options) {
    const ScheduledKernel p = prepare_schedule(registry, options, printing_notes(options));
    if (!p.choice.match.schedule) return "no schedule: every stage at root, in plain loops\n";
    if (!p.choice.applied.program.callees.empty())
        return flatten(*p.choice.match.schedule, p.choice.applied.program, p.request.declared).text();
    return flatten(*p.choice.match.schedule, registry.library(registry.schedule_folders(options.schedule_dirs))).text();
}

// Who states each field of the schedule that the kernel takes.
static std::string fields_text(const Registry &registry, const KernelOptions &options) {
    const ScheduledKernel p = prepare_schedule(registry, options, printing_notes(options));
    if (!p.choice.match.schedule) return "no schedule: every stage at root, in plain loops\n";
    return explain(*p.choice.match.schedule, registry.library(registry.schedule_folders(options.schedule_dirs)), p.choice.applied.program);
}

// What people read of the code that an emitter makes.
static std::string listing(const Emitter &emitter, const PreparedKernel &p, const Limits &limits) {
    const PreparedLibrary library = library_of({p});
    return emitter.listing({library.name, kernels_of(library), about(library), true, limits});
}

static std::string c_text_of(const PreparedKernel &p, const Limits &limits) {
    const Emitter c = c_emitter();
    if (!c.accepts(p.request.target))
        throw UserError("command.arguments", "show: --what c is for processors, and '" + p.request.target.name +
                                                 "' is a GPU; the source of its kernels is what --what assembly shows.");
    return listing(c, p, limits);
}

// Machine code; of what has none, source.
static std::string assembly_text(const Registry &registry, const PreparedKernel &p, const Limits &limits) {
    return listing(registry.emitter("library", p.request.target), p, limits);
}

// A text for each variant, under its condition where there are several.
static std::string analysed(const Registry::Extension<Registry::Analyse> &analyser, const PreparedKernel &p) {
    std::string text;
    for (const KernelVariant &variant : p.compiled.kernel.variants) {
        if (p.compiled.kernel.variants.size() > 1) text += "# " + condition_text(variant.when) + "\n";
        text += author_made("analyser '" + analyser.name + "'", [&] { return analyser.value(variant.program); });
    }
    return text;
}

struct MeshOptions {
    std::string mesh, layout;
    int64_t chunks = 0;
};

// What one rank computes, and what ranks exchange.
static std::string mesh_text(const Algorithm &bound, const MeshOptions &options, bool as_json) {
    if (options.mesh.empty())
        throw UserError("command.arguments", "show: --what mesh needs a mesh, as in --mesh data=2,tensor=4; give one.");
    const MeshProgram program = shard(bound, mesh_named(options.mesh), layout_named(bound, options.layout, options.chunks));
    return as_json ? json_text(to_json(program), 2) + "\n" : to_text(program);
}

static std::string text(const Registry &registry, const KernelOptions &options, const std::string &what, bool as_json,
                        const std::vector<std::string> &extents, int threads, const Limits &limits, const MeshOptions &mesh) {
    if (const auto *analyser = find_extension(registry.analysers(), what))
        return analysed(*analyser, prepare(registry, options, "", printing_notes(options)));
    if (what == "shapes") return shapes_text(bind_extents(load_algorithm(registry, options), parse_shape(options.shape)));
    if (what == "schedule") return schedule_text(registry, options);
    if (what == "fields") return fields_text(registry, options);
    if (what == "lowering") return lowering_text(prepare_schedule(registry, options, printing_notes(options)));
    if (what == "bits") {
        const ScheduledKernel p = prepare_schedule(registry, options, printing_notes(options));
        return to_text(bits_of(p.request, p.choice));
    }
    if (what == "tiles") return tiles_text(library_of({prepare(registry, options, "", printing_notes(options))}));
    if (what == "memory") {
        const PreparedKernel p = prepare(registry, options, "", printing_notes(options));
        return memory_text(p, given_extents(p.request.bound, parse_shape(extents, "--extents")));
    }
    if (what == "lockstep") {
        const PreparedKernel p = prepare(registry, options, "", printing_notes(options));
        return lockstep_text(p, given_extents(p.request.bound, parse_shape(extents, "--extents")));
    }
    if (what == "slow") {
        const PreparedKernel p = prepare(registry, options, "", printing_notes(options));
        return slow_text(p, given_extents(p.request.bound, parse_shape(extents, "--extents")), threads);
    }
    if (what == "c") return c_text_of(prepare(registry, options, "", printing_notes(options)), limits);
    if (what == "assembly") return assembly_text(registry, prepare(registry, options, "", printing_notes(options)), limits);
    const Algorithm bound = bind_extents(load_algorithm(registry, options), parse_shape(options.shape));
    if (what == "mesh") return mesh_text(bound, mesh, as_json);
    return as_json ? json_text(to_json(bound), 2) + "\n" : to_text(bound);
}

// What an option would change nothing of must not look as if it did.
static void check_effects(const CommandLine &line, const std::string &what, const Registry &registry) {
    auto only_for = [&](const char *option, const std::vector<std::string> &all) {
        if (line.has(option) && std::find(all.begin(), all.end(), what) == all.end())
            throw UserError("command.arguments", std::string("show: ") + option + " changes nothing of what --what " + what +
                                                     " shows; it is for --what " + join(all) + ". Name it, or leave the option out.");
    };
    std::vector<std::string> scheduled = {"schedule", "fields", "lowering", "tiles", "bits", "memory", "lockstep", "slow", "c", "assembly"};
    for (const std::string &analyser : names_of(registry.analysers())) scheduled.push_back(analyser);
    for (const char *option : {"--target", "--schedule", "--schedule-dir", "--inherit", "--made-of"}) only_for(option, scheduled);
    only_for("--extents", {"memory", "lockstep", "slow"});
    only_for("--threads", {"slow"});
    only_for("--compile-limit-s", {"assembly"});
    only_for("--json", {"algorithm", "mesh"});
    for (const char *option : {"--mesh", "--layout", "--chunks"}) only_for(option, {"mesh"});
}

Command show_command(ProgramLine &program, const Registry &registry) {
    struct Options {
        KernelOptions kernel;
        std::string what = "algorithm";
        bool json = false;
        std::vector<std::string> extents;
        int threads = 1;
        Limits limits;
        MeshOptions mesh;
    };
    auto options = std::make_shared<Options>();
    const CommandLine line =
        program.command("show", "Print an algorithm, its schedule, how it is lowered, its tile program, its C or its assembly");
    add_algorithm_options(line, options->kernel);
    add_schedule_options(line, options->kernel);
    std::string meaning =
        "algorithm, shapes (the extents of each tensor and stage, through calls), mesh (what one rank of --mesh computes, where tensors "
        "lie, and what ranks exchange), schedule (ancestors merged in), fields (who states each "
        "of the schedule's), lowering (what each of "
        "its steps changes), tiles, bits (the reduction trees, which "
        "decide the bits of results), memory (which buffers share the workspace, and when each lives), lockstep (of a GPU: threads that "
        "meet, and "
        "turns of memory, found by a run without one), slow (where the time goes by the cost model, and what makes it so), c or assembly "
        "(of a GPU: the "
        "kernels' source)";
    std::vector<std::string> all = views();
    for (const auto &analyser : registry.analysers()) {
        meaning += "; " + analyser.name + ": " + analyser.summary;
        all.push_back(analyser.name);
    }
    line.option("--what", options->what, meaning).one_of(all).shows_default();
    line.option(
            "--extents", options->extents,
            "Extents of dynamic dims at which --what memory and slow count, where others are 256, and --what lockstep runs, where they are "
            "64")
        .takes("DIM=EXTENT");
    line.option("--threads", options->threads, "Threads that --what slow counts with").in_range(1, 4096).shows_default();
    line.option("--mesh", options->mesh.mesh, "Axes of a mesh and their ranks, for --what mesh").takes("AXIS=RANKS,...");
    line.option("--layout", options->mesh.layout,
                "Dims with the axes along which they are cut, and tensors for which it is otherwise: M=data,w.N=tensor,w.K=")
        .takes("DIM=AXIS,...");
    line.option(
            "--chunks", options->mesh.chunks,
            "In how many chunks a dim that is cut is folded: any number of ranks that divides it gives the same bits; 0: one for each rank")
        .integer_in(0, max_mesh_chunks);
    line.flag("--json", options->json,
              "The algorithm, or the program over a mesh, as JSON; commands take an algorithm's in place of its name");
    line.seconds("--compile-limit-s", options->limits.seconds, "Most seconds that compiling may take");
    return {line, [=, &registry] {
                targets_named(options->kernel.target,
                              [&](const std::string &named) { return registry.target(named); });  // or refused first
                check_effects(line, options->what, registry);
                const Options &o = *options;
                std::cout << text(registry, o.kernel, o.what, o.json, o.extents, o.threads, o.limits, o.mesh);
                return exit_ok;
            }};
}

}  // namespace tessera
