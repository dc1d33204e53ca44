#include "compiler/lower/tile_step.h"

#include "support/text/error.h"

namespace tessera {

TileStep step_of(const Knobs &knobs) {
    if (knobs.instruction) {
        const Instruction *family = find_instruction(*knobs.instruction);
        require(family, "a schedule's instruction was checked");
        if (family->group > 1) return GroupStep{family, knobs.vector};
    }
    if (knobs.vector.empty()) return ElementStep{};
    return VectorStep{knobs.vector};
}

static const Extents &lanes_of(const ElementStep &) {
    static const Extents none;
    return none;
}
static const Extents &lanes_of(const VectorStep &step) { return step.lanes; }
static const Extents &lanes_of(const GroupStep &step) { return step.lanes; }

std::optional<int64_t> lanes_along(const TileStep &step, const std::string &dim) {
    const Extents &lanes = std::visit([](const auto &s) -> const Extents & { return lanes_of(s); }, step);
    auto it = lanes.find(dim);
    return it == lanes.end() ? std::nullopt : std::optional(it->second);
}

int64_t unit(const TileStep &step, const std::string &dim) { return lanes_along(step, dim).value_or(1); }

static int64_t elements_of(const ElementStep &) { return 1; }
static int64_t elements_of(const VectorStep &) { return 1; }
static int64_t elements_of(const GroupStep &step) { return step.family->group; }

int64_t group_of(const TileStep &step) {
    return std::visit([](const auto &s) { return elements_of(s); }, step);
}

}  // namespace tessera
