#include "algorithms/import/onnx/context.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "algorithms/functions/conversions.h"
#include "support/text/error.h"

namespace tessera::onnx {

void Context::refuse(const std::string &why, const std::string &remedy, const char *id) const {
    throw UserError(id, node.describe() + ": " + why, remedy);
}

const Value &Context::in(size_t i) const {
    if (!has(i)) refuse("its input " + std::to_string(i) + " is left out; the operator needs it.", "Check the exporter.", "onnx.input");
    return inputs_[i];
}

// Elements of a constant as integers.
static std::vector<int64_t> integers_of(const Array &array) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < array.size(); i++) {
        const Scalar s = array.get(i);
        values.push_back(is_float(s.type) ? static_cast<int64_t>(s.real) : s.integer);
    }
    return values;
}

std::vector<Expr> Context::integers(size_t i, const char *what) const {
    const Value &value = in(i);
    std::vector<Expr> all;
    if (value.is_constant())
        for (int64_t v : integers_of(*value.constant)) all.push_back(Expr(v));
    else if (value.is_known()) all = *value.known;
    else
        refuse(std::string("its ") + what + ", '" + node.inputs[i] + "', is computed from data; expected what follows from shapes.",
               "Give it as a constant (--bind).", "onnx.unknown");
    return all;
}

std::vector<int64_t> Context::numbers(size_t i, const char *what) const {
    std::vector<int64_t> all;
    for (const Expr &e : integers(i, what)) {
        const std::optional<int64_t> number = space.fixed(e);
        if (!number)
            refuse(std::string("its ") + what + ", '" + node.inputs[i] + "', depends on extents; expected numbers.",
                   "Fix the dims that it depends on (--shape).", "onnx.unknown");
        all.push_back(*number);
    }
    return all;
}

std::vector<double> Context::reals(size_t i, const char *what) const {
    const Value &value = in(i);
    if (value.is_constant()) return value.constant->values();
    const std::vector<int64_t> whole = numbers(i, what);
    return {whole.begin(), whole.end()};
}

std::vector<int64_t> Context::numbers(const char *attribute, size_t input, const std::vector<int64_t> &otherwise) const {
    if (has(input)) return numbers(input, attribute);
    return node.integers(attribute, otherwise);
}

int64_t Context::axis(int64_t number, int64_t rank) const {
    if (number < -rank || number >= rank)
        refuse("its axis " + std::to_string(number) + " is outside of " + std::to_string(rank) + " axes.", "Check the exporter.",
               "onnx.axis");
    return number < 0 ? number + rank : number;
}

std::vector<int64_t> Context::axes(std::vector<int64_t> numbers, int64_t rank) const {
    for (int64_t &n : numbers) n = axis(n, rank);
    return numbers;
}

int64_t Context::fixed(const Axis &a, const char *what) const {
    const std::optional<int64_t> number = space.fixed(a.extent);
    if (!number)
        refuse(std::string(what) + " is not known when the model is imported.", "Fix the dims that it depends on (--shape).",
               "onnx.extent");
    return *number;
}

Tile Context::tile(const Value &value) {
    const DType type = computed_as(value.dtype);
    if (value.is_known()) {
        std::vector<std::string> dims;
        std::vector<Axis> axes = value.axes;
        std::set<std::string> taken;
        for (Axis &a : axes) {
            if (a.dim.empty() && !a.extent.is_constant(1)) a.dim = space.dim(a.extent, taken).name;
            if (!a.dim.empty()) dims.push_back(a.dim), taken.insert(a.dim);
        }
        return Tile(&f, space.read_known(value.known, axes, value.dtype), dims);
    }
    if (!value.is_constant()) return value.tile;
    const Array &array = *value.constant;
    if (array.size() == 1) {
        const Scalar s = array.get(0);
        return Tile(&f, is_float(type) ? tessera::constant(type, s.real) : constant_int(type, s.integer), {});
    }
    return space.weight(value);
}

Tile Context::tile_in_order(const Value &value, const std::vector<int64_t> &order) {
    return value.is_constant() && value.constant->size() > 1 ? space.weight(value, order) : tile(value);
}

Tile Context::ordered(const Tile &tile, const std::vector<Tile> &operands) {
    const Tile *most = nullptr;
    for (const Tile &t : operands)
        if (!most || t.dims().size() > most->dims().size()) most = &t;
    std::vector<std::string> dims;
    auto has = [](const std::vector<std::string> &names, const std::string &name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const std::string &d : most->dims())
        if (has(tile.dims(), d)) dims.push_back(d);
    for (const std::string &d : tile.dims())
        if (!has(dims, d)) dims.push_back(d);
    return Tile(&tile.builder(), tile.value(), dims);
}

Tile Context::tile(const Value &value, DType type) { return cast(type, tile(value)); }

Axis Context::new_axis(const Expr &extent, const std::vector<Axis> &others) const {
    std::set<std::string> taken;
    for (const Axis &a : others) taken.insert(a.dim);
    return {space.simplified(extent), space.dim(extent, taken).name};
}

std::vector<Axis> Context::new_axes(const std::vector<Expr> &extents) const {
    std::vector<Axis> axes;
    for (const Expr &e : extents) axes.push_back(new_axis(e, axes));
    return axes;
}

Dim Context::dim(const Axis &a) const {
    require(!a.dim.empty(), "an axis along which a value varies");
    return f.dim_named(a.dim);
}

// A constant of several elements and known integers get the dims that their tiles have.
static std::vector<Axis> axes_of(Space &space, const Value &value) {
    if (!value.is_constant() && !value.is_known()) return value.axes;
    std::vector<Axis> axes = value.axes;
    if (value.is_constant() && value.constant->size() == 1) return axes;
    std::set<std::string> taken;
    for (Axis &a : axes) {
        if (a.extent.is_constant(1)) continue;
        a.dim = space.dim(a.extent, taken).name;
        taken.insert(a.dim);
    }
    return axes;
}

Tile Context::read(const Value &value, const std::vector<Expr> &at, const std::vector<Axis> &axes) {
    const Tile source = tile(value);
    const std::vector<Axis> own = axes_of(space, value);
    if (own.size() > at.size())
        refuse("'" + value.name + "' has " + std::to_string(own.size()) + " axes; expected " + std::to_string(at.size()) + ".",
               "Check the exporter.");
    std::map<std::string, Expr> index;
    for (size_t i = 0; i < own.size(); i++)
        if (!own[i].dim.empty()) index[own[i].dim] = own[i].extent.is_constant(1) ? Expr(0) : at[i];
    // In memory they lie as what is read does: the order of the dims that each of the source's uses.
    std::vector<std::string> dims;
    auto add = [&](const std::string &name) {
        if (!name.empty() && std::find(dims.begin(), dims.end(), name) == dims.end()) dims.push_back(name);
    };
    for (const std::string &d : source.dims()) {
        const auto at_dim = index.find(d);
        if (at_dim == index.end()) continue;
        std::set<std::string> used;
        walk(at_dim->second, [&](const Expr &e) {
            if (e.kind() == ExprKind::variable) used.insert(e->name);
        });
        for (const Axis &a : axes)
            if (used.count(a.dim)) add(a.dim);
    }
    for (const Axis &a : axes) add(a.dim);
    return Tile(&f, substitute(source.value(), index), dims);
}

Tile Context::spread(const Value &value, std::vector<Axis> &axes) {
    axes = axes_of(space, value);
    const Tile source = tile(value);
    std::vector<std::string> dims = source.dims();
    for (Axis &a : axes)
        if (a.dim.empty()) {
            a = new_axis(a.extent, axes);
            dims.push_back(a.dim);
        }
    // In ONNX's order where the tile said nothing else.
    std::vector<std::string> ordered;
    if (dims.size() != source.dims().size())
        for (const Axis &a : axes) ordered.push_back(a.dim);
    return Tile(&f, source.value(), ordered.empty() ? dims : ordered);
}

std::vector<Tile> Context::broadcast(const std::vector<Value> &values, std::vector<Axis> &axes) {
    size_t rank = 0;
    for (const Value &v : values) rank = std::max(rank, v.axes.size());
    axes.assign(rank, {Expr(1), ""});
    std::vector<std::vector<Axis>> own;
    for (const Value &v : values) own.push_back(axes_of(space, v));
    // The largest first operand says which dims the result has, so that one of another order of memory keeps it.
    std::vector<size_t> order(values.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    auto dims_of = [&](size_t i) { return std::count_if(own[i].begin(), own[i].end(), [](const Axis &a) { return !a.dim.empty(); }); };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return dims_of(a) > dims_of(b); });
    for (size_t which : order)
        for (size_t i = 0; i < own[which].size(); i++) {
            Axis &all = axes[rank - own[which].size() + i];
            const Axis &one = own[which][i];
            if (one.extent.is_constant(1)) continue;
            if (all.extent.is_constant(1)) all.extent = one.extent;
            else if (!space.same(all.extent, one.extent))
                refuse("its operands do not broadcast: axis " + std::to_string(i) + " of '" + values[which].name + "' has " +
                           brief(one.extent) + " elements, another operand's " + brief(all.extent) + ".",
                       Context::equal_extents, "onnx.broadcast");
        }
    for (size_t which : order)
        for (size_t i = 0; i < own[which].size(); i++) {
            Axis &all = axes[rank - own[which].size() + i];
            const Axis &one = own[which][i];
            if (one.dim.empty() || one.extent.is_constant(1) || !all.dim.empty()) continue;
            const bool is_taken = std::any_of(axes.begin(), axes.end(), [&](const Axis &a) { return a.dim == one.dim; });
            all.dim = is_taken ? new_axis(all.extent, axes).dim : one.dim;
        }
    std::vector<Tile> tiles;
    for (size_t v = 0; v < values.size(); v++) {
        const size_t shift = rank - own[v].size();
        const Tile source = tile(values[v]);
        std::map<std::string, Expr> index;
        std::map<std::string, std::string> name;
        for (size_t i = 0; i < own[v].size(); i++) {
            if (own[v][i].dim.empty()) continue;
            const Axis &to = axes[shift + i];
            const bool is_one = own[v][i].extent.is_constant(1);
            index[own[v][i].dim] = is_one ? Expr(0) : variable(to.dim);
            name[own[v][i].dim] = is_one ? "" : to.dim;
        }
        std::vector<std::string> dims;
        bool changes = false;
        for (const std::string &d : source.dims()) {
            const auto to = name.find(d);
            const std::string now = to == name.end() ? d : to->second;
            changes |= now != d;
            if (!now.empty()) dims.push_back(now);
        }
        tiles.push_back(changes ? Tile(&f, substitute(source.value(), index), dims) : source);
    }
    return tiles;
}

Value Context::result(const Tile &tile, std::vector<Axis> axes, DType dtype) const {
    Value value;
    value.dtype = dtype;
    Tile kept = tile;
    const DType type = computed_as(dtype);
    if (dtype != type) kept = cast(type, cast(dtype, tile));
    else if (tile.dtype() != type) kept = cast(type, tile);
    value.tile = kept;
    for (Axis &a : axes) {
        a.extent = space.simplified(a.extent);
        if (!a.dim.empty() && std::find(kept.dims().begin(), kept.dims().end(), a.dim) == kept.dims().end()) a.dim.clear();
    }
    value.axes = std::move(axes);
    return value;
}

Tile Context::in_order(const Tile &tile, const std::vector<Axis> &axes) {
    std::vector<std::string> dims;
    for (const Axis &a : axes)
        if (std::find(tile.dims().begin(), tile.dims().end(), a.dim) != tile.dims().end()) dims.push_back(a.dim);
    return Tile(&tile.builder(), tile.value(), dims);
}

Value Context::with_axes(const Value &value, std::vector<Axis> axes) {
    Value made = value;
    made.axes = std::move(axes);
    if (value.constant) {
        Array array = *value.constant;
        array.extents.clear();
        for (const Axis &a : made.axes) array.extents.push_back(*space.number(a.extent));
        made.constant = std::make_shared<const Array>(std::move(array));
    }
    return made;
}

Value Context::by_channel(const Value &value, size_t rank) {
    std::vector<Axis> axes(rank, {Expr(1), ""});
    axes.at(1) = value.axes.at(0);
    return with_axes(value, std::move(axes));
}

Value Context::concatenated(const std::vector<Value> &parts, size_t axis) {
    std::vector<Expr> extents;
    for (const Axis &a : parts[0].axes) extents.push_back(a.extent);
    Expr all = 0;
    for (const Value &p : parts) {
        if (p.axes.size() != extents.size()) refuse("its inputs have different ranks.", "Check the exporter.");
        all = all + p.axes[axis].extent;
        for (size_t i = 0; i < extents.size(); i++)
            if (i != axis && !space.same(extents[i], p.axes[i].extent))
                refuse("axis " + std::to_string(i) + " of its inputs has " + brief(extents[i]) + " and " + brief(p.axes[i].extent) +
                           " elements.",
                       Context::equal_extents, "onnx.broadcast");
    }
    extents[axis] = all;
    // Dims as the first part has them, so that its order of memory stays.
    std::vector<Axis> axes;
    for (size_t i = 0; i < extents.size(); i++) axes.push_back(new_axis(extents[i], axes));
    Expr begin = 0;
    Expr value;
    std::vector<Expr> pieces, ends;
    for (const Value &p : parts) {
        std::vector<Expr> index;
        for (const Axis &a : axes) index.push_back(tessera::onnx::at(a));
        if (!axes[axis].dim.empty()) index[axis] = variable(axes[axis].dim) - begin;
        const Tile t = read(p, index, axes);
        const Expr next = begin + p.axes[axis].extent;
        pieces.push_back(t.value()), ends.push_back(next);
        begin = next;
    }
    const Expr along = variable(axes[axis].dim);
    for (size_t i = parts.size(); i-- > 0;) {
        const Expr from = i ? ends[i - 1] : Expr(0);
        if (parts[i].axes[axis].extent.is_constant(0)) continue;
        const Expr inside = i ? along >= space.simplified(from) && along < space.simplified(ends[i]) : along < space.simplified(ends[i]);
        const Expr guarded = parts.size() > 1 ? read_where(pieces[i], inside) : pieces[i];
        value = value.defined() ? select(along < space.simplified(ends[i]), guarded, value) : guarded;
    }
    if (!value.defined()) value = pieces[0];
    std::vector<std::string> dims;
    for (const Axis &a : axes) dims.push_back(a.dim);
    return result(Tile(&f, value, dims), axes, parts[0].dtype);
}

Value Context::constant(Array array) const {
    Value value;
    value.dtype = array.dtype;
    for (int64_t e : array.extents) value.axes.push_back({Expr(e), ""});
    value.constant = std::make_shared<const Array>(std::move(array));
    return value;
}

Value Context::integers_value(std::vector<Expr> elements, const std::vector<int64_t> &extents, DType dtype) const {
    bool constants = true;
    for (Expr &e : elements) {
        e = space.simplified(e);
        constants &= e.is_constant();
    }
    if (constants) {
        Array array(dtype, extents);
        for (size_t i = 0; i < elements.size(); i++)
            array.set(static_cast<int64_t>(i), Scalar::of_integer(dtype, elements[i]->value.integer));
        return constant(std::move(array));
    }
    Value value;
    value.dtype = dtype;
    for (int64_t e : extents) value.axes.push_back({Expr(e), ""});
    value.known = std::make_shared<const std::vector<Expr>>(std::move(elements));
    return value;
}

std::string Context::stage_name() const {
    if (space.anonymous) {
        std::string name;
        for (char c : node.op) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        return space.fresh(name);
    }
    return space.fresh(node.outputs.empty() || node.outputs[0].empty() ? node.op : node.outputs[0]);
}

static bool is_stored_narrow(DType type) { return type == DType::u8 || type == DType::i8 || type == DType::f16 || type == DType::bf16; }

Tile Context::as_stored(const Tile &tile) {
    const Expr value = tile.value();
    if (value.kind() != ExprKind::cast || !is_stored_narrow(value->args[0].type())) return tile;
    return Tile(&tile.builder(), value->args[0], tile.dims());
}

Tile Context::as_stored(const Tile &tile, DType dtype) {
    const Tile narrow = as_stored(tile);
    return narrow.dtype() == dtype || !is_stored_narrow(dtype) ? narrow : cast(dtype, tile);
}

Value Context::kept(const Value &value) {
    Value made = value;
    if (!value.is_constant() && !value.is_known()) {
        made.tile = Tile(&f, space.resolved(value.tile.value()), value.tile.dims());
        made.tile = as_stored(made.tile, value.dtype).named(stage_name());
    }
    return made;
}

Value Context::settled(const Value &value) {
    if (value.is_constant() || value.is_known()) return value;
    Expr e = value.tile.value();
    while (e.kind() == ExprKind::cast) e = e->args[0];
    return e.kind() == ExprKind::load || e.is_constant() ? value : kept(value);
}

}  // namespace tessera::onnx
