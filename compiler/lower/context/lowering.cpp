#include "compiler/lower/context/lowering.h"

#include "compiler/rewrite/order.h"
#include "compiler/rewrite/rests.h"
#include "schedules/knobs/pieces.h"

namespace tessera {

// `facts`: of the stage, whose parts that nobody needs have no storage.
static InPlaceFold in_place_fold(const Stage &stage, const StageFacts &facts) {
    const std::vector<Part> &parts = monoid_of(stage).parts;
    InPlaceFold fold{{stage.name + ".begin", stage.dims, Map(), {}}, {stage.name, ordinary_dims(stage), stage.body, stage.results}};
    fold.begin.rows = fold.step.rows = stage.rows;
    for (size_t p = 0; p < parts.size(); p++) {
        if (!facts.live.stored[p]) continue;
        std::get<Map>(fold.begin.body).values.push_back({constant(parts[p].identity)});
        fold.begin.results.push_back(facts.results[p].name);
    }
    return fold;
}

Lowering::Lowering(const Algorithm &a, const KnobsByStage &knobs, std::shared_ptr<const Mapping> m, bool borders)
    : algorithm(a), stated(knobs), mapping(std::move(m)), tells_borders(borders) {
    const std::set<std::string> read = tensors_read(a);
    for (const Stage &stage : a.stages()) {
        const StageFacts &own = stages[&stage] = facts_of(stage, read);
        if (!stage.rows.empty())
            for (Stage &rest : rests_of(a, stage)) {
                const auto kept = rests[&stage].emplace_back(std::make_shared<const Stage>(std::move(rest)));
                stages[kept.get()] = facts_of(*kept, read);
            }
        for (const Tensor &tensor : own.results) producers.emplace(tensor.name, &stage);
        const std::optional<Place> &place = this->knobs(stage.name).place;
        const bool is_beside = place && place->kind == Place::Kind::beside;
        if (is_beside) beside[place->stage].push_back(&stage);
        if (!scatters(stage) && !(is_beside && std::holds_alternative<Reduce>(stage.body))) continue;
        const auto both = in_place[&stage] = std::make_shared<const InPlaceFold>(in_place_fold(stage, own));
        stages[&both->begin] = facts_of(both->begin, read);
        stages[&both->step] = own;
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
