#include "compiler/lower/context/lowering.h"

#include "schedules/knobs/pieces.h"

namespace tessera {

Lowering::Lowering(const Algorithm &a, const KnobsByStage &knobs, std::shared_ptr<const Mapping> m, bool borders)
    : algorithm(a), stated(knobs), mapping(std::move(m)), tells_borders(borders) {
    for (const Stage &stage : a.stages) {
        const StageFacts &own = stages[&stage] = facts_of(stage);
        for (const Tensor &tensor : own.results) producers.emplace(tensor.name, &stage);
    }
}

const Knobs &Lowering::knobs(const std::string &stage) const {
    static const Knobs none;
    auto it = stated.find(stage);
    return it == stated.end() ? none : it->second;
}

std::string Lowering::plain(const std::string &dim) const { return name_in_schedules(dim, algorithm); }

}  // namespace tessera
