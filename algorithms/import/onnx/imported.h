// What an import is asked for, and what it gives.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/import/onnx/context.h"

namespace tessera::onnx {

struct ImportOptions {
    bool outline = true;                            // parts become callees (outline.h)
    std::string name = "model";                     // of the program
    std::map<std::string, int64_t> shape = {};      // extents of symbolic dims, by the model's names of them or "<input>.<axis>"
    std::map<std::string, int64_t> multiples = {};  // dims that are multiples of a number, named alike
    std::map<std::string, int64_t> most = {};       // the greatest extents of dims, named alike
    std::map<std::string, Array> bind = {};         // inputs that become constants; their shape must be the input's
    std::vector<std::string> until = {};            // values that are outputs in place of the model's; what only others need is left out
};

// A dim that stays symbolic, and where it stands.
struct ImportedDim {
    std::string name, origin;  // "W", "input 'x', axis 3"
    int64_t multiple_of = 1, max = most_extent;
};

struct Imported {
    Algorithm program;
    std::vector<Weight> weights;
    std::map<std::string, std::string> inputs, outputs;  // names of the program -> names of the model
    std::vector<ImportedDim> dims;
    std::map<std::string, int64_t> operators;  // how often each was met
    std::vector<std::string> fixed_defaults;   // inputs that have a default in the model, which is what the program computes with
    int64_t folded = 0;                        // nodes whose results are constants or follow from extents
};

}  // namespace tessera::onnx
