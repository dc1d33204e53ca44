#include "compiler/lower/passes/copies_ahead.h"

#include <map>

#include "compiler/tile/chunks.h"

namespace tessera {

namespace {

class CopiesAhead {
public:
    CopiesAhead(const TileProgram &frame, bool has_ahead) : facts_(frame.dims), has_ahead_(has_ahead) {
        for (const Argument &a : frame.arguments) buffers_[a.tensor.name] = {a.tensor.name, a.tensor.dtype, {}, Space::argument};
        for (const Tensor &t : frame.constants) buffers_[t.name] = {t.name, t.dtype, {}, Space::constant};
    }

    bool any = false;

    TileBody visit(const TileBody &body) {
        TileBody all;
        for (const auto &node : body) {
            const Bounds outside = facts_;
            TileNode n = *node;
            if (auto *alloc = std::get_if<Alloc>(&n)) buffers_[alloc->buffer.name] = alloc->buffer;
            if (auto *let = std::get_if<Let>(&n)) {
                if (const auto range = constant_range(let->value, facts_))
                    facts_.set(let->variable, Expr(range->first), Expr(range->second));
                else facts_.set(let->variable, let->value, let->value);
            }
            auto *loop = std::get_if<Loop>(&n);
            const bool is_ahead = loop && is_chunk(*loop);
            if (loop) facts_.set(loop->variable, Expr(0), loop->count - 1);
            any |= is_ahead;
            if (auto *copy = std::get_if<Copy>(&n)) copy->is_asynchronous = false;
            if (!is_ahead) n = map_bodies(std::move(n), [&](const TileBody &inner) { return visit(inner); });
            facts_ = outside;
            all.push_back(tile_node(std::move(n)));
        }
        return all;
    }

private:
    Bounds facts_;
    const bool has_ahead_;
    std::map<std::string, Buffer> buffers_;

    bool is_chunk(const Loop &loop) const {
        const Copy *copy = only<Copy>(loop.body);
        if (!has_ahead_ || !copy || !copy->is_asynchronous || copy->value.kind() != ExprKind::load) return false;
        const auto to = buffers_.find(copy->buffer), from = buffers_.find(copy->value->name);
        return to != buffers_.end() && from != buffers_.end() && chunk_of(loop, to->second, from->second, facts_);
    }
};

TileBody without_waits(const TileBody &body) {
    TileBody all;
    for (const auto &node : body)
        if (!std::holds_alternative<Commit>(*node) && !std::holds_alternative<Await>(*node))
            all.push_back(tile_node(map_bodies(*node, without_waits)));
    return all;
}

}  // namespace

TileBody with_copies_ahead(const TileBody &body, const TileProgram &frame, bool has_ahead) {
    CopiesAhead copies(frame, has_ahead);
    TileBody result = copies.visit(body);
    return copies.any ? result : without_waits(result);
}

}  // namespace tessera
