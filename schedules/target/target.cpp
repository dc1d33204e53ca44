#include "schedules/target/target.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "runtime/abi/tessera.h"
#include "schedules/knobs/former_names.h"
#include "support/text/error.h"

namespace tessera {

namespace {

bool contains(const std::vector<std::string> &list, const std::string &item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

struct ArchTraits {
    Arch arch;
    const char *name;
    bool gpu;
};

constexpr std::array archs = {
    ArchTraits{Arch::x86_64, "x86-64", false}, ArchTraits{Arch::arm64, "arm64", false}, ArchTraits{Arch::wasm32, "wasm32", false},
    ArchTraits{Arch::opencl, "opencl", true},  ArchTraits{Arch::cuda, "cuda", true},
};
static_assert(
    [] {
        for (size_t i = 0; i < archs.size(); i++)
            if (archs[i].arch != static_cast<Arch>(i)) return false;
        return archs.size() == static_cast<size_t>(Arch::cuda) + 1;
    }(),
    "every arch has its traits, in the order of the enumeration");

const ArchTraits &traits_of(Arch arch) { return archs[static_cast<size_t>(arch)]; }

// The table of targets: what is the same as in the one before it is not said again.
const std::vector<Target> &built_in() {
    static const std::vector<Target> targets = [] {
        Target base;
        base.name = "x86-64", base.arch = Arch::x86_64;

        Target avx2 = base;
        avx2.name = "avx2";
        avx2.features = {"sse4_1", "sse4_2", "popcnt", "abm", "bmi1", "bmi2", "avx", "avx2", "fma", "f16c"};
        avx2.vector_bytes = 32;
        avx2.l2_bytes = 512 << 10, avx2.l3_bytes = 16 << 20;

        Target avx512 = avx2;
        avx512.name = "avx512";
        for (const char *feature : {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}) avx512.features.push_back(feature);
        avx512.vector_bytes = 64, avx512.vector_registers = 32;
        avx512.l1_bytes = 48 << 10, avx512.l2_bytes = 1 << 20, avx512.l3_bytes = 32 << 20;

        // Processors with dot products of bytes and of bf16, as LLVM names them. SSE4a is AMD's, FP16 Intel's.
        const std::vector<std::string> known = known_features();
        auto with_dot_products = [&](const char *name, const std::vector<std::string> &more) {
            Target target = avx512;
            target.name = name;
            for (const char *feature :
                 {"gfni", "avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512_bitalg", "avx512_vpopcntdq", "avx512_vnni", "avx512_bf16"})
                target.features.push_back(feature);
            target.features.insert(target.features.end(), more.begin(), more.end());
            std::sort(target.features.begin(), target.features.end(), [&](const std::string &a, const std::string &b) {
                return std::find(known.begin(), known.end(), a) < std::find(known.begin(), known.end(), b);
            });
            return target;
        };
        Target znver4 = with_dot_products("znver4", {"sse4a"});
        znver4.l1_bytes = 32 << 10;
        const Target znver5 = with_dot_products("znver5", {"sse4a", "avx_vnni"});
        Target sapphirerapids = with_dot_products("sapphirerapids", {"avx_vnni", "avx512_fp16"});
        sapphirerapids.l2_bytes = 2 << 20;
        Target amx = sapphirerapids;
        amx.name = "amx";
        for (const char *feature : {"amx_tile", "amx_int8", "amx_bf16"}) amx.features.push_back(feature);

        Target arm64;
        arm64.name = "arm64", arm64.arch = Arch::arm64;
        arm64.vector_registers = 32;
        arm64.l1_bytes = 64 << 10, arm64.l2_bytes = 1 << 20, arm64.l3_bytes = 32 << 20;

        // With SIMD128, whose registers an engine maps to those of the machine: 16 on x86-64.
        Target wasm32;
        wasm32.name = "wasm32", wasm32.arch = Arch::wasm32;

        // What every OpenCL 1.2 device for graphics has. The vectors of a GPU are four elements: one access to memory.
        Target opencl;
        opencl.name = "opencl", opencl.arch = Arch::opencl;
        opencl.shared_bytes = 32 << 10, opencl.max_threads = 256;
        Target sm80 = opencl;
        sm80.name = "cuda-sm80", sm80.arch = Arch::cuda, sm80.compute_capability = 80;
        sm80.stands_in = opencl.name;  // blocks for it fit every GPU
        sm80.shared_bytes = 163 << 10, sm80.max_threads = 1024;
        sm80.l2_bytes = 40 << 20;
        Target sm86 = sm80;
        sm86.name = "cuda-sm86", sm86.compute_capability = 86, sm86.l2_bytes = 6 << 20;
        sm86.shared_bytes = 99 << 10;
        Target sm90 = sm80;
        sm90.name = "cuda-sm90", sm90.compute_capability = 90, sm90.l2_bytes = 50 << 20;
        sm90.shared_bytes = 227 << 10;
        return std::vector<Target>{base, avx2, avx512, znver4, znver5, sapphirerapids, amx, arm64, wasm32, opencl, sm80, sm86, sm90};
    }();
    return targets;
}

const Target &built_in_named(const std::string &name) {
    return *std::find_if(built_in().begin(), built_in().end(), [&](const Target &t) { return t.name == name; });
}

void set_if_known(int64_t &bytes, int sysconf_name) {
    const long size = sysconf(sysconf_name);
    if (size > 0) bytes = size;
}

Target host() {
    Target best = built_in().front();
    for (const Target &target : built_in())
        if (runs_here(target)) best = target;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    set_if_known(best.l1_bytes, _SC_LEVEL1_DCACHE_SIZE);
    set_if_known(best.l2_bytes, _SC_LEVEL2_CACHE_SIZE);
    set_if_known(best.l3_bytes, _SC_LEVEL3_CACHE_SIZE);
#endif
    return best;
}

}  // namespace

const char *name_of(Arch arch) { return traits_of(arch).name; }
bool is_gpu(Arch arch) { return traits_of(arch).gpu; }

bool Target::has(const std::string &feature) const { return contains(features, feature); }

const std::vector<std::string> &peak_names() {
    static const std::vector<std::string> names = {"f32", "f64", "bf16", "u8s8", "amx_bf16", "amx_u8s8"};
    return names;
}

const std::vector<std::string> &memory_names() {
    static const std::vector<std::string> names = {"l1", "l2", "l3", "memory"};
    return names;
}

std::vector<std::string> target_names() {
    std::vector<std::string> names;
    for (const Target &target : built_in()) names.push_back(target.name);
    names.push_back("host");
    return names;
}

std::vector<std::string> known_features() {
    std::vector<std::string> names;
    for (int bit = 0; const char *name = tess_cpu_feature_name(bit); bit++) names.push_back(name);
    return names;
}

std::vector<std::string> known_features(Arch arch) {
    std::vector<std::string> names;
    for (int bit = 0; const char *name = tess_cpu_feature_name(bit); bit++)
        if ((bit < TESS_CPU_ASIMDHP || bit >= TESS_CPU_SSE4A ? Arch::x86_64 : Arch::arm64) == arch) names.push_back(name);
    return names;
}

Arch host_arch() {
#if defined(__aarch64__)
    return Arch::arm64;
#else
    return Arch::x86_64;
#endif
}

bool runs_here(const Target &target) {
    const std::vector<std::string> have = host_features();
    return target.arch == host_arch() &&
           std::all_of(target.features.begin(), target.features.end(), [&](const std::string &feature) { return contains(have, feature); });
}

std::vector<std::string> host_features() {
    std::vector<std::string> names;
    const uint64_t have = tess_cpu_features();
    for (int bit = 0; const char *name = tess_cpu_feature_name(bit); bit++)
        if (have >> bit & 1) names.push_back(name);
    return names;
}

Target target_named(const std::string &name) {
    std::istringstream words(current_target_name(name) + "+");  // so that what is behind the last plus is a word too, if an empty one
    std::string base;
    std::getline(words, base, '+');
    const std::vector<std::string> names = target_names();
    if (!contains(names, base))
        throw UserError("target.unknown", "there is no target '" + base + "'; the targets are " + join(names) +
                                              ", features can be added to each (avx512+avx512_vnni), and a target file ends in .json." +
                                              did_you_mean(base, names));
    Target target = base == "host" ? host() : built_in_named(base);
    const std::vector<std::string> known = known_features(target.arch);
    std::vector<std::string> all = target.features;
    for (std::string feature; std::getline(words, feature, '+');) {
        if (!contains(known, feature))
            throw UserError("target.unknown-feature", "target '" + name + "': " + name_of(target.arch) + " has no feature '" + feature +
                                                          "'; its features are " + join(known) + "." + did_you_mean(feature, known));
        if (!contains(all, feature)) all.push_back(feature);
    }
    for (const std::string &feature : all)
        if (feature.starts_with("avx512") && target.vector_bytes < 64)
            throw UserError("target.feature-set",
                            "target '" + name + "': " + feature +
                                " by itself; code for AVX-512 uses all that is common to such processors, as the target 'avx512' has it. "
                                "Expected 'avx512'" +
                                (contains(built_in_named("avx512").features, feature) ? "." : " with it: 'avx512+" + feature + "'."));
    std::vector<std::string> ordered;
    for (const std::string &feature : known) {
        if (!contains(all, feature)) continue;
        ordered.push_back(feature);
        if (!target.has(feature)) target.name += "+" + feature;
    }
    target.features = ordered;
    return target;
}

bool names_gpu(const std::string &name) {
    const std::string base = name.substr(0, name.find('+'));
    return std::any_of(built_in().begin(), built_in().end(), [&](const Target &t) { return t.name == base && t.is_gpu(); });
}

std::string name_with(const Target &target, const std::vector<std::string> &features) {
    std::string best;
    size_t least = features.size() + 1;
    for (const Target &t : built_in()) {
        if (t.arch != target.arch ||
            !std::all_of(target.features.begin(), target.features.end(), [&](const std::string &f) { return t.has(f); }))
            continue;
        std::string name = t.name;
        size_t added = 0;
        for (const std::string &feature : features)
            if (!t.has(feature)) name += "+" + feature, added++;
        if (added < least) best = name, least = added;
    }
    return best.empty() ? target.name + "+" + join(features, "+") : best;
}

std::vector<Target> targets_named(const std::string &list, const std::function<Target(const std::string &)> &named) {
    std::vector<Target> targets;
    std::vector<std::string> asked;        // what each is called in the list
    std::istringstream words(list + ",");  // so that what is behind the last comma is a word too, if an empty one
    for (std::string name; std::getline(words, name, ',');) {
        const Target target = named(name);
        for (size_t i = 0; i < targets.size(); i++) {
            const Target &other = targets[i];
            if (target.is_gpu() && other.is_gpu() && other.name != target.name)
                throw UserError("target.mixed-arch", "targets '" + list + "': one library is for one GPU target, got '" + asked[i] +
                                                         "' and '" + name + "'. Generate two libraries.");
            if (other.features == target.features && other.arch == target.arch) {
                if (asked[i] == name)
                    throw UserError("target.repeated",
                                    "targets '" + list + "': '" + name + "' is there twice, as '" + other.name + "'; name it once.");
                throw UserError("target.repeated", "targets '" + list + "': '" + asked[i] + "' and '" + name +
                                                       "' both stand for the code of '" + target.name +
                                                       "', which a library has once; name one of them.");
            }
            if (other.arch != target.arch)
                throw UserError("target.mixed-arch", "targets '" + list + "': one library is for one kind of processor, and '" + asked[i] +
                                                         "' is for " + name_of(other.arch) + ", '" + name + "' for " +
                                                         name_of(target.arch) + ". Generate two libraries.");
        }
        targets.push_back(target), asked.push_back(name);
    }
    std::stable_sort(targets.begin(), targets.end(),
                     [](const Target &a, const Target &b) { return a.features.size() > b.features.size(); });
    const Target &last = targets.back();
    for (const Target &target : targets)
        for (const std::string &feature : last.features)
            if (!target.has(feature))
                throw UserError(
                    "target.no-baseline",
                    "targets '" + list + "': '" + last.name + "' has " + feature + " and '" + target.name +
                        "' does not, so there is no baseline; expected one target whose features all others have. Add one, such as " +
                        name_of(target.arch) + ".");
    return targets;
}

void check_requires(const ResolvedSchedule &schedule, const Target &target) {
    const std::vector<std::string> known = known_features();
    std::vector<std::string> missing;
    for (const std::string &feature : schedule.requires_features) {
        if (!contains(known, feature))
            throw UserError("schedule.unknown-feature", "schedule '" + schedule.name + "' at /requires: there is no feature '" + feature +
                                                            "'; the features are " + join(known) + "." + did_you_mean(feature, known));
        if (!target.has(feature)) missing.push_back(feature);
    }
    if (missing.empty()) return;
    const std::vector<std::string> own = known_features(target.arch);
    const bool addable = std::all_of(missing.begin(), missing.end(), [&](const std::string &feature) { return contains(own, feature); });
    throw UserError("schedule.requires",
                    "schedule '" + schedule.name + "' at /requires: target '" + target.name + "' has no " + join(missing) +
                        "; its features are " +
                        (target.features.empty() ? "those of every " + std::string(name_of(target.arch)) : join(target.features)) + ". " +
                        (addable ? "Generate for '" + name_with(target, missing) + "' if the machine has them, or use"
                                 : "The schedule is for another kind of processor: use") +
                        " a schedule that does not require them.");
}

}  // namespace tessera
