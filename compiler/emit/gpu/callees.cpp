#include "compiler/emit/gpu/callees.h"

#include <algorithm>

namespace tessera::emit_gpu {

Callees::Callees(const std::vector<Kernel> &kernels) {
    for (const Kernel &kernel : kernels)
        for (const KernelVariant &variant : kernel.variants) add(kernel, variant.program, kernels);
}

void Callees::add(const Kernel &kernel, const TileProgram &program, const std::vector<Kernel> &kernels) {
    std::map<std::string, size_t> &names = by_name_[&program];
    for (const TileProgram &callee : program.programs) {
        std::string what = resolved_hash(callee);  // which has the names of what it invokes itself
        walk(callee.body, [&](const TileNode &n) {
            if (const auto *inner = std::get_if<Invoke>(&n)) what += " " + all_[names.at(inner->program)].stem;
        });
        const auto [known, fresh] = known_.emplace(what, all_.size());
        if (fresh) {
            std::string stem = kernel.name + "_callee" + std::to_string(all_.size());
            auto meets = [&](const Kernel &other) { return other.name.starts_with(stem); };
            while (std::any_of(kernels.begin(), kernels.end(), meets)) stem += "_";
            all_.push_back({&callee, stem});
        }
        by_name_.emplace(all_[known->second].program, names);  // of the first one: it invokes earlier ones alone
        names[callee.name] = known->second;
    }
}

}  // namespace tessera::emit_gpu
