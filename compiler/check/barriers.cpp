#include "compiler/check/barriers.h"

#include <set>

#include "compiler/check/verify_races.h"
#include "support/containers/alternatives.h"

namespace tessera {

namespace {

struct Touched {
    std::set<std::string> read, written;

    void add(const Touched &more) {
        read.insert(more.read.begin(), more.read.end());
        written.insert(more.written.begin(), more.written.end());
    }
    // A buffer that both touch and one of them writes.
    const std::string *conflict(const Touched &later) const {
        for (const std::string &b : later.written)
            if (read.count(b) || written.count(b)) return &b;
        for (const std::string &b : later.read)
            if (written.count(b)) return &b;
        return nullptr;
    }
};

class Barriers {
public:
    Barriers(bool insert, const std::vector<Dim> &dims) : insert_(insert), dims_(dims) {}

    TileBody run(const TileBody &body) {
        Touched before;
        return visit(body, before);
    }
    std::string missing;

private:
    bool insert_;
    const std::vector<Dim> &dims_;
    Scope scope_;
    std::set<std::string> private_;                          // registers of one thread each
    std::map<std::string, std::set<std::string>> apart_in_;  // by loop variable: buffers in which its iterations do not meet

    void read(const Expr &e, Touched &touched) const {
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::load && !private_.count(n->name)) touched.read.insert(n->name);
        });
    }

    // Everything inside a thread loop; buffers that live there are the thread's own.
    Touched touched_in(const TileBody &body) const {
        Touched all;
        std::set<std::string> own;
        walk(body, [&](const TileNode &node) {
            for (const Expr &e : expressions_of(node)) read(e, all);
            if (auto store = store_of(node); store && !private_.count(store->buffer)) all.written.insert(store->buffer);
            if (auto *alloc = std::get_if<Alloc>(&node)) own.insert(alloc->buffer.name);
        });
        for (const std::string &b : own) all.read.erase(b), all.written.erase(b);
        return all;
    }

    // The scope inside a node, from the scope around it.
    static Scope inside(const Scope &outer, const Loop &n) {
        return std::make_shared<TileScope>(TileScope{outer, n.variable, Expr(0), n.count - 1, n.count, {}});
    }
    static Scope inside(const Scope &outer, const Expr &condition) {
        return std::make_shared<TileScope>(TileScope{outer, "", {}, {}, {}, condition});
    }
    Scope inside(const Scope &outer, const Let &n) const {
        TileScope more{outer, n.variable, n.value, n.value, {}, {}};
        if (n.value.is_operation(Op::div) || n.value.is_operation(Op::mod)) {  // a digit: its range says more than its value
            Bounds facts(dims_);
            add_facts(facts, outer, nullptr, Facts::ranges);
            if (auto range = constant_range(n.value, facts)) more.lo = Expr(range->first), more.hi = Expr(range->second);
        }
        return std::make_shared<TileScope>(std::move(more));
    }

    void accesses_of(const Expr &e, const Scope &scope, std::vector<TileAccess> &all) const {
        walk(e, [&](const Expr &n) {
            if (n.kind() != ExprKind::load) return;
            size_t rank = n->args.size() - (n->guarded ? 2 : 0);
            std::vector<Expr> index(n->args.begin(), n->args.begin() + static_cast<std::ptrdiff_t>(rank));
            all.push_back({n->name, index, false, n->guarded ? inside(scope, n->args[rank]) : scope});
        });
    }

    void accesses_of(const TileBody &body, const Scope &scope, std::vector<TileAccess> &all) const {
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
                               accesses_of(n.then, inside(scope, n.condition), all),
                                   accesses_of(n.otherwise, inside(scope, !n.condition), all);
                           },
                           [](const LeafNode auto &) {},
                       },
                       *node);
        }
    }

    // The buffers among the candidates in which no two iterations of the loop meet.
    const std::set<std::string> &apart_in(const Loop &loop, const Touched &candidates) {
        auto [it, fresh] = apart_in_.emplace(loop.variable, std::set<std::string>{});
        if (!fresh) return it->second;
        std::vector<TileAccess> all;
        Scope within = inside(scope_, loop);
        accesses_of(loop.body, within, all);
        Bounds facts(dims_);
        add_facts(facts, scope_, nullptr, Facts::conditions);
        for (const std::string &buffer : candidates.written) {
            std::vector<const TileAccess *> list;
            for (const TileAccess &a : all)
                if (a.buffer == buffer) list.push_back(&a);
            if (!find_conflict(facts, within, {loop.variable}, list)) it->second.insert(buffer);
        }
        return it->second;
    }

    void separate(const Touched &next, Touched &since, TileBody &out) {
        if (const std::string *buffer = since.conflict(next)) {
            if (insert_) out.push_back(tile_node(Barrier{})), since = {};
            else if (missing.empty()) missing = "threads may meet in " + *buffer + " without a barrier between them";
        }
        since.add(next);
    }

    // `since`: what has been touched since the last barrier, before the body and after it.
    TileBody visit(const TileBody &body, Touched &since) {
        TileBody out;
        for (const auto &node : body) visit(node, since, out);
        return out;
    }

    TileBody visit(const TileBody &body, Touched &since, const Scope &scope) {
        Scope outer = scope_;
        scope_ = scope;
        TileBody result = visit(body, since);
        scope_ = outer;
        return result;
    }

    void visit(const std::shared_ptr<const TileNode> &node, Touched &since, TileBody &out) {
        TileNode copy = *node;
        std::visit(Overloaded{
                       [&](Loop &loop) { visit(loop, since, out); },
                       [&](Guard &guard) {
                           uniform({guard.condition}, since, out);
                           Touched then = since, otherwise = since;
                           guard.then = visit(guard.then, then, inside(scope_, guard.condition));
                           guard.otherwise = visit(guard.otherwise, otherwise, inside(scope_, !guard.condition));
                           since = then;
                           since.add(otherwise);
                       },
                       [&](Let &let) {
                           uniform({let.value}, since, out);
                           let.body = visit(let.body, since, inside(scope_, let));
                       },
                       [&](Alloc &alloc) {
                           if (alloc.buffer.space == Space::registers) private_.insert(alloc.buffer.name);
                           alloc.body = visit(alloc.body, since);
                       },
                       [&](Barrier &) { since = {}; },
                       [](LeafNode auto &) {},
                   },
                   copy);
        out.push_back(tile_node(std::move(copy)));
    }

    void visit(Loop &loop, Touched &since, TileBody &out) {
        if (loop.kind == LoopKind::thread) {
            separate(touched_in(loop.body), since, out);
        } else if (loop.kind == LoopKind::block) {
            Touched none;  // blocks do not wait for one another, and a kernel ends where they end
            loop.body = visit(loop.body, none, inside(scope_, loop));
        } else {
            uniform({loop.count}, since, out);
            repeat(loop, since, out);
        }
    }

    // A loop that all threads of the block run together. Barriers that only its first iteration would need stand before it.
    void repeat(Loop &loop, Touched &since, TileBody &out) {
        Scope within = inside(scope_, loop);
        Touched carried;
        TileBody once = visit(loop.body, carried, within);
        if (!loop.count.is_constant(1))
            for (const std::string &b : apart_in(loop, carried)) carried.read.erase(b), carried.written.erase(b);
        else carried = {};
        if (!insert_) {
            since.add(carried);
            visit(loop.body, since, within);
            return;
        }
        Touched last = carried;
        loop.body = carried.read.empty() && carried.written.empty() ? once : visit(loop.body, last, within);
        Barriers check(false, dims_);
        check.private_ = private_, check.apart_in_ = apart_in_;
        Touched before = since;
        check.visit(loop.body, before, within);
        if (!check.missing.empty()) out.push_back(tile_node(Barrier{})), since = {};
        Touched after = since;
        check.visit(loop.body, after, within);
        since.add(after);
    }

    // What every thread of the block evaluates.
    void uniform(const std::vector<Expr> &expressions, Touched &since, TileBody &out) {
        Touched touched;
        for (const Expr &e : expressions) read(e, touched);
        if (!touched.read.empty()) separate(touched, since, out);
    }
};

}  // namespace

TileBody with_barriers(const TileBody &body, const std::vector<Dim> &dims) { return Barriers(true, dims).run(body); }

std::string missing_barrier(const TileBody &body, const std::vector<Dim> &dims) {
    Barriers check(false, dims);
    check.run(body);
    return check.missing;
}

}  // namespace tessera
