#include "compiler/lower/body/fragment_body.h"

#include <algorithm>
#include <numeric>

#include "algorithms/index/prove.h"
#include "compiler/lower/body/point_values.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/context/team.h"
#include "compiler/lower/place/storage.h"
#include "compiler/tile/fragments.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// A variable over the positions of an axis of a fragment.
struct Axis {
    std::string name;
    int64_t count;
};

class FragmentTile {
public:
    FragmentTile(const FragmentStep &step, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names)
        : step_(step), family_(*step.family), lowering_(lowering), at_(at), scope_(scope), names_(names) {
        if (!is_by_warps(at.nest->step)) return;
        team_ = lowering.mapping->team(at);
        name_threads(*team_, lowering, scope_, names);
    }

    int64_t rows() const { return count(step_.fold.rows, family_.shape.m); }
    int64_t columns() const { return count(step_.fold.columns, family_.shape.n); }

    TileBody zeros() const {
        TileBody body;
        for (const Buffer &b : accumulators())
            body.push_back(tile_node(Move{whole(b), {}, fragment_extents(family_, FragmentRole::accumulator)}));
        return by_team(std::move(body));
    }

    // Between the grid and where the result is.
    TileBody results(bool is_store) {
        const Tensor &result = lowering_.results(at_.stage())[0];
        if (TileBody moves; move_grid([&](int64_t i, int64_t j) { return result_view(result, i, j); }, is_store, moves))
            return by_team(std::move(moves));
        if (team_) return results_of_warps(is_store);
        Buffer tile = value_buffer(lowering_, at_, scope_, ".near", family_.accumulator, names_);
        tile.space = lowering_.mapping->near_space(tile);
        TileBody moves;
        move_grid([&](int64_t i, int64_t j) { return std::optional(view_of_tile(tile, i, j)); }, is_store, moves);
        const bool guarded = store_is_guarded(scope_, result);
        TileBody copies =
            over_tile(lowering_, at_, scope_, names_, {}, guarded, [&](const Point &point, const Expr &lane, const Scope &inside) {
                const std::string &of = inside.at(result.name).buffer.name;
                const std::vector<Expr> near = tile_index(at_, inside, nullptr, point),
                                        far = result_index(lowering_, at_.stage(), inside, result, point);
                if (is_store) return tile_node(Compute{of, far, load(tile.name, tile.dtype, near), lane});
                const Expr all = lane.defined() ? lane : constant_int(DType::boolean, 1);
                return tile_node(Compute{tile.name, near, load_or(of, tile.dtype, far, all, constant(tile.dtype, 0)), Expr()});
            });
        TileBody body = is_store ? std::move(moves) : std::move(copies);
        append(body, is_store ? std::move(copies) : std::move(moves));
        return in_allocs({tile}, std::move(body));
    }

    TileBody step() {
        const bool holds_a = rows() <= columns();
        const FragmentRole held = holds_a ? FragmentRole::a : FragmentRole::b, other = holds_a ? FragmentRole::b : FragmentRole::a;
        const int64_t all_held = holds_a ? rows() : columns(), others = holds_a ? columns() : rows();
        std::vector<Buffer> holding;
        TileBody body;
        for (int64_t i = 0; i < all_held; i++) {
            holding.push_back(operand_buffer(held));
            append(body, take(held, i, holding.back()));
        }
        for (int64_t j = 0; j < others; j++) {
            const Buffer next = operand_buffer(other);
            TileBody steps = take(other, j, next);
            for (int64_t i = 0; i < all_held; i++) {
                const Buffer &sum = accumulators()[static_cast<size_t>(holds_a ? i * columns() + j : j * columns() + i)];
                const Buffer &own = holding[static_cast<size_t>(i)];
                steps.push_back(tile_node(
                    Fragment{family_.name, sum.name, holds_a ? own.name : next.name, holds_a ? next.name : own.name, this->team()}));
            }
            append(body, in_allocs({next}, std::move(steps)));
        }
        return by_team(in_allocs(holding, std::move(body)));
    }

private:
    const FragmentStep &step_;
    const Instruction &family_;
    const Lowering &lowering_;
    const Cursor &at_;
    Scope scope_;
    Names &names_;
    std::optional<Team> team_;  // of warps

    // Fragments along the dim: of a warp its part of the block's tile.
    int64_t count(const std::string &dim, int unit) const {
        const Expr &size = at_.pieces.at(dim).size;
        const int64_t parts = team_ ? team_->of(dim) : 1;
        require(size.is_constant() && size->value.integer % (unit * parts) == 0, "a register tile of fragments has whole ones");
        return size->value.integer / unit / parts;
    }

    // The warp; undefined where one thread has the tile.
    Expr team() const { return team_ ? variable(team_->thread) : Expr(); }
    BufferView whole(const Buffer &accumulator) const {
        return team_ ? fragment_of_warp(accumulator.name, team()) : BufferView(accumulator.name);
    }
    TileBody by_team(TileBody body) const { return team_ ? by_threads(*team_, std::move(body)) : body; }

    // The same where the result has not the place for whole fragments: by a tile in shared memory, which all threads of the warps copy.
    TileBody results_of_warps(bool is_store) const {
        const Tensor &result = lowering_.results(at_.stage())[0];
        const std::string &rows = step_.fold.rows, &columns = step_.fold.columns;
        Buffer tile{
            names_.unique(at_.stage().name + ".near"), family_.accumulator, {at_.pieces.at(rows).size, at_.pieces.at(columns).size}};
        tile.space = lowering_.mapping->near_space(tile);
        TileBody moves;
        move_grid([&](int64_t i, int64_t j) { return std::optional(view_of_tile(tile, i, j)); }, is_store, moves);
        // Neighbours copy along columns.
        StageNest nest = *at_.nest;
        nest.step = ElementStep{};
        int64_t threads = team_->threads * threads_of(family_.scope);
        for (const std::string &d : {columns, rows}) {
            const int64_t size = at_.pieces.at(d).size->value.integer, along = std::gcd(threads, size);
            nest.knobs.micro[d] = size / along, threads /= along;
        }
        Cursor at = at_;
        at.nest = &nest;
        const bool guarded = store_is_guarded(scope_, result);
        TileBody copies =
            over_tile(lowering_, at, scope_, names_, {}, guarded, [&](const Point &point, const Expr &lane, const Scope &inside) {
                const std::string &of = inside.at(result.name).buffer.name;
                std::vector<Expr> near;
                for (const std::string &d : {rows, columns}) near.push_back(simplify(point.at.at(d) - at_.pieces.at(d).lo, inside.facts));
                const std::vector<Expr> far = result_index(lowering_, at_.stage(), inside, result, point);
                if (is_store) return tile_node(Compute{of, far, load(tile.name, tile.dtype, near), lane});
                const Expr all = lane.defined() ? lane : constant_int(DType::boolean, 1);
                return tile_node(Compute{tile.name, near, load_or(of, tile.dtype, far, all, constant(tile.dtype, 0)), Expr()});
            });
        TileBody body = is_store ? by_team(std::move(moves)) : std::move(copies);
        append(body, is_store ? std::move(copies) : by_team(std::move(moves)));
        return in_allocs({tile}, std::move(body));
    }

    const std::vector<Buffer> &accumulators() const { return *at_.fold.accumulators; }

    // Where in the tile the fragment begins: that of a warp is in the warp's part.
    Expr begin(const std::string &dim, int64_t fragment, int unit) const {
        const Expr first = Expr(fragment * unit);
        return team_ && team_->of(dim) > 1 ? team_->digits.at(dim) * Expr(count(dim, unit) * unit) + first : first;
    }

    Expr along(const std::string &dim, int64_t fragment, int unit, const Expr &inside, const Scope &scope) const {
        return simplify(at_.pieces.at(dim).lo + begin(dim, fragment, unit) + inside, scope.facts);
    }

    Point corner() const {
        Point point;
        for (const std::string &d : at_.stage().dims) point.at[d] = at_.pieces.at(d).lo;
        return point;
    }

    // A view of the buffer whose element at those positions is at the index; nothing where its last axes are no rows side by side.
    std::optional<BufferView> view_of(const Stored &where, const std::vector<Expr> &index, const std::vector<Axis> &axes) const {
        Pieces variables;
        for (const Axis &a : axes) {
            Piece &all = variables[a.name];
            all.lo = Expr(0), all.size = all.max_size = Expr(a.count);
        }
        BufferView view(where.buffer.name, {}, std::vector<BufferView::Axis>(axes.size(), {0, Expr(0)}));
        std::vector<int64_t> box;
        for (size_t i = 0; i < index.size(); i++) {
            const std::optional<Affine> e = affine(index[i], variables);
            if (!e) return {};
            view.first.push_back(e->rest);
            for (size_t a = 0; a < axes.size(); a++) {
                const auto moved = e->coefficients.find(axes[a].name);
                if (moved == e->coefficients.end() || moved->second == 0) continue;
                if (!view.axes[a].step.is_constant(0)) return {};
                view.axes[a] = {i, Expr(moved->second)};
            }
        }
        for (const Axis &a : axes) box.push_back(a.count);
        const bool is_dense = where.buffer.space != Space::argument || where.padded;
        // Threads of a warp have elements of their own each, wherever these lie.
        return team_ || has_whole_rows(view, box, where.buffer, is_dense) ? std::optional(view) : std::nullopt;
    }

    static std::vector<Expr> variables_of(const std::vector<Axis> &axes, Scope &inside) {
        std::vector<Expr> all;
        for (const Axis &a : axes) inside.facts.set(a.name, Expr(0), Expr(a.count - 1)), all.push_back(variable(a.name));
        return all;
    }

    // The place in a tile of constant extents: rows of others may lie in the same sets of a cache, and outside of an argument.
    std::optional<BufferView> result_view(const Tensor &result, int64_t i, int64_t j) const {
        const Stored &where = scope_.at(result.name);
        for (const Expr &e : where.buffer.extents)
            if (!e.is_constant()) return {};
        if (store_is_guarded(scope_, result)) return {};
        Scope inside = scope_;
        const std::vector<Axis> axes = {{"%m", family_.shape.m}, {"%n", family_.shape.n}};
        const std::vector<Expr> by = variables_of(axes, inside);
        Point point = corner();
        point.at[step_.fold.rows] = along(step_.fold.rows, i, family_.shape.m, by[0], inside);
        point.at[step_.fold.columns] = along(step_.fold.columns, j, family_.shape.n, by[1], inside);
        return view_of(where, result_index(lowering_, at_.stage(), inside, result, point), axes);
    }

    BufferView view_of_tile(const Buffer &tile, int64_t i, int64_t j) const {
        require(tile.extents.size() == 2, "a register tile of fragments has rows and columns");
        return {tile.name,
                {begin(step_.fold.rows, i, family_.shape.m), begin(step_.fold.columns, j, family_.shape.n)},
                {{0, Expr(1)}, {1, Expr(1)}}};
    }

    bool move_grid(const std::function<std::optional<BufferView>(int64_t, int64_t)> &view_at, bool is_store, TileBody &moves) const {
        for (int64_t i = 0; i < rows(); i++)
            for (int64_t j = 0; j < columns(); j++) {
                const std::optional<BufferView> memory = view_at(i, j);
                if (!memory) return false;
                const BufferView own = whole(accumulators()[static_cast<size_t>(i * columns() + j)]);
                moves.push_back(tile_node(
                    Move{is_store ? *memory : own, is_store ? own : *memory, fragment_extents(family_, FragmentRole::accumulator)}));
            }
        return true;
    }

    Buffer operand_buffer(FragmentRole role) const {
        const std::string name = names_.unique(at_.stage().name + (role == FragmentRole::a ? ".a" : ".b"));
        Buffer b{name, fragment_type(family_, role), {}, Space::fragment};
        for (int64_t extent : fragment_extents(family_, role)) b.extents.push_back(Expr(extent));
        return b;
    }

    // The point of the operand's element at those positions of its layout.
    Point point_of(FragmentRole role, int64_t fragment, const std::vector<Expr> &by, const Scope &inside) const {
        const bool is_a = role == FragmentRole::a;
        Expr own = 0, folded = 0;
        const std::vector<LayoutAxis> &layout = is_a ? family_.a : family_.b;
        for (size_t i = 0; i < layout.size(); i++) {
            Expr &e = layout[i].dim == "K" ? folded : own;
            e = e + by[i] * Expr(layout[i].step());
        }
        Point point = corner();
        const std::string &dim = is_a ? step_.fold.rows : step_.fold.columns;
        point.at[dim] = along(dim, fragment, is_a ? family_.shape.m : family_.shape.n, own, inside);
        point.at[step_.fold.folded] = simplify(at_.pieces.at(step_.fold.folded).lo + folded, inside.facts);
        return point;
    }

    // Where the operand lies as the family has it, and may be read. What lies past a limit has to be zeros, as it is in an argument that
    // was packed ahead of time.
    std::optional<BufferView> operand_view(FragmentRole role, int64_t fragment, const std::vector<Axis> &axes) const {
        const Expr &operand = role == FragmentRole::a ? step_.fold.a : step_.fold.b;
        const Stored *where = operand.kind() == ExprKind::load ? scope_.find(operand->name) : nullptr;
        if (!where || (at_.fold.group_limit.defined() && !where->padded)) return {};
        Scope inside = scope_;
        const std::vector<Expr> by = variables_of(axes, inside);
        const Expr located = evaluate(lowering_, at_, inside, operand, point_of(role, fragment, by, inside));
        if (located.kind() != ExprKind::load || located->guarded) return {};
        const std::vector<Expr> index = index_of(located);
        if (at_.fold.group_limit.defined())
            for (size_t i = 0; i < index.size(); i++)
                if (!prove(index[i] < where->buffer.extents[i], inside.facts)) return {};
        return view_of(*where, index, axes);
    }

    // A copy of the operand, with zeros past the limit: an axis in vectors, the axes inside of it written out.
    TileBody copy(FragmentRole role, int64_t fragment, const std::vector<Axis> &axes, const Buffer &to) const {
        constexpr int64_t least_lanes = 8;
        size_t lanes = axes.size() - 1;
        while (lanes > 0 && axes[lanes].count < least_lanes) lanes--;
        const std::vector<LayoutAxis> &layout = role == FragmentRole::a ? family_.a : family_.b;
        const std::string &own = role == FragmentRole::a ? step_.fold.rows : step_.fold.columns;
        Scope inside = scope_;
        std::vector<Axis> named;
        for (const Axis &a : axes) named.push_back({names_.unique(to.name + "." + a.name.substr(1)), a.count});
        const std::vector<Expr> by = variables_of(named, inside);
        Point point = point_of(role, fragment, by, inside);
        const bool is_vector = layout[lanes].factor == 0;
        if (is_vector) point.vector_dim = layout[lanes].dim == "K" ? step_.fold.folded : own;
        Cursor cut = at_;
        const Expr &limit = at_.fold.group_limit;
        Piece &folded = cut.pieces[step_.fold.folded];
        folded.size = folded.max_size = Expr(family_.shape.k);
        if (limit.defined()) folded.padded = true, folded.limit = limit, folded.since = inside.depth + 1;
        Expr value = evaluate(lowering_, cut, inside, role == FragmentRole::a ? step_.fold.a : step_.fold.b, point);
        if (limit.defined()) value = select(simplify(point.at[step_.fold.folded] < limit, inside.facts), value, constant(to.dtype, 0));
        TileBody body = {tile_node(Compute{to.name, by, value, Expr()})};
        body = in_loop(named[lanes].name, Expr(named[lanes].count), is_vector ? LoopKind::vector : LoopKind::serial, std::move(body));
        for (size_t i = axes.size(); i-- > 0;)
            if (i != lanes)
                body = in_loop(named[i].name, Expr(named[i].count), i > lanes ? LoopKind::unrolled : LoopKind::serial, std::move(body));
        return body;
    }

    TileBody take(FragmentRole role, int64_t fragment, const Buffer &to) const {
        const std::vector<int64_t> box = fragment_extents(family_, role);
        std::vector<Axis> axes;
        for (size_t i = 0; i < box.size(); i++) axes.push_back({"%" + std::to_string(i), box[i]});
        if (const std::optional<BufferView> view = operand_view(role, fragment, axes)) return {tile_node(Move{to.name, *view, box})};
        if (team_)
            throw UserError("schedule.instruction",
                            at_.stage().name + ": warps load fragments of the instruction family " + family_.name +
                                " from shared memory, one element of a tensor for each of the fragment's; expected (" +
                                brief(role == FragmentRole::a ? step_.fold.a : step_.fold.b) +
                                ") to be packed at 'k', in the order of its dims. Pack it there, without a layout.");
        Buffer near = to;
        near.name = names_.unique(to.name + ".near"), near.space = Space::stack;
        TileBody body = copy(role, fragment, axes, near);
        BufferView all(near.name, std::vector<Expr>(box.size(), Expr(0)), {});
        for (size_t i = 0; i < box.size(); i++) all.axes.push_back({i, Expr(1)});
        body.push_back(tile_node(Move{to.name, all, box}));
        return in_allocs({near}, std::move(body));
    }
};

}  // namespace

std::vector<Buffer> fragment_accumulators(const FragmentStep &step, const Cursor &at, Names &names) {
    const Instruction &family = *step.family;
    std::vector<Buffer> grid;
    int64_t rows = at.pieces.at(step.fold.rows).size->value.integer / family.shape.m;
    int64_t columns = at.pieces.at(step.fold.columns).size->value.integer / family.shape.n;
    std::vector<Expr> extents = {Expr(family.shape.m), Expr(family.shape.n)};
    if (is_by_warps(at.nest->step)) {
        const Team team = team_of(at);
        rows /= team.of(step.fold.rows), columns /= team.of(step.fold.columns);
        extents.insert(extents.begin(), Expr(team.threads));
    }
    for (int64_t i = 0; i < rows * columns; i++)
        grid.push_back({names.unique(at.stage().name + ".sum"), family.accumulator, extents, Space::fragment});
    return grid;
}

TileBody begin_fragments(const FragmentStep &step, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    FragmentTile tile(step, lowering, at, scope, names);
    if (at.fold.resumes) return tile.results(false);
    if (at.fold.earlier.empty()) return tile.zeros();
    Expr is_first = constant_int(DType::boolean, 1);
    for (const Expr &v : at.fold.earlier) is_first = is_first && v == Expr(0);
    return in_guard(is_first, tile.zeros(), tile.results(false));
}

TileBody fragment_step(const FragmentStep &step, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    require(at.fold.group > 1, "a fold by fragments ends with the loop over their products");
    return FragmentTile(step, lowering, at, scope, names).step();
}

TileBody write_fragments(const FragmentStep &step, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    return FragmentTile(step, lowering, at, scope, names).results(true);
}

}  // namespace tessera
