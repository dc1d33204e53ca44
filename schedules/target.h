// A Target is the machine that code is generated for, as far as schedules, lowering and the cost model read it: features,
// vector registers, caches. Numbers are of one core; bytes unless they say otherwise.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/schedule.h"

namespace tessera {

struct Target {
    std::string name;                   // "avx512", "avx512+avx512_bf16"
    std::string arch;                   // "x86-64"
    std::vector<std::string> features;  // as Linux and tess_cpu_feature_name name them, in the latter's order
    int vector_bytes = 16;
    int vector_registers = 16;
    int64_t l1_bytes = 32 << 10, l2_bytes = 256 << 10, l3_bytes = 8 << 20;  // data caches; l3: all of it
    std::optional<double> peak_f32_flops;  // floating-point operations in a second, where somebody measured it

    bool has(const std::string &feature) const;
    friend bool operator==(const Target &, const Target &) = default;
};

// "x86-64", "avx2", "avx512", "avx512_bf16" (with the dot products of Zen 4, Ice Lake and later), any of them with features
// added ("avx512+avx512_vnni"), or "host": the best of them that this processor and its operating system support, under its own name and with the caches of this machine.
// UserError target.unknown, target.unknown-feature.
Target target_named(const std::string &name);
std::vector<std::string> target_names();

// Every feature that a schedule or a target may name.
std::vector<std::string> known_features();
// Those of this processor.
std::vector<std::string> host_features();

// UserError schedule.requires: the schedule needs features that the target does not have.
void check_requires(const ResolvedSchedule &schedule, const Target &target);

}  // namespace tessera
