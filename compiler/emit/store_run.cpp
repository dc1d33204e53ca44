#include "compiler/emit/store_run.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/emit/sharing.h"

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

namespace {

constexpr int64_t most_interleaved = 16;

struct VectorStore {
    std::string lane, buffer;
    int64_t lanes = 0;
    std::vector<Expr> index;
    Expr value, guard;
};

// The store that is all there is in a vector loop.
std::optional<VectorStore> vector_store(const TileNode &node) {
    auto *loop = std::get_if<Loop>(&node);
    if (!loop || loop->kind != LoopKind::vector || !loop->count.is_constant() || loop->count->value.integer < 2 || loop->body.size() != 1) return {};
    auto make = [&](const auto &store) { return VectorStore{loop->variable, store.buffer, loop->count->value.integer, store.index, store.value, store.guard}; };
    if (auto *compute = std::get_if<Compute>(loop->body[0].get())) return make(*compute);
    if (auto *copy = std::get_if<Copy>(loop->body[0].get())) return make(*copy);
    return {};
}

bool reads_any(const VectorStore &store, const std::set<std::string> &buffers) {
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
            std::optional<VectorStore> store = vector_store(*body[i]);
            if (!store || (!stores.empty() && (store->lane != stores[0].lane || store->lanes != stores[0].lanes)) || reads_any(*store, written)) break;
            written.insert(store->buffer);
            stores.push_back(*store);
        }
    }

    StoreRun emit() {
        if (stores.size() < 2) return {};
        const std::string &lane = stores[0].lane;
        const int lanes = static_cast<int>(stores[0].lanes);
        find_shared();
        values.enter_lanes(lane, lanes);
        std::vector<std::pair<std::string, HExpr>> lets;
        for (const Expr &e : shared) {
            lets.emplace_back(unique_name("shared"), name_shared(values.emit(e)));
            values.name(e, lets.back().first);
        }
        std::vector<Stmt> inside, after;
        std::vector<std::pair<std::string, H::Type>> rows;
        for (size_t i = 0; i < stores.size();) {
            const size_t count = interleaved(i);
            if (count == 0) {
                const VectorStore &s = stores[i++];
                HExpr guard = s.guard.defined() ? name_shared(values.emit(s.guard)) : const_true();
                inside.push_back(Store::make(s.buffer, stored(s), name_shared(values.position(s.buffer, s.index)), addresses.origin(s.buffer), guard, ModulusRemainder()));
                continue;
            }
            const H::Type type = stored_type(addresses.dtype(stores[i].buffer));
            const std::string name = unique_name("rows");
            rows.emplace_back(name, type.with_lanes(static_cast<int>(count) * lanes));
            std::vector<HExpr> loaded;
            for (size_t row = 0; row < count; row++) {
                const HExpr start = make_const(H::Int(32), static_cast<int64_t>(row) * lanes);
                inside.push_back(Store::make(name, stored(stores[i + row]), Variable::make(H::Int(32), lane) + start, Halide::Parameter(), const_true(), ModulusRemainder()));
                loaded.push_back(Load::make(type.with_lanes(lanes), name, Ramp::make(start, make_one(H::Int(32)), lanes), H::Buffer<>(), Halide::Parameter(), const_true(lanes), ModulusRemainder()));
            }
            const int all = static_cast<int>(count) * lanes;
            const HExpr to = Ramp::make(at_lane(stores[i], 0), make_one(H::Int(32)), all);
            after.push_back(Store::make(stores[i].buffer, Shuffle::make_interleave(loaded), to, addresses.origin(stores[i].buffer), const_true(all), ModulusRemainder()));
            i += count;
        }
        values.leave_lanes();
        if (shared.empty() && rows.empty()) return {};
        Stmt body = Block::make(inside);
        for (auto let = lets.rbegin(); let != lets.rend(); ++let) body = LetStmt::make(let->first, let->second, body);
        body = For::make(lane, 0, lanes, ForType::Vectorized, Partition::Never, DeviceAPI::None, body);
        for (const Stmt &s : after) body = Block::make(body, s);
        for (const auto &[name, type] : rows)
            body = Allocate::make(name, type.element_of(), MemoryType::Stack, {make_const(H::Int(32), type.lanes())}, const_true(), body);
        return {stores.size(), body};
    }

private:
    const Addresses &addresses;
    Values &values;
    std::vector<VectorStore> stores;
    std::vector<Expr> shared;  // operands first

    HExpr stored(const VectorStore &s) const { return name_shared(values.stored(s.value.type(), values.emit(s.value))); }

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
        for (const VectorStore &s : stores) count(s.value);
        for (const Expr &e : order)
            if (uses.at(e.get()) > 1) shared.push_back(e);
    }

    HExpr at_lane(const VectorStore &s, int lane) { return substitute(s.lane, make_const(H::Int(32), lane), values.position(s.buffer, s.index)); }

    // How many stores from the i-th on fill every so many-th element of one block; 0 where they do not.
    size_t interleaved(size_t i) {
        const HExpr start = at_lane(stores[i], 0);
        auto distance = as_const_int(simplify(at_lane(stores[i], 1) - start));
        if (!distance || *distance < 2 || *distance > most_interleaved || i + static_cast<size_t>(*distance) > stores.size()) return 0;
        for (int64_t row = 0; row < *distance; row++) {
            const VectorStore &s = stores[i + static_cast<size_t>(row)];
            auto is_at = [&](int lane) { return is_const(simplify(at_lane(s, lane) - start), row + lane * *distance); };
            if (s.buffer != stores[i].buffer || s.guard.defined() || !is_at(0) || !is_at(1) || !is_at(static_cast<int>(s.lanes) - 1)) return 0;
        }
        return static_cast<size_t>(*distance);
    }
};

}  // namespace

StoreRun store_run(const TileBody &body, size_t first, const Addresses &addresses, Values &values) { return Run(body, first, addresses, values).emit(); }

}  // namespace tessera::emit
