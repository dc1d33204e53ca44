#include "compiler/lower/passes/stack_buffers.h"

#include <algorithm>

#include "compiler/check/verify_tiles.h"

namespace tessera {

// 0 where an extent is no constant: such a buffer is in the workspace.
static int64_t bytes_of(const Buffer &b) {
    int64_t bytes = size_of(b.dtype);
    for (const Expr &e : b.extents) {
        if (!e.is_constant()) return 0;
        bytes = std::min(bytes * std::max<int64_t>(0, e->value.integer), stack_bytes_limit + 1);
    }
    return bytes;
}

// The most register tiles that are alive at once.
static int64_t register_bytes(const TileBody &body) {
    int64_t most = 0;
    for (const auto &node : body) {
        const auto *alloc = std::get_if<Alloc>(node.get());
        const int64_t own = alloc && alloc->buffer.space == Space::registers ? bytes_of(alloc->buffer) : 0;
        for (const TileBody *inner : bodies_of(*node)) most = std::max(most, own + register_bytes(*inner));
    }
    return most;
}

static TileBody limited(const TileBody &body, int64_t used) {
    TileBody result;
    for (const auto &node : body) {
        TileNode n = *node;
        int64_t own = 0;
        if (auto *alloc = std::get_if<Alloc>(&n)) {
            Space &space = alloc->buffer.space;
            if (space == Space::stack && used + bytes_of(alloc->buffer) + register_bytes(alloc->body) > stack_bytes_limit)
                space = Space::workspace;
            if (space == Space::stack || space == Space::registers) own = bytes_of(alloc->buffer);
        }
        result.push_back(tile_node(map_bodies(std::move(n), [&](const TileBody &inner) { return limited(inner, used + own); })));
    }
    return result;
}

TileBody limit_stack(const TileBody &body) { return limited(body, 0); }

}  // namespace tessera
