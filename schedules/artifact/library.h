// A Library finds schedules by name: those registered in C++, and files <folder>/<name>.json, or <folder>/tuned/<name>.json, where what
// machines wrote lies apart. The file's own "name" must be the name that was asked for.
//
// Artifacts are read as input from strangers. A name has no "..", no root and no odd characters (is_schedule_name); with symbolic
// links resolved, it must lead to a regular file of at most 1 MiB inside the folder. The file is opened without following links, so
// a swap in between is refused too.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "schedules/artifact/artifact.h"

namespace tessera {

class Library {
public:
    // Earlier folders come first. UserError schedule.folder when it is none.
    void add_folder(const std::filesystem::path &folder);
    // UserError schedule.duplicate when the name is registered already, as a different schedule.
    void add(const Schedule &schedule);

    // Registered schedules come before files. A former name (knobs/former_names.h) finds the schedule that has today's. UserError
    // schedule.outside, schedule.missing, schedule.file, schedule.too-large, schedule.name-mismatch, and those of Schedule::parse.
    Schedule find(const std::string &name) const;
    // All names that can be found: those registered, then folder by folder; of each sorted.
    std::vector<std::string> names() const;

    // The schedule, its parent, and so on to the one that extends nothing. UserError as find, and schedule.missing-parent,
    // schedule.cycle, schedule.depth (more than 64 ancestors); each shows the chain.
    std::vector<Schedule> ancestry(const Schedule &schedule) const;
    // The files that took part in an ancestry, for a build system's list of dependencies.
    std::vector<std::filesystem::path> files(const Schedule &schedule) const;

private:
    std::vector<std::filesystem::path> folders_;  // canonical
    std::map<std::string, Schedule> registered_;
};

// The subfolder of a folder of schedules that has what machines wrote: artifacts of tune, and the record of programs.
constexpr const char *tuned_folder = "tuned";

// The name that a file has by its path in a folder of schedules: without "tuned/" in front and ".json" behind.
std::string name_by_path(const std::filesystem::path &relative);

// What may be a schedule in a folder and its subfolders: files and links *.json, except *.schema.json, whatever the links lead to.
std::vector<std::filesystem::path> schedule_files(const std::filesystem::path &folder);

// A schedule by its file, wherever that is, as a user names it on the command line. UserError schedule.file, schedule.too-large,
// and those of Schedule::parse.
Schedule read_schedule(const std::filesystem::path &file);

}  // namespace tessera
