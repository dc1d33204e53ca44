#include "generators/kernel/emitted.h"

#include <fmt/format.h>

#include "algorithms/text/hash.h"
#include "compiler/emit/emit_source.h"
#include "generators/kernel/manifest.h"
#include "support/text/error.h"

namespace tessera {

std::vector<TargetKernels> kernels_of(const std::vector<PreparedKernel> &prepared) {
    std::vector<TargetKernels> targets;
    for (const PreparedKernel &p : prepared) targets.push_back({p.target, p.kernels()});
    return targets;
}

void emit_limited(const std::vector<PreparedKernel> &prepared, const EmitOptions &options, const Limits &limits) {
    try {
        run_limited(compiling(prepared[0].kernel.name), limits, [&] { emit_library(kernels_of(prepared), options); });
    } catch (const InternalError &) {
        // The back end ends its process where it cannot write, and leaves what it wrote.
        constexpr uintmax_t min_bytes = 1 << 14;
        std::error_code unknown;
        const std::filesystem::space_info disk = std::filesystem::space(options.archive.parent_path(), unknown);
        if (unknown || disk.available >= min_bytes) throw;
        throw UserError("output.write", prepared[0].kernel.name + ": compiling was stopped, since the disk of '" +
                                            options.archive.parent_path().parent_path().string() +
                                            "' is full; expected room for it. Make room, or choose another place.");
    }
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
