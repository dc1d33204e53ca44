#include "generators/commands/bench.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/inputs.h"
#include "generators/certify/comparison.h"
#include "generators/commands/callee_times.h"
#include "generators/commands/input_options.h"
#include "generators/commands/kernel_line.h"
#include "generators/commands/notes.h"
#include "support/files/json_text.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

struct BenchOptions {
    KernelOptions kernel;
    std::vector<std::string> extents;
    InputOptions inputs;
    Timing timing;
    bool json = false, callees = false, instructions = false;
};

std::string schedule_of(const PreparedKernel &p) { return p.choice.match.schedule ? p.choice.match.schedule->name() : "none"; }

void print_json(const PreparedKernel &p, const Extents &shape, const BenchOptions &options, const KernelTime &time,
                const std::optional<CalleeTimes> &callees, const std::optional<uint64_t> &instructions) {
    ordered_json whole = {{"format", "tessera-bench"},
                          {"version", 1},
                          {"kernel", p.compiled.kernel.name},
                          {"target", p.request.target.name},
                          {"numerics", p.request.declared.numerics.name},
                          {"schedule", schedule_of(p)},
                          {"extents", shape},
                          {"threads", options.timing.threads}};
    if (options.timing.cold) whole["caches"] = "cold";
    whole["samples"] = time.samples, whole["median_s"] = time.median_s, whole["min_s"] = time.min_s;
    if (time.operations) whole["operations"] = *time.operations, whole["gflops"] = *gflops_of(time);
    whole["bytes"] = time.bytes, whole["gbytes_per_s"] = time.bytes / time.median_s * 1e-9;
    if (instructions) whole["instructions"] = *instructions;
    if (callees) whole.update(json_of(*callees, time));
    std::cout << json_text(whole, 2) << "\n";
}

int report(const Registry &registry, BenchOptions options) {
    const PreparedKernel p = prepare(registry, options.kernel, "", printing_notes(options.kernel));
    options.timing.inputs = stated_inputs(p.request.bound, options.inputs);
    Extents symbolic = parse_shape(options.extents, "--extents");
    symbolic.merge(extents_in(options.timing.inputs, p.request.bound));
    all_extents(p.request.bound, symbolic);  // refused before anything is compiled
    if (options.callees) check_calls(p.request.declared);
    const KernelTime time = time_of(p, symbolic, options.timing);
    std::optional<CalleeTimes> callees;
    Timing of_callees = options.timing;
    of_callees.inputs = {};  // of the program
    if (options.callees) callees = times_of_callees(registry, options.kernel, p, symbolic, of_callees);
    std::optional<uint64_t> instructions;
    if (options.instructions) instructions = instructions_of(p, symbolic, options.timing);
    Extents shape = p.request.fixed;
    shape.insert(symbolic.begin(), symbolic.end());
    if (options.json) {
        print_json(p, shape, options, time, callees, instructions);
        return exit_ok;
    }
    const int32_t threads = options.timing.threads;
    std::cout << fmt::format("{} on {}, {}, schedule {}, {}, {} thread{}{}\n", p.compiled.kernel.name, p.request.target.name,
                             p.request.declared.numerics.name, schedule_of(p), to_string(shape), threads, threads == 1 ? "" : "s",
                             options.timing.cold ? ", cold caches" : "");
    std::cout << fmt::format("  median {:.3f} us, min {:.3f} us of {} samples", time.median_s * 1e6, time.min_s * 1e6, time.samples);
    if (const auto gflops = gflops_of(time)) std::cout << fmt::format("; {:.1f} GFLOP/s", *gflops);
    std::cout << fmt::format("; {:.1f} GB/s of arguments\n", time.bytes / time.median_s * 1e-9);
    if (instructions) std::cout << fmt::format("  {} instructions in a call, on one thread\n", *instructions);
    if (callees) std::cout << text_of(*callees, time);
    return exit_ok;
}

}  // namespace

Command bench_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<BenchOptions>();
    Timing &timing = options->timing;
    const CommandLine line = program.command("bench", "Compile a kernel and time it on this machine");
    add_algorithm_options(line, options->kernel);
    add_schedule_options(line, options->kernel);
    line.option("--extents", options->extents, "Extents of the dims that the kernel leaves dynamic").takes("DIM=EXTENT");
    add_input_options(line, options->inputs);
    line.seconds("--seconds", timing.seconds, "Seconds to measure");
    line.flag("--cold-caches", timing.cold,
              "Time calls that find nothing of their data in the caches, as when other work runs between them");
    line.option("--threads", timing.threads, "Threads that the kernel may use").in_range(1, 4096).shows_default();
    line.flag("--callees", options->callees,
              "Also time each algorithm that a program calls, as a kernel by itself, and say what share of the time it has");
    line.flag("--instructions", options->instructions,
              "Also count the machine instructions of one call in the kernel's own code; each is stepped over, which takes microseconds");
    line.seconds("--compile-limit-s", timing.compile.seconds, "Most seconds that compiling may take");
    line.seconds("--run-limit-s", timing.run.seconds, "Most seconds that timing may take");
    line.flag("--json", options->json, "Print JSON, for programs");
    return {line, [=, &registry] { return report(registry, *options); }};
}

}  // namespace tessera
