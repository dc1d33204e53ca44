#include "compiler/emit/halide/store_run.h"

#include <algorithm>
#include <optional>
#include <set>

#include "algorithms/expr/value_numbering.h"
#include "compiler/emit/halide/sharing.h"

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

namespace {

constexpr int64_t max_interleaved = 16, max_strided = 4;

struct LaneStore {
    std::string lane, buffer;  // lane "": a store of one element
    int64_t lanes = 1;
    std::vector<Expr> index;
    Expr value, guard;
};

// The store that a node is, or that is all there is in a vector loop.
std::optional<LaneStore> lane_store(const TileNode &node) {
    auto *loop = std::get_if<Loop>(&node);
    auto is_vector = [](const Loop &l) { return l.kind == LoopKind::vector && l.count.is_constant() && l.count->value.integer > 1; };
    if (loop && (!is_vector(*loop) || loop->body.size() != 1)) return {};
    const auto store = store_of(loop ? *loop->body[0] : node);
    if (!store) return {};
    return LaneStore{
        loop ? loop->variable : "", store->buffer, loop ? loop->count->value.integer : 1, store->index, store->value, store->guard};
}

bool reads_any(const LaneStore &store, const std::set<std::string> &buffers) {
    bool result = false;
    auto look = [&](const Expr &n) { result |= n.kind() == ExprKind::load && buffers.count(n->name); };
    walk(store.value, look);
    if (store.guard.defined()) walk(store.guard, look);
    for (const Expr &e : store.index) walk(e, look);
    return result;
}

class Run {
public:
    Run(const TileBody &body, size_t first, const Addresses &a, Values &v) : addresses(a), values(v) {
        std::set<std::string> written;
        for (size_t i = first; i < body.size(); i++) {
            std::optional<LaneStore> store = lane_store(*body[i]);
            if (!store || reads_any(*store, written)) break;
            if (!stores.empty() && (store->lane != stores[0].lane || store->lanes != stores[0].lanes)) break;
            written.insert(store->buffer);
            stores.push_back(*store);
        }
        ValueNumbering one_of_each;
        for (LaneStore &s : stores) s.value = one_of_each.unique(s.value);
    }

    StoreRun emit() {
        if (stores.size() < 2) return {};
        find_shared();
        values.enter_lanes(stores[0].lane, stores[0].lanes);
        for (const Strided &group : strided_loads()) load_columns(group);
        for (const Expr &e : shared) {
            if (values.emit(e).as<Variable>()) continue;  // a column
            lets.emplace_back(unique_name("shared"), name_shared(values.emit(e)));
            values.name(e, lets.back().first);
        }
        for (size_t i = 0; i < stores.size();) {
            const size_t count = interleaved(i);
            if (count > 0) store_rows(i, count);
            else store(stores[i]);
            i += std::max<size_t>(count, 1);
        }
        values.leave_lanes();
        if (shared.empty() && kept.empty()) return {};
        Stmt body = Block::make(inside);
        for (auto let = lets.rbegin(); let != lets.rend(); ++let) body = LetStmt::make(let->first, let->second, body);
        if (lanes() > 1) body = For::make(stores[0].lane, 0, lanes(), ForType::Vectorized, Partition::Never, DeviceAPI::None, body);
        for (auto s = before.rbegin(); s != before.rend(); ++s) body = Block::make(*s, body);
        for (const Stmt &s : after) body = Block::make(body, s);
        for (const auto &[name, type] : kept)
            body = Allocate::make(name, type.element_of(), MemoryType::Stack, {number(type.lanes())}, const_true(), body);
        return {stores.size(), body};
    }

private:
    const Addresses &addresses;
    Values &values;
    std::vector<LaneStore> stores;
    std::vector<Expr> shared;  // operands first
    std::vector<std::pair<std::string, HExpr>> lets;
    std::vector<Stmt> before, inside, after;            // the vector loop
    std::vector<std::pair<std::string, H::Type>> kept;  // vectors between them, which LLVM holds in registers

    int lanes() const { return static_cast<int>(stores[0].lanes); }
    static HExpr number(int64_t n) { return make_const(H::Int(32), n); }
    static HExpr ramp(const HExpr &first, int count) { return Ramp::make(first, make_one(first.type()), count); }
    static Stmt put(const std::string &to, const HExpr &at, const HExpr &value, const Halide::Parameter &origin = {}) {
        return Store::make(to, value, at, origin, const_true(value.type().lanes()), ModulusRemainder());
    }
    static HExpr get(const std::string &from, H::Type type, const HExpr &at, const Halide::Parameter &origin = {}) {
        return Load::make(type, from, at, H::Buffer<>(), origin, const_true(type.lanes()), ModulusRemainder());
    }
    HExpr own_lane() const { return Variable::make(H::Int(32), stores[0].lane); }

    void store(const LaneStore &s) {
        const HExpr guard = s.guard.defined() ? name_shared(values.emit(s.guard)) : const_true(),
                    position = name_shared(values.position(s.buffer, s.index));
        inside.push_back(Store::make(s.buffer, stored(s), position, addresses.origin(s.buffer), guard, ModulusRemainder()));
    }

    void store_rows(size_t i, size_t count) {
        const int width = lanes(), all = static_cast<int>(count) * width;
        const std::string &buffer = stores[i].buffer, name = unique_name("rows");
        const H::Type type = stored_type(addresses.dtype(buffer));
        kept.emplace_back(name, type.with_lanes(all));
        std::vector<HExpr> rows;
        for (size_t row = 0; row < count; row++) {
            const HExpr start = number(static_cast<int64_t>(row) * width);
            inside.push_back(put(name, own_lane() + start, stored(stores[i + row])));
            rows.push_back(get(name, type.with_lanes(width), ramp(start, width)));
        }
        after.push_back(put(buffer, ramp(at_lane(stores[i], 0), all), Shuffle::make_interleave(rows), addresses.origin(buffer)));
    }

    HExpr stored(const LaneStore &s) const { return name_shared(values.stored(s.value.type(), values.emit(s.value))); }

    // Values that more than one expression or store is made of.
    void find_shared() {
        std::map<const Expr::Node *, int> uses;
        std::vector<Expr> order;
        std::function<void(const Expr &)> count = [&](const Expr &e) {
            if (e.type() == DType::index || e.type() == DType::boolean || e.is_constant() || ++uses[e.get()] > 1) return;
            if (e.kind() != ExprKind::load)
                for (const Expr &arg : e->args) count(arg);
            order.push_back(e);
        };
        for (const LaneStore &s : stores) count(s.value);
        for (const Expr &e : order)
            if (uses.at(e.get()) > 1) shared.push_back(e);
    }

    // Loads of every so many-th element that together are all elements of one block.
    struct Strided {
        std::string buffer;
        HExpr first;                                 // the block's first element
        std::map<int64_t, std::vector<Expr>> loads;  // by the first element that each reads
    };

    void load_columns(const Strided &group) {
        const int count = static_cast<int>(group.loads.size()), width = lanes(), all = count * width;
        const H::Type type = stored_type(group.loads.begin()->second[0].type());
        const std::string name = unique_name("columns");
        kept.emplace_back(name, type.with_lanes(all));
        const HExpr block = get(group.buffer, type.with_lanes(all), ramp(group.first, all), addresses.origin(group.buffer));
        int column = 0;
        for (const auto &[offset, loads] : group.loads) {
            const HExpr start = number(int64_t{column} * width);
            before.push_back(put(name, ramp(start, width), Shuffle::make_slice(block, column++, count, width)));
            lets.emplace_back(unique_name("column"), get(name, type, own_lane() + start));
            for (const Expr &e : loads) values.name(e, lets.back().first);
        }
    }

    std::vector<Strided> strided_loads() {
        if (stores[0].lane.empty()) return {};
        std::vector<Strided> groups;
        std::vector<int64_t> strides;
        std::set<const Expr::Node *> seen;
        std::function<void(const Expr &)> look = [&](const Expr &e) {
            if (!seen.insert(e.get()).second || e.type() == DType::index || e.type() == DType::boolean) return;
            if (e.kind() != ExprKind::load) {
                for (const Expr &arg : e->args) look(arg);
                return;
            }
            if (e->guarded || std::any_of(e->args.begin(), e->args.end(), has_load)) return;
            const HExpr position = values.position(e->name, e->args);
            const HExpr first = lane_of(position, 0);
            auto is_at = [&](int lane, int64_t distance) { return is_const(simplify(lane_of(position, lane) - first), distance); };
            auto stride = as_const_int(simplify(lane_of(position, 1) - first));
            if (!stride || *stride < 2 || *stride > max_strided || !is_at(lanes() - 1, *stride * (lanes() - 1))) return;
            for (size_t g = 0; g < groups.size(); g++) {
                if (groups[g].buffer != e->name || strides[g] != *stride) continue;
                auto offset = as_const_int(simplify(first - groups[g].first));
                if (!offset || std::abs(*offset) >= *stride) continue;
                groups[g].loads[*offset].push_back(e);
                return;
            }
            groups.push_back({e->name, first, {{0, {e}}}});
            strides.push_back(*stride);
        };
        for (const LaneStore &s : stores) look(s.value);
        std::vector<Strided> whole;
        for (size_t g = 0; g < groups.size(); g++) {
            const int64_t least = groups[g].loads.begin()->first, most = groups[g].loads.rbegin()->first;
            if (static_cast<int64_t>(groups[g].loads.size()) != strides[g] || most - least != strides[g] - 1) continue;
            groups[g].first = simplify(groups[g].first + make_const(groups[g].first.type(), least));
            whole.push_back(groups[g]);
        }
        return whole;
    }

    HExpr lane_of(const HExpr &position, int lane) const { return substitute(stores[0].lane, make_const(H::Int(32), lane), position); }

    HExpr at_lane(const LaneStore &s, int lane) { return lane_of(values.position(s.buffer, s.index), lane); }

    // How many stores from the i-th on fill every so many-th element of one block; 0 where they do not.
    size_t interleaved(size_t i) {
        if (stores[0].lane.empty()) return 0;
        const HExpr start = at_lane(stores[i], 0);
        auto distance = as_const_int(simplify(at_lane(stores[i], 1) - start));
        if (!distance || *distance < 2 || *distance > max_interleaved) return 0;
        if (i + static_cast<size_t>(*distance) > stores.size()) return 0;
        for (int64_t row = 0; row < *distance; row++) {
            const LaneStore &s = stores[i + static_cast<size_t>(row)];
            auto is_at = [&](int lane) { return is_const(simplify(at_lane(s, lane) - start), row + lane * *distance); };
            if (s.buffer != stores[i].buffer || s.guard.defined() || !is_at(0) || !is_at(1) || !is_at(lanes() - 1)) return 0;
        }
        return static_cast<size_t>(*distance);
    }
};

}  // namespace

StoreRun store_run(const TileBody &body, size_t first, const Addresses &addresses, Values &values) {
    return Run(body, first, addresses, values).emit();
}

}  // namespace tessera::emit
