// The forward part of a gradient, as what may be kept of it or computed again.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "algorithms/transform/derivatives/derivatives.h"

namespace tessera {

struct ForwardStage {
    std::string name;  // as Residuals say it: "layers.up.acc"
    Stage stage;
    std::vector<size_t> reads;  // of earlier stages of the part
    bool is_read = false;       // by the backward part
    bool is_kept = false;       // it writes a state, or reads one that is written, so a copy would be another
};

// The algorithm itself, or the callee of a call that repeats.
struct ForwardPart {
    Algorithm algorithm;  // whose stages they are
    Call call;            // of the part around; without a callee in the outermost part
    std::vector<ForwardStage> stages;
    std::vector<ForwardPart> within;  // calls that repeat and have a gradient
};

// The forward part of vjp(f, by), whatever its residuals keep, with the groups that they say. Calls are in place but those that repeat.
// UserErrors as vjp.
ForwardPart forward_part(const Algorithm &f, const By &by);

}  // namespace tessera
