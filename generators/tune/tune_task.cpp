#include "generators/tune/tune_task.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/text/hash.h"
#include "algorithms/transform/given_extents.h"
#include "algorithms/transform/inline_calls.h"
#include "bench/measure/inputs.h"
#include "bench/measure/integer_inputs.h"
#include "bench/measure/machine.h"
#include "costmodel/model/counted_samples.h"
#include "generators/commands/notes.h"
#include "generators/output/loaded_kernel.h"
#include "generators/registry/author_made.h"
#include "generators/registry/devices.h"
#include "generators/registry/versions.h"
#include "generators/tune/tune_space.h"
#include "generators/tune/warm_starts.h"
#include "schedules/target/target_file.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/printable.h"
#include "support/text/sha256.h"

namespace tessera {

namespace fs = std::filesystem;

static std::string short_hash(const std::string &text) { return sha256(text).substr(std::string_view("sha256:").size(), 8); }

// "M512_N768_K3072"; of several shapes, "M1-16_N768_K3072". Where the i-th extents of the dims that vary are not the i-th shape's, since
// some repeat, a hash of all shapes follows: others have the same extents in each dim. Of many shapes their count and that hash, for a name
// that fits a file's and a line: "5shapes_0f3c9a17".
static constexpr size_t most_letters = 32;
static std::string shape_name(const Algorithm &algorithm, const std::vector<Extents> &shapes) {
    std::string name;
    size_t varying = 0;
    bool repeats = false;
    for (const Dim &d : algorithm.dims) {
        std::vector<std::string> extents;
        for (const Extents &shape : shapes)
            if (auto e = shape.find(d.name); e != shape.end() && (extents.empty() || extents.back() != std::to_string(e->second)))
                extents.push_back(std::to_string(e->second));
        if (!extents.empty()) name += fmt::format("{}{}{}", name.empty() ? "" : "_", d.name, join(extents, "-"));
        varying += extents.size() > 1;
        repeats = repeats || (extents.size() > 1 && extents.size() < shapes.size());
    }
    const std::string hash = short_hash(json_text(nlohmann::json(shapes)));
    if (shapes.size() > 1 && name.size() > most_letters) return fmt::format("{}shapes_{}", shapes.size(), hash);
    if (varying > 1 && repeats) name += "_" + hash;
    return name.empty() ? "any" : name;
}

// All that makes it another kernel than its algorithm: shape, options, threads.
static std::string variety_of(const ScheduledKernel &p, std::vector<Extents> shapes, int threads) {
    const bool is_dynamic = !shapes[0].empty();
    for (Extents &shape : shapes) shape.insert(p.request.fixed.begin(), p.request.fixed.end());
    std::string name = shape_name(p.request.declared, shapes);
    for (const auto &[option, value] : p.request.options) name += fmt::format("_{}{}", option, value);
    if (is_dynamic && !p.request.fixed.empty()) name += "_partly_fixed";
    else if (is_dynamic) name += "_dynamic";
    return threads > 1 ? fmt::format("{}_threads{}", name, threads) : name;
}

std::vector<std::string> packed_ahead(const TuneOptions &options, const ScheduledKernel &p) {
    std::vector<std::string> inputs;
    for (const Tensor &t : p.request.bound.tensors)
        if (t.role == Role::input) inputs.push_back(t.name);
    const std::vector<std::string> &outputs = p.request.bound.outputs;
    std::set<std::string> all;
    for (const std::string &name : options.prepack) {
        if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
            throw UserError("tune.prepack", fmt::format("{}: --prepack '{}': expected an operand of the kernel; its operands are {}.{}",
                                                        p.request.declared.name, name, join(inputs),
                                                        std::find(outputs.begin(), outputs.end(), name) == outputs.end()
                                                            ? did_you_mean(name, inputs)
                                                            : " '" + name + "' is what it computes; name one of those."));
        all.insert(name);
    }
    for (const auto &[decision, values] : parse_restrictions(options.space))
        for (const std::string &name : inputs)
            if ((decision == "pack." + name || decision.ends_with(".pack." + name)) &&
                std::find(values.begin(), values.end(), "ahead") != values.end())
                all.insert(name);
    for (const auto &[stage, knobs] : p.choice.applied.resolved.stages)
        for (const auto &[operand, pack] : knobs.pack)
            if (pack.is_ahead()) all.insert(operand);
    return {all.begin(), all.end()};
}

std::string artifact_name(const TuneOptions &options, const ScheduledKernel &p, const std::vector<Extents> &shapes) {
    if (!options.name.empty()) return options.name;
    const Metric metric = options.campaign.goal.metric;
    const std::string chosen = options.deterministic ? "_predicted" : metric == Metric::latency ? "" : std::string("_") + name_of(metric);
    const std::string packed = packed_ahead(options, p).empty() ? "" : "_prepacked";
    return fmt::format("{}/{}/{}/{}{}{}", p.request.declared.name, p.request.declared.numerics.name, p.request.target.name,
                       variety_of(p, shapes, options.threads), packed, chosen);
}

void check_size(const ScheduledKernel &p, const Extents &extents, int callers) {
    constexpr double most = 2e9;
    const Extents all = all_extents(p.request.bound, extents);
    const Algorithm inlined = inline_calls(p.request.bound);
    std::vector<Tensor> arguments = inlined.tensors;
    for (const Stage &stage : inlined.stages())
        for (const Tensor &t : results_of(stage))
            if (std::find(inlined.outputs.begin(), inlined.outputs.end(), t.name) != inlined.outputs.end()) arguments.push_back(t);
    double bytes = 0;
    for (const Tensor &t : arguments) {
        double one = size_of(t.dtype);
        for (const std::string &d : t.dims)
            if (auto e = all.find(d); e != all.end()) one *= static_cast<double>(e->second);
        bytes += one;
    }
    bytes *= callers;
    if (bytes > most)
        throw UserError(
            "tune.size",
            fmt::format("{}: expected at most {:g} GB of arguments to tune with, got {:.1f}. Tune a smaller shape of the same proportions.",
                        p.request.declared.name, most / 1e9, bytes / 1e9));
}

// There is nothing to measure of an empty kernel.
static void check_not_empty(const ScheduledKernel &p, const Extents &extents) {
    for (const auto *all : {&p.request.fixed, &extents})
        for (const auto &[dim, extent] : *all)
            if (extent < 1)
                throw UserError("tune.extents",
                                fmt::format("{}: expected an extent of at least 1 for each dim, got {}={}: an empty kernel has no time. "
                                            "Tune for the extents that the kernel mostly runs with; the schedule is right for {} too.",
                                            p.request.declared.name, dim, extent, extent));
}

// As JSON can hold them.
static std::vector<std::string> printable_all(std::vector<std::string> texts) {
    for (std::string &text : texts) text = printable(text);
    return texts;
}

CampaignTask task_of(const Registry &registry, const ScheduledKernel &p, const TuneOptions &options, const Extents &extents) {
    CampaignTask task;
    const std::vector<std::string> ahead = packed_ahead(options, p);
    const int threads = options.campaign.goal.metric == Metric::throughput ? 1 : options.threads;  // of one call
    task.space = {p.request.bound, p.request.target, extents, threads, parse_restrictions(options.space), {}, ahead};
    task.name = fmt::format("{}/{}/{} {}", p.request.declared.name, p.request.declared.numerics.name, p.request.target.name,
                            variety_of(p, {extents}, options.threads));
    if (p.choice.match.schedule) task.base = knobs_for(p.request, p.choice, extents);
    const Machine machine = this_machine();
    task.identity = {{"task", task.name},
                     {"algorithm", p.request.declared.name},
                     {"semantic", semantic_hash(p.request.bound)},
                     {"surface", surface_hash(p.request.bound)},
                     {"numerics", p.request.declared.numerics.name},
                     {"options", p.request.options},
                     {"fixed", p.request.fixed},
                     {"extents", extents},
                     {"target", p.request.target.name},
                     {"threads", options.threads},
                     {"space", task.space.restrictions},
                     {"model", model_hash(registry, options.model, p.request.target)},
                     {"features", feature_hash()},
                     {"machine", {{"processor", machine.processor}, {"architecture", machine.architecture}, {"cores", machine.cores}}},
                     {"runners", printable_all(options.runners)},
                     {"versions", {{"tessera", tessera_version()}, {"halide", halide_version()}}}};
    if (!ahead.empty()) task.identity["prepack"] = ahead;
    task.inputs =
        with_integer_inputs(p.request.bound, all_extents(p.request.bound, extents), stated_inputs(p.request.bound, options.inputs), 1);
    if (!integer_meanings(p.request.bound).empty()) task.identity["integers"] = "by their meaning";  // times of others tell something else
    if (!options.inputs.ranges.empty()) task.identity["ranges"] = options.inputs.ranges;
    if (!options.inputs.file.empty()) task.identity["inputs"] = sha256(read_file(options.inputs.file));
    for (const auto &mutator : registry.mutators())
        task.space.mutators.push_back([what = "mutator '" + mutator.name + "'", mutate = mutator.value](
                                          const Algorithm &algorithm, const Extents &extents,
                                          const std::function<std::string(const Decision &)> &ask,
                                          KnobsByStage &stages) { author_made(what, [&] { mutate(algorithm, extents, ask, stages); }); });
    if (!registry.mutators().empty()) task.identity["mutators"] = names_of(registry.mutators());
    if (options.kernel.target.ends_with(".json")) task.identity["target_file"] = sha256(read_file(options.kernel.target));
    else if (find_extension(registry.targets(), options.kernel.target))
        task.identity["target_file"] = sha256(target_text(p.request.target));
    else task.identity["cache_bytes"] = {p.request.target.l1_bytes, p.request.target.l2_bytes, p.request.target.l3_bytes};
    if (p.request.target.is_gpu() && !options.dry_run) task.identity["devices"] = opencl_devices().devices;
    return task;
}

// What tune cannot do for a GPU, and what it needs.
static void check_gpu(const Target &target, const TuneOptions &options) {
    if (!target.is_gpu()) return;
    if (options.deterministic)
        throw UserError("command.arguments",
                        fmt::format("tune: target '{}': --deterministic chooses by the cost model, which does not know a "
                                    "GPU's blocks. Leave it out, so that candidates are measured.",
                                    target.name));
    if (options.threads > 1)
        throw UserError("command.arguments", fmt::format("tune: target '{}': --threads is of processors; a GPU's threads come from the "
                                                         "schedule. Leave it out.",
                                                         target.name));
    if (!options.prepack.empty())
        throw UserError("command.arguments",
                        fmt::format("tune: target '{}': --prepack is of processors; on a GPU what a block reads is staged in "
                                    "shared memory. Leave it out.",
                                    target.name));
    if (options.campaign.goal.metric == Metric::throughput)
        throw UserError("command.arguments",
                        fmt::format("tune: target '{}': --metric throughput is of processors, whose threads call at one time. Leave "
                                    "it out.",
                                    target.name));
    if (options.campaign.measure.cold)
        throw UserError("command.arguments", fmt::format("tune: target '{}': --cold-caches is of processors. Leave it out.", target.name));
    if (options.dry_run) return;
    if (target.arch != Arch::opencl)
        throw UserError("tune.gpu",
                        fmt::format("target '{}': expected a target whose kernels tune can run, got one for CUDA. --dry-run lists "
                                    "its space; --target opencl measures on the same device, where its driver has OpenCL.",
                                    target.name));
    if (!options.runners.empty()) return;
    if (const Devices found = opencl_devices(); found.devices.empty())
        throw UserError("tune.device",
                        fmt::format("target '{}': expected an OpenCL device to measure on, got none{}. Install a device's driver "
                                    "(Debian's pocl-opencl-icd has one for the CPU), or name a --runner on a machine that has one.",
                                    target.name, found.problem.empty() ? "" : ": " + found.problem));
}

static void check_has_runner(const Target &target) {
    try {
        check_runs_here(target);
    } catch (const UserError &error) {
        throw UserError(error.id(),
                        error.message() +
                            " To tune for it from here, name a command that runs its programs with --runner (an emulator, or ssh to such "
                            "a machine), and with --cc the C compiler for it, where it has another kind of processor.");
    }
}

Library library_with_artifacts(const Registry &registry, const TuneOptions &options) {
    std::vector<std::string> folders = options.kernel.schedule_dirs;
    if (std::error_code unknown; fs::is_directory(options.out, unknown)) folders.insert(folders.begin(), options.out);
    return registry.library(registry.schedule_folders(folders));
}

std::unique_ptr<TuneRun> prepare_run(const Registry &registry, const TuneOptions &given) {
    auto run = std::make_unique<TuneRun>();
    run->registry = &registry, run->options = given;
    TuneOptions &options = run->options;
    options.kernel.family_only = true;  // what was tuned before is a seed, not a parent
    options.kernel.derives = !options.dry_run;
    if (options.kernel.derive_for.empty()) options.kernel.derive_for = options.extents;
    run->prepared = prepare_schedule(registry, options.kernel, printing_notes(options.kernel));
    Extents asked = parse_shape(options.extents, "--extents");
    asked.merge(extents_in(stated_inputs(run->prepared.request.bound, options.inputs), run->prepared.request.bound));
    run->extents = given_extents(run->prepared.request.bound, asked);
    check_not_empty(run->prepared, run->extents);
    Goal &goal = options.campaign.goal;
    if (goal.metric == Metric::throughput) goal.callers = options.threads;
    check_size(run->prepared, run->extents, goal.callers);
    check_gpu(run->prepared.request.target, options);
    if (!options.runners.empty()) options.campaign.measure.runners = options.runners;
    else if (!options.deterministic && !options.dry_run && !run->prepared.request.target.is_gpu())
        check_has_runner(run->prepared.request.target);
    run->model = model_for(registry, options.model, run->prepared.request.target);
    run->task = task_of(registry, run->prepared, options, run->extents);
    check_restrictions(run->task);
    run->library = registry.library(registry.schedule_folders(options.kernel.schedule_dirs));
    if (!options.campaign.seeded || options.deterministic) return run;
    for (const WarmStart &w : warm_starts_for(run->prepared, run->extents, library_with_artifacts(registry, options)))
        run->task.warm_starts.push_back(w.stages), run->task.warm_start_names.push_back(w.name);
    return run;
}

const Schedule *named_base(const TuneRun &run) {
    const Match &match = run.prepared.choice.match;
    return match.schedule && match.how != Match::How::derived && match.how != Match::How::inherited ? &*match.schedule : nullptr;
}

std::optional<Schedule> parent_of(const TuneRun &run) {
    const std::optional<Schedule> &base = run.prepared.choice.match.schedule;
    // A child could not take away what its parent's stages have by role.
    const bool uses_roles = run.prepared.request.declared.calls().empty() && !run.prepared.choice.applied.program.callees.empty();
    if (uses_roles) return std::nullopt;
    const std::vector<std::string> known = run.library.names();
    const bool is_named = base && std::find(known.begin(), known.end(), base->name()) != known.end();
    return is_named && run.library.find(base->name()) == *base ? base : std::nullopt;
}

PreparedKernel prepared_with(const Schedule &tuned, const TuneRun &run) {
    const KernelRequest &request = run.prepared.request;
    return compiled_as_chosen(request, choice_of(tuned, request, run.library, run.options.kernel.family_only));
}

fs::path artifact_place(const TuneRun &run) {
    return fs::path(run.options.out) / (Schedule(artifact_name(run.options, run.prepared, {run.extents})).name() + ".json");
}

bool is_own_folder(const Registry &registry, const std::string &out) {
    std::error_code error;
    for (const fs::path &own : registry.schedule_folders({}))
        if (fs::equivalent(own, out, error)) return true;
    return false;
}

static void check_extends_others(const TuneRun &run, const std::string &name) {
    const std::optional<Schedule> parent = parent_of(run);
    if (!parent) return;
    for (const Schedule &s : run.library.ancestry(*parent))
        if (s.name() == name)
            throw UserError(
                "schedule.cycle",
                fmt::format("tune: artifact '{}': expected a name that differs from those of the schedules it extends, got that of {}the "
                            "schedule to beat, '{}'. Give it another with --name, or beat another with --schedule.",
                            name, name == parent->name() ? "" : "an ancestor of ", parent->name()));
}

// What is written to one of these names ends up in the other, whether anything is there yet or not.
static bool is_one_place(const fs::path &a, const fs::path &b) {
    auto end_of = [](const fs::path &place) {
        std::error_code error;
        const fs::path end = fs::weakly_canonical(behind_links(fs::absolute(place, error)), error);
        return error ? place : end;
    };
    return end_of(a) == end_of(b);
}

static void check_places_differ(const TuneOptions &options, const fs::path &artifact) {
    struct Place {
        std::string what;
        fs::path path;
    };
    std::vector<Place> places = {{"the artifact '" + artifact.string() + "'", artifact}};
    if (!options.page.empty()) places.push_back({"--report '" + options.page + "'", options.page});
    const size_t files = places.size();
    if (!options.deterministic)
        for (const char *beside : {"", "-wal", "-shm", "-journal"})
            places.push_back({"--records '" + options.records + "'", options.records + beside});
    for (size_t i = 0; i < files; i++)
        for (size_t j = i + 1; j < places.size(); j++)
            if (is_one_place(places[i].path, places[j].path))
                throw UserError("output.place", places[j].what + ": expected a place of its own, got that of " + places[i].what +
                                                    ", and one would destroy the other. Name another.");
}

// That files can be written there. A search may end without one, so that folders which it took are gone again.
static void check_folder(const fs::path &folder) {
    std::vector<fs::path> missing;
    std::error_code error;
    for (fs::path at = fs::absolute(folder); at.has_relative_path() && !fs::exists(at, error); at = at.parent_path()) missing.push_back(at);
    { const OutputFolder out(folder); }
    for (const fs::path &made : missing) fs::remove(made, error);  // where it is empty
}

static void check_file(const std::string &subject, const fs::path &file, const std::string &other) {
    std::error_code error;
    const fs::file_type there = fs::status(file, error).type();
    const std::string expected = subject + " '" + file.string() + "': expected a file to write";
    if (there == fs::file_type::directory) throw UserError("output.write", expected + ", got a folder. " + other);
    if (there == fs::file_type::none) throw UserError("output.write", expected + "; " + error.message() + ". Name another.");
}

void check_output(const TuneRun &run) {
    const fs::path artifact = artifact_place(run);
    check_extends_others(run, artifact_name(run.options, run.prepared, {run.extents}));
    check_places_differ(run.options, artifact);
    check_folder(artifact.parent_path());
    check_file("the artifact", artifact, "Name another with --name or --out, or move the folder.");
    if (run.options.page.empty()) return;
    check_file("--report", run.options.page, "Name a file in it.");
    check_folder(fs::absolute(run.options.page).parent_path());
}

}  // namespace tessera
