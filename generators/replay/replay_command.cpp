#include "generators/replay/replay_command.h"

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/registry/options.h"
#include "generators/replay/recorded_runs.h"
#include "support/files/json_parse.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

struct ReplayLine {
    std::string file, record;
    std::vector<std::string> targets, extents;
    RecordRequest request;
    std::string public_key;
    bool json = false;
};

std::optional<KeyBytes> wanted_key(const ReplayLine &o) {
    return o.public_key.empty() ? std::nullopt : std::optional(read_public_key(o.public_key));
}

int record(const ReplayLine &o) {
    RecordRequest request = o.request;
    request.public_key = wanted_key(o);
    for (const auto &[dim, extent] : parse_shape(o.extents, "--extents")) request.extents[dim] = extent;
    const Record made = record_runs(o.file, request);
    OutputFolder folder(o.record);
    folder.write("expected.json", made.text);
    folder.publish("expected.json");
    std::cout << fmt::format("recorded {} runs for {}: {} hashes of outputs, in {}\n", made.runs, printable(join(made.targets)),
                             made.outputs, printable(o.record + "/expected.json"));
    return exit_ok;
}

const char *word_of(TessReplayOutcome outcome) {
    switch (outcome) {
    case TESS_REPLAY_EQUAL: return "equal";
    case TESS_REPLAY_DIFFERENT: return "different";
    case TESS_REPLAY_NEW: break;
    }
    return "new";
}

// The targets that were asked for; those that cannot run here are an error then, and a line otherwise.
std::vector<BundledTarget> chosen(const ReplayLine &o, const std::vector<BundledTarget> &all) {
    std::vector<BundledTarget> taken;
    std::vector<std::string> names;
    for (const BundledTarget &t : all) {
        names.push_back(t.name);
        const bool is_asked = std::find(o.targets.begin(), o.targets.end(), t.name) != o.targets.end();
        if (is_asked && !t.runs_here)
            throw UserError("replay.target",
                            "--target " + printable(t.name) + ": this processor does not run it. Replay it where it runs.");
        if (t.runs_here && (is_asked || o.targets.empty())) taken.push_back(t);
    }
    for (const std::string &name : o.targets)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw UserError("replay.target", "--target " + printable(name) + ": the bundle has no such target; it has " +
                                                 printable(join(names)) + "." + did_you_mean(name, names));
    return taken;
}

int replay(const ReplayLine &o) {
    const std::optional<KeyBytes> wanted = wanted_key(o);
    std::vector<BundledTarget> all;
    bool has_record = false;
    {
        const OpenedBundle bundle(o.file, wanted);
        all = bundle.targets();
        has_record = bundle.has_record();
    }
    if (!has_record)
        throw UserError("bundle.replay", "file '" + quotable(o.file) +
                                             "': expected a record of runs in it, got none. Write one with replay --record, and make the "
                                             "bundle with it: bundle make --replay.");
    ordered_json result = {
        {"format", "tessera-replay-result"}, {"version", 1}, {"outputs", ordered_json::array()}, {"not_run", ordered_json::array()}};
    size_t equal = 0, different = 0, unknown = 0;
    for (const BundledTarget &target : chosen(o, all)) {
        size_t counts[3] = {};
        for (const ReplayedOutput &output : OpenedBundle(o.file, wanted, target.features).replay({}, o.request.threads)) {
            // A kernel without code for this target took that of a lesser one, which has a turn of its own.
            if (output.target != target.name) continue;
            counts[output.outcome]++;
            result["outputs"].push_back({{"target", output.target},
                                         {"run", output.run},
                                         {"kernel", output.kernel},
                                         {"argument", output.argument},
                                         {"bits", output.bits},
                                         {"outcome", word_of(output.outcome)},
                                         {"sha256", output.got},
                                         {"expected", output.expected}});
            if (output.outcome == TESS_REPLAY_DIFFERENT && !o.json)
                std::cout << fmt::format("{}: run {}, {}.{}: expected {}, got {}\n", target.name, output.run, printable(output.kernel),
                                         printable(output.argument), output.expected, output.got);
        }
        equal += counts[TESS_REPLAY_EQUAL], different += counts[TESS_REPLAY_DIFFERENT], unknown += counts[TESS_REPLAY_NEW];
        if (!o.json)
            std::cout << fmt::format(
                "{}: {} outputs equal, {} different{}\n", target.name, counts[TESS_REPLAY_EQUAL], counts[TESS_REPLAY_DIFFERENT],
                counts[TESS_REPLAY_NEW] ? fmt::format(", {} of code that nothing is recorded of", counts[TESS_REPLAY_NEW]) : "");
    }
    for (const BundledTarget &target : all) {
        if (target.runs_here || !o.targets.empty()) continue;
        result["not_run"].push_back(target.name);
        if (!o.json) std::cout << fmt::format("{}: not run, as this processor cannot\n", printable(target.name));
    }
    if (o.json) std::cout << result.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    return different == 0 && equal > 0 ? exit_ok : exit_check_failed;
}

}  // namespace

Command replay_command(ProgramLine &program) {
    auto o = std::make_shared<ReplayLine>();
    const CommandLine line =
        program.command("replay", "Run what a bundle recorded, for each target that runs here, and compare hashes of outputs");
    line.option("file", o->file, "The bundle, NAME.tess. Its code is run").required();
    line.option("--target", o->targets, "Targets to run. Default: all that this processor runs").takes("TARGET,…").separated_by(',');
    line.option("--threads", o->request.threads, "Threads of each run; results do not depend on them").in_range(1, 4096).shows_default();
    line.flag("--json", o->json, "Print JSON: each output with its outcome");
    line.option("--public-key", o->public_key, "Demand a signature by this key before anything is run").takes("FILE");
    const CommandOption record_option =
        line.option("--record", o->record, "Run each kernel with inputs of a seed, and write expected.json here for bundle make --replay")
            .takes("DIR");
    line.option("--kernel", o->request.kernels, "A kernel to record. Default: all that run here")
        .takes("KERNEL")
        .one_value_each()
        .needs(record_option);
    line.option("--extents", o->extents, "Extents of dims that are not fixed, for recording").takes("[KERNEL.]DIM=N").needs(record_option);
    line.option("--parameter", o->request.parameters, "A parameter's value, for recording")
        .takes("[KERNEL.]NAME=VALUE")
        .one_value_each()
        .needs(record_option);
    line.option("--seed", o->request.seed, "Seed of inputs, for recording").integer_in(0, UINT64_MAX).needs(record_option);
    line.option("--step", o->request.step, "Step of inputs, for recording").integer_in(0, 0xffffffff).needs(record_option);
    return {line, [=] { return o->record.empty() ? replay(*o) : record(*o); }};
}

}  // namespace tessera
