#include "compiler/check/awaits.h"

#include <map>
#include <set>

#include "compiler/check/slots.h"
#include "compiler/tile/fragments.h"
#include "compiler/tile/kinds.h"
#include "support/containers/alternatives.h"

namespace tessera {

namespace {

bool has_groups(const TileBody &body) {
    bool found = false;
    walk(body, [&](const TileNode &n) { found |= std::holds_alternative<Commit>(n) || std::holds_alternative<Await>(n); });
    return found;
}

class Awaits {
public:
    void visit(const TileBody &body) {
        for (const auto &node : body) visit(*node);
    }
    std::string wrong;

private:
    using Group = std::set<Slot>;
    struct InFlight {
        std::vector<Group> groups;  // the oldest first
        Group open;                 // issued since the last Commit
        friend bool operator==(const InFlight &, const InFlight &) = default;
    };
    InFlight now_;
    std::map<std::string, int64_t> slots_;  // of the buffers that are alive
    std::set<std::string> in_step_;         // variables that threads have different values of
    std::map<std::string, Expr> values_;    // of loops that are gone through one by one

    void say(const std::string &what) {
        if (wrong.empty()) wrong = what;
    }

    Slot slot(const std::string &buffer, const std::vector<Expr> &index) const {
        std::vector<Expr> at;
        if (!index.empty()) at.push_back(substitute(index[0], values_));
        const auto slots = slots_.find(buffer);
        return slot_of(
            buffer, at, [&](const std::string &v) { return !in_step_.count(v); }, slots == slots_.end() ? 0 : slots->second);
    }

    bool is_in(const Group &group, const Slot &touched) const {
        for (const Slot &s : group)
            if (may_be_same(s, touched)) return true;
        return false;
    }

    // `in_open`: also where it was issued since the last Commit.
    void touch(const Slot &touched, const std::string &what, bool in_open) {
        bool found = in_open && is_in(now_.open, touched);
        for (const Group &group : now_.groups) found |= is_in(group, touched);
        if (found) say(touched.buffer + " is " + what + " where an asynchronous copy to it may be in flight; it has to be awaited");
    }

    void read(const Expr &e) {
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::load) touch(slot(n->name, index_of(n)), "read", true);
        });
    }

    void visit(const TileNode &node) {
        if (const auto *move = std::get_if<Move>(&node)) {
            if (move->from) touch(slot_of_view(*move->from), "read", true);
            return touch(slot_of_view(move->to), "stored to", true);
        }
        for (const Expr &e : expressions_of(node)) read(e);
        std::visit(Overloaded{
                       [&](const Compute &n) { touch(slot(n.buffer, n.index), "stored to", true); },
                       [&](const Copy &n) {
                           const Slot to = slot(n.buffer, n.index);
                           touch(to, "stored to", !n.is_asynchronous);
                           if (n.is_asynchronous) now_.open.insert(to);
                       },
                       [&](const Commit &) { now_.groups.push_back(std::move(now_.open)), now_.open.clear(); },
                       [&](const Await &n) {
                           const auto pending = static_cast<size_t>(n.pending);
                           if (now_.groups.size() <= pending)
                               return say("an await of all but " + std::to_string(n.pending) +
                                          " groups waits for nothing: " + std::to_string(now_.groups.size()) + " were issued");
                           now_.groups.erase(now_.groups.begin(), now_.groups.end() - static_cast<std::ptrdiff_t>(pending));
                       },
                       [&](const Loop &n) { visit(n); },
                       [&](const Guard &n) {
                           const InFlight before = now_;
                           visit(n.then);
                           const InFlight then = std::exchange(now_, before);
                           visit(n.otherwise);
                           meet(then);
                       },
                       [&](const Let &n) { visit(n.body); },
                       [&](const Alloc &n) {
                           const std::string &name = n.buffer.name;
                           slots_[name] = !n.buffer.extents.empty() && n.buffer.extents[0].is_constant()
                                              ? std::max<int64_t>(0, n.buffer.extents[0]->value.integer)
                                              : 0;
                           visit(n.body);
                           touch(name, "freed", true);
                           slots_.erase(name);
                       },
                       [](const LeafNode auto &) {},
                   },
                   node);
    }

    Slot slot_of_view(const BufferView &view) const {
        for (const BufferView::Axis &moved : view.axes)
            if (moved.of == 0) return view.buffer;
        return slot(view.buffer, view.first);
    }

    // After a branch that left the one or the other.
    void meet(const InFlight &other) {
        if (now_.groups.size() != other.groups.size())
            return say("branches leave " + std::to_string(other.groups.size()) + " and " + std::to_string(now_.groups.size()) +
                       " groups of asynchronous copies in flight");
        for (size_t i = 0; i < now_.groups.size(); i++) now_.groups[i].insert(other.groups[i].begin(), other.groups[i].end());
        now_.open.insert(other.open.begin(), other.open.end());
    }

    static InFlight map_slots(const InFlight &all, const std::function<Slot(const Slot &)> &change) {
        const auto map_group = [&](const Group &group) {
            Group changed;
            for (const Slot &s : group) changed.insert(change(s));
            return changed;
        };
        InFlight made{{}, map_group(all.open)};
        for (const Group &group : all.groups) made.groups.push_back(map_group(group));
        return made;
    }

    void visit(const Loop &loop) {
        if (traits_of(loop.kind).threads > 0) {
            in_step_.insert(loop.variable);
            walk(loop.body, [&](const TileNode &n) {
                if (const auto *inner = std::get_if<Loop>(&n)) in_step_.insert(inner->variable);
                if (const auto *let = std::get_if<Let>(&n)) in_step_.insert(let->variable);
            });
            return visit(loop.body);
        }
        if (loop.kind == LoopKind::block) {
            visit(loop.body);
            if (!now_.groups.empty() || !now_.open.empty()) say("a block ends with asynchronous copies that are not awaited");
            now_ = {};
            return;
        }
        const InFlight before = now_;
        const auto after_loop = [&](const Slot &s) { return s.variable == loop.variable ? Slot(s.buffer) : s; };
        if (!has_groups(loop.body)) {
            visit(loop.body);
            now_ = map_slots(now_, after_loop);
            return meet(before);  // it may have no iteration
        }
        if (traits_of(loop.kind).written_out && loop.count.is_constant()) {
            for (int64_t i = 0; i < loop.count->value.integer; i++) {
                values_[loop.variable] = Expr(i);
                visit(loop.body);
            }
            values_.erase(loop.variable);
            return;
        }
        // Iteration v finds in flight what the first one does, v slots further.
        const auto at = [&](int64_t further) {
            return map_slots(before, [&](const Slot &s) {
                return s.variable.empty() && s.of > 0 ? Slot(s.buffer, loop.variable, s.offset + further, s.of) : s;
            });
        };
        now_ = at(0);
        visit(loop.body);
        if (now_ != at(1))
            say("an iteration of the loop " + loop.variable + " leaves other asynchronous copies in flight than the next one expects");
        now_ = map_slots(now_, after_loop);
        meet(before);
    }
};

}  // namespace

std::string wrong_await(const TileBody &body) {
    Awaits check;
    check.visit(body);
    return check.wrong;
}

}  // namespace tessera
