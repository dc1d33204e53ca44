// Who looks on while an algorithm is lowered.
#pragma once
#include <functional>
#include <string>

#include "compiler/tile/tile_program.h"

namespace tessera {

// What there is after a step of `lower`: the algorithm while the steps rewrite it, then the body of the tile program.
struct LoweringStep {
    enum class Of : uint8_t { algorithm, body } of = Of::algorithm;
    std::string name;
    std::string text;
};
// Empty: nobody looks, and no text is written.
using LoweringObserver = std::function<void(const LoweringStep &)>;

void show_step(const LoweringObserver &observer, const char *name, const Algorithm &algorithm);
void show_step(const LoweringObserver &observer, const char *name, const TileBody &body);

}  // namespace tessera
