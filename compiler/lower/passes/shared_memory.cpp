#include "compiler/lower/passes/shared_memory.h"

#include <map>
#include <optional>
#include <set>

#include "support/text/error.h"

namespace tessera {

static std::optional<int64_t> constant_bytes_of(const Buffer &buffer) {
    int64_t bytes = size_of(buffer.dtype);
    for (const Expr &e : buffer.extents) {
        if (!e.is_constant()) return std::nullopt;
        bytes *= e->value.integer;
        if (bytes > INT32_MAX) return std::nullopt;
    }
    return bytes;
}

static TileBody in_workspace(const TileBody &body, const std::set<std::string> &buffers) {
    TileBody result;
    for (const auto &node : body) {
        TileNode n = map_bodies(*node, [&](const TileBody &inner) { return in_workspace(inner, buffers); });
        if (auto *alloc = std::get_if<Alloc>(&n); alloc && buffers.count(alloc->buffer.name))
            alloc->buffer.space = Space::workspace, alloc->buffer.swizzle.reset();
        // Nothing is copied to the workspace ahead.
        if (auto *copy = std::get_if<Copy>(&n); copy && buffers.count(copy->buffer)) copy->is_asynchronous = false;
        result.push_back(tile_node(std::move(n)));
    }
    return result;
}

TileBody with_shared_memory(TileBody nest, const std::vector<std::string> &names, int64_t bytes) {
    std::map<std::string, const Buffer *> shared;
    walk(nest, [&](const TileNode &node) {
        if (auto *alloc = std::get_if<Alloc>(&node); alloc && alloc->buffer.space == Space::shared)
            shared.emplace(alloc->buffer.name, &alloc->buffer);
    });
    std::set<std::string> loaded;  // by warps
    walk(nest, [&](const TileNode &node) {
        if (auto *move = std::get_if<Move>(&node); move && move->from) loaded.insert(move->from->buffer);
    });
    std::set<std::string> elsewhere;
    int64_t left = bytes;
    for (const std::string &name : names) {
        auto buffer = shared.find(name);
        if (buffer == shared.end()) continue;
        const std::optional<int64_t> needed = constant_bytes_of(*buffer->second);
        if (needed && *needed <= left) left -= (*needed + 15) / 16 * 16;
        else elsewhere.insert(name);
        if (elsewhere.count(name) && loaded.count(name) && buffer->second->swizzle)
            throw UserError("schedule.gpu", name + ": warps load fragments of it from shared memory, where it needs " +
                                                (needed ? std::to_string(*needed) + " bytes" : "more bytes than are known") +
                                                "; a block of this target has " + std::to_string(bytes) + ", of which " +
                                                std::to_string(left) + " are left. Make 'k', 'block' or 'stages' smaller.");
    }
    return elsewhere.empty() ? nest : in_workspace(nest, elsewhere);
}

}  // namespace tessera
