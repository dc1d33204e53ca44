#include "generators/commands/verify_kernel.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/commands/kernel_line.h"
#include "generators/kernel/comparison.h"
#include "schedules/knobs/condition.h"
#include "support/files/json_text.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

struct VerifyOptions {
    KernelOptions kernel;
    std::vector<std::string> extents;
    int shapes = 12;
    uint64_t seed = 1;
    int32_t threads = 2;
    bool json = false;
    Limits compile, run{300};
};

bool runs_at(const KernelVariant &variant, const Extents &shape) {
    return std::all_of(variant.when.begin(), variant.when.end(),
                       [&](const Condition &c) { return shape.count(c.dim) && holds(c, shape.at(c.dim)); });
}

struct Shapes {
    std::vector<Extents> all;
    size_t empty = 0;
    std::vector<std::string> idle;  // variants that run at none of them that has points
};

Shapes shapes_of(const PreparedKernel &p, const VerifyOptions &options) {
    if (!options.extents.empty()) return {{parse_shape(options.extents, "--extents")}, 0, {}};
    Shapes shapes{awkward_shapes(p.bound, options.shapes, options.seed), 0, {}};
    std::vector<std::vector<Condition>> conditions;
    for (const KernelVariant &v : p.kernel.variants) conditions.push_back(v.when);
    std::set<size_t> run;
    for (const Extents &shape : shapes.all) {
        auto chosen =
            std::find_if(p.kernel.variants.begin(), p.kernel.variants.end(), [&](const KernelVariant &v) { return runs_at(v, shape); });
        if (is_empty(p.bound, shape)) shapes.empty++;
        else run.insert(static_cast<size_t>(chosen - p.kernel.variants.begin()));
    }
    for (size_t v = 0; v < conditions.size(); v++) {
        if (run.count(v)) continue;
        if (auto shape = shape_that_meets(p.bound, conditions, v, options.seed)) shapes.all.push_back(*shape);
        else shapes.idle.push_back(conditions[v].empty() ? "the last" : condition_text(conditions[v]));
    }
    return shapes;
}

ordered_json json_of(const Comparison &c) {
    return {{"extents", c.extents}, {"difference", c.difference}, {"error", c.error},           {"declared_error", c.declared_error},
            {"output", c.output},   {"largest", c.largest},       {"near_zero", c.is_near_zero}};
}

// In a process of its own, since a wrong kernel may crash.
ordered_json results(const PreparedKernel &p, const VerifyOptions &options) {
    const TemporaryFolder folder;
    const std::filesystem::path object = link_kernel(p, options.compile, folder);
    std::vector<int32_t> threads = {1};
    if (options.threads > 1) threads.push_back(options.threads);
    const OutputFolder out(folder.path());
    const Activity running{p.kernel.name, "verifying", "verify.limit", "Verify fewer or smaller shapes", "--run-limit-s"};
    run_limited(running, options.run, [&] {
        const LoadedKernels kernel(object, p);
        const Shapes shapes = shapes_of(p, options);
        ordered_json all = ordered_json::array();
        for (const Extents &shape : shapes.all) all.push_back(json_of(compare(p, kernel, shape, options.seed, threads)));
        out.write("results.json", json_text(ordered_json{{"shapes", all}, {"empty", shapes.empty}, {"variants_not_run", shapes.idle}}));
    });
    return from_json_text(out.read("results.json"));
}

int report(const PreparedKernel &p, const VerifyOptions &options) {
    if (!options.extents.empty()) all_extents(p.bound, parse_shape(options.extents, "--extents"));  // refused before anything is compiled
    const ordered_json found = results(p, options), &all = found["shapes"];
    const auto empty = found["empty"].get<size_t>();
    const auto idle = found["variants_not_run"].get<std::vector<std::string>>();
    const auto failures = std::count_if(all.begin(), all.end(), [](const ordered_json &c) { return c["difference"] != ""; });
    const std::string schedule = p.schedule ? p.schedule->name() : "none";
    if (options.json) {
        const ordered_json whole = {{"format", "tessera-verify"},
                                    {"version", 1},
                                    {"kernel", p.kernel.name},
                                    {"target", p.target.name},
                                    {"numerics", p.declared.numerics.name},
                                    {"schedule", schedule},
                                    {"threads", options.threads},
                                    {"seed", options.seed},
                                    {"failures", failures},
                                    {"shapes", all},
                                    {"variants_not_run", idle}};
        std::cout << json_text(whole, 2) << "\n";
        return failures ? exit_check_failed : exit_ok;
    }
    double error = 0, declared = 0;
    for (const ordered_json &c : all) {
        error = std::max(error, c["error"].get<double>()), declared = std::max(declared, c["declared_error"].get<double>());
        if (c["difference"] != "")
            std::cout << p.kernel.name << " at " << to_string(c["extents"].get<Extents>()) << ": " << c["difference"].get<std::string>()
                      << "\n";
    }
    std::cout << fmt::format("{} on {}, {}, schedule {}: {} of {} shapes right{}, with 1 and {} threads", p.kernel.name, p.target.name,
                             p.declared.numerics.name, schedule, all.size() - static_cast<size_t>(failures), all.size(),
                             empty ? fmt::format(" ({} of them empty)", empty) : "", options.threads);
    if (!failures)
        std::cout << fmt::format("; equal to the tile program bit by bit; relative error at most {:.2g} (as declared: {:.2g})", error,
                                 declared);
    std::cout << "\n";
    const auto worst_of = std::max_element(all.begin(), all.end(), [](const ordered_json &a, const ordered_json &b) {
        return a["error"].get<double>() < b["error"].get<double>();
    });
    if (!failures && worst_of != all.end() && (*worst_of)["near_zero"].get<bool>()) {
        const ordered_json &worst = *worst_of;
        std::cout << fmt::format(
            "note: at {} the largest element of '{}' is {:.2g}: sums of either sign cancel there, and the rounding of what they are made "
            "of "
            "is large beside so small a result; errors are relative to it, and the declared order of operations errs by {:.2g} of it too\n",
            to_string(worst["extents"].get<Extents>()), worst["output"].get<std::string>(), worst["largest"].get<double>(),
            worst["declared_error"].get<double>());
    }
    for (const std::string &variant : idle)
        std::cout << "note: no shape was tried for the variant where " << variant << "; give one by --extents\n";
    return failures ? exit_check_failed : exit_ok;
}

}  // namespace

Command verify_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<VerifyOptions>();
    const CommandLine line = program.command(
        "verify", "Compile a kernel, run it on awkward shapes and compare it with its tile program and its algorithm; 1 if it is wrong");
    add_algorithm_options(line, options->kernel);
    add_schedule_options(line, options->kernel);
    line.option("--extents", options->extents, "Verify one shape of the dynamic dims instead of awkward ones").takes("DIM=EXTENT");
    line.option("--shapes", options->shapes, "Shapes to try; one more for each variant that none of them reaches")
        .in_range(1, INT32_MAX)
        .shows_default();
    line.option("--seed", options->seed, "Of shapes and data").integer_in(0, INT64_MAX).shows_default();
    line.option("--threads", options->threads, "Also run with so many threads").in_range(1, 4096).shows_default();
    line.seconds("--compile-limit-s", options->compile.seconds, "Most seconds that compiling may take");
    line.seconds("--run-limit-s", options->run.seconds, "Most seconds that running may take");
    line.flag("--json", options->json, "For programs");
    return {line, [=, &registry] { return report(prepare(registry, options->kernel), *options); }};
}

}  // namespace tessera
