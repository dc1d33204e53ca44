// A Target is the machine that code is generated for, as far as schedules, lowering and the cost model read it: features,
// vector registers, caches, and what somebody measured on one such machine. Numbers are of one core; bytes unless they say
// otherwise.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedules/knobs/schedule.h"

namespace tessera {

// The rate of one thread while the others are idle, and of all threads together. Both are the highest that were seen: other
// programs can only take away.
struct Rate {
    double one_thread = 0, all_threads = 0;
    double spread = 0;  // half the 95% interval of the median, relative to the median; of the two rates the larger
    friend bool operator==(const Rate &, const Rate &) = default;
};

// What `doctor --calibrate` measures. An instruction or a cache that the machine does not have is missing in the maps.
struct Measured {
    std::string processor;
    int threads = 1;
    std::map<std::string, Rate> peaks;  // by peak_names(): operations in a second, a product and its sum being two
    std::map<std::string, Rate> read;   // "l1", "l2", "l3", "memory": bytes in a second, for data that fits that and no less
    std::map<std::string, Rate> copy;   // the same; bytes read and bytes written
    double parallel_loop_s = 0;         // an empty parallel loop on all threads; 0 where there is one
    friend bool operator==(const Measured &, const Measured &) = default;
};
const std::vector<std::string> &peak_names();
const std::vector<std::string> &memory_names();

// What code is written in. An emitter that gives these a meaning switches over them without a default.
enum class Arch : uint8_t { x86_64, arm64, wasm32, opencl, cuda };
const char *name_of(Arch arch);  // "x86-64", "arm64", "wasm32", "opencl", "cuda"
bool is_gpu(Arch arch);

struct Target {
    std::string name;  // "avx512", "avx512+avx512_vnni"
    Arch arch = Arch::x86_64;
    std::vector<std::string> features;  // as Linux and tess_cpu_feature_name name them, in the latter's order
    int vector_bytes = 16;
    int vector_registers = 16;
    int64_t l1_bytes = 32 << 10, l2_bytes = 256 << 10, l3_bytes = 8 << 20;  // data caches; l3: all of it
    int64_t shared_bytes = 0;                                               // GPU: memory that the threads of a block share
    int64_t max_threads = 0;                                                // GPU: of a block
    int compute_capability = 0;                                             // CUDA: 80
    std::string stands_in = {};                                             // a target of another arch, whose schedules fit this one too
    std::optional<Measured> measured;

    bool has(const std::string &feature) const;
    bool is_gpu() const { return tessera::is_gpu(arch); }
    friend bool operator==(const Target &, const Target &) = default;
};

// "x86-64", "avx2", "avx512"; "znver4", "znver5" and "sapphirerapids", which also have dot products of bytes and of bf16; "amx",
// which is the last of these with its matrix instructions; "arm64"
// (ARMv8-A, whose NEON has fma); "wasm32" (SIMD128). Features can be added to each of these ("avx512+avx512_vnni"). "opencl",
// "cuda-sm80", "cuda-sm86" and "cuda-sm90" have no features. "host" is the best target that this processor and its operating system
// support, under that target's name and with the caches of this machine. Former names (knobs/former_names.h) are accepted. A target as a
// file: target_file.h. UserError target.unknown, target.unknown-feature, target.feature-set.
Target target_named(const std::string &name);
// Whether it names a target for GPUs.
bool names_gpu(const std::string &name);

// What to ask for to have `target` and these features too: the built-in target that has most of them, with the rest added.
std::string name_with(const Target &target, const std::vector<std::string> &features);
std::vector<std::string> target_names();

// The targets of one library, "x86-64,avx2,avx512", in the order in which a processor tries them: best first. A target with more
// features is better; of two equal ones, the one that is named first. All others must have the features of the last one, so that a
// machine can run the last one or none. `named` says what a name stands for. UserError as that, and target.repeated,
// target.mixed-arch, target.no-baseline.
std::vector<Target> targets_named(const std::string &list, const std::function<Target(const std::string &)> &named = target_named);

// Every feature that a schedule or a target may name; those of one arch.
std::vector<std::string> known_features();
std::vector<std::string> known_features(Arch arch);
// This processor's, and those that it has.
Arch host_arch();
std::vector<std::string> host_features();
// Whether code for the target runs on this machine.
bool runs_here(const Target &target);

// UserError schedule.requires: the schedule needs features that the target does not have.
void check_requires(const ResolvedSchedule &schedule, const Target &target);

}  // namespace tessera
