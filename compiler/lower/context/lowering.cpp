#include "compiler/lower/context/lowering.h"

#include "schedules/knobs/pieces.h"

namespace tessera {

Lowering::Lowering(const Algorithm &a, const KnobsByStage &knobs, std::shared_ptr<const Mapping> m, bool borders)
    : algorithm(a), stated(knobs), mapping(std::move(m)), tells_borders(borders) {
    const std::set<std::string> read = tensors_read(a);
    for (const Stage &stage : a.stages) {
        const StageFacts &own = stages[&stage] = facts_of(stage, read);
        for (const Tensor &tensor : own.results) producers.emplace(tensor.name, &stage);
    }
}

std::vector<Tensor> Lowering::stored_results(const Stage &stage) const {
    const StageFacts &own = facts(stage);
    if (!is_fold(stage)) return own.results;
    std::vector<Tensor> stored;
    for (size_t p = 0; p < own.results.size(); p++)
        if (own.live.stored[p]) stored.push_back(own.results[p]);
    return stored;
}

const Knobs &Lowering::knobs(const std::string &stage) const {
    static const Knobs none;
    auto it = stated.find(stage);
    return it == stated.end() ? none : it->second;
}

std::string Lowering::plain(const std::string &dim) const { return name_in_schedules(dim, algorithm); }

}  // namespace tessera
