#include "compiler/lower/context/names.h"

namespace tessera {

Names::Names(const Algorithm &algorithm) {
    for (const Dim &d : algorithm.dims) taken_.insert(d.name);
    for (const Tensor &tensor : algorithm.tensors) taken_.insert(tensor.name);
    for (const Stage &stage : algorithm.stages()) {
        taken_.insert(stage.name);
        for (const Tensor &tensor : results_of(stage)) taken_.insert(tensor.name);
    }
}

std::string Names::unique(const std::string &name) {
    std::string candidate = name;
    for (int n = 2; !taken_.insert(candidate).second; n++) candidate = name + std::to_string(n);
    made_.push_back(candidate);
    return candidate;
}

std::vector<std::string> Names::forget(size_t count) {
    std::vector<std::string> forgotten(made_.begin() + static_cast<std::ptrdiff_t>(count), made_.end());
    for (const std::string &name : forgotten) taken_.erase(name);
    made_.resize(count);
    return forgotten;
}

void Names::take(const std::vector<std::string> &names) {
    for (const std::string &name : names)
        if (taken_.insert(name).second) made_.push_back(name);
}

}  // namespace tessera
