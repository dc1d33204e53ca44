#include "compiler/rewrite/bind_extents.h"

#include <algorithm>
#include <cctype>

#include "schedules/knobs/schedule.h"
#include "support/text/error.h"

namespace tessera {

// Names of one letter are all a letter apart: those in the other case are near.
static std::string near_dim(const std::string &name, std::vector<std::string> dims) {
    auto lower = [](const std::string &n) { return std::tolower(static_cast<unsigned char>(n[0])); };
    if (name.size() == 1) std::erase_if(dims, [&](const std::string &d) { return d.size() != 1 || lower(d) != lower(name); });
    return did_you_mean(name, dims);
}

// What is too large for every call.
static void check_sizes(const Algorithm &algorithm) {
    std::vector<Tensor> tensors = algorithm.tensors;
    for (const std::string &output : algorithm.outputs)
        for (const Stage &stage : algorithm.stages)
            for (const Tensor &t : results_of(stage))
                if (t.name == output) tensors.push_back(t);
    for (const Tensor &t : tensors) {
        int64_t elements = 1;
        std::string shape;
        for (const std::string &name : t.dims) {
            const Dim &d = algorithm.dim(name);
            const int64_t extent = d.kind == DimKind::fixed ? d.value : 0;  // another may be 0 in a call
            elements = std::min(elements * std::min(extent, max_extent + 1), max_extent + 1);
            shape += (shape.empty() ? "" : ", ") + name + "=" + std::to_string(extent);
        }
        if (elements > max_extent)
            throw UserError("shape.too-large", algorithm.name + ": '" + t.name + "' of " + shape +
                                                   " is too large: expected a tensor of at most " + std::to_string(max_extent) +
                                                   " elements. Fix smaller extents, or leave dims open.");
    }
}

Algorithm bind_extents(const Algorithm &algorithm, const Extents &extents) {
    Algorithm result = algorithm;
    std::vector<std::string> symbolic;
    for (const Dim &d : algorithm.dims)
        if (d.kind == DimKind::symbolic) symbolic.push_back(d.name);
    for (auto &[name, value] : extents) {
        auto it = std::find_if(result.dims.begin(), result.dims.end(), [&](const Dim &d) { return d.name == name; });
        if (it != result.dims.end() && it->kind == DimKind::fixed)
            throw UserError("shape.unknown-dim", algorithm.name + ": dim " + name + " is fixed at " + std::to_string(it->value) +
                                                     " by the algorithm's declaration and options, got " + std::to_string(value) +
                                                     "; the symbolic dims are " + join(symbolic) +
                                                     ". Leave it out, or choose other options.");
        if (it != result.dims.end() && it->kind == DimKind::derived)
            throw UserError("shape.unknown-dim", algorithm.name + ": dim " + name + " is derived, as " + to_string(it->size) +
                                                     "; the symbolic dims are " + join(symbolic) + ". Fix those that it is derived of.");
        if (it == result.dims.end() || it->kind != DimKind::symbolic)
            throw UserError("shape.unknown-dim", algorithm.name + ": there is no symbolic dim '" + name +
                                                     "' to fix; the symbolic dims are " + join(symbolic) + "." + near_dim(name, symbolic));
        auto refuse = [&](const std::string &rule) {
            throw UserError("shape.constraint",
                            algorithm.name + ": dim " + name + " = " + std::to_string(value) + " must be " + rule + ".");
        };
        if (value < it->min) refuse("at least " + std::to_string(it->min));
        if (int64_t most = std::min(it->max, max_extent); value > most) refuse("at most " + std::to_string(most));
        if (value % it->multiple_of) refuse("a multiple of " + std::to_string(it->multiple_of));
        it->kind = DimKind::fixed;
        it->value = value;
    }
    for (Dim &d : result.dims) {
        if (d.equals.empty()) continue;
        const Dim &other = result.dim(d.equals);
        if (other.kind == DimKind::fixed && d.kind == DimKind::fixed && other.value != d.value)
            throw UserError("shape.constraint", algorithm.name + ": dim " + d.name + " = " + std::to_string(d.value) + " must equal " +
                                                    other.name + " = " + std::to_string(other.value) + ".");
        if (other.kind == DimKind::fixed) d.kind = DimKind::fixed, d.value = other.value;
        if (d.kind == DimKind::fixed) d.equals.clear();
    }
    check_sizes(result);
    return result;
}

}  // namespace tessera
