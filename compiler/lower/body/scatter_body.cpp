#include "compiler/lower/body/scatter_body.h"

#include <algorithm>

#include "compiler/lower/context/built.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/place/storage.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class Scatter {
public:
    Scatter(const Lowering &lowering, const Cursor &at, Names &names)
        : lowering_(lowering), at_(at), names_(names), reduce_(std::get<Reduce>(at.stage().body)), results_(lowering.results(at.stage())) {}

    TileBody body(const Scope &scope);

private:
    // Where an element goes: what has to hold before its position may be read, and before a part of it has a name; the names; and that it
    // is inside.
    struct Destination {
        std::vector<Expr> before;  // one inside the other
        Expr is_inside;
        std::vector<Expr> position;
        std::vector<std::pair<std::string, Expr>> lets;
    };

    const Lowering &lowering_;
    const Cursor &at_;
    Names &names_;
    const Reduce &reduce_;
    const std::vector<Tensor> &results_;

    bool is_computed(size_t axis) const { return !is_spatial(at_.stage(), results_[0].dims[axis]); }
    std::vector<Expr> tests() const;
    void check() const;
    bool varies_in_tile() const;
    Destination destination(const Point &point, Scope &inside) const;
    TileBody steps(const Scope &scope, const Destination *known);
    Expr step_of(size_t part, const Point &point, const Expr &lane, const Scope &inside, const Destination &to) const;
    std::vector<Expr> index_of(size_t part, const Point &point, const Scope &inside, const Destination &to) const;
};

// What says where an element goes.
std::vector<Expr> Scatter::tests() const {
    std::vector<Expr> all;
    if (reduce_.where.defined()) all.push_back(reduce_.where);
    for (size_t i = 0; i < reduce_.at.size(); i++)
        if (is_computed(i)) all.push_back(reduce_.at[i]);
    return all;
}

void Scatter::check() const {
    const Stage &stage = at_.stage();
    for (const Part &part : reduce_.monoid.parts)
        if (!part.dims.empty())
            throw UserError("schedule.scatter", stage.name + ": a fold with a computed destination has parts of one element; the part '" +
                                                    part.name + "' of '" + reduce_.monoid.name + "' has the dims " + join(part.dims) + ".");
    for (const std::string &d : tile_dims(at_)) {
        if (!lanes_along(at_.nest->step, d)) continue;
        for (const Expr &e : tests())
            if (uses_variable(e, d))
                throw UserError("schedule.lanes",
                                stage.name + ": where its elements go depends on '" + d + "' (" + brief(e) +
                                    "), so lanes along it would go apart. Delete them (null); micro computes several points "
                                    "side by side.");
    }
}

// Whether points of a register tile go to positions of their own.
bool Scatter::varies_in_tile() const {
    const std::vector<std::string> dims = tile_dims(at_);
    const std::vector<Expr> all = tests();
    return std::any_of(dims.begin(), dims.end(), [&](const std::string &d) {
        return std::any_of(all.begin(), all.end(), [&](const Expr &e) { return uses_variable(e, d); });
    });
}

// An iteration that owns a tile of the destination takes what goes there: the position is the tile's first and a rest inside the tile, so
// that nobody has to prove that tiles are apart.
Scatter::Destination Scatter::destination(const Point &point, Scope &inside) const {
    Destination to{{}, constant_int(DType::boolean, 1), {}, {}};
    auto assume = [&](const Expr &condition) {
        const Expr known = simplify(condition, inside.facts);
        if (!known.is_constant()) inside.facts.assume(known);
        return known;
    };
    if (reduce_.where.defined()) to.before.push_back(assume(evaluate(lowering_, at_, inside, reduce_.where, point)));
    std::vector<Expr> rests;
    for (size_t i = 0; i < reduce_.at.size(); i++) {
        const std::string &d = results_[0].dims[i];
        if (!is_computed(i)) {
            to.position.push_back(Expr());
            continue;
        }
        const Expr position = evaluate(lowering_, at_, inside, reduce_.at[i], point);
        to.is_inside = to.is_inside && Expr(0) <= position && position < extent_of(lowering_, inside, d);
        to.position.push_back(position);
        auto tile = at_.pieces.find(d);
        if (tile == at_.pieces.end() || folds_over(at_.stage(), d)) continue;
        const std::string rest = names_.unique(lowering_.plain(d) + ".in");
        to.lets.emplace_back(rest, simplify(position - tile->second.lo, inside.facts));
        rests.push_back(Expr(0) <= variable(rest) && variable(rest) < tile->second.size);
        to.position.back() = tile->second.lo + variable(rest);
    }
    to.is_inside = assume(to.is_inside);
    if (rests.empty()) return to;
    to.before.push_back(to.is_inside);
    Expr all = rests[0];
    for (size_t i = 1; i < rests.size(); i++) all = all && rests[i];
    to.is_inside = assume(all);
    return to;
}

std::vector<Expr> Scatter::index_of(size_t part, const Point &point, const Scope &inside, const Destination &to) const {
    std::vector<Expr> index;
    for (size_t i = 0; i < to.position.size(); i++) index.push_back(is_computed(i) ? to.position[i] : point.at.at(results_[part].dims[i]));
    return locate(inside.at(results_[part].name), index, inside.facts);
}

Expr Scatter::step_of(size_t part, const Point &point, const Expr &lane, const Scope &inside, const Destination &to) const {
    const Monoid &m = reduce_.monoid;
    return rewrite(m.step[part], [&](const Expr &n) -> Expr {
        if (n.kind() == ExprKind::input) return evaluate(lowering_, at_, inside, reduce_.inputs[static_cast<size_t>(n->number)], point);
        if (n.kind() != ExprKind::left) return {};
        const auto old = static_cast<size_t>(n->number);
        return load_or(inside.at(results_[old].name).buffer.name, n.type(), index_of(old, point, inside, to),
                       lane.defined() ? lane : constant_int(DType::boolean, 1), constant(m.parts[old].identity));
    });
}

// What is done for an element, where it goes somewhere.
static TileBody guarded(const auto &to, TileBody body) {
    if (!to.is_inside.is_constant(1)) body = in_guard(to.is_inside, std::move(body));
    for (auto let = to.lets.rbegin(); let != to.lets.rend(); ++let) body = in_let(let->first, let->second, std::move(body));
    for (auto condition = to.before.rbegin(); condition != to.before.rend(); ++condition)
        if (!condition->is_constant(1)) body = in_guard(*condition, std::move(body));
    return body;
}

// Every part's new value is there before the first is stored, as they read one another.
TileBody Scatter::steps(const Scope &scope, const Destination *known) {
    const std::vector<size_t> &live = lowering_.facts(at_.stage()).live.stepped;
    const bool is_padded = any_padded(at_.pieces);
    std::vector<Buffer> next;
    auto over = [&](const auto &make) {
        return over_tile(lowering_, at_, scope, names_, {}, is_padded, [&](const Point &point, const Expr &lane, const Scope &around) {
            if (known) return make(point, lane, around, *known);
            Scope inside = around;
            const Destination to = destination(point, inside);
            TileBody body = guarded(to, {make(point, lane, inside, to)});
            return body.front();
        });
    };
    TileBody body;
    for (size_t p : live) {
        Buffer kept;
        if (live.size() > 1) {
            kept = value_buffer(lowering_, at_, scope, "." + reduce_.monoid.parts[p].name + ".next", results_[p].dtype, names_);
            kept.space = lowering_.mapping->register_space(kept);
            next.push_back(kept);
        }
        append(body, over([&](const Point &point, const Expr &lane, const Scope &inside, const Destination &to) {
                   const Expr value = step_of(p, point, lane, inside, to);
                   if (live.size() > 1) return tile_node(Compute{kept.name, tile_index(at_, inside, nullptr, point), value, lane});
                   return tile_node(Compute{inside.at(results_[p].name).buffer.name, index_of(p, point, inside, to), value, lane});
               }));
    }
    for (size_t i = 0; i < next.size(); i++)
        append(
            body, over([&](const Point &point, const Expr &lane, const Scope &inside, const Destination &to) {
                const Expr value = load(next[i].name, next[i].dtype, tile_index(at_, inside, nullptr, point));
                return tile_node(Compute{inside.at(results_[live[i]].name).buffer.name, index_of(live[i], point, inside, to), value, lane});
            }));
    return in_allocs(next, std::move(body));
}

TileBody Scatter::body(const Scope &scope) {
    check();
    // Threads of a block test by themselves, as do points that go apart.
    if (lowering_.mapping->team(at_) || varies_in_tile()) return steps(scope, nullptr);
    Scope inside = scope;
    const Destination to = destination({}, inside);
    return guarded(to, steps(inside, &to));
}

}  // namespace

TileBody scatter_body(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    return Scatter(lowering, at, names).body(scope);
}

}  // namespace tessera
