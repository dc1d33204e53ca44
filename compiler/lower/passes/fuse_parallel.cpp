#include "compiler/lower/passes/fuse_parallel.h"

#include <algorithm>

#include "algorithms/index/prove.h"

namespace tessera {

TileBody serial_within(const TileBody &body, LoopKind kind) {
    TileBody result;
    for (const auto &node : body) {
        TileNode n = map_bodies(*node, [&](const TileBody &inner) { return serial_within(inner, kind); });
        if (auto *loop = std::get_if<Loop>(&n); loop && loop->kind == kind) loop->kind = LoopKind::serial;
        result.push_back(tile_node(std::move(n)));
    }
    return result;
}

static bool stores_to_large(const TileBody &body, const TileProgram &frame) {
    bool found = false;
    walk(body, [&](const TileNode &node) {
        const auto store = store_of(node);
        found |= store && std::any_of(frame.arguments.begin(), frame.arguments.end(),
                                      [&](const Argument &a) { return a.large && a.tensor.name == store->buffer; });
    });
    return found;
}

// Whether all pairs can be counted in 32 bits.
static bool can_be_counted(const Expr &pairs, const TileBody &body, const TileProgram &frame) {
    if (!stores_to_large(body, frame)) return true;
    const auto range = constant_range(pairs, Bounds(frame.dims));
    return range && range->second <= INT32_MAX;
}

// The loop over all pairs of the outer loop and the one directly in it; null where there is none, or where its count differs from one outer
// iteration to the next.
static std::shared_ptr<const TileNode> over_pairs(const Loop &outer, const TileProgram &frame) {
    std::vector<const Let *> lets;
    const TileBody *inside = &outer.body;
    while (const Let *let = only<Let>(*inside)) lets.push_back(let), inside = &let->body;
    const Loop *inner = only<Loop>(*inside);
    bool fuses = inner && inner->kind == outer.kind && !uses_variable(inner->count, outer.variable);
    for (const Let *let : lets) fuses = fuses && !uses_variable(inner->count, let->variable);
    if (!fuses || !can_be_counted(outer.count * inner->count, inner->body, frame)) return nullptr;
    const std::string pair = outer.variable + "*" + inner->variable;
    TileBody both = {tile_node(Let{inner->variable, variable(pair) % inner->count, inner->body})};
    for (auto it = lets.rbegin(); it != lets.rend(); ++it) both = {tile_node(Let{(*it)->variable, (*it)->value, std::move(both)})};
    both = {tile_node(Let{outer.variable, variable(pair) / inner->count, std::move(both)})};
    Loop fused = outer;
    fused.variable = pair, fused.count = outer.count * inner->count, fused.body = std::move(both);
    return tile_node(std::move(fused));
}

TileBody fuse_parallel(const TileBody &body, LoopKind kind, const TileProgram &frame) {
    TileBody result;
    for (const auto &node : body) {
        auto *outer = std::get_if<Loop>(node.get());
        if (outer && outer->kind == kind) {
            if (auto fused = over_pairs(*outer, frame)) {
                TileBody again = fuse_parallel({fused}, kind, frame);
                result.insert(result.end(), again.begin(), again.end());
                continue;
            }
            Loop loop = *outer;
            loop.body = serial_within(fuse_parallel(loop.body, kind, frame), kind);
            result.push_back(tile_node(std::move(loop)));
            continue;
        }
        // No loop of the kind stands inside other loops or conditions at this point.
        const bool reaches = std::holds_alternative<Alloc>(*node) || std::holds_alternative<Let>(*node);
        result.push_back(reaches ? tile_node(map_bodies(*node, [&](const TileBody &inner) { return fuse_parallel(inner, kind, frame); }))
                                 : node);
    }
    return result;
}

}  // namespace tessera
