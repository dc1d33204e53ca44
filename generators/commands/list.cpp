#include "generators/commands/list.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/transform/inline_calls.h"
#include "generators/commands/kernel_line.h"
#include "generators/registry/options.h"
#include "generators/registry/versions.h"
#include "schedules/target/target.h"
#include "support/files/json_text.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

struct ListOptions {
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
    for (const Parameter &p : algorithm.parameters) a.parameters.push_back(p.name + ": " + name_of(p.dtype));
    return a;
}

// "stride = 1 in 1 ..= 16, step between windows"
std::vector<std::string> texts_of(const std::vector<Option> &options) {
    std::vector<std::string> texts;
    for (const Option &o : options) texts.push_back(fmt::format("{} = {} in {} ..= {}, {}", o.name, o.standard, o.min, o.max, o.summary));
    return texts;
}

ordered_json json_of(const std::vector<Option> &options) {
    ordered_json list = ordered_json::array();
    for (const Option &o : options)
        list.push_back({{"name", o.name}, {"summary", o.summary}, {"standard", o.standard}, {"min", o.min}, {"max", o.max}});
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
    std::string error;  // why it cannot be built
};

std::vector<Listed> listed(const Registry &registry, const Numerics &numerics) {
    std::vector<Listed> all;
    for (const Registry::Entry &entry : registry.entries()) {
        all.push_back({entry, {}, ""});
        try {
            all.back().arguments = arguments_of(registry.make(entry.name, numerics));
        } catch (const UserError &error) { all.back().error = error.what(); }
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

using Rows = std::vector<std::pair<std::string, std::string>>;  // name and summary

// `missing` is told why a target cannot be read.
Rows targets_of(const Registry &registry, const std::function<void(const UserError &)> &missing) {
    Rows rows;
    for (const std::string &name : names_of(registry.targets())) {
        rows.emplace_back(name, "cannot be read; see the error below");
        try {
            rows.back().second = summary_of(registry.target(name));
        } catch (const UserError &error) { missing(error); }
    }
    return rows;
}

template <typename Value>
Rows rows_of(const std::vector<Registry::Extension<Value>> &all) {
    Rows rows;
    for (const Registry::Extension<Value> &one : all) rows.emplace_back(one.name, one.summary);
    return rows;
}

std::string text_of(const std::string &heading, const Rows &rows) {
    size_t width = 0;
    for (const auto &[name, summary] : rows) width = std::max(width, name.size());
    std::string text = rows.empty() ? "" : heading + "\n";
    for (const auto &[name, summary] : rows) text += fmt::format("  {:{}}  {}\n", name, width, summary);
    return text;
}

ordered_json json_of(const Rows &rows) {
    ordered_json list = ordered_json::array();
    for (const auto &[name, summary] : rows) list.push_back({{"name", name}, {"summary", summary}});
    return list;
}

std::string text(const Registry &registry, const std::vector<Listed> &algorithms, const std::vector<std::string> &schedules,
                 const Rows &targets) {
    std::string out = "algorithms\n";
    size_t width = 0;
    for (const Listed &a : algorithms) width = std::max(width, a.entry.name.size());
    std::vector<std::string> others = schedules;
    for (const auto &[entry, a, error] : algorithms) {
        const std::vector<std::string> own = schedules_of(entry.name, schedules);
        std::erase_if(others, [&algorithm = entry.name](const std::string &name) { return is_for(name, algorithm); });
        const std::string indent(width + 4, ' ');
        out += fmt::format("  {:{}}  {}\n{}", entry.name, width, entry.summary, indent);
        if (error.empty()) out += "dims " + join(a.dims) + "; inputs " + join(a.inputs);
        else out += "cannot be built; see the error below";
        if (!a.states.empty()) out += "; states " + join(a.states);
        if (!a.outputs.empty()) out += "; outputs " + join(a.outputs);
        if (!a.parameters.empty()) out += "; parameters " + join(a.parameters);
        out += "\n";
        if (!entry.options.empty()) out += indent + "options " + join(texts_of(entry.options), "; ") + "\n";
        if (!own.empty()) out += indent + "schedules " + join(own) + "\n";
    }
    if (!others.empty()) out += "other schedules\n  " + join(others) + "\n";
    out += "targets\n  " + join(target_names()) + " (host is " + target_named("host").name +
           "); features can be added, as in avx512+avx512_vnni\n";
    out += text_of("targets of this generator", targets);
    out += text_of("cost models of this generator", rows_of(registry.cost_models()));
    out += text_of("mutators of this generator", rows_of(registry.mutators()));
    out += text_of("analysers of this generator", rows_of(registry.analysers()));
    out += "numerics\n";
    for (const std::string &name : registry.numerics_names())
        out += fmt::format("  {:{}}  {}\n", name, width, text_of(registry.numerics(name)));
    return out;
}

std::string json(const Registry &registry, const std::vector<Listed> &algorithms, const std::vector<std::string> &schedules,
                 const Rows &targets) {
    ordered_json rows = ordered_json::array();
    for (const auto &[entry, a, error] : algorithms) {
        rows.push_back({{"name", entry.name},
                        {"summary", entry.summary},
                        {"options", json_of(entry.options)},
                        {"dims", a.dims},
                        {"inputs", a.inputs},
                        {"states", a.states},
                        {"outputs", a.outputs},
                        {"parameters", a.parameters},
                        {"schedules", schedules_of(entry.name, schedules)}});
        if (!error.empty()) rows.back()["error"] = error;
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
                              {"numerics", registry.numerics_names()}};
    return json_text(all, 2) + "\n";
}

}  // namespace

Command list_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<ListOptions>();
    const CommandLine line = program.command("list", "Show the algorithms, schedules, targets and numerics there are");
    line.option("--numerics", options->numerics, "The policy to show the algorithms in").shows_default();
    add_schedule_dirs(line, options->schedule_dirs);
    line.flag("--json", options->json, "For programs");
    return {line, [=, &registry] {
                std::vector<std::string> errors;
                auto missing = [&](const UserError &error) { errors.push_back(error.what()); };
                const std::vector<std::string> schedules =
                    registry.library(registry.schedule_folders(options->schedule_dirs), missing).names();
                const Rows targets = targets_of(registry, missing);
                const std::vector<Listed> algorithms = listed(registry, registry.numerics(options->numerics));
                for (const Listed &a : algorithms)
                    if (!a.error.empty()) errors.push_back(a.error);
                std::cout << (options->json ? json : text)(registry, algorithms, schedules, targets);
                for (const std::string &error : errors) std::cerr << error << "\n";
                return errors.empty() ? exit_ok : exit_user_error;
            }};
}

}  // namespace tessera
