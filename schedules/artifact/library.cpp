#include "schedules/artifact/library.h"

#include <algorithm>
#include <set>

#include "schedules/knobs/former_names.h"
#include "schedules/knobs/notation.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/shortened.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr size_t max_ancestors = 64;

const Handed schedule_file{"schedule", "schedule file", "Move its measurements to a file of their own."};

[[noreturn]] void refuse_file(const std::string &file, const std::string &why, const std::string &remedy) {
    refuse(schedule_file, file, why, remedy);
}

bool is_beneath(const fs::path &path, const fs::path &root) {
    const auto [at_root, at_path] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
    return at_root == root.end() && at_path != path.end();
}

[[noreturn]] void refuse_outside(const std::string &name, const std::string &why) {
    std::string shown = name.substr(0, 200);
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
    throw UserError("schedule.outside",
                    "schedule '" + shown + "': " + why + "; expected one inside the schedule folders. Copy it there, or name another.");
}

std::string chain_text(const std::vector<Schedule> &chain, const std::string &next) {
    std::string text;
    for (const Schedule &schedule : chain) text += schedule.name() + " -> ";
    return text + next;
}

std::string listed(const std::vector<std::string> &names) { return first_of(names, 20); }

}  // namespace

void Library::add_folder(const fs::path &folder) {
    std::error_code error;
    const fs::path canonical = fs::canonical(folder, error);
    if (error || !fs::is_directory(canonical, error))
        throw UserError("schedule.folder",
                        "schedule folder '" + folder.string() + "': expected a folder; there is none. Make it or correct the path.");
    if (std::find(folders_.begin(), folders_.end(), canonical) == folders_.end()) folders_.push_back(canonical);
}

void Library::add(const Schedule &schedule) {
    auto [it, added] = registered_.emplace(schedule.name(), schedule);
    if (!added && it->second != schedule)
        throw UserError("schedule.duplicate", "schedule '" + schedule.name() +
                                                  "': another schedule is registered under this name. Give one of them another name.");
}

Schedule Library::find(const std::string &asked) const {
    if (!is_schedule_name(asked))
        refuse_outside(asked, "it is no schedule's name (parts of letters, digits, '_', '-', '+' and '.', joined by '/')");
    const std::string name = current_schedule_name(asked);
    if (auto it = registered_.find(name); it != registered_.end()) return it->second;
    std::vector<std::string> spellings = former_schedule_names(name);
    spellings.insert(spellings.begin(), name);
    for (const fs::path &folder : folders_) {
        std::error_code error;
        std::vector<fs::path> places;
        for (const fs::path &place : {folder, folder / tuned_folder})
            for (const std::string &spelling : spellings) places.push_back(place / (spelling + ".json"));
        const auto there =
            std::find_if(places.begin(), places.end(), [&](const fs::path &place) { return fs::exists(fs::symlink_status(place, error)); });
        if (there == places.end()) continue;
        const fs::path &path = *there;
        const fs::path canonical = fs::canonical(path, error);
        if (error) refuse_file(path.string(), "it leads nowhere", "Repair or remove the link.");
        if (!is_beneath(canonical, folder)) refuse_outside(name, "its file '" + path.string() + "' is a link that leaves the folder");
        const std::string text = read_beneath(folder, canonical.lexically_relative(folder), path.string(), schedule_file);
        const Schedule found = Schedule::parse(text, path.string());
        if (found.name() != name)
            throw UserError("schedule.name-mismatch", "schedule file '" + path.string() + "': expected \"name\": \"" + name +
                                                          "\", as its path says; got '" + found.name() + "'. Rename the one or the other.");
        return found.from_file(canonical);
    }
    const std::vector<std::string> all = names();
    throw UserError("schedule.missing", "there is no schedule '" + name + "'; there are " + listed(all) + "." + did_you_mean(name, all) +
                                            " Add it, or the folder that has it, to the schedule folders.");
}

std::vector<std::string> Library::names() const {
    std::vector<std::string> names;
    std::set<std::string> known;
    auto add = [&](std::vector<std::string> those) {
        std::sort(those.begin(), those.end());
        for (const std::string &name : those)
            if (known.insert(name).second) names.push_back(name);
    };
    std::vector<std::string> registered;
    for (const auto &[name, schedule] : registered_) registered.push_back(name);
    add(registered);
    for (const fs::path &folder : folders_) {
        std::vector<std::string> files;
        for (const fs::path &file : schedule_files(folder)) {
            const std::string name = name_by_path(file.lexically_relative(folder));
            if (is_schedule_name(name)) files.push_back(current_schedule_name(name));
        }
        add(files);
    }
    return names;
}

std::vector<Schedule> Library::ancestry(const Schedule &schedule) const {
    std::vector<Schedule> chain = {schedule};
    while (!chain.back().parent_name().empty()) {
        const std::string parent = chain.back().parent_name();
        const bool seen = std::any_of(chain.begin(), chain.end(), [&](const Schedule &s) { return s.name() == parent; });
        if (seen)
            throw UserError("schedule.cycle", "schedule '" + schedule.name() + "': it extends itself: " + chain_text(chain, parent) +
                                                  ". Let one of them extend something else.");
        if (chain.size() > max_ancestors)
            throw UserError("schedule.depth", "schedule '" + schedule.name() + "': expected at most " + std::to_string(max_ancestors) +
                                                  " ancestors; got more: " + schedule.name() + " -> " + chain[1].name() + " -> … -> " +
                                                  chain.back().name() + " -> " + parent + ". Flatten one of them.");
        if (const Schedule *given = chain.back().parent()) {
            chain.push_back(Schedule(*given));
            continue;
        }
        try {
            chain.push_back(find(parent));
        } catch (const UserError &error) {
            if (error.id() != "schedule.missing") throw;
            const std::vector<std::string> all = names();
            throw UserError("schedule.missing-parent", "schedule '" + chain.back().name() + "' at /extends: there is no schedule '" +
                                                           parent + "' (" + chain_text(chain, parent) + "); there are " + listed(all) +
                                                           "." + did_you_mean(parent, all) +
                                                           " Add it, or the folder that has it, to the schedule folders.");
        }
    }
    return chain;
}

std::vector<fs::path> Library::files(const Schedule &schedule) const {
    std::vector<fs::path> files;
    for (const Schedule &s : ancestry(schedule))
        if (s.file()) files.push_back(*s.file());
    return files;
}

std::string name_by_path(const fs::path &relative) {
    const std::string name = fs::path(relative).replace_extension().generic_string(), prefix = std::string(tuned_folder) + "/";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

std::vector<fs::path> schedule_files(const fs::path &folder) {
    std::vector<fs::path> files;
    std::error_code error, unknown;
    fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
    for (; !error && it != end; it.increment(error)) {
        const fs::path &file = it->path();
        if (file.extension() != ".json" || file.stem().extension() == ".schema" || fs::is_directory(file, unknown)) continue;
        files.push_back(file);
    }
    return files;
}

Schedule read_schedule(const fs::path &file) {
    const Schedule schedule = Schedule::parse(read_regular(file, schedule_file), file.string());
    return schedule.from_file(fs::absolute(file).lexically_normal());
}

}  // namespace tessera
