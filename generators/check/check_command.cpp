#include "generators/check/check_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/check/checked_artifacts.h"
#include "generators/commands/kernel_line.h"
#include "generators/registry/algorithm_file.h"
#include "support/files/json_text.h"
#include "support/text/error.h"
#include "support/text/shell_words.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;
using State = CheckedArtifact::State;

constexpr State states[] = {State::broken, State::changed, State::unrecorded, State::unknown, State::unchanged};

struct CheckOptions {
    std::vector<std::string> paths, schedule_dirs, programs;
    std::string model;
    bool json = false, record = false;
};

// What the generator knows, and the algorithms of files, under the names that they carry.
Registry with_programs(const Registry &registry, const std::vector<std::string> &files) {
    Registry all = registry;
    for (const std::string &file : files) {
        const Algorithm algorithm = read_algorithm(file);
        all.add(algorithm.name, file, [algorithm, file](const Numerics &numerics) {
            if (numerics.name != algorithm.numerics.name)
                throw UserError("command.numerics", file + ": expected the numerics of '" + algorithm.name + "', which are '" +
                                                        algorithm.numerics.name + "', got '" + numerics.name +
                                                        "'. Check it with the file that has these.");
            return algorithm;
        });
    }
    all.check();
    return all;
}

std::map<State, size_t> counts_of(const std::vector<CheckedArtifact> &checked) {
    std::map<State, size_t> counts;
    for (const CheckedArtifact &a : checked) counts[a.state]++;
    return counts;
}

// The folder of schedules that a file is in by its name; "" where the file has another.
std::string folder_of(const CheckedArtifact &a) {
    const std::string file = a.file.generic_string(), end = "/" + a.name + ".json";
    return file.ends_with(end) ? file.substr(0, file.size() - end.size()) : "";
}

bool is_folder(const std::string &path) {
    std::error_code unknown;
    return std::filesystem::is_directory(path, unknown);
}

// The line that tunes an artifact again as it was tuned, to where it lies. It is pasted into a shell, and artifacts are from anybody.
std::string tune_line(const CheckedArtifact &a, const CheckOptions &options) {
    std::vector<std::string> words = tuning_words(a.now->task, *a.tuned);
    auto add = [&](const std::string &option, const std::string &value) { words.insert(words.end(), {option, value}); };
    if (!a.base.empty()) add("--schedule", a.base);
    add("--name", a.name);
    if (const std::string folder = folder_of(a); !folder.empty()) add("--out", folder);
    for (const std::string &path : options.paths)
        if (is_folder(path)) add("--schedule-dir", path);
    for (const std::string &dir : options.schedule_dirs) add("--schedule-dir", dir);
    return shell_words(words);
}

std::string again_text(const CheckedArtifact &a, const CheckOptions &options) {
    if (!a.tuned) return "  " + a.name + ": " + to_string(a.now->task) + "\n";
    std::string text = "  " + tune_line(a, options) + "\n";
    if (a.lost_base.empty()) return text;
    return text + "    tuned from '" + a.lost_base + "', which is in none of the folders: name its file with --schedule\n";
}

std::string bits_text(const CheckedArtifact &a) {
    if (!a.bits_changed) return "";
    return *a.bits_changed ? "; the bits of its results too" : "; the bits of its results are the same";
}

// Rows for what somebody has to look at; the rest are counted.
std::string table_of(const std::vector<CheckedArtifact> &checked) {
    std::vector<const CheckedArtifact *> rows;
    size_t width = 8;
    for (const CheckedArtifact &a : checked)
        if (a.state != State::unchanged && a.state != State::unrecorded) rows.push_back(&a), width = std::max(width, a.name.size());
    if (rows.empty()) return "";
    std::string text = fmt::format("{:{}}  {:8}  {:>15}  {}\n", "schedule", width, "programs", "predicted speed", "why");
    for (const CheckedArtifact *a : rows) {
        std::string why = a->message;
        if (!a->causes.empty()) why = join(a->causes) + " changed" + bits_text(*a);
        else if (a->state == State::unknown) why = "it is named after no algorithm of this generator";
        const std::string effect = a->effect ? fmt::format("{:.2f} times", *a->effect) : "";
        text += fmt::format("{:{}}  {:8}  {:>15}  {}\n", a->name, width, name_of(a->state), effect, why);
        for (const CheckedArtifact::Count &c : a->counts)
            text += fmt::format("{:{}}  {} {:.6g} -> {:.6g}\n", "", width, c.name, c.before, c.after);
    }
    return text;
}

// Those that there is nothing to compare with, unless they are recorded now.
std::string unrecorded_text(const std::vector<CheckedArtifact> &checked, const CheckOptions &options) {
    std::string text;
    for (const CheckedArtifact &a : checked)
        if (a.state == State::unrecorded && !options.record) text += "  " + a.name + "\n";
    return text.empty() ? "" : "nothing to compare with, until --record keeps it:\n" + text;
}

std::string text_of(const std::vector<CheckedArtifact> &checked, const CheckOptions &options) {
    std::string text = table_of(checked);
    text += fmt::format("{} schedules:", checked.size());
    const auto counts = counts_of(checked);
    const char *before = " ";
    for (State s : states)
        if (auto n = counts.find(s); n != counts.end()) text += fmt::format("{}{} {}", before, n->second, name_of(s)), before = ", ";
    text += "\n";
    if (const auto n = std::count_if(checked.begin(), checked.end(), [](const auto &a) { return a.bits_changed == true; }))
        text += fmt::format("{} of them give other bits than before: 'diff' and 'show --what bits' say which folds\n", n);
    text += unrecorded_text(checked, options);
    const std::vector<ToMeasure> again = to_measure(checked);
    if (!again.empty()) text += fmt::format("to measure again ({}):\n", again.size());
    for (const ToMeasure &group : again) {
        text += again_text(checked[group.artifacts[0]], options);
        for (size_t i = 1; i < group.artifacts.size(); i++) text += "    the same program: " + checked[group.artifacts[i]].name + "\n";
    }
    return text;
}

std::string checked_json(const std::vector<CheckedArtifact> &checked) {
    ordered_json artifacts = ordered_json::array(), again = ordered_json::array(), counts = ordered_json::object();
    const auto numbers = counts_of(checked);
    for (State s : states) counts[name_of(s)] = numbers.count(s) ? numbers.at(s) : 0;
    for (const CheckedArtifact &a : checked) {
        ordered_json one = {{"schedule", a.name}, {"file", a.file.generic_string()}, {"programs", name_of(a.state)}};
        if (!a.message.empty()) one["message"] = a.message;
        if (a.now) one["now"] = json_of(*a.now);
        if (a.recorded) one["recorded"] = json_of(*a.recorded), one["measured"] = a.measured;
        if (a.state == State::changed) {
            one["causes"] = a.causes;
            for (const CheckedArtifact::Count &c : a.counts) one["counts"][c.name] = {c.before, c.after};
            one["bits_changed"] = a.bits_changed ? ordered_json(*a.bits_changed) : ordered_json(nullptr);
            one["predicted_speed"] = a.effect ? ordered_json(*a.effect) : ordered_json(nullptr);
        }
        artifacts.push_back(one);
    }
    for (const ToMeasure &group : to_measure(checked)) {
        ordered_json names = ordered_json::array();
        for (size_t i : group.artifacts) names.push_back(checked[i].name);
        again.push_back(
            {{"schedules", names}, {"task", json_of(checked[group.artifacts[0]].now->task)}, {"predicted_speed", group.effect}});
    }
    const ordered_json all = {
        {"format", "tessera-check"}, {"version", 1}, {"counts", counts}, {"schedules", artifacts}, {"measure_again", again}};
    return lossy_json_text(all, 2) + "\n";
}

int check(const Registry &registry, const CheckOptions &options) {
    std::error_code unknown;
    for (const std::string &path : options.paths)
        if (options.record && std::filesystem::exists(std::filesystem::symlink_status(path, unknown)) && !is_folder(path))
            throw UserError("command.arguments", "check: --record keeps the programs of a whole folder beside them, and '" + path +
                                                     "' is a file. Name the folder.");
    const std::vector<CheckedArtifact> checked = check_artifacts(registry, options.paths, options.schedule_dirs, options.model);
    if (checked.empty())
        throw UserError("check.path",
                        "'" + join(options.paths, "', '") + "': expected a schedule or more (*.json), found none. Correct the path.");
    std::cout << (options.json ? checked_json(checked) : text_of(checked, options));
    const auto counts = counts_of(checked);
    if (options.record) {
        for (const std::string &path : options.paths)
            if (is_folder(path)) write_lock(checked, path);
        return counts.count(State::broken) ? exit_check_failed : exit_ok;
    }
    return counts.count(State::broken) || counts.count(State::changed) ? exit_check_failed : exit_ok;
}

}  // namespace

Command check_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<CheckOptions>();
    const CommandLine line =
        program.command("check", "Lower every schedule of a folder again, and list those whose programs changed. Exits 1 if any did");
    line.option("path", options->paths, "Folders of schedules, or files").required().takes("DIR|FILE");
    add_schedule_dirs(line, options->schedule_dirs);
    line.option("--program", options->programs, "The file (*.json) of an algorithm that schedules are for; may be repeated")
        .one_value_each()
        .takes("FILE");
    line.option("--model", options->model,
                "The cost model that predicts the speed of changed programs, as for 'tune'. Default: the models that ship")
        .takes("NAME|FILE");
    line.flag("--record", options->record,
              "Write the hashes of the programs to the folder's tessera-programs.lock, for schedules that were not tuned");
    line.flag("--json", options->json, "Print JSON, for programs");
    return {line, [=, &registry] { return check(with_programs(registry, options->programs), *options); }};
}

}  // namespace tessera
