// The callees of a program that is imported, each once, and calls of them.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "algorithms/import/onnx/outline.h"

namespace tessera::onnx {

class Callees {
public:
    // The result of a part as that of a call in `space`, under the name of its last node's output. `values` has what its nodes read.
    // Nothing where the part cannot be a callee.
    std::optional<Value> call(const Part &part, Space &space, const Model &model, const std::map<std::string, Value> &values);

private:
    std::map<std::string, std::shared_ptr<const Algorithm>> by_text_;  // without a name
    std::set<std::string> names_;
};

}  // namespace tessera::onnx
