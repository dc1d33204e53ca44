#include "generators/check/checked_artifacts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "generators/choose/best_match.h"
#include "generators/choose/derived_schedule.h"
#include "generators/choose/model_choice.h"
#include "generators/kernel/artifact_task.h"
#include "schedules/artifact/merge.h"
#include "schedules/knobs/former_names.h"
#include "schedules/target/target.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;
using State = CheckedArtifact::State;

namespace {

constexpr const char *lock_name = "tessera-programs.lock";
const Handed lock_file{"check", "record of programs", "Delete it, and write it again with check --record.", size_t{16} << 20};

using Lock = std::map<std::string, Provenance>;

Lock parse_lock(const std::string &text, const std::string &file) {
    const nlohmann::json document = parse_json(text, file);
    const JsonReader reader(document, file);
    reader.only({"format", "version", "programs"});
    if (reader.at("format").text() != "tessera-programs" || reader.at("version").integer() != 1)
        throw UserError("check.record", "'" + file + "': expected format tessera-programs, version 1; got another.");
    Lock lock;
    for (const JsonReader &row : reader.at("programs").items())
        if (auto record = provenance_from_json(row.value(), file)) lock[current_schedule_name(row.at("schedule").text())] = *record;
    return lock;
}

Lock read_lock(const fs::path &file) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(file, error))) return {};
    const std::string text = read_regular(file, lock_file);
    try {
        return parse_lock(text, file.string());
    } catch (const UserError &error) { throw UserError(error.id(), error.message() + " " + lock_file.remedy); }
}

// Apart from what people write, where the folder has such a place.
fs::path lock_folder(const fs::path &folder) {
    std::error_code unknown;
    return fs::is_directory(folder / tuned_folder, unknown) ? folder / tuned_folder : folder;
}

struct Found {
    fs::path file;
    fs::path relative;  // to the folder that was named; empty for a file that was
    size_t lock = 0;
};

// All that is to be checked, once each, and the folders' locks.
struct Files {
    std::vector<Found> files;
    std::vector<Lock> locks = {{}};
    std::vector<std::string> folders;

    explicit Files(const std::vector<std::string> &paths) {
        std::set<fs::path> seen;
        for (const std::string &path : paths) {
            std::error_code unknown;
            if (fs::is_directory(path, unknown)) {
                add_folder(path, seen);
            } else if (fs::exists(fs::symlink_status(path, unknown))) {
                if (seen.insert(identity(path)).second) files.push_back({path, {}, 0});
            } else {
                throw UserError("check.path",
                                "'" + path + "': expected a schedule's file or a folder of them; there is none. Correct the path.");
            }
        }
    }

private:
    // One that leads nowhere, such as a link to itself, is itself.
    static fs::path identity(const fs::path &file) {
        std::error_code error;
        const fs::path canonical = fs::canonical(file, error);
        return error ? fs::absolute(file) : canonical;
    }

    void add_folder(const std::string &folder, std::set<fs::path> &seen) {
        folders.push_back(folder);
        locks.push_back(read_lock(lock_folder(folder) / lock_name));
        for (const fs::path &file : schedule_files(folder))
            if (seen.insert(identity(file)).second) files.push_back({file, file.lexically_relative(folder), locks.size() - 1});
    }
};

std::vector<std::string> causes_of(const Provenance &before, const Provenance &now) {
    std::vector<std::string> causes;
    if (before.semantic != now.semantic) causes.push_back("the algorithm");
    if (before.stated != now.stated) causes.push_back("its own fields");
    const std::map<std::string, std::string> old(before.ancestors.begin(), before.ancestors.end());
    for (const auto &[name, hash] : now.ancestors) {
        auto known = old.find(name);
        if (known == old.end()) causes.push_back("ancestor '" + name + "', which it did not have");
        else if (known->second != hash) causes.push_back("ancestor '" + name + "'");
    }
    if (causes.empty())
        causes.push_back(before.version == now.version ? "the compiler" : "the compiler, " + before.version + " to " + now.version);
    return causes;
}

std::optional<double> effect_of(const std::optional<Prediction> &before, const std::optional<Prediction> &now) {
    if (!before || !now) return std::nullopt;
    if (before->model == now->model && before->features == now->features) return std::exp2(now->score - before->score);
    if (now->draft_s > 0) return before->draft_s / now->draft_s;
    return std::nullopt;
}

void compare(CheckedArtifact &a) {
    if (!a.recorded) {
        a.state = State::unrecorded;
        return;
    }
    a.state = a.recorded->resolved == a.now->resolved ? State::unchanged : State::changed;
    if (a.state == State::unchanged) return;
    a.causes = causes_of(*a.recorded, *a.now);
    if (!a.recorded->bits.empty()) a.bits_changed = a.recorded->bits != a.now->bits;
    a.effect = effect_of(a.recorded->predicted, a.now->predicted);
    for (const auto &[name, before] : a.recorded->counts)
        if (auto after = a.now->counts.find(name); after != a.now->counts.end())
            if (std::abs(after->second - before) > 1e-3 * std::max(std::abs(before), std::abs(after->second)))
                a.counts.push_back({name, before, after->second});
}

// What tune begins with where it is not told; nothing also where that is broken.
std::string own_base(const PreparedKernel &p, const Library &library) {
    try {
        const auto family = Chooser(library, p.request.target).family(p.request.declared, p.request.fixed).schedule;
        if (family) return family->name();
        return p.request.made_of && !p.request.target.is_gpu() ? derived_name(p.request, p.request.target) : "";
    } catch (const UserError &) { return ""; }
}

void find_base(CheckedArtifact &a, const PreparedKernel &p, const Library &library) {
    if (!a.tuned || !a.tuned->base || *a.tuned->base == own_base(p, library)) return;
    const std::vector<std::string> known = library.names();
    if (a.tuned->base->empty()) a.base = "none";
    else if (std::find(known.begin(), known.end(), *a.tuned->base) != known.end()) a.base = *a.tuned->base;
    else a.lost_base = *a.tuned->base;
}

CheckedArtifact checked(const Registry &registry, const Found &found, const Lock &lock, const std::vector<std::string> &dirs, Judge &judge,
                        std::set<std::string> &told) {
    CheckedArtifact a;
    a.file = found.file;
    a.name = found.relative.empty() ? found.file.generic_string() : name_by_path(found.relative);
    try {
        const Schedule schedule = read_schedule(found.file);
        if (!found.relative.empty() && schedule.name() != a.name && !schedule.name().ends_with("/" + a.name))
            throw UserError("schedule.name-mismatch", "schedule file '" + found.file.string() + "': expected a name that ends in '" +
                                                          a.name + "', as its path says; got '" + schedule.name() +
                                                          "'. Rename the one or the other.");
        a.name = schedule.name();
        const Library library = registry.library(registry.schedule_folders(dirs));
        const auto task = task_for(registry, schedule, library);
        if (!task) return a;
        a.tuned = tuning_record_of(schedule);
        if ((a.recorded = provenance_of(schedule))) a.measured = true;
        else if (auto row = lock.find(a.name); row != lock.end() && row->second.task == *task) a.recorded = row->second;
        KernelOptions options = options_of(*task);
        options.schedule = found.file.string(), options.schedule_dirs = dirs;
        PreparedKernel p = prepare(registry, options);
        a.now = provenance_of(p, task->extents, task->threads, judge);
        a.now->task.options = task->options;  // standard values are not listed where the artifact does not
        compare(a);
        if (a.state == State::changed) find_base(a, p, library);
    } catch (const UserError &error) {
        a.state = State::broken, a.message = told.insert(error.id()).second ? error.what() : told_again(error);
    }
    return a;
}

}  // namespace

const char *name_of(State state) {
    switch (state) {
    case State::broken: return "broken";
    case State::changed: return "changed";
    case State::unrecorded: return "unrecorded";
    case State::unknown: return "unknown";
    case State::unchanged: return "unchanged";
    }
    return "?";
}

std::vector<CheckedArtifact> check_artifacts(const Registry &registry, const std::vector<std::string> &paths,
                                             const std::vector<std::string> &more, const std::string &model) {
    const Files files(paths);
    std::vector<std::string> dirs = files.folders;
    dirs.insert(dirs.end(), more.begin(), more.end());
    if (!model.empty()) model_for(registry, model, target_named("host"));  // what cannot be loaded is refused before anything is checked
    Judge judge(registry, model);
    std::set<std::string> told;  // ids of errors
    std::vector<CheckedArtifact> all;
    for (const Found &found : files.files) all.push_back(checked(registry, found, files.locks[found.lock], dirs, judge, told));
    std::sort(all.begin(), all.end(),
              [](const auto &a, const auto &b) { return std::tie(a.state, a.name, a.file) < std::tie(b.state, b.name, b.file); });
    return all;
}

std::vector<ToMeasure> to_measure(const std::vector<CheckedArtifact> &checked) {
    // One program is measured otherwise for another goal, and with cold caches; who chose it makes no difference.
    auto key = [](const CheckedArtifact &a) {
        TuningRecord how = a.tuned.value_or(TuningRecord());
        how.is_predicted = false, how.candidates = 0;
        return a.now->resolved + " " + to_string(a.now->task) + " " + join(tuning_words(a.now->task, how), " ");
    };
    std::set<std::string> known;
    for (const CheckedArtifact &a : checked)
        if (a.state == State::unchanged && a.measured) known.insert(key(a));
    std::map<std::string, ToMeasure> groups;
    for (size_t i = 0; i < checked.size(); i++) {
        const CheckedArtifact &a = checked[i];
        if (a.state != State::changed || known.count(key(a))) continue;
        ToMeasure &group = groups[key(a)];
        group.effect = group.artifacts.empty() ? a.effect.value_or(1) : std::min(group.effect, a.effect.value_or(1));
        group.artifacts.push_back(i);
    }
    std::vector<ToMeasure> all;
    for (auto &[name, group] : groups) all.push_back(std::move(group));
    std::stable_sort(all.begin(), all.end(), [](const ToMeasure &a, const ToMeasure &b) { return a.effect < b.effect; });
    return all;
}

void write_lock(const std::vector<CheckedArtifact> &checked, const fs::path &folder) {
    std::map<std::string, std::string> rows;
    const fs::path root = fs::canonical(folder);
    for (const CheckedArtifact &a : checked) {
        if (!a.now || a.measured) continue;
        const fs::path inside = fs::weakly_canonical(a.file).lexically_relative(root);
        if (inside.empty() || *inside.begin() == "..") continue;
        nlohmann::ordered_json row = {{"schedule", a.name}};
        row.update(json_of(*a.now));
        rows[a.name] = json_text(row);
    }
    std::string text = "{\"format\": \"tessera-programs\", \"version\": 1, \"programs\": [";
    const char *before = "\n";
    for (const auto &[name, row] : rows) text += before + row, before = ",\n";
    const OutputFolder out(lock_folder(folder));
    out.write(lock_name, text + "\n]}\n");
    out.publish(lock_name);
}

}  // namespace tessera
