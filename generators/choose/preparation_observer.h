// Who looks on while kernels are chosen and compiled.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "compiler/compile/lower_variants.h"
#include "schedules/knobs/schedule.h"
#include "support/text/note.h"

namespace tessera {

// Each may be missing.
struct PreparationObserver {
    // Each note of a request, of a choice and of what was compiled, as soon as it is known: the next step may fail.
    std::function<void(const Note &)> notes;
    // Before a variant is lowered, of the kernel itself or of a callee whose schedule is tried.
    std::function<void(const Algorithm &bound, const std::vector<Condition> &when)> lowers;
    // While a schedule is derived for an algorithm: the candidates that were judged so far. It is told before the first, too.
    std::function<void(const std::string &algorithm, size_t candidates)> derives;

    // For `compile`, of this algorithm; both have to outlive it.
    ObserveVariant of(const Algorithm &bound) const {
        if (!lowers) return {};
        return [&](const std::vector<Condition> &when) {
            lowers(bound, when);
            return LoweringObserver();
        };
    }
};

}  // namespace tessera
