#include "compiler/lower/context/tile_step.h"

#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

TileStep step_of(const Stage &stage, const Knobs &knobs) {
    if (knobs.instruction) {
        const Instruction *family = find_family(*knobs.instruction);
        require(family, "a schedule's instruction was checked");
        if (has_fragments(*family)) {
            const std::optional<FragmentFold> fold = fragment_fold(*family, stage, knobs);
            require(fold.has_value(), "a schedule's instruction was checked");
            FragmentStep step{family, *fold, {}};
            if (family->scope == ExecutionScope::thread) step.lanes[fold->columns] = family->shape.n;
            return step;
        }
        if (family->shape.k > 1) return GroupStep{family, knobs.vector};
    }
    if (knobs.vector.empty()) return ElementStep{};
    return VectorStep{knobs.vector};
}

static const Extents &lanes_of(const TileStep &step) {
    static const Extents none;
    return std::visit(Overloaded{
                          [](const ElementStep &) -> const Extents & { return none; },
                          [](const VectorStep &s) -> const Extents & { return s.lanes; },
                          [](const GroupStep &s) -> const Extents & { return s.lanes; },
                          [](const FragmentStep &s) -> const Extents & { return s.lanes; },
                      },
                      step);
}

std::optional<int64_t> lanes_along(const TileStep &step, const std::string &dim) {
    const Extents &lanes = lanes_of(step);
    auto it = lanes.find(dim);
    return it == lanes.end() ? std::nullopt : std::optional(it->second);
}

int64_t unit(const TileStep &step, const std::string &dim) {
    const auto *fragments = std::get_if<FragmentStep>(&step);
    if (fragments && fragments->fold.rows == dim) return fragments->family->shape.m;
    return lanes_along(step, dim).value_or(1);
}

bool is_by_warps(const TileStep &step) {
    const auto *fragments = std::get_if<FragmentStep>(&step);
    return fragments && fragments->family->scope == ExecutionScope::warp;
}

int64_t group_of(const TileStep &step) {
    return std::visit(Overloaded{
                          [](const ElementStep &) -> int64_t { return 1; },
                          [](const VectorStep &) -> int64_t { return 1; },
                          [](const GroupStep &s) -> int64_t { return s.family->shape.k; },
                          [](const FragmentStep &s) -> int64_t { return s.family->shape.k; },
                      },
                      step);
}

}  // namespace tessera
