#include "generators/manifest.h"

#include <nlohmann/json.hpp>

#include "algorithms/hash.h"
#include "schedules/notation.h"

namespace tessera {

using nlohmann::ordered_json;

const char *tessera_version() { return TESSERA_VERSION; }
const char *halide_version() { return TESSERA_HALIDE_VERSION; }

static ordered_json schedule_json(const PreparedKernel &p) {
    if (!p.schedule) return nullptr;
    ordered_json chain = ordered_json::array();
    for (const Schedule &s : p.ancestry) {
        ordered_json link = {{"name", s.name()}};
        if (s.file()) link["file"] = s.file()->filename().string();
        link["hash"] = s.hash();
        chain.push_back(link);
    }
    return {{"name", p.schedule->name()}, {"chain", chain}};
}

static ordered_json variants_json(const Kernel &kernel) {
    ordered_json variants = ordered_json::array();
    for (const KernelVariant &variant : kernel.variants) {
        ordered_json when = ordered_json::array();
        for (const Condition &c : variant.when) when.push_back(to_string(c));
        variants.push_back({{"when", when}, {"resolved", resolved_hash(variant.program)}});
    }
    return variants;
}

std::string manifest_of(const PreparedKernel &p, const std::map<std::string, std::string> &files) {
    ordered_json fixed = ordered_json::object(), hashes = ordered_json::object();
    for (const auto &[dim, extent] : p.fixed) fixed[dim] = extent;
    for (const auto &[name, content] : files) hashes[name] = sha256(content);
    const ordered_json manifest = {
        {"format", "tessera-manifest"},
        {"version", 1},
        {"tessera", tessera_version()},
        {"halide", halide_version()},
        {"kernel", p.kernel.name},
        {"algorithm", {{"name", p.declared.name}, {"semantic", semantic_hash(p.declared)}, {"surface", surface_hash(p.declared)}}},
        {"numerics", p.declared.numerics.name},
        {"fixed", fixed},
        {"target", {{"name", p.target.name}, {"arch", p.target.arch}, {"features", p.target.features}}},
        {"schedule", schedule_json(p)},
        {"variants", variants_json(p.kernel)},
        {"files", hashes},
    };
    return manifest.dump(2) + "\n";
}

}  // namespace tessera
