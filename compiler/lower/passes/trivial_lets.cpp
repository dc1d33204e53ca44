#include "compiler/lower/passes/trivial_lets.h"

namespace tessera {

using Values = std::map<std::string, Expr>;

static TileBody with_values(const TileBody &body, const Values &values) {
    TileBody result;
    for (const auto &node : body) {
        if (auto *let = std::get_if<Let>(node.get()); let && let->value.is_constant()) {
            Values more = values;
            more[let->variable] = let->value;
            TileBody inner = with_values(let->body, more);
            result.insert(result.end(), inner.begin(), inner.end());
            continue;
        }
        if (values.empty() && bodies_of(*node).empty()) {
            result.push_back(node);
            continue;
        }
        TileNode n = map_bodies(*node, [&](const TileBody &inner) { return with_values(inner, values); });
        // A buffer's extents are over dims alone.
        if (!values.empty() && !std::holds_alternative<Alloc>(n))
            n = map_expressions(std::move(n), [&](const Expr &e) { return substitute(e, values); });
        result.push_back(tile_node(std::move(n)));
    }
    return result;
}

TileBody without_trivial_lets(const TileBody &body) { return with_values(body, {}); }

}  // namespace tessera
