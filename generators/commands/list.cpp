#include "generators/commands/list.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/transform/inline_calls.h"
#include "generators/commands/error_form.h"
#include "generators/commands/kernel_line.h"
#include "generators/kernel/artifact_task.h"
#include "generators/registry/options.h"
#include "generators/registry/versions.h"
#include "schedules/target/target.h"
#include "support/files/json_text.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

struct ListOptions {
    std::string algorithm;  // "" for all
    std::vector<std::string> schedule_dirs;
    std::string numerics = "f32";
    bool json = false;
};

// "x[M, K]"
std::string with_dims(const Tensor &t) { return t.name + "[" + (t.dims.empty() ? "" : join(t.dims)) + "]"; }

struct Arguments {
    std::vector<std::string> dims, inputs, states, outputs, parameters;
};

Arguments arguments_of(const Algorithm &algorithm) {
    Arguments a;
    for (const Dim &d : algorithm.dims)
        if (d.kind == DimKind::symbolic) a.dims.push_back(d.name);
    for (const Tensor &t : algorithm.tensors)
        if (t.role != Role::constant) (t.role == Role::state ? a.states : a.inputs).push_back(with_dims(t));
    const Algorithm whole = inline_calls(algorithm);  // an output may be a call's
    for (const std::string &name : algorithm.outputs) {
        std::string shown = name;
        if (const Stage *stage = defining_stage(whole, name))
            for (const Tensor &t : results_of(*stage))
                if (t.name == name) shown = with_dims(t);
        for (const Call &call : algorithm.calls())
            for (const Tensor &t : results_of(call))
                if (t.name == name) shown = with_dims(t);
        a.outputs.push_back(shown);
    }
    for (const Parameter &p : algorithm.parameters) a.parameters.push_back(to_string(p));
    return a;
}

// "activation: none (default), relu or gelu; what is applied last", "stride: 1 (default) to 16; step between windows"
std::string text_of(const Option &o) {
    std::vector<std::string> values = o.values;
    if (values.empty()) return fmt::format("{}: {} to {}, default {}; {}", o.name, o.min, o.max, o.standard, o.summary);
    return fmt::format("{}: {}, default {}; {}", o.name, join(values), value_text(o, o.standard), o.summary);
}

ordered_json json_of(const std::vector<Option> &options) {
    ordered_json list = ordered_json::array();
    for (const Option &o : options)
        list.push_back(
            {{"name", o.name}, {"summary", o.summary}, {"standard", o.standard}, {"min", o.min}, {"max", o.max}, {"values", o.values}});
    return list;
}

bool is_for(const std::string &schedule, const std::string &algorithm) { return schedule.starts_with(algorithm + "/"); }

std::vector<std::string> schedules_of(const std::string &algorithm, const std::vector<std::string> &all) {
    std::vector<std::string> own;
    std::copy_if(all.begin(), all.end(), std::back_inserter(own), [&](const std::string &name) { return is_for(name, algorithm); });
    return own;
}

// An algorithm as a list shows it. One that cannot be built hides none of the others.
struct Listed {
    Registry::Entry entry;
    Arguments arguments;
    std::optional<UserError> error = {};  // why it cannot be built
};

// `only`: the one algorithm that is listed; "" for all.
std::vector<Listed> listed(const Registry &registry, const Numerics &numerics, const std::string &only) {
    std::vector<Listed> all;
    for (const Registry::Entry &entry : only.empty() ? registry.entries() : std::vector{registry.find(only)}) {
        all.push_back({entry, {}, {}});
        try {
            all.back().arguments = arguments_of(registry.make(entry.name, numerics));
        } catch (const UserError &error) { all.back().error = error; }
    }
    return all;
}

// "laptop   avx2 with caches of 32 KiB, 1024 KiB, 16384 KiB", and where somebody measured it on what.
std::string summary_of(const Target &t) {
    std::string text =
        fmt::format("{} with caches of {} KiB, {} KiB, {} KiB", t.name, t.l1_bytes >> 10, t.l2_bytes >> 10, t.l3_bytes >> 10);
    if (t.measured) text += ", measured on " + printable(t.measured->processor);
    return text;
}

using Summaries = std::vector<std::pair<std::string, std::string>>;  // name and summary

// `missing` is told why a target cannot be read.
Summaries targets_of(const Registry &registry, const std::function<void(const UserError &)> &missing) {
    Summaries rows;
    for (const std::string &name : names_of(registry.targets())) {
        rows.emplace_back(name, "cannot be read; see the error below");
        try {
            rows.back().second = summary_of(registry.target(name));
        } catch (const UserError &error) { missing(error); }
    }
    return rows;
}

template <typename Value>
Summaries rows_of(const std::vector<Registry::Extension<Value>> &all) {
    Summaries rows;
    for (const Registry::Extension<Value> &one : all) rows.emplace_back(one.name, one.summary);
    return rows;
}

std::string text_of(const std::string &heading, const Summaries &rows) {
    size_t width = 0;
    for (const auto &[name, summary] : rows) width = std::max(width, name.size());
    std::string text = rows.empty() ? "" : heading + "\n";
    for (const auto &[name, summary] : rows) text += fmt::format("  {:{}}  {}\n", name, width, summary);
    return text;
}

ordered_json json_of(const Summaries &rows) {
    ordered_json list = ordered_json::array();
    for (const auto &[name, summary] : rows) list.push_back({{"name", name}, {"summary", summary}});
    return list;
}

// One line for each algorithm, under its family, and one for what is none.
std::string algorithms_text(const Registry &registry, const std::vector<Listed> &algorithms) {
    size_t width = 0;
    for (const Listed &a : algorithms) width = std::max(width, a.entry.name.size());
    std::string out;
    for (const std::string &family : registry.families()) {
        out += (family.empty() ? "algorithms" : family) + "\n";
        for (const auto &[entry, a, error] : algorithms)
            if (entry.family == family)
                out += fmt::format("  {:{}}  {}{}\n", entry.name, width, entry.summary,
                                   !error ? "" : " (cannot be built; see the error below)");
    }
    return out;
}

std::string text(const Registry &registry, const std::vector<Listed> &algorithms, const std::vector<std::string> &schedules,
                 const Summaries &targets) {
    std::string out = algorithms_text(registry, algorithms);
    std::vector<std::string> others = schedules;
    for (const Listed &a : algorithms) std::erase_if(others, [&](const std::string &name) { return is_for(name, a.entry.name); });
    if (!others.empty()) out += "other schedules\n  " + join(others) + "\n";
    out += "targets\n  " + join(target_names()) + " (host is " + target_named("host").name +
           "); features can be added, as in avx512+avx512_vnni\n";
    out += text_of("targets of this generator", targets);
    out += text_of("cost models of this generator", rows_of(registry.cost_models()));
    out += text_of("mutators of this generator", rows_of(registry.mutators()));
    out += text_of("analysers of this generator", rows_of(registry.analysers()));
    Summaries numerics;
    for (const std::string &name : registry.numerics_names()) numerics.emplace_back(name, text_of(registry.numerics(name)));
    out += text_of("numerics", numerics);
    out += "  and words that license more, as in f32+contraction+functions: " + join(numerics_words()) + "\n";
    return out + "'list <algorithm>' shows its dims, arguments, options and schedules.\n";
}

// The target that a name names last: "avx512" of "softmax/f32/avx512/M64", "" of "softmax/mine".
std::string target_named_in(std::string name) {
    for (;;) {
        if (const std::string target = target_in(name); !target.empty()) return target;
        const size_t slash = name.rfind('/');
        if (slash == std::string::npos) return "";
        name.resize(slash);
    }
}

// All that is known of one algorithm.
std::string details(const Listed &listed, const std::vector<std::string> &schedules) {
    const auto &[entry, a, error] = listed;
    std::string out = entry.name + "\n  " + entry.summary + "\n";
    auto row = [&](const char *heading, const std::vector<std::string> &values) {
        if (!values.empty()) out += fmt::format("  {:10}  {}\n", heading, join(values));
    };
    if (error) out += "  cannot be built; see the error below\n";
    row("dims", a.dims), row("inputs", a.inputs), row("states", a.states), row("outputs", a.outputs), row("parameters", a.parameters);
    for (const Option &o : entry.options) row(&o == entry.options.data() ? "options" : "", {text_of(o)});
    std::map<std::string, std::vector<std::string>> by_target;
    for (const std::string &name : schedules_of(entry.name, schedules)) by_target[target_named_in(name)].push_back(name);
    const char *heading = "schedules";
    for (const auto &[target, names] : by_target) {
        row(heading, {(target.empty() ? "any target" : target) + ": " + join(names)});
        heading = "";
    }
    return out;
}

std::string json(const Registry &registry, const std::vector<Listed> &algorithms, const std::vector<std::string> &schedules,
                 const Summaries &targets) {
    ordered_json rows = ordered_json::array();
    for (const auto &[entry, a, error] : algorithms) {
        rows.push_back({{"name", entry.name},
                        {"summary", entry.summary},
                        {"family", entry.family},
                        {"options", json_of(entry.options)},
                        {"dims", a.dims},
                        {"inputs", a.inputs},
                        {"states", a.states},
                        {"outputs", a.outputs},
                        {"parameters", a.parameters},
                        {"schedules", schedules_of(entry.name, schedules)}});
        if (error) rows.back()["error"] = error->what();
    }
    const ordered_json all = {{"format", "tessera-list"},
                              {"version", 1},
                              {"tessera", tessera_version()},
                              {"algorithms", rows},
                              {"schedules", schedules},
                              {"targets", target_names()},
                              {"host", target_named("host").name},
                              {"own_targets", json_of(targets)},
                              {"cost_models", json_of(rows_of(registry.cost_models()))},
                              {"mutators", json_of(rows_of(registry.mutators()))},
                              {"analysers", json_of(rows_of(registry.analysers()))},
                              {"numerics", registry.numerics_names()},
                              {"numerics_words", numerics_words()}};
    return json_text(all, 2) + "\n";
}

}  // namespace

Command list_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<ListOptions>();
    const CommandLine line =
        program.command("list", "List the algorithms by families, the targets and the numerics; or all that is known of one algorithm");
    line.option("algorithm", options->algorithm, "The algorithm to show in full: dims, arguments, options, schedules");
    line.option("--numerics", options->numerics, "The policy to show the algorithms in").shows_default();
    add_schedule_dirs(line, options->schedule_dirs);
    line.flag("--json", options->json, "Print JSON, for programs");
    return {line, [=, &registry] {
                std::vector<UserError> errors;
                auto missing = [&](const UserError &error) { errors.push_back(error); };
                const std::vector<std::string> schedules =
                    registry.library(registry.schedule_folders(options->schedule_dirs), missing).names();
                const Summaries targets = targets_of(registry, missing);
                const std::vector<Listed> algorithms = listed(registry, registry.numerics(options->numerics), options->algorithm);
                for (const Listed &a : algorithms)
                    if (a.error) errors.push_back(*a.error);
                if (options->json) std::cout << json(registry, algorithms, schedules, targets);
                else if (options->algorithm.empty()) std::cout << text(registry, algorithms, schedules, targets);
                else std::cout << details(algorithms[0], schedules);
                if (errors.empty()) return exit_ok;
                print(errors);
                return exit_user_error;
            }};
}

}  // namespace tessera
