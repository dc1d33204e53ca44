#include "compiler/abi/memory_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/abi/workspace.h"
#include "compiler/tile/fragments.h"
#include "support/containers/alternatives.h"

namespace tessera {

namespace {

constexpr int64_t typical_extent = 256;
constexpr int64_t least_saving = 4096;  // bytes; each part that shares costs a call

// Parts, and the buffers around them in the order of the program.
void find_parts(const TileBody &body, MemoryPlan &plan) {
    for (const auto &node : body) {
        const Alloc *alloc = std::get_if<Alloc>(node.get());
        if (!alloc || alloc->buffer.space != Space::workspace) {
            plan.parts.push_back(node);
            continue;
        }
        plan.buffers.push_back({alloc->buffer, plan.parts.size(), plan.parts.size()});
        find_parts(alloc->body, plan);
    }
}

void find_lives(MemoryPlan &plan) {
    std::map<std::string, std::pair<size_t, size_t>> lives;
    for (size_t part = 0; part < plan.parts.size(); part++)
        for (const std::string &name : buffers_used({plan.parts[part]})) lives.try_emplace(name, part, part).first->second.second = part;
    for (PlannedBuffer &b : plan.buffers)
        if (auto life = lives.find(b.buffer.name); life != lives.end()) std::tie(b.first, b.last) = life->second;
}

bool meet(const PlannedBuffer &a, const PlannedBuffer &b) { return a.first <= b.last && b.first <= a.last; }

// A plan's buffers laid out in some order: each behind those before it that it meets.
class Orders {
public:
    Orders(const std::vector<PlannedBuffer> &buffers, std::vector<int64_t> bytes) : bytes_(std::move(bytes)), ends_(buffers.size()) {
        for (const PlannedBuffer &a : buffers) {
            std::vector<char> row;
            for (const PlannedBuffer &b : buffers) row.push_back(meet(a, b));
            meets_.push_back(row);
        }
    }

    int64_t total(const std::vector<size_t> &order) {
        int64_t most = 0;
        for (size_t i = 0; i < order.size(); i++) {
            int64_t begin = 0;
            for (size_t j = 0; j < i; j++)
                if (meets_[order[i]][order[j]]) begin = std::max(begin, ends_[order[j]]);
            ends_[order[i]] = begin + aligned(bytes_[order[i]]);
            most = std::max(most, ends_[order[i]]);
        }
        return most;
    }

    // Moves one buffer at a time to another place in the order, as long as that makes the whole smaller. Where it makes nothing larger it
    // is kept too: most of the way is level.
    std::vector<size_t> best(int64_t bound) {
        std::vector<size_t> order(ends_.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bytes_[a] > bytes_[b]; });
        int64_t least = total(order);
        uint64_t state = 1;  // Lehmer's generator, so that a program always has the same plan
        auto below = [&](size_t n) {
            state = state * 48271 % 2147483647;
            return static_cast<size_t>(state % n);
        };
        constexpr int moves = 4000;
        for (int i = 0; i < moves && least > bound; i++) {
            const std::vector<size_t> before = order;
            const size_t from = below(order.size()), to = below(order.size());
            const size_t moved = order[from];
            order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
            order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), moved);
            if (const int64_t size = total(order); size <= least) least = size;
            else order = before;
        }
        return order;
    }

private:
    std::vector<int64_t> bytes_, ends_;
    std::vector<std::vector<char>> meets_;
};

// Sizes at extents.
class Sizes {
public:
    Sizes(const TileProgram &program, const std::map<std::string, int64_t> &given) : program_(program), given_(given) {}

    int64_t of(const Expr &e) const {
        const Expr value = replace_loads(replace_extents(e, [&](const Expr &n) { return Expr(extent(n->name)); }),
                                         [](const Expr &load) { return constant(load.type(), typical_extent); });
        return value.is_constant() ? std::max<int64_t>(0, value->value.integer) : typical_extent;
    }

private:
    const TileProgram &program_;
    const std::map<std::string, int64_t> &given_;

    int64_t extent(const std::string &name) const {
        if (auto it = given_.find(name); it != given_.end()) return it->second;
        for (const Dim &d : program_.dims) {
            if (d.name != name) continue;
            if (d.kind == DimKind::fixed) return d.value;
            if (d.kind == DimKind::derived) return of(d.size);
            if (!d.equals.empty()) return extent(d.equals);
            return (std::clamp(typical_extent, d.min, d.max) + d.multiple_of - 1) / d.multiple_of * d.multiple_of;
        }
        return typical_extent;
    }
};

std::vector<int64_t> sizes_of(const MemoryPlan &plan, const TileProgram &program, const std::map<std::string, int64_t> &extents) {
    const Sizes sizes(program, extents);
    std::vector<int64_t> bytes;
    for (const PlannedBuffer &b : plan.buffers) bytes.push_back(sizes.of(workspace_bytes(b.buffer)));
    return bytes;
}

int64_t largest_live(const MemoryPlan &plan, const std::vector<int64_t> &bytes) {
    int64_t most = 0;
    for (size_t part = 0; part < plan.parts.size(); part++) {
        int64_t live = 0;
        for (size_t b : plan.live_in(part)) live += aligned(bytes[b]);
        most = std::max(most, live);
    }
    return most;
}

}  // namespace

std::vector<size_t> MemoryPlan::live_in(size_t part) const {
    std::vector<size_t> live;
    for (size_t b = 0; b < buffers.size(); b++)
        if (buffers[b].first <= part && part <= buffers[b].last) live.push_back(b);
    return live;
}

MemoryPlan plan_memory(const TileProgram &program) {
    MemoryPlan plan;
    find_parts(program.body, plan);
    find_lives(plan);
    for (size_t b = 1; b < plan.buffers.size(); b++) plan.buffers[b].behind = {b - 1};
    const std::vector<int64_t> bytes = sizes_of(plan, program, {});
    int64_t apart = 0;
    for (int64_t size : bytes) apart += aligned(size);
    Orders orders(plan.buffers, bytes);
    const std::vector<size_t> order = orders.best(largest_live(plan, bytes));
    if (apart - orders.total(order) < least_saving) return plan;
    plan.shares = true;
    std::vector<PlannedBuffer> laid;
    for (size_t b : order) {
        PlannedBuffer next = plan.buffers[b];
        next.behind.clear();
        for (size_t other = 0; other < laid.size(); other++)
            if (meet(next, laid[other])) next.behind.push_back(other);
        laid.push_back(std::move(next));
    }
    plan.buffers = std::move(laid);
    return plan;
}

int64_t extent_value(const Expr &e, const TileProgram &program, const std::map<std::string, int64_t> &extents) {
    return Sizes(program, extents).of(e);
}

MemoryLayout layout_of(const MemoryPlan &plan, const TileProgram &program, const std::map<std::string, int64_t> &extents) {
    MemoryLayout layout;
    layout.bytes = sizes_of(plan, program, extents);
    for (size_t b = 0; b < plan.buffers.size(); b++) {
        int64_t begin = 0;
        for (size_t other : plan.buffers[b].behind) begin = std::max(begin, layout.begins[other] + aligned(layout.bytes[other]));
        layout.begins.push_back(begin);
        layout.total = std::max(layout.total, begin + aligned(layout.bytes[b]));
    }
    layout.largest_live = largest_live(plan, layout.bytes);
    return layout;
}

std::set<std::string> buffers_used(const TileBody &body) {
    std::set<std::string> used;
    walk(body, [&](const TileNode &node) {
        std::visit(Overloaded{
                       [&](const StoreNode auto &n) { used.insert(n.buffer); },
                       [&](const Prefetch &n) { used.insert(n.buffer); },
                       [&](const Invoke &n) {
                           for (const BufferView &view : n.arguments) used.insert(view.buffer);
                       },
                       [&](const FragmentNode auto &n) {
                           for (const std::string &buffer : buffers_of(n)) used.insert(buffer);
                       },
                       [](const Loop &) {},
                       [](const WaitNode auto &) {},
                       [](const Guard &) {},
                       [](const Let &) {},
                       [](const Alloc &) {},
                   },
                   node);
        for (const Expr &e : expressions_of(node))
            walk(e, [&](const Expr &x) {
                if (x.kind() == ExprKind::load) used.insert(x->name);
            });
    });
    return used;
}

bool touches_memory(const TileNode &part) {
    bool touches = false;
    walk({std::make_shared<const TileNode>(part)}, [&](const TileNode &node) {
        touches |= std::visit(Overloaded{
                                  [](const StoreNode auto &) { return true; },
                                  [](const Prefetch &) { return true; },
                                  [](const Alloc &) { return true; },
                                  [](const Invoke &) { return false; },
                                  [](const FragmentNode auto &) { return true; },
                                  [](const Loop &) { return false; },
                                  [](const WaitNode auto &) { return false; },
                                  [](const Guard &) { return false; },
                                  [](const Let &) { return false; },
                              },
                              node);
        for (const Expr &e : expressions_of(node)) touches |= has_load(e);
    });
    return touches;
}

}  // namespace tessera
