#include "compiler/lower/context/cursor.h"

#include <algorithm>

#include "support/text/error.h"

namespace tessera {

std::vector<std::string> lanes_last(const Cursor &at) {
    std::vector<std::string> dims = at.stage().dims;
    std::stable_partition(dims.begin(), dims.end(), [&](const std::string &d) { return !lanes_along(at.nest->step, d); });
    return dims;
}

std::vector<std::string> tile_dims(const Cursor &at) {
    std::vector<std::string> dims;
    for (const std::string &d : lanes_last(at))
        if (!at.pieces.at(d).size.is_constant(1)) dims.push_back(d);
    return dims;
}

bool any_padded(const Pieces &pieces) {
    return std::any_of(pieces.begin(), pieces.end(), [](const auto &p) { return p.second.padded; });
}

std::string text_of(const std::vector<LoopName> &loops) {
    std::vector<std::string> order;
    for (const LoopName &l : loops) order.push_back(l.text());
    return join(order);
}

}  // namespace tessera
