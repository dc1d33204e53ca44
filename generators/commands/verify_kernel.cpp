#include "generators/commands/verify_kernel.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/certify/certificate_json.h"
#include "generators/commands/input_options.h"
#include "generators/commands/kernel_line.h"
#include "generators/commands/notes.h"
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
    InputOptions inputs;
    bool json = false, certificate = false, stable = false;
    Limits compile, run{300};
};

bool runs_at(const KernelVariant &variant, const Extents &shape) {
    return std::all_of(variant.when.begin(), variant.when.end(),
                       [&](const Condition &c) { return shape.count(c.dim) && holds(c, shape.at(c.dim)); });
}

struct Shapes {
    std::vector<Extents> all;
    size_t empty = 0;
    std::vector<std::pair<std::string, std::string>> idle = {};  // variants that run at none of them that has points, and why
};

// The one shape that is asked for, by --extents and by the arrays of --inputs; nothing where none is.
std::optional<Extents> shape_of(const PreparedKernel &p, const VerifyOptions &options, const StatedInputs &stated) {
    if (options.extents.empty() && stated.arrays.empty()) return {};
    Extents shape = parse_shape(options.extents, "--extents");
    shape.merge(extents_in(stated, p.request.bound));
    return shape;
}

Shapes shapes_of(const PreparedKernel &p, const VerifyOptions &options, const std::optional<Extents> &asked) {
    if (asked) return {{*asked}, is_empty(p.request.bound, *asked) ? 1U : 0U};
    Shapes shapes{awkward_shapes(p.request.bound, options.shapes, options.seed), 0};
    std::vector<std::vector<Condition>> conditions;
    for (const KernelVariant &v : p.compiled.kernel.variants) conditions.push_back(v.when);
    std::set<size_t> run;
    for (const Extents &shape : shapes.all) {
        auto chosen = std::find_if(p.compiled.kernel.variants.begin(), p.compiled.kernel.variants.end(),
                                   [&](const KernelVariant &v) { return runs_at(v, shape); });
        if (is_empty(p.request.bound, shape)) shapes.empty++;
        else run.insert(static_cast<size_t>(chosen - p.compiled.kernel.variants.begin()));
    }
    for (size_t v = 0; v < conditions.size(); v++) {
        if (run.count(v)) continue;
        const ShapeOfVariant found = shape_that_meets(p.request.bound, conditions, v, options.seed);
        if (found.shape) shapes.all.push_back(*found.shape);
        else shapes.idle.push_back({conditions[v].empty() ? "the others do not" : condition_text(conditions[v]), found.why});
    }
    return shapes;
}

ordered_json json_of(const Comparison &c) {
    return {{"extents", c.extents},     {"difference", c.difference},         {"error", c.error},       {"output", c.output},
            {"largest", c.largest},     {"declared_error", c.declared_error}, {"elements", c.elements}, {"nan", c.nans},
            {"first_nan", c.first_nan}, {"near_zero", c.is_near_zero}};
}

// "y: error at most 1.2e-6 by its bound; measured …", for each output.
void print_certificate(const ordered_json &certificate) {
    for (const ordered_json &c : certificate["outputs"]) {
        const auto number = [](const ordered_json &of, const char *field) { return of[field].get<double>(); };
        const std::string ratio = number(c, "ratio") > 0
                                      ? fmt::format("; what it may be is {:.3g} times the largest error, {:.3g} times in the median",
                                                    number(c, "ratio"), number(c, "median_ratio"))
                                      : "";
        const std::string bound =
            c["bound"].is_null() ? "no bound" : fmt::format("error at most {:.3g} by its running bound", number(c, "bound"));
        std::cout << fmt::format(
            "certificate of '{}', {} elements: {}; measured {:.3g}, {:.3g} for 99.9 % ({:.3g} and "
            "{:.3g} "
            "ULP; {:.3g} and {:.3g} relative){}\n",
            c["output"].get<std::string>(), c["elements"].get<int64_t>(), bound, number(c["error"], "largest"), number(c["error"], "p999"),
            number(c["ulp"], "largest"), number(c["ulp"], "p999"), number(c["relative"], "largest"), number(c["relative"], "p999"), ratio);
        if (c["unbounded"] != 0)
            std::cout << fmt::format("note: {} elements of '{}' have no bound: {}\n", c["unbounded"].get<int64_t>(),
                                     c["output"].get<std::string>(), c["unknown"].get<std::string>());
    }
    if (const auto left_out = certificate["shapes_left_out"].get<size_t>())
        std::cout << fmt::format("note: {} shapes are too large for the certificate; give one by --extents\n", left_out);
}

void print_stability(const PreparedKernel &p, const ordered_json &stability) {
    for (const ordered_json &s : stability["stages"]) {
        const std::string stage = s["stage"].get<std::string>(), trouble = s["trouble"].get<std::string>();
        if (!trouble.empty()) std::cout << fmt::format("stage '{}' {}\n", stage, trouble);
        else if (std::count(p.request.bound.outputs.begin(), p.request.bound.outputs.end(), stage) && !s["lowest"].is_null())
            std::cout << fmt::format("'{}' lies in {:.6g} to {:.6g}{}\n", stage, s["lowest"].get<double>(), s["highest"].get<double>(),
                                     s["error"].is_null()
                                         ? ""
                                         : fmt::format(", off by at most {:.3g} for all inputs in the ranges, in any order of "
                                                       "additions",
                                                       s["error"].get<double>()));
    }
    const std::string found = stability["found"].get<std::string>();
    if (stability["proved"].get<bool>()) std::cout << "proved: no stage of floats overflows or becomes NaN for inputs in the ranges\n";
    else if (!found.empty()) std::cout << "not stable: " << found << "\n";
    else std::cout << fmt::format("not proved; none of {} samples at the ends of the ranges shows it\n", stability["samples"].get<int>());
}

// In a process of its own, since a wrong kernel may crash.
ordered_json results(const PreparedKernel &p, const VerifyOptions &options, const StatedInputs &stated,
                     const std::optional<Extents> &asked) {
    const TemporaryFolder folder;
    const std::filesystem::path library = library_to_load(p, options.compile, folder);
    std::vector<int32_t> threads = {1};
    if (options.threads > 1) threads.push_back(options.threads);
    const OutputFolder out(folder.path());
    const Activity running{p.compiled.kernel.name, "verifying", "verify.limit", "Verify fewer or smaller shapes", "--run-limit-s"};
    run_limited(running, options.run, [&] {
        const LoadedKernels kernel(library, p);
        const Shapes shapes = shapes_of(p, options, asked);
        ordered_json all = ordered_json::array();
        for (const Extents &shape : shapes.all) all.push_back(json_of(compare(p, kernel, shape, options.seed, threads, stated)));
        ordered_json certificate;
        if (options.certificate) {
            std::vector<std::string> wrong;
            certificate = certificate_json(p, shapes.all, asked.has_value(), options.seed, wrong, stated);
            for (size_t i = 0; i < wrong.size(); i++)
                if (all[i]["difference"] == "") all[i]["difference"] = wrong[i];
        }
        out.write("results.json",
                  json_text(ordered_json{
                      {"shapes", all}, {"empty", shapes.empty}, {"variants_not_run", shapes.idle}, {"certificate", certificate}}));
    });
    return from_json_text(out.read("results.json"));
}

int report(const PreparedKernel &p, const VerifyOptions &options) {
    // What is refused is so before anything is compiled.
    const StatedInputs stated = stated_inputs(p.request.bound, options.inputs);
    const std::optional<Extents> asked = shape_of(p, options, stated);
    if (asked || options.stable) all_extents(p.request.bound, asked.value_or(Extents{}));
    if (options.stable) parse_ranges(p.request.bound, options.inputs.ranges);
    const ordered_json found = results(p, options, stated, asked), &all = found["shapes"];
    const auto empty = found["empty"].get<size_t>();
    const auto idle = found["variants_not_run"].get<std::vector<std::pair<std::string, std::string>>>();
    const auto failures = std::count_if(all.begin(), all.end(), [](const ordered_json &c) { return c["difference"] != ""; });
    const ordered_json stability =
        options.stable ? stability_json(p, asked.value_or(Extents{}), options.inputs.ranges, options.seed) : ordered_json();
    const bool is_right = !failures && (!options.stable || stability["proved"].get<bool>());
    const std::string schedule = p.choice.match.schedule ? p.choice.match.schedule->name() : "none";
    if (options.json) {
        ordered_json whole = {{"format", "tessera-verify"},
                              {"version", 1},
                              {"kernel", p.compiled.kernel.name},
                              {"target", p.request.target.name},
                              {"numerics", p.request.declared.numerics.name},
                              {"schedule", schedule},
                              {"threads", options.threads},
                              {"seed", options.seed},
                              {"failures", failures},
                              {"shapes", all},
                              {"variants_not_run", ordered_json::array()}};
        for (const auto &[variant, why] : idle) whole["variants_not_run"].push_back({{"when", variant}, {"why", why}});
        if (options.certificate) whole["certificate"] = found["certificate"];
        if (options.stable) whole["stability"] = stability;
        std::cout << json_text(whole, 2) << "\n";
        return is_right ? exit_ok : exit_check_failed;
    }
    double error = 0, declared = 0;
    int64_t elements = 0, nans = 0;
    for (const ordered_json &c : all) {
        elements += c["elements"].get<int64_t>(), nans += c["nan"].get<int64_t>();
        error = std::max(error, c["error"].get<double>()), declared = std::max(declared, c["declared_error"].get<double>());
        if (c["difference"] != "")
            std::cout << p.compiled.kernel.name << " at " << to_string(c["extents"].get<Extents>()) << ": "
                      << c["difference"].get<std::string>() << "\n";
    }
    std::cout << fmt::format("{} on {}, {}, schedule {}: {} of {} shapes right{}, with 1 and {} threads", p.compiled.kernel.name,
                             p.request.target.name, p.request.declared.numerics.name, schedule, all.size() - static_cast<size_t>(failures),
                             all.size(), empty ? fmt::format(" ({} of them empty)", empty) : "", options.threads);
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
    if (nans) {
        const ordered_json &one = *std::find_if(all.begin(), all.end(), [](const ordered_json &c) { return c["nan"] != 0; });
        std::cout << fmt::format(
            "note: {} of {} elements are NaN, as the algorithm says, and tell nothing else of the kernel: at {} the first is {}; state "
            "what "
            "the inputs are by --range or --inputs\n",
            nans, elements, to_string(one["extents"].get<Extents>()), one["first_nan"].get<std::string>());
    }
    if (empty == all.size())
        std::cout << "note: every shape is empty, so that nothing was computed; give one that is not by --extents, or fix larger ones by "
                     "--shape\n";
    if (options.certificate) print_certificate(found["certificate"]);
    if (options.stable) print_stability(p, stability);
    for (const auto &[variant, why] : idle)
        std::cout << "note: no shape was tried for the variant that runs where " << variant << ": " << why << "; give one by --extents\n";
    return is_right ? exit_ok : exit_check_failed;
}

}  // namespace

Command verify_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<VerifyOptions>();
    const CommandLine line = program.command(
        "verify", "Compile a kernel, run it on awkward shapes and compare it with its tile program and its algorithm; 1 if it is wrong");
    add_algorithm_options(line, options->kernel);
    add_schedule_options(line, options->kernel);
    line.option("--extents", options->extents, "Verify one shape of the dynamic dims instead of awkward ones").takes("DIM=EXTENT");
    add_input_options(line, options->inputs);
    line.option("--shapes", options->shapes, "Shapes to try; one more for each variant that none of them reaches")
        .in_range(1, INT32_MAX)
        .shows_default();
    line.option("--seed", options->seed, "Random seed for shapes and test data").integer_in(0, INT64_MAX).shows_default();
    line.option("--threads", options->threads, "Also run with this many threads").in_range(1, 4096).shows_default();
    line.seconds("--compile-limit-s", options->compile.seconds, "Most seconds that compiling may take");
    line.seconds("--run-limit-s", options->run.seconds, "Most seconds that running may take");
    line.flag(
        "--certificate", options->certificate,
        "Also bound the rounding errors of the results by running the tile program with a bound beside each value, and compare with what "
        "is measured");
    line.flag(
        "--stable", options->stable,
        "Also prove that no float overflows or becomes NaN at --extents, for all inputs in --range. Exits 1 if that cannot be proved");
    line.flag("--json", options->json, "Print JSON, for programs");
    return {line, [=, &registry] { return report(prepare(registry, options->kernel, "", printing_notes(options->kernel)), *options); }};
}

}  // namespace tessera
