#include "generators/kernel/emitted.h"

#include <fmt/format.h>

#include "algorithms/text/hash.h"
#include "compiler/emit/emit_source.h"
#include "generators/kernel/versions.h"
#include "support/text/error.h"

namespace tessera {

std::vector<TargetKernels> kernels_of(const std::vector<PreparedKernel> &prepared) {
    std::vector<TargetKernels> targets;
    for (const PreparedKernel &p : prepared) targets.push_back({p.target, p.kernels()});
    return targets;
}

void emit_limited(const std::vector<PreparedKernel> &prepared, const EmitOptions &options, const Limits &limits) {
    run_limited(compiling(prepared[0].kernel.name), limits, [&] { emit_library(kernels_of(prepared), options); });
}

std::string c_text(const PreparedKernel &p) {
    std::vector<std::string> about = {fmt::format("Tessera {}; algorithm {}, {}, {}", tessera_version(), p.declared.name,
                                                  p.declared.numerics.name, semantic_hash(p.declared))};
    std::string fixed;
    for (const auto &[dim, extent] : p.fixed) fixed += fmt::format("{}{}={}", fixed.empty() ? "" : " ", dim, extent);
    if (!fixed.empty()) about.push_back("fixed extents: " + fixed);
    const char *relation = "schedule";
    for (const Schedule &s : p.ancestry) about.push_back(fmt::format("{} {}, {}", relation, s.name(), s.hash())), relation = "extending";
    return source_of(p.kernels(), p.target, about);
}

std::string tiles_text(const std::vector<PreparedKernel> &prepared) {
    std::string text;
    for (const PreparedKernel &p : prepared)
        for (const Kernel &kernel : p.kernels())
            for (const KernelVariant &variant : kernel.variants) {
                if (kernel.variants.size() > 1) text += "# " + condition_text(variant.when) + "\n";
                text += to_text(variant.program);
            }
    return text;
}

}  // namespace tessera
