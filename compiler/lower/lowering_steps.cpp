#include "compiler/lower/lowering_steps.h"

#include "algorithms/text/print.h"

namespace tessera {

void show_step(const LoweringObserver &observer, const char *name, const Algorithm &algorithm) {
    if (observer) observer({LoweringStep::Of::algorithm, name, to_text(algorithm)});
}

void show_step(const LoweringObserver &observer, const char *name, const TileBody &body) {
    if (observer) observer({LoweringStep::Of::body, name, to_text(body)});
}

}  // namespace tessera
