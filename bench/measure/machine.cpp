#include "bench/measure/machine.h"

#include <hwloc.h>
#include <sys/utsname.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera {

const Cache *Machine::cache(int level) const {
    auto it = std::find_if(caches.begin(), caches.end(), [&](const Cache &c) { return c.level == level; });
    return it == caches.end() ? nullptr : &*it;
}

Machine this_machine() {
    hwloc_topology_t raw = nullptr;
    require(hwloc_topology_init(&raw) == 0, "a topology can be made");
    const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> topology(raw, hwloc_topology_destroy);
    require(hwloc_topology_load(raw) == 0, "the machine's topology can be read");
    Machine m;
    utsname names{};
    if (uname(&names) == 0) m.architecture = names.machine;
    const hwloc_obj_t package = hwloc_get_obj_by_type(raw, HWLOC_OBJ_PACKAGE, 0), root = hwloc_get_root_obj(raw);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : nullptr;
    if (!model) model = hwloc_obj_get_info_by_name(root, "CPUModel");
    m.processor = model && *model ? model : "unknown";
    auto count = [&](hwloc_obj_type_t type) { return std::max(1, hwloc_get_nbobjs_by_type(raw, type)); };
    m.threads = count(HWLOC_OBJ_PU);
    m.cores = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE) > 0 ? count(HWLOC_OBJ_CORE) : m.threads;
    m.numa_nodes = count(HWLOC_OBJ_NUMANODE);
    m.memory_bytes = static_cast<int64_t>(root->total_memory);
    const hwloc_obj_type_t kinds[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
    for (int level = 1; level <= 3; level++)
        if (const hwloc_obj_t cache = hwloc_get_obj_by_type(raw, kinds[level - 1], 0); cache && cache->attr->cache.size > 0)
            m.caches.push_back({level, static_cast<int64_t>(cache->attr->cache.size), std::max(1, hwloc_bitmap_weight(cache->cpuset))});
    return m;
}

std::string bytes_text(int64_t bytes) {
    const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    for (; value >= 1024 && unit < 4; unit++) value /= 1024;
    return fmt::format("{:.4g} {}", value, units[unit]);
}

}  // namespace tessera
