#include "generators/kernel/artifact_task.h"

#include <algorithm>

#include "generators/kernel/prepare.h"
#include "generators/registry/transforms.h"
#include "schedules/artifact/merge.h"
#include "schedules/target/target.h"

namespace tessera {

std::string target_in(const std::string &name) {
    const size_t plus = name.find('+', name.rfind('/') + 1);
    const std::string base = name.substr(0, plus), features = plus == std::string::npos ? "" : name.substr(plus);
    std::string found;
    for (const std::string &target : target_names())
        if (target != "host" && base.ends_with(target) && target.size() > found.size()) found = target;
    return found.empty() ? "" : found + features;
}

namespace {

bool has_all(const Target &target, const std::vector<std::string> &features) {
    return std::all_of(features.begin(), features.end(), [&](const std::string &f) { return target.has(f); });
}

std::string target_for(const std::vector<Schedule> &ancestry, const std::vector<std::string> &features) {
    for (const Schedule &s : ancestry)
        if (const std::string name = target_in(s.name()); !name.empty() && has_all(target_named(name), features)) return name;
    std::string smallest;
    size_t fewest = SIZE_MAX;
    for (const std::string &name : target_names()) {
        if (name == "host") continue;
        const Target target = target_named(name);
        if (!target.is_gpu() && has_all(target, features) && target.features.size() < fewest)
            fewest = target.features.size(), smallest = name;
    }
    return smallest;
}

}  // namespace

std::optional<KernelTask> task_for(const Registry &registry, const Schedule &schedule, const Library &library) {
    if (const auto own = provenance_of(schedule)) return own->task;
    const ResolvedSchedule resolved = resolve_head(schedule, library);
    std::vector<std::string> parts;
    for (size_t at = 0; at <= resolved.name.size();) {
        const size_t end = std::min(resolved.name.find('/', at), resolved.name.size());
        parts.push_back(resolved.name.substr(at, end - at));
        at = end + 1;
    }
    KernelTask task;
    task.algorithm = resolved.algorithm.empty() ? parts[0] : resolved.algorithm;
    task.transforms = transforms_in(library.ancestry(schedule));
    if (!registry.knows(name_before(task.algorithm, task.transforms)) && resolved.algorithm.empty()) return std::nullopt;
    const std::vector<std::string> numerics = registry.numerics_names();
    if (parts.size() > 2 && std::find(numerics.begin(), numerics.end(), base_name(parts[1])) != numerics.end()) task.numerics = parts[1];
    task.target = target_for(library.ancestry(schedule), resolved.requires_features);
    return task;
}

KernelOptions options_of(const KernelTask &task) {
    KernelOptions options;
    options.algorithm = task.algorithm, options.numerics = task.numerics, options.target = task.target;
    options.options = assignments(task.options), options.shape = assignments(task.fixed);
    options.transforms = task.transforms, options.algorithm = name_before(task.algorithm, task.transforms);
    return options;
}

}  // namespace tessera
