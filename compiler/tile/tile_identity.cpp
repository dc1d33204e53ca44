#include "compiler/tile/tile_identity.h"

#include <algorithm>
#include <bit>

namespace tessera {

namespace {

bool same(const Expr &a, const Expr &b) { return a.defined() ? equal(a, b) : !b.defined(); }
bool same(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr &x, const Expr &y) { return same(x, y); });
}
bool same(const std::map<std::string, Expr> &a, const std::map<std::string, Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto &x, const auto &y) { return x.first == y.first && same(x.second, y.second); });
}

bool same(const Buffer &a, const Buffer &b) {
    return a.name == b.name && a.dtype == b.dtype && a.space == b.space && same(a.extents, b.extents) && a.swizzle == b.swizzle;
}

bool same(const Loop &a, const Loop &b) {
    return a.variable == b.variable && a.kind == b.kind && same(a.count, b.count) && equal(a.body, b.body);
}
bool same(const Compute &a, const Compute &b) {
    return a.buffer == b.buffer && same(a.index, b.index) && same(a.value, b.value) && same(a.guard, b.guard);
}
bool same(const Copy &a, const Copy &b) {
    return a.buffer == b.buffer && same(a.index, b.index) && same(a.value, b.value) && same(a.guard, b.guard) &&
           a.is_asynchronous == b.is_asynchronous;
}
bool same(const Prefetch &a, const Prefetch &b) { return a.buffer == b.buffer && same(a.index, b.index); }
bool same(const Barrier &, const Barrier &) { return true; }
bool same(const Commit &, const Commit &) { return true; }
bool same(const Await &a, const Await &b) { return a.pending == b.pending; }
bool same(const Guard &a, const Guard &b) {
    return same(a.condition, b.condition) && equal(a.then, b.then) && equal(a.otherwise, b.otherwise);
}
bool same(const Let &a, const Let &b) { return a.variable == b.variable && same(a.value, b.value) && equal(a.body, b.body); }
bool same(const Alloc &a, const Alloc &b) { return same(a.buffer, b.buffer) && equal(a.body, b.body); }
bool same(const BufferView &a, const BufferView &b) {
    return a.buffer == b.buffer && same(a.first, b.first) &&
           std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                      [](const auto &x, const auto &y) { return x.of == y.of && same(x.step, y.step); });
}
bool same(const Invoke &a, const Invoke &b) {
    auto same_view = [](const BufferView &x, const BufferView &y) { return same(x, y); };
    return a.program == b.program &&
           std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(), same_view) &&
           same(a.extents, b.extents) && same(a.parameters, b.parameters);
}

bool same(const Move &a, const Move &b) {
    return same(a.to, b.to) && a.from.has_value() == b.from.has_value() && (!a.from || same(*a.from, *b.from)) && a.box == b.box;
}
bool same(const Fragment &a, const Fragment &b) {
    return a.family == b.family && a.accumulator == b.accumulator && a.a == b.a && a.b == b.b && a.warp.defined() == b.warp.defined() &&
           (!a.warp.defined() || same(a.warp, b.warp));
}

bool same_node(const TileNode &a, const TileNode &b) {
    return a.index() == b.index() && std::visit([&](const auto &x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
}

// Takes in one field after the other.
class Digest {
public:
    void add(uint64_t word) { state_ = (std::rotl(state_, 27) ^ word) * 0x9e3779b97f4a7c15; }
    void add(const std::string &text) { add(std::hash<std::string>()(text)); }
    void add(const Expr &e) { add(e.defined() ? e->hash : 1); }
    template <typename Item>
    void add(const std::vector<Item> &items) {
        add(items.size());
        for (const Item &item : items) add(item);
    }
    void add(const std::map<std::string, Expr> &named) {
        add(named.size());
        for (const auto &[name, e] : named) add(name), add(e);
    }
    void add(const Buffer &b) {
        add(b.name), add(static_cast<uint64_t>(b.dtype)), add(static_cast<uint64_t>(b.space)), add(b.extents);
        if (b.swizzle)
            for (int64_t part : {b.swizzle->chunk, b.swizzle->rows, b.swizzle->phase}) add(static_cast<uint64_t>(part));
    }
    void add(const Tensor &t) { add(t.name), add(t.dims), add(static_cast<uint64_t>(t.dtype)); }

    void add(const TileBody &body) {
        add(body.size());
        for (const auto &node : body) {
            add(node->index());
            std::visit([&](const auto &n) { take(n); }, *node);
        }
    }
    void add(const TileProgram &p) {
        add(p.target), add(p.dims.size());
        for (const Dim &d : p.dims)
            add(d.name), add(static_cast<uint64_t>(d.kind)), add(static_cast<uint64_t>(d.kind == DimKind::fixed ? d.value : 0)),
                add(d.size);
        for (const Argument &a : p.arguments)
            add(a.tensor), add(a.written), add((a.packed ? to_string(*a.packed) : "") + (a.large ? ", large" : "") + half_bytes_text(a));
        add(p.constants), add(p.body), add(p.programs.size());
        for (const TileProgram &q : p.programs) add(q.name), add(q);
    }

    uint64_t value() const { return state_; }

private:
    uint64_t state_ = 0;

    void take(const Loop &n) { add(n.variable), add(n.count), add(static_cast<uint64_t>(n.kind)), add(n.body); }
    void take(const Compute &n) { add(n.buffer), add(n.index), add(n.value), add(n.guard); }
    void take(const Copy &n) {
        add(n.buffer), add(n.index), add(n.value), add(n.guard);
        if (n.is_asynchronous) add(1);
    }
    void take(const Prefetch &n) { add(n.buffer), add(n.index); }
    void take(const Barrier &) {}
    void take(const Commit &) {}
    void take(const Await &n) { add(static_cast<uint64_t>(n.pending)); }
    void take(const Guard &n) { add(n.condition), add(n.then), add(n.otherwise); }
    void take(const Let &n) { add(n.variable), add(n.value), add(n.body); }
    void take(const Alloc &n) { add(n.buffer), add(n.body); }
    void add(const BufferView &v) {
        add(v.buffer), add(v.first);
        for (const auto &moved : v.axes) add(moved.of), add(moved.step);
    }
    void take(const Move &n) {
        add(n.to), add(n.from ? 1 : 0);
        if (n.from) add(*n.from);
        for (int64_t extent : n.box) add(static_cast<uint64_t>(extent));
    }
    void take(const Fragment &n) {
        add(n.family), add(n.accumulator), add(n.a), add(n.b);
        if (n.warp.defined()) add(n.warp);
    }
    void take(const Invoke &n) { add(n.program), add(n.arguments), add(n.extents), add(n.parameters); }
};

}  // namespace

bool equal(const TileBody &a, const TileBody &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto &x, const auto &y) { return x == y || same_node(*x, *y); });
}

uint64_t identity_of(const TileProgram &program) {
    Digest digest;
    digest.add(program);
    return digest.value();
}

}  // namespace tessera
