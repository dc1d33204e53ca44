#include "compiler/check/team_accesses.h"

#include <algorithm>

#include "compiler/tile/fragments.h"
#include "support/containers/alternatives.h"

namespace tessera {

void TouchedBuffers::add(const TouchedBuffers &more) {
    read.insert(more.read.begin(), more.read.end());
    written.insert(more.written.begin(), more.written.end());
}

void TouchedBuffers::erase(const std::string &buffer) {
    const auto is_of = [&](const Slot &s) { return s.buffer == buffer; };
    std::erase_if(read, is_of), std::erase_if(written, is_of);
}

TouchedBuffers TouchedBuffers::without_slots_of(const std::string &variable) const {
    const auto any = [&](const Slot &s) { return s.variable == variable ? Slot(s.buffer) : s; };
    TouchedBuffers all;
    for (const Slot &s : read) all.read.insert(any(s));
    for (const Slot &s : written) all.written.insert(any(s));
    return all;
}

const std::string *TouchedBuffers::conflict(const TouchedBuffers &later) const {
    const auto meets = [](const std::set<Slot> &all, const Slot &one) {
        return std::any_of(all.begin(), all.end(), [&](const Slot &s) { return may_be_same(s, one); });
    };
    for (const Slot &s : later.written)
        if (meets(read, s) || meets(written, s)) return &s.buffer;
    for (const Slot &s : later.read)
        if (meets(written, s)) return &s.buffer;
    return nullptr;
}

TeamAccesses::TeamAccesses(const std::vector<Dim> &dims, const TileBody &body) : dims_(dims) {
    walk(body, [&](const TileNode &node) {
        if (const auto *copy = std::get_if<Copy>(&node); copy && copy->is_asynchronous) awaited_.written.insert(copy->buffer);
    });
}

// Loops around the steps of a block, which all of its threads go through together.
bool TeamAccesses::is_uniform(const std::string &variable) const {
    for (const TileScope *s = scope_.get(); s; s = s->outer.get())
        if (s->variable == variable) return s->count.defined();
    return false;
}

Slot TeamAccesses::slot(const std::string &buffer, const std::vector<Expr> &index) const {
    return slot_of(buffer, index, [&](const std::string &v) { return is_uniform(v); });
}

Slot TeamAccesses::slot(const BufferView &view) const {
    const bool goes_over_slots = std::any_of(view.axes.begin(), view.axes.end(), [](const auto &moved) { return moved.of == 0; });
    return goes_over_slots ? Slot(view.buffer) : slot(view.buffer, view.first);
}

void TeamAccesses::enter(const Alloc &alloc) {
    if (alloc.buffer.space == Space::registers || alloc.buffer.space == Space::fragment) private_.insert(alloc.buffer.name);
}

void TeamAccesses::read(const Expr &e, TouchedBuffers &touched) const {
    walk(e, [&](const Expr &n) {
        if (n.kind() == ExprKind::load && !private_.count(n->name)) touched.read.insert(slot(n->name, index_of(n)));
    });
}

TouchedBuffers TeamAccesses::read_by(const Expr &expression) const {
    TouchedBuffers touched;
    read(expression, touched);
    return touched;
}

TouchedBuffers TeamAccesses::touched_in(const TileBody &body) const {
    TouchedBuffers all;
    std::set<std::string> own;
    walk(body, [&](const TileNode &node) {
        for (const Expr &e : expressions_of(node)) read(e, all);
        if (auto store = store_of(node); store && !private_.count(store->buffer)) all.written.insert(slot(store->buffer, store->index));
        if (auto *move = std::get_if<Move>(&node)) {
            if (!private_.count(move->to.buffer)) all.written.insert(slot(move->to));
            if (move->from && !private_.count(move->from->buffer)) all.read.insert(slot(*move->from));
        }
        if (auto *alloc = std::get_if<Alloc>(&node)) own.insert(alloc->buffer.name);
    });
    for (const std::string &b : own) all.erase(b);
    return all;
}

EnclosingScope TeamAccesses::inside(const EnclosingScope &outer, const Loop &n) {
    return std::make_shared<TileScope>(TileScope{outer, n.variable, Expr(0), n.count - 1, n.count, {}});
}

EnclosingScope TeamAccesses::inside(const EnclosingScope &outer, const Expr &condition) {
    return std::make_shared<TileScope>(TileScope{outer, "", {}, {}, {}, condition});
}

EnclosingScope TeamAccesses::inside(const EnclosingScope &outer, const Let &n) const {
    TileScope more{outer, n.variable, n.value, n.value, {}, {}};
    if (n.value.is_operation(Op::div) || n.value.is_operation(Op::mod)) {  // a digit: its range says more than its value
        Bounds facts(dims_);
        add_facts(facts, outer, nullptr, Facts::ranges);
        if (auto range = constant_range(n.value, facts)) more.lo = Expr(range->first), more.hi = Expr(range->second);
    }
    return std::make_shared<TileScope>(std::move(more));
}

void TeamAccesses::accesses_of(const Expr &e, const EnclosingScope &scope, std::vector<TileAccess> &all) const {
    walk(e, [&](const Expr &n) {
        if (n.kind() != ExprKind::load) return;
        size_t rank = n->args.size() - (n->guarded ? 2 : 0);
        std::vector<Expr> index(n->args.begin(), n->args.begin() + static_cast<std::ptrdiff_t>(rank));
        all.push_back({n->name, index, false, n->guarded ? inside(scope, n->args[rank]) : scope});
    });
}

void TeamAccesses::accesses_of(const TileBody &body, const EnclosingScope &scope, std::vector<TileAccess> &all) const {
    for (const auto &node : body) {
        for (const Expr &e : expressions_of(*node)) accesses_of(e, scope, all);
        std::visit(Overloaded{
                       [&](const StoreNode auto &n) {
                           all.push_back({n.buffer, n.index, true, n.guard.defined() ? inside(scope, n.guard) : scope});
                       },
                       [&](const Loop &n) { accesses_of(n.body, inside(scope, n), all); },
                       [&](const Let &n) { accesses_of(n.body, inside(scope, n), all); },
                       [&](const Alloc &n) { accesses_of(n.body, scope, all); },
                       [&](const Guard &n) {
                           accesses_of(n.then, inside(scope, n.condition), all), accesses_of(n.otherwise, inside(scope, !n.condition), all);
                       },
                       [&](const Move &n) {
                           // The elements alone, whatever type they have.
                           accesses_of(expand(n, DType::f32), scope, all);
                       },
                       [](const Fragment &) {},
                       [](const Prefetch &) {},
                       [](const WaitNode auto &) {},
                       [](const Invoke &) {},
                   },
                   *node);
    }
}

// Among the candidates, the buffers in which no two iterations of the loop meet.
const std::set<std::string> &TeamAccesses::apart_in(const Loop &loop, const TouchedBuffers &candidates) {
    auto [it, fresh] = apart_in_.emplace(loop.variable, std::set<std::string>{});
    if (!fresh) return it->second;
    std::vector<TileAccess> all;
    EnclosingScope within = inside(scope_, loop);
    accesses_of(loop.body, within, all);
    Bounds facts(dims_);
    add_facts(facts, scope_, nullptr, Facts::conditions);
    for (const Slot &slot : candidates.written) {
        const std::string &buffer = slot.buffer;
        std::vector<const TileAccess *> list;
        for (const TileAccess &a : all)
            if (a.buffer == buffer) list.push_back(&a);
        if (!find_conflict(facts, within, {loop.variable}, list)) it->second.insert(buffer);
    }
    return it->second;
}

TouchedBuffers TeamAccesses::carried(const Loop &loop, TouchedBuffers after_one) {
    if (loop.count.is_constant(1)) return {};
    for (const std::string &b : apart_in(loop, after_one)) after_one.erase(b);
    return after_one.without_slots_of(loop.variable);
}

}  // namespace tessera
