// Who looks on while an algorithm is lowered.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"

namespace tessera {

// What there is after a step of `lower`: the algorithm while the steps rewrite it, then the body of the tile program.
struct LoweringStep {
    enum class Of : uint8_t { algorithm, body } of = Of::algorithm;
    std::string name;
    std::string text;
    std::string call = "";  // the scope of a call that is emitted once, "block.norm", whose callee is lowered
};
// Empty: nobody looks, and no text is written.
using LoweringObserver = std::function<void(const LoweringStep &)>;

void show_step(const LoweringObserver &observer, const char *name, const Algorithm &algorithm);
void show_step(const LoweringObserver &observer, const char *name, const TileBody &body);
// Who looks on while the callee of this call is lowered.
LoweringObserver observer_of_call(const LoweringObserver &observer, const std::string &scope);

// The steps of a try, until it is known that it counts.
class HeldSteps {
public:
    explicit HeldSteps(const LoweringObserver &observer) : observer_(observer) {}
    HeldSteps(const HeldSteps &) = delete;  // `observer` refers to it
    HeldSteps &operator=(const HeldSteps &) = delete;
    LoweringObserver observer();
    void show() const;

private:
    LoweringObserver observer_;
    std::vector<LoweringStep> steps_;
};

}  // namespace tessera
