#include "algorithms/build/builder.h"

#include <algorithm>

#include "algorithms/build/argument.h"
#include "algorithms/expr/number.h"
#include "algorithms/functions/conversions.h"
#include "algorithms/index/prove.h"
#include "algorithms/transform/licensed.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"

namespace tessera {

static bool contains(const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

Tile::Tile(Builder *builder, Expr value, std::vector<std::string> dims)
    : builder_(builder), value_(std::move(value)), dims_(std::move(dims)), span_(SpanScope::current()) {}

std::string Tile::describe() const {
    if (!value_.defined()) return "nothing";
    return (value_.kind() == ExprKind::load ? value_->name : brief(value_, 40)) + "[" + (dims_.empty() ? "" : join(dims_)) + "]";
}

const Tile &Tile::defined() const {
    if (!builder_ || !value_.defined())
        throw UserError("algorithm.tile", std::string("a tile ") +
                                              (builder_ ? "without a value, an undefined expression," : "that no builder made") +
                                              " is used; expected one of a Builder, such as an input, or a result of tile functions.");
    return *this;
}

static std::vector<Expr> variables_of(const std::vector<std::string> &dims) {
    std::vector<Expr> variables;
    for (const std::string &d : dims) variables.push_back(variable(d));
    return variables;
}

static Expr load_in(const Tile &tile) { return load_in(tile.value(), tile.builder().numerics()); }

// Whether a tile is a tensor or stage as it is: its load is at the indices of its dims, in their order, and those are all of its dims.
static bool is_whole(const Tile &tile) {
    const Expr v = load_in(tile);
    if (v.kind() != ExprKind::load || v->guarded) return false;
    bool as_it_lies = v->args.size() == tile.dims().size();
    for (size_t i = 0; i < v->args.size() && as_it_lies; i++)
        as_it_lies = v->args[i].kind() == ExprKind::variable && v->args[i]->name == tile.dims()[i];
    if (as_it_lies) return true;
    const Stage *stage = defining_stage(tile.builder().algorithm(), v->name);
    if (!stage || stage->rows.empty()) return false;
    return std::ranges::any_of(results_of(*stage), [&](const Tensor &t) {
        return t.name == v->name && point_dims(*stage, t) == tile.dims() && reads_element(v, element_of(*stage, variables_of(tile.dims())));
    });
}

Tile Tile::named(const std::string &name, Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    const Expr &v = defined().value_;
    // A tile that is just a nameless fold gives the fold its name.
    if (v.kind() == ExprKind::load && builder_->anonymous_.count(v->name) && is_whole(*this)) {
        const Stage *stage = builder_->algorithm_.find_stage(v->name);
        if (stage && results_of(*stage).size() == 1) {
            const bool is_flat = builder_->keeper(*this);
            const Tile renamed = builder_->rename_stage(v->name, builder_->scoped(name));
            return is_flat ? flat(renamed) : renamed;
        }
    }
    return builder_->make_stage(name, *this);
}

Tile Tile::at(const std::map<std::string, Expr> &index, std::vector<std::string> dims, Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    for (auto &[dim, e] : index)
        if (!contains(dims_, dim))
            throw UserError("shape.unknown-dim", describe() + ": it has no dim '" + dim + "' to read at another index; its dims are " +
                                                     join(dims_) + "." + did_you_mean(dim, dims_));
    return Tile(builder_, substitute(value(), index), std::move(dims));
}

Builder::Builder(std::string name, Numerics numerics) {
    algorithm_.name = std::move(name);
    algorithm_.numerics = std::move(numerics);
}

static bool same(const Dim &a, const Dim &b) {
    return a.kind == b.kind && a.value == b.value && equal(a.size, b.size) && a.multiple_of == b.multiple_of && a.min == b.min &&
           a.max == b.max && a.equals == b.equals;
}

Dim Builder::dim(const Dim &d, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (const Dim *known = algorithm_.find_dim(d.name)) {
        if (!same(*known, d))
            throw UserError("algorithm.dim", algorithm_.name + ": dim '" + d.name +
                                                 "' is declared twice with different meanings; "
                                                 "give the second another name.");
        return *known;
    }
    algorithm_.dims.push_back(d);
    algorithm_.dims.back().span = SpanScope::current();
    return d;
}

Dim Builder::dim(const std::string &name, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return dim(symbolic_dim(name));
}
Dim Builder::dim(const std::string &name, int64_t value, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return dim(fixed_dim(name, value));
}

Dim Builder::dim_named(const std::string &name, Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    if (const Dim *known = algorithm_.find_dim(name)) return *known;
    const std::vector<std::string> names = names_of(algorithm_.dims);
    throw UserError("algorithm.unknown-dim", algorithm_.name + ": there is no dim '" + name + "'; the dims are " + join(names) + "." +
                                                 did_you_mean(name, names) + " dim(\"" + name + "\") declares one.");
}

bool Builder::flushes(DType type) const {
    return algorithm_.numerics.denormals == Denormals::flushed && is_float(type) && traits_of(type).has_zero;
}

Expr Builder::kept(DType type, const Expr &value) const {
    const Numerics &n = algorithm_.numerics;
    // Nothing is lost in a cast to f32 or f64, as check(Numerics) wants it, or it rounds to nearest.
    const Expr e = is_float(type) && is_arithmetic(type) ? cast(type, value) : cast(type, value, n.rounding, n.saturate);
    if (!flushes(type)) return e;
    return is_arithmetic(type) ? flush_subnormals(e, type) : cast(type, flush_subnormals(cast(n.compute, e), type));
}

Tile Builder::stored(const Tensor &t) const { return in_compute_type(t, variables_of(t.dims), t.dims); }

Tile Builder::stored(const Stage &stage, const Tensor &result) const {
    const std::vector<std::string> dims = point_dims(stage, result);
    return in_compute_type(result, element_of(stage, variables_of(dims)), dims);
}

Tile Builder::in_compute_type(const Tensor &t, const std::vector<Expr> &index, const std::vector<std::string> &dims) const {
    Expr value = load(t.name, t.dtype, index);
    const bool is_operand = algorithm_.find_tensor(t.name);  // no result of a stage
    const DType compute = algorithm_.numerics.compute;
    if (!is_arithmetic(t.dtype)) value = cast(is_float(t.dtype) ? compute : DType::i32, value);
    else if (is_operand && t.dtype == algorithm_.numerics.storage && compute == DType::f64) value = cast(compute, value);
    if (is_operand && t.role != Role::constant && flushes(t.dtype)) value = flush_subnormals(value, t.dtype);
    return Tile(const_cast<Builder *>(this), value, dims);
}

Stage Builder::keeping_rows(Stage stage) const {
    for (const std::string &d : stage.dims)
        if (const auto it = segments_.find(d); it != segments_.end())
            stage.rows.push_back({d, it->second.flat.name, it->second.first(variable(it->second.parent.name))});
    return stage;
}

Expr Segments::first(const Expr &p) const { return cast(DType::index, load(made, DType::i32, {p})); }

Segments Builder::segments(const Tile &offsets, const Dim &parent, const Dim &flat, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (offsets.dims().size() != 1 || is_float(offsets.dtype()))
        throw UserError("shape.segments", algorithm_.name + ": the offsets " + offsets.describe() + " are " + name_of(offsets.dtype()) +
                                              " of rank " + std::to_string(offsets.dims().size()) +
                                              "; expected integers along one dim, of one more than |" + parent.name + "|.");
    dim(parent), dim(flat);
    const Expr given = load_in(offsets);
    const std::string base = given.kind() == ExprKind::load ? given->name : "offsets";
    const Expr clamped = max(min(cast(DType::index, offsets.value()), extent(flat.name)), Expr(0));
    const Dim along = dim_named(offsets.dims()[0]);
    const Tile made =
        scan(max_monoid(DType::i32), tile(cast(DType::i32, clamped), {along}), along).named(fresh(base + ".made").substr(prefix_.size()));
    return {load_in(made)->name, parent, flat};
}

Dim Builder::rows(const std::string &name, const Segments &segments, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Expr p = variable(segments.parent.name);
    const Dim made = dim(derived_dim(name, segments.first(p + 1) - segments.first(p)));
    segments_[name] = segments;
    return made;
}

Tile Tile::rows(const Dim &rows, Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    const auto it = defined().builder_->segments_.find(rows.name);
    if (it == builder_->segments_.end() || !contains(dims_, it->second.flat.name))
        throw UserError("shape.rows", describe() + ": it has no rows '" + rows.name + "': " +
                                          (it == builder_->segments_.end()
                                               ? "that dim is none of Builder::rows"
                                               : "they lie along '" + it->second.flat.name + "', and its dims are " + join(dims_)) +
                                          ".");
    const Segments &segments = it->second;
    const std::string &parent = segments.parent.name;
    std::vector<std::string> dims;
    for (const std::string &d : dims_) {
        if (d != segments.flat.name) {
            dims.push_back(d);
            continue;
        }
        if (!contains(dims_, parent)) dims.push_back(parent);
        dims.push_back(rows.name);
    }
    return at({{segments.flat.name, segments.first(variable(parent)) + variable(rows.name)}}, std::move(dims));
}

Tile flat(const Tile &tile, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &builder = tile.builder();
    if (std::ranges::none_of(tile.dims(), [&](const std::string &d) { return builder.segments_.count(d) > 0; }))
        throw UserError("shape.rows", tile.describe() + ": none of its dims is over rows of segments (Builder::rows).");
    const Expr v = load_in(tile);
    const Stage *stage = is_whole(tile) ? builder.algorithm_.find_stage(v->name) : nullptr;
    if (!stage || stage->rows.empty()) {
        const Expr made = load_in(builder.make_stage(builder.fresh("flat").substr(builder.prefix_.size()), tile));
        builder.anonymous_.insert(made->name);
        stage = builder.algorithm_.find_stage(made->name);
    }
    return builder.stored(results_of(*stage)[0]);
}

const Stage *Builder::keeper(const Tile &tile) const {
    const Expr v = load_in(tile);
    if (v.kind() != ExprKind::load || v->guarded) return nullptr;
    const Stage *stage = algorithm_.find_stage(v->name);
    return stage && !stage->rows.empty() && results_of(*stage).size() == 1 && results_of(*stage)[0].dims == tile.dims() && is_whole(tile)
               ? stage
               : nullptr;
}

static Tensor tensor(const std::string &name, DType dtype, const std::vector<Dim> &dims, Role role) {
    Tensor t;
    t.name = name, t.dtype = dtype, t.dims = names_of(dims), t.role = role, t.span = SpanScope::current();
    return t;
}

Tile Builder::input(const std::string &name, const std::vector<Dim> &dims, std::optional<DType> dtype, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    for (const Dim &d : dims) dim(d);
    algorithm_.tensors.push_back(tensor(name, dtype.value_or(algorithm_.numerics.storage), dims, Role::input));
    return stored(algorithm_.tensors.back());
}

Tile Builder::state(const std::string &name, const std::vector<Dim> &dims, std::optional<DType> dtype, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    for (const Dim &d : dims) dim(d);
    algorithm_.tensors.push_back(tensor(name, dtype.value_or(algorithm_.numerics.state_type()), dims, Role::state));
    return stored(algorithm_.tensors.back());
}

Tile Builder::parameter(const std::string &name, DType dtype, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    algorithm_.parameters.push_back({name, dtype});
    return Tile(this, tessera::parameter(name, dtype), {});
}

Tile Builder::parameter(const std::string &name, DType dtype, const LowerEnd &least, const UpperEnd &most, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Tile tile = parameter(name, dtype);
    algorithm_.parameters.back().range = parameter_range(algorithm_.name + ", parameter '" + name + "'", dtype, least, most);
    return tile;
}

Tile Builder::constant(const std::string &name, const std::vector<Dim> &dims, const std::vector<double> &values, std::optional<DType> dtype,
                       Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    for (const Dim &d : dims) dim(d);
    Tensor t = tensor(name, dtype.value_or(algorithm_.numerics.storage), dims, Role::constant);
    for (double v : values) t.values.push_back(number(algorithm_.name + ": the table '" + name + "'", t.dtype, v)->value);
    algorithm_.tensors.push_back(t);
    return stored(t);
}

Tile Builder::index(const Dim &d, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return Tile(this, variable(dim(d).name), {d.name});
}
Tile Builder::scalar(DType dtype, double value, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return Tile(this, number(algorithm_.name + ": a scalar", dtype, value), {});
}

Tile Builder::tile(Expr value, const std::vector<Dim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    for (const Dim &d : dims) dim(d);
    return Tile(this, std::move(value), names_of(dims));
}

std::string Builder::fresh(const std::string &base) {
    std::string name = scoped(base);
    for (int n = 2; algorithm_.find_stage(name) || algorithm_.find_tensor(name); n++) name = scoped(base + std::to_string(n));
    return name;
}

Tile Builder::make_stage(const std::string &name, const Tile &tile, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Stage stage = keeping_rows({scoped(name), tile.dims(), Map(tile.value()), {}, SpanScope::current()});
    algorithm_.steps.emplace_back(stage);
    return stored(stage, results_of(stage)[0]);
}

Tile Builder::rename_stage(const std::string &from, const std::string &to) {
    if (from != to && (algorithm_.find_stage(to) || algorithm_.find_tensor(to)))
        throw UserError("algorithm.name",
                        algorithm_.name + ": there is already a stage or tensor '" + to +
                            "'; choose another name, or hold a scope() while one of the two is made, if tile functions name their stages.");
    auto rename = [&](const Expr &e) {
        return rewrite(e, [&](const Expr &n) -> Expr {
            return n.kind() == ExprKind::load && n->name == from && !n->guarded ? load(to, n.type(), n->args) : Expr();
        });
    };
    Tile result;
    // Only those behind it read it, and mostly it is the last one.
    for (auto step = algorithm_.steps.rbegin(); step != algorithm_.steps.rend() && !result; ++step) {
        auto *stage = std::get_if<Stage>(&*step);
        if (!stage) continue;
        *stage = map_expressions(std::move(*stage), rename);
        if (stage->name == from) stage->name = to, result = stored(*stage, results_of(*stage)[0]);
    }
    anonymous_.erase(from);
    return result;
}

// A load, at whatever indices: nothing that would be computed again.
static bool is_load(const Tile &tile) {
    const Expr v = load_in(tile);
    return v.kind() == ExprKind::load;
}

// Integers that are made of indices, extents and parameters: a position. It costs less to compute than to read.
static bool is_position(const Tile &tile) {
    bool integers = true;
    walk(tile.value(), [&](const Expr &n) { integers &= !is_float(n.type()) && n.kind() != ExprKind::load; });
    return integers;
}

// An operand that a fold would compute again for every point of dims that it does not have becomes a stage.
Tile Builder::materialized(const Tile &tile, const std::string &name) {
    if (is_load(tile) || is_position(tile) || tile.value().is_constant() || tile.dims().empty()) return tile;
    const std::string full = fresh(name);
    const SpanScope line(tile.span() ? tile.span() : SpanScope::current());
    return make_stage(full.substr(prefix_.size()), tile);
}

static std::vector<std::string> dims_of_all(const std::vector<Tile> &tiles) {
    std::vector<std::string> all;
    for (const Tile &t : tiles)
        for (const std::string &d : t.dims())
            if (!contains(all, d)) all.push_back(d);
    return all;
}

// The inputs of a fold over points of `dims`.
std::vector<Expr> Builder::operands(const Monoid &monoid, const std::vector<Tile> &inputs, const std::vector<std::string> &dims) {
    std::vector<Expr> values;
    for (size_t i = 0; i < std::max(inputs.size(), monoid.inputs.size()); i++) {
        const bool is_wanted = i < monoid.inputs.size(), is_there = i < inputs.size();
        if (!is_wanted || !is_there || inputs[i].dtype() != monoid.inputs[i])
            throw UserError("shape.type", algorithm_.name + ": " + monoid.name + " wants operand " + std::to_string(i) + " as " +
                                              (is_wanted ? name_of(monoid.inputs[i]) : "nothing") + ", got " +
                                              (is_there ? name_of(inputs[i].dtype()) + (" " + inputs[i].describe()) : "nothing") +
                                              (is_wanted && is_there ? "; convert with cast."
                                                                     : "; it takes " + std::to_string(monoid.inputs.size()) + "."));
        const bool recomputed = inputs[i].dims().size() < dims.size();
        values.push_back((recomputed ? materialized(inputs[i], monoid.name + "_operand") : inputs[i]).value());
    }
    return values;
}

Expr Builder::rounded_operand(const Expr &value) {
    const Multiply multiply = algorithm_.numerics.multiply;
    const Expr rounded = as_operand(value, multiply);
    const Expr &of = value.kind() == ExprKind::cast ? value->args[0] : value;
    const bool is_element = of.kind() == ExprKind::load && !of->guarded && !of->args.empty();
    if (multiply != Multiply::bf16 || !is_element || equal(rounded, value)) return rounded;
    const Tensor *declared = algorithm_.find_tensor(of->name);
    if (declared && declared->role == Role::state) return rounded;  // it may be written before it is read again
    const std::string name = of->name + "_bf16";
    std::vector<Expr> all;
    const std::vector<std::string> dims = dims_of(of->name);
    for (const std::string &d : dims) all.push_back(variable(d));
    const Expr element = cast(DType::bf16, cast(DType::f32, load(of->name, of.type(), all)));
    const Stage *same = algorithm_.find_stage(name);
    const auto *map = same ? std::get_if<Map>(&same->body) : nullptr;
    if (same ? !map || !equal(map->values[0].value, element) : algorithm_.find_tensor(name) != nullptr) return rounded;
    if (!same) algorithm_.steps.emplace_back(Stage{name, dims, Map(element), {}, SpanScope::current()});
    return cast(DType::f32, load(name, DType::bf16, of->args));
}

// A stage that takes the name of the first tile that is named after it.
std::vector<Tile> Builder::make_fold(const Stage &made) {
    Stage stage = map_monoid(keeping_rows(made), [&](const Monoid &m) { return with_identity_of_elements(m, inputs_of(made)); });
    stage.span = SpanScope::current();
    algorithm_.steps.emplace_back(stage);
    anonymous_.insert(stage.name);
    std::vector<Tile> parts;
    for (const Tensor &t : results_of(stage)) parts.push_back(stored(stage, t));
    return parts;
}

// What a function that gives one tile can take.
static void check_one_part(const std::string &algorithm, const std::string &function, const Monoid &monoid) {
    if (monoid.parts.size() == 1) return;
    std::vector<std::string> names;
    for (const Part &p : monoid.parts) names.push_back(p.name);
    throw UserError("algorithm.parts", algorithm + ": " + function + " by '" + monoid.name + "': expected a monoid of one part, got " +
                                           std::to_string(names.size()) + ": " + join(names) + "; " + function +
                                           "_parts gives a tile for each.");
}

std::vector<Tile> Builder::fold(const Monoid &monoid, const std::vector<Tile> &inputs, const std::vector<std::string> &over,
                                const Tile &where, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const std::vector<std::string> all = dims_of_all(inputs);
    for (const std::string &d : over)
        if (!contains(all, d) && !inputs.empty())
            throw UserError("shape.fold", algorithm_.name + ": " + monoid.name + " cannot fold over '" + d +
                                              "': no operand has that dim; " + inputs[0].describe() + " has " + join(inputs[0].dims()) +
                                              "." + did_you_mean(d, all));
    std::vector<std::string> extra;
    for (const Part &p : monoid.parts) extra.insert(extra.end(), p.dims.begin(), p.dims.end());
    std::vector<std::string> dims;
    for (const std::string &d : all)
        if (!contains(over, d) && !contains(extra, d)) dims.push_back(d);
    std::vector<Expr> values = operands(monoid, inputs, all);
    if (monoid.name == "dot")
        for (Expr &value : values) value = rounded_operand(value);
    return make_fold({fresh(monoid.name), dims, Reduce{monoid, over, std::move(values), where ? where.value() : Expr(), {}}});
}

// Where a segment begins, from the segments' ids: at the first element, and where the id differs from that of the element
// before in the scan's direction.
static Expr begins_segment(const Expr &ids, const std::string &along, ScanDirection direction) {
    bool forward = direction == ScanDirection::forward;
    Expr here = variable(along), before = forward ? here - 1 : here + 1;
    Expr inside = forward ? here >= 1 : before < extent(along);
    return !inside || ids != read_where(substitute(ids, {{along, before}}), inside);
}

std::vector<Tile> Builder::scan_parts(const Monoid &monoid, const std::vector<Tile> &inputs, const Dim &along, bool inclusive,
                                      ScanDirection direction, const Tile &segments, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const std::vector<std::string> dims = dims_of_all(inputs);
    const std::string scanned = inputs.empty() ? "nothing" : inputs[0].describe();
    if (!contains(dims, along.name))
        throw UserError("shape.fold",
                        algorithm_.name + ": a scan along '" + along.name + "' needs that dim; " + scanned + " has " + join(dims) + ".");
    Scan scan;
    scan.monoid = monoid, scan.dim = along.name, scan.inclusive = inclusive, scan.direction = direction;
    scan.inputs = operands(monoid, inputs, dims);
    if (segments) {
        const Expr where = segments.value();
        for (const std::string &d : segments.dims())
            if (!contains(dims, d))
                throw UserError("shape.scan", algorithm_.name + ": the segments " + segments.describe() + " of a scan have the dim '" + d +
                                                  "', which " + scanned + " lacks; broadcast the scanned tile.");
        if (is_float(where.type()))
            throw UserError("shape.type", algorithm_.name + ": the segments " + segments.describe() + " of a scan are " +
                                              name_of(where.type()) +
                                              "; give bool (an element begins a segment) or integers (its segment's id).");
        scan.segments = where.type() == DType::boolean ? where : begins_segment(where, along.name, direction);
    }
    return make_fold({fresh("scan"), dims, scan});
}

Tile Builder::scan(const Monoid &monoid, const Tile &input, const Dim &along, bool inclusive, ScanDirection direction, const Tile &segments,
                   Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    check_one_part(algorithm_.name, "scan", monoid);
    return scan_parts(monoid, {input}, along, inclusive, direction, segments)[0];
}

std::vector<Tile> Builder::scatter_parts(const Monoid &monoid, const std::vector<Tile> &inputs, const std::vector<Tile> &at,
                                         const std::vector<Dim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    for (const Dim &d : dims) dim(d);
    if (at.size() != dims.size())
        throw UserError("algorithm.scatter", algorithm_.name + ": scatter of " + (inputs.empty() ? "nothing" : inputs[0].describe()) +
                                                 " has " + std::to_string(at.size()) + " positions for a result of " +
                                                 std::to_string(dims.size()) + " dims; expected one for each of " + join(names_of(dims)) +
                                                 ".");
    std::vector<Tile> all = inputs;
    all.insert(all.end(), at.begin(), at.end());
    std::vector<std::string> points = dims_of_all(all);
    Reduce reduce{monoid, {}, operands(monoid, inputs, points), {}, {}};
    for (size_t i = 0; i < at.size(); i++) {
        const Expr position = cast(DType::index, at[i].value());
        reduce.at.push_back(position);
        if (position.kind() == ExprKind::variable && position->name == dims[i].name) std::erase(points, dims[i].name);
    }
    reduce.dims = std::move(points);
    return make_fold({fresh("scatter"), names_of(dims), reduce});
}

Tile Builder::scatter(const Monoid &monoid, const Tile &input, const std::vector<Tile> &at, const std::vector<Dim> &dims, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    check_one_part(algorithm_.name, "scatter", monoid);
    return scatter_parts(monoid, {input}, at, dims)[0];
}

void Builder::update(const std::string &name, const Tile &state, const std::vector<Tile> &index, const Tile &value, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Expr target = load_in(state);
    const Tensor *tensor = target.kind() == ExprKind::load ? algorithm_.find_tensor(target->name) : nullptr;
    if (!tensor || tensor->role != Role::state)
        throw UserError("algorithm.update",
                        algorithm_.name + "." + name + ": " + state.describe() + " is no state; declare it with state().");
    has_effect(Effect::memory, name, "updates the state '" + tensor->name + "'");
    Write to{tensor->name, {}};
    for (const Tile &t : index) to.index.push_back(cast(DType::index, t.value()));
    algorithm_.steps.emplace_back(
        Stage{scoped(name),
              value.dims(),
              Map(std::move(to), is_float(tensor->dtype) ? kept(tensor->dtype, value.value()) : cast(tensor->dtype, value.value())),
              {},
              SpanScope::current()});
}

Builder &Builder::output_in_place(const Tile &donated, const Tile &value, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Expr whole = load_in(donated);
    auto tensor = std::find_if(algorithm_.tensors.begin(), algorithm_.tensors.end(), [&](const Tensor &t) {
        return t.role == Role::input && whole.kind() == ExprKind::load && t.name == whole->name && t.dims == donated.dims();
    });
    if (tensor == algorithm_.tensors.end())
        throw UserError("algorithm.donate",
                        algorithm_.name + ": " + donated.describe() + " is no input as a whole; expected a tile that input() gave.");
    std::vector<std::string> dims = value.dims(), wanted = tensor->dims;
    std::sort(dims.begin(), dims.end()), std::sort(wanted.begin(), wanted.end());
    if (dims != wanted)
        throw UserError("algorithm.donate", algorithm_.name + ": the memory of '" + tensor->name + "' was to become " + value.describe() +
                                                "; expected a value over its dims " + join(tensor->dims) + ".");
    tensor->role = Role::state;
    std::vector<Tile> own;
    std::vector<Expr> index;
    for (const std::string &d : tensor->dims) own.push_back(this->index(dim_named(d))), index.push_back(variable(d));
    // A value that reads other elements is finished before the first one is written.
    bool reads_others = false;
    walk(value.value(), [&](const Expr &e) {
        reads_others |= e.kind() == ExprKind::load && e->name == tensor->name &&
                        !std::equal(e->args.begin(), e->args.end(), index.begin(), index.end(),
                                    [](const Expr &a, const Expr &b) { return equal(a, b); });
    });
    const std::string name = tensor->name;
    update(name + ".in_place", donated, own, reads_others ? make_stage(name + ".next", value) : value);
    return *this;
}

// The dims of a tensor, or of a result of what was declared so far.
std::vector<std::string> Builder::dims_of(const std::string &tensor) const {
    if (const Tensor *t = algorithm_.find_tensor(tensor)) return t->dims;
    // Mostly it is a result of what was declared last.
    for (auto step = algorithm_.steps.rbegin(); step != algorithm_.steps.rend(); ++step)
        for (const Tensor &t : std::visit([](const auto &s) { return results_of(s); }, *step))
            if (t.name == tensor) return t.dims;
    return {};
}

std::vector<Tile> Builder::call(const std::string &scope, const Algorithm &callee, const std::vector<Tile> &arguments,
                                const std::map<std::string, Tile> &parameters, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return bind(scope, callee, std::nullopt, arguments, parameters);
}

std::vector<Tile> Builder::repeat(const std::string &scope, const Algorithm &callee, const Repeat &rounds,
                                  const std::vector<Tile> &arguments, const std::map<std::string, Tile> &parameters, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    dim_named(rounds.dim);
    return bind(scope, callee, rounds, arguments, parameters);
}

std::vector<Tile> Builder::bind(const std::string &scope, const Algorithm &callee, const std::optional<Repeat> &rounds,
                                const std::vector<Tile> &arguments, const std::map<std::string, Tile> &parameters) {
    Call call;
    for (auto &[name, tile] : parameters) call.parameters[name] = tile.value();
    for (const Parameter &p : callee.parameters) {
        const auto it = call.parameters.find(p.name);
        if (it == call.parameters.end() || it->second.kind() != ExprKind::parameter) continue;
        for (Parameter &own : algorithm_.parameters)
            if (own.name == it->second->name && own.dtype == p.dtype && !own.range) own.range = p.range;
    }
    call.scope = scoped(scope);
    call.callee = std::make_shared<const Algorithm>(callee);
    call.repeat = rounds;
    call.span = SpanScope::current();
    size_t next = 0;
    const std::string subject = algorithm_.name + "." + scope + ": ";
    auto bind_dim = [&](const std::string &from, const std::string &to, const Tile &tile) {
        auto [it, fresh] = call.dims.emplace(from, to);
        if (!fresh && it->second != to)
            throw UserError("shape.call", subject + tile.describe() + " binds the callee's dim '" + from + "' to '" + to +
                                              "', and another argument binds it to '" + it->second + "'." +
                                              path_through_calls(callee, from, scope));
    };
    for (const Tensor &t : callee.tensors) {
        if (t.role == Role::constant) continue;
        if (next == arguments.size())
            throw UserError("shape.call", subject + callee.name + " wants more arguments; '" + t.name + "' is missing.");
        Tile tile = arguments[next++];
        std::vector<std::string> dims = tile.dims();
        if (rounds) std::erase(dims, rounds->dim);
        std::optional<View> view = view_of(load_in(tile), dims);
        if (!view) {  // what a round sees of the stage is one piece
            std::vector<std::string> order = dims;
            if (dims.size() < tile.dims().size()) order.insert(order.begin(), rounds->dim);
            tile = make_stage(fresh(scope + "_" + t.name).substr(prefix_.size()), Tile(this, tile.value(), order));
            view = view_of(load_in(tile), dims);
            if (!view) throw UserError("shape.call", subject + tile.describe() + " has a dim twice; rename one of them.");
        }
        if (dims.size() != t.dims.size())
            throw UserError("shape.call", subject + tile.describe() + " has rank " + std::to_string(dims.size()) +
                                              (dims.size() < tile.dims().size() ? " in one repetition" : "") + ", and '" + t.name +
                                              "' of " + callee.name + " has dims " + join(t.dims) + ".");
        for (size_t i = 0; i < t.dims.size(); i++) bind_dim(t.dims[i], dims[i], tile);
        const bool is_leading_part = view->index.empty() && dims_of(view->tensor) != dims;
        for (size_t i = 0; i < dims.size() && is_leading_part; i++) view->index.push_back(axis(i));
        call.tensors[t.name] = view.value();
    }
    if (next != arguments.size())
        throw UserError("shape.call", subject + callee.name + " takes " + std::to_string(next) + " arguments, got " +
                                          std::to_string(arguments.size()) + ".");
    for (const Effect e : effects_of(callee))
        has_effect(e, call.scope, "calls " + callee.name + ", which has the effect '" + name_of(e) + "'");
    algorithm_.steps.emplace_back(call);
    std::vector<Tile> results;
    for (const Tensor &t : results_of(call)) results.push_back(stored(t));
    return results;
}

bool Builder::name_result(const Tile &tile, const std::string &name) {
    const Expr &v = tile.value();
    if (v.kind() != ExprKind::load || !is_whole(tile)) return false;
    for (Call &call : algorithm_.calls())
        for (const std::string &output : call.callee->outputs) {
            if (name_of_result(call, output) != v->name || call.results.count(output)) continue;
            call.results[output] = renamed_[v->name] = name;
            return true;
        }
    return false;
}

// Whether the tile is the whole of a stage that has this name already.
static bool is_stage_of_name(const Algorithm &algorithm, const Tile &tile, const std::string &name) {
    const Expr &v = tile.value();
    if (v.kind() != ExprKind::load || v->name != name || !is_whole(tile)) return false;
    const Stage *stage = algorithm.find_stage(name);
    return stage && results_of(*stage).size() == 1 && !contains(algorithm.outputs, name);
}

Builder &Builder::output(const std::string &name, const Tile &tile, std::optional<DType> dtype, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    DType type = dtype.value_or(is_float(tile.dtype()) ? algorithm_.numerics.output_type() : tile.dtype());
    if (type == tile.dtype() && (is_stage_of_name(algorithm_, tile, scoped(name)) || name_result(tile, scoped(name)))) {
        algorithm_.outputs.push_back(scoped(name));
        return *this;
    }
    // What is flat is cast row by row, where it is computed.
    const Stage *keeper = type == tile.dtype() ? nullptr : this->keeper(tile);
    const Tile by_points = keeper ? stored(*keeper, results_of(*keeper)[0]) : tile;
    Tile cast_tile(this, kept(type, by_points.value()), by_points.dims());
    cast_tile.named(name);
    algorithm_.outputs.push_back(scoped(name));
    return *this;
}

Builder &Builder::large(const std::string &name) {
    algorithm_.large.insert(algorithm_.find_tensor(name) ? name : scoped(name));
    return *this;
}

Algorithm Builder::build(Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    auto last_name = [&](std::string name) {
        for (auto it = renamed_.find(name); it != renamed_.end(); it = renamed_.find(name)) name = it->second;
        return name;
    };
    Algorithm whole = map_expressions(algorithm_, [&](const Expr &e) {
        return rewrite(e, [&](const Expr &n) -> Expr {
            if (n.kind() != ExprKind::load || !renamed_.count(n->name)) return {};
            return load_of(last_name(n->name), n);
        });
    });
    for (Call &call : whole.calls())
        for (auto &[own, view] : call.tensors) view.tensor = last_name(view.tensor);
    whole = with_licences(std::move(whole));
    verify(whole);
    return whole;
}

Builder &Builder::verify_numerics(const std::string &stage, const NumericsCheck &check) {
    algorithm_.checks[stage] = check;
    return *this;
}

Builder &Builder::state_range(const std::string &input, double lowest, double highest) {
    algorithm_.stated_ranges[input] = {lowest, highest};
    return *this;
}

void Builder::has_effect(Effect effect, const std::string &subject, const std::string &what) {
    if (std::find(suspended_.begin(), suspended_.end(), effect) != suspended_.end())
        throw UserError("effects.suspended", algorithm_.name + (subject.empty() ? "" : "." + subject) + ": it " + what +
                                                 ", where a scope suspends the effect '" + name_of(effect) +
                                                 "'. Do it outside of the scope, or suspend less.");
    (effect == Effect::memory ? algorithm_.updates_state : algorithm_.draws) = true;
}

void Builder::draws(Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    has_effect(Effect::random, prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1), "draws random numbers");
}
Builder::Suspended Builder::suspend(const std::vector<Effect> &effects) { return Suspended(*this, effects); }

Builder::Scope Builder::scope(const std::string &prefix) { return Scope(*this, prefix); }

}  // namespace tessera
