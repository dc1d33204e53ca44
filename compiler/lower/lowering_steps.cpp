#include "compiler/lower/lowering_steps.h"

#include "algorithms/text/print.h"

namespace tessera {

void show_step(const LoweringObserver &observer, const char *name, const Algorithm &algorithm) {
    if (observer) observer({LoweringStep::Of::algorithm, name, to_text(algorithm)});
}

void show_step(const LoweringObserver &observer, const char *name, const TileBody &body) {
    if (observer) observer({LoweringStep::Of::body, name, to_text(body)});
}

LoweringObserver observer_of_call(const LoweringObserver &observer, const std::string &scope) {
    if (!observer) return {};
    return [observer, scope](const LoweringStep &step) {
        LoweringStep inside = step;
        inside.call = step.call.empty() ? scope : scope + "." + step.call;
        observer(inside);
    };
}

LoweringObserver HeldSteps::observer() {
    if (!observer_) return {};
    return [this](const LoweringStep &step) { steps_.push_back(step); };
}

void HeldSteps::show() const {
    for (const LoweringStep &step : steps_) observer_(step);
}

}  // namespace tessera
