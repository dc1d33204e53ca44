#include "compiler/lower/loops/ring.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/lower/context/stage_nest.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class Ring {
public:
    Ring(std::string variable, Expr count, int64_t slots, Names &names)
        : variable_(std::move(variable)), count_(std::move(count)), slots_(slots), names_(names) {}

    TileBody around(const TileBody &body, const std::function<bool(const std::string &)> &has_slots) {
        const TileBody *inside = &body;
        for (bool goes_on = true; goes_on && inside->size() == 1;) {
            const TileNode &node = *inside->front();
            goes_on = false;
            if (auto *let = std::get_if<Let>(&node)) lets_.push_back(*let), inside = &let->body, goes_on = true;
            else if (auto *alloc = std::get_if<Alloc>(&node)) {
                if (has_slots(alloc->buffer.name)) buffers_.push_back(with_slots(alloc->buffer)), rings_.insert(alloc->buffer.name);
                else others_.push_back(alloc->buffer), own_.insert(alloc->buffer.name);
                inside = &alloc->body, goes_on = true;
            }
        }
        require(!rings_.empty(), "a loop with packs in several stages has their buffers");
        TileBody fill, use;
        for (const auto &node : *inside) (fills(*node) ? fill : use).push_back(node);
        require(!reads_ring(fill), "what fills a slice uses none");
        fill = copied_ahead(fill);

        const std::string first = names_.unique(variable_ + ".first");
        TileBody before = in_guard(variable(first) < count_, filled_for(fill, variable(first), variable(first)));
        const Expr ahead = variable(variable_) + Expr(slots_ - 1);
        TileBody steady;
        if (is_asynchronous_) steady.push_back(tile_node(Await{static_cast<int>(slots_ - 2)}));
        steady.push_back(tile_node(Barrier{}));
        append(steady, in_guard(ahead < count_, filled_for(fill, ahead, ahead % Expr(slots_))));
        if (is_asynchronous_) before.push_back(tile_node(Commit{})), steady.push_back(tile_node(Commit{}));
        append(steady, in_slot(use, variable(variable_) % Expr(slots_)));
        for (auto let = lets_.rbegin(); let != lets_.rend(); ++let) steady = in_let(let->variable, let->value, std::move(steady));

        TileBody all = in_loop(first, Expr(slots_ - 1), LoopKind::unrolled, std::move(before));
        append(all, in_loop(variable_, count_, LoopKind::serial, in_allocs(others_, std::move(steady))));
        if (is_asynchronous_) all.push_back(tile_node(Await{0}));
        return in_allocs(buffers_, std::move(all));
    }

private:
    const std::string variable_;
    const Expr count_;
    const int64_t slots_;
    Names &names_;
    std::vector<Let> lets_;  // around what the loop does, outermost first
    std::vector<Buffer> buffers_, others_;
    std::set<std::string> rings_, own_;  // the names of these
    bool is_asynchronous_ = false;

    Buffer with_slots(Buffer buffer) const {
        buffer.extents.insert(buffer.extents.begin(), Expr(slots_));
        return buffer;
    }

    bool fills(const TileNode &node) const {
        bool found = false;
        walk({std::make_shared<const TileNode>(node)}, [&](const TileNode &n) {
            if (auto store = store_of(n)) found |= rings_.count(store->buffer) > 0;
        });
        return found;
    }

    bool reads_ring(const TileBody &body) const {
        bool found = false;
        walk(body, [&](const TileNode &n) {
            if (auto *move = std::get_if<Move>(&n); move && move->from) found |= rings_.count(move->from->buffer) > 0;
            for (const Expr &e : expressions_of(n))
                walk(e, [&](const Expr &load) { found |= load.kind() == ExprKind::load && rings_.count(load->name) > 0; });
        });
        return found;
    }

    // As asynchronous copies, where they copy what lies in memory.
    TileBody copied_ahead(const TileBody &body) {
        TileBody all;
        for (const auto &node : body) {
            for (const Expr &e : expressions_of(*node))
                walk(e, [&](const Expr &n) {
                    if (n.kind() == ExprKind::load && own_.count(n->name))
                        throw UserError("schedule.pack", "a copy in several stages is made ahead of the loop " + variable_ +
                                                             ", and reads '" + n->name +
                                                             "', which is made in it. Place that at root, or leave 'stages' out.");
                });
            TileNode n = map_bodies(*node, [&](const TileBody &inner) { return copied_ahead(inner); });
            if (auto *copy = std::get_if<Copy>(&n); copy && rings_.count(copy->buffer)) copy->is_asynchronous = is_asynchronous_ = true;
            all.push_back(tile_node(std::move(n)));
        }
        return all;
    }

    // What fills a slot for an iteration; under names of its own, as it stands there twice.
    TileBody filled_for(const TileBody &fill, const Expr &iteration, const Expr &slot) {
        TileBody all = fill;
        for (auto let = lets_.rbegin(); let != lets_.rend(); ++let) all = in_let(let->variable, let->value, std::move(all));
        return in_slot(renamed(all, {{variable_, iteration}}), slot);
    }

    TileBody renamed(const TileBody &body, const std::map<std::string, Expr> &values) {
        TileBody all;
        for (const auto &node : body) {
            TileNode n = map_expressions(*node, [&](const Expr &e) { return substitute(e, values); });
            std::map<std::string, Expr> inside = values;
            const auto rename = [&](std::string &name) {
                const std::string own = names_.unique(name);
                inside[name] = variable(own);
                name = own;
            };
            if (auto *loop = std::get_if<Loop>(&n)) rename(loop->variable);
            if (auto *let = std::get_if<Let>(&n)) rename(let->variable);
            all.push_back(tile_node(map_bodies(std::move(n), [&](const TileBody &inner) { return renamed(inner, inside); })));
        }
        return all;
    }

    // With the slot as the first index of each ring.
    Expr in_slot(const Expr &e, const Expr &slot) const {
        return rewrite(e, [&](const Expr &n) -> Expr {
            if (n.kind() != ExprKind::load || !rings_.count(n->name)) return {};
            std::vector<Expr> index = {slot};
            for (const Expr &at : index_of(n)) index.push_back(in_slot(at, slot));
            if (!n->guarded) return load(n->name, n.type(), index);
            const size_t rank = n->args.size() - 2;
            return load_or(n->name, n.type(), index, in_slot(n->args[rank], slot), in_slot(n->args[rank + 1], slot));
        });
    }

    TileBody in_slot(const TileBody &body, const Expr &slot) const {
        TileBody all;
        for (const auto &node : body) {
            TileNode n = map_expressions(*node, [&](const Expr &e) { return in_slot(e, slot); });
            const auto store = [&](auto &to) {
                if (rings_.count(to.buffer)) to.index.insert(to.index.begin(), slot);
            };
            const auto view = [&](BufferView &of) {
                if (!rings_.count(of.buffer)) return;
                require(!of.is_whole(), "a box of a slice says where it begins");
                of.first.insert(of.first.begin(), slot);
                for (BufferView::Axis &moved : of.axes) moved.of++;
            };
            if (auto *copy = std::get_if<Copy>(&n)) store(*copy);
            if (auto *compute = std::get_if<Compute>(&n)) store(*compute);
            if (auto *move = std::get_if<Move>(&n)) {
                view(move->to);
                if (move->from) view(*move->from);
            }
            all.push_back(tile_node(map_bodies(std::move(n), [&](const TileBody &inner) { return in_slot(inner, slot); })));
        }
        return all;
    }
};

}  // namespace

Slices slices_at(const Cursor &at) {
    Slices slices;
    std::vector<std::string> buffers;
    const std::string &stage = at.stage().name;
    for (const auto &[operand, pack] : at.nest->knobs.pack) {
        if (!is_demanded_at({Place::Kind::at, stage, pack.at}, *at.nest, at.position)) continue;
        if (!buffers.empty() && slices.stages != pack.stages)
            throw UserError("schedule.pack", stage + ": expected one number of stages for all packs at '" + at.loop().text() + "'; got " +
                                                 std::to_string(slices.stages) + " and " + std::to_string(pack.stages) +
                                                 ". Choose one of them.");
        slices.stages = pack.stages;
        buffers.push_back(stage + "." + operand + ".packed.tile");
    }
    slices.has_slots = [buffers](const std::string &name) {
        return std::any_of(buffers.begin(), buffers.end(), [&](const std::string &b) { return name.starts_with(b); });
    };
    return slices;
}

TileBody in_ring(const std::string &variable, const Expr &count, int64_t slots, const std::function<bool(const std::string &)> &has_slots,
                 TileBody body, Names &names) {
    return Ring(variable, count, slots, names).around(body, has_slots);
}

}  // namespace tessera
