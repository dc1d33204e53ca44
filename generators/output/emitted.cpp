#include "generators/output/emitted.h"

#include <fmt/format.h>

#include "algorithms/text/hash.h"
#include "generators/registry/versions.h"
#include "support/text/error.h"

namespace tessera {

std::vector<TargetKernels> kernels_of(const PreparedLibrary &library) {
    std::vector<TargetKernels> targets;
    for (size_t t = 0; t < library.first().size(); t++) {
        targets.push_back({library.first()[t].request.target, {}});
        for (const std::vector<PreparedKernel> &of_targets : library.kernels)
            for (Kernel &kernel : of_targets[t].compiled.kernels()) targets.back().kernels.push_back(std::move(kernel));
    }
    return targets;
}

std::string line_start(const PreparedLibrary &library, const PreparedKernel &kernel) {
    return library.is_module ? kernel.compiled.kernel.name + ": " : "";
}

static std::vector<std::string> about(const PreparedLibrary &library, const PreparedKernel &p) {
    const std::string start = line_start(library, p),
                      algorithm = fmt::format("algorithm {}, {}, {}", p.request.declared.name, p.request.declared.numerics.name,
                                              semantic_hash(p.request.declared));
    std::vector<std::string> lines = {library.is_module ? start + algorithm : fmt::format("Tessera {}; {}", tessera_version(), algorithm)};
    std::string fixed;
    for (const auto &[dim, extent] : p.request.fixed) fixed += fmt::format("{}{}={}", fixed.empty() ? "" : " ", dim, extent);
    if (!fixed.empty()) lines.push_back(start + "fixed extents: " + fixed);
    const char *relation = "schedule";
    for (const Schedule &s : p.choice.applied.ancestry)
        lines.push_back(fmt::format("{}{} {}, {}", start, relation, s.name(), s.hash())), relation = "extending";
    return lines;
}

std::vector<std::string> about(const PreparedLibrary &library) {
    std::vector<std::string> lines;
    if (library.is_module) lines.push_back(fmt::format("Tessera {}; library {}", tessera_version(), library.name));
    for (const std::vector<PreparedKernel> &targets : library.kernels)
        for (std::string &line : about(library, targets[0])) lines.push_back(std::move(line));
    return lines;
}

std::string tiles_text(const PreparedLibrary &library) {
    std::string text;
    for (const TargetKernels &of_target : kernels_of(library))
        for (const Kernel &kernel : of_target.kernels) {
            if (library.is_module) text += "# " + kernel.name + "\n";
            for (const KernelVariant &variant : kernel.variants) {
                if (kernel.variants.size() > 1) text += "# " + condition_text(variant.when) + "\n";
                text += to_text(variant.program);
            }
        }
    return text;
}

}  // namespace tessera
