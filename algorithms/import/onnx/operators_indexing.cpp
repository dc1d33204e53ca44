// Operators that read and write at positions that data tells, choose elements, or sum over axes with names.
#include <algorithm>

#include "algorithms/build/indexing.h"
#include "algorithms/build/selection.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

std::vector<Expr> variables(const std::vector<Axis> &axes) {
    std::vector<Expr> all;
    for (const Axis &a : axes) all.push_back(at(a));
    return all;
}

// A position, which may count from the end, along an axis of n elements.
struct Found {
    Expr at;
    bool from_data = false;
};
Found position_of(Context &c, const Expr &read, const Expr &n) {
    const Expr position = c.space.resolved(read), own = c.space.as_index(position);
    if (own.defined()) return {c.space.simplified(select(own < Expr(0), own + n, own)), false};
    const Expr from_begin = select(position < constant_int(position.type(), 0), position + cast(position.type(), n), position);
    return {bounded(from_begin, Expr(0), n), true};
}

// x with the elements along an axis that `at` tells, whose axes stand in its place.
Value taken(Context &c, const Value &x, size_t axis, const Value &at) {
    std::vector<Expr> extents;
    for (size_t i = 0; i < axis; i++) extents.push_back(x.axes[i].extent);
    for (const Axis &a : at.axes) extents.push_back(a.extent);
    for (size_t i = axis + 1; i < x.axes.size(); i++) extents.push_back(x.axes[i].extent);
    const std::vector<Axis> result = c.new_axes(extents);
    const std::vector<Expr> to = variables(result);
    const auto begin = to.begin() + static_cast<int64_t>(axis), end = begin + at.rank();
    const Found found = position_of(c, c.read(at, {begin, end}, result).value(), x.axes[axis].extent);
    std::vector<Expr> index(to.begin(), begin);
    index.push_back(found.at);
    index.insert(index.end(), end, to.end());
    return c.result(c.read(found.from_data ? c.settled(x) : x, index, result), result, x.dtype);
}

std::vector<Value> gather_handler(Context &c) {
    const Value &x = c.in(0);
    return {taken(c, x, static_cast<size_t>(c.axis(c.node.integer("axis", 0), x.rank())), c.in(1))};
}

std::vector<Value> gather_elements(Context &c) {
    const Value &x = c.in(0), &at = c.in(1);
    if (at.rank() != x.rank()) c.refuse("its indices have another rank than its data.", "Check the exporter.");
    const auto axis = static_cast<size_t>(c.axis(c.node.integer("axis", 0), x.rank()));
    std::vector<Expr> extents;
    for (const Axis &a : at.axes) extents.push_back(a.extent);
    const std::vector<Axis> result = c.new_axes(extents);
    std::vector<Expr> index = variables(result);
    const Found found = position_of(c, c.read(at, index, result).value(), x.axes[axis].extent);
    index[axis] = found.at;
    return {c.result(c.read(found.from_data ? c.settled(x) : x, index, result), result, x.dtype)};
}

// How many positions an index of GatherND or ScatterND has, one for each axis of data.
size_t depth_of(Context &c, const Value &at, size_t most) {
    if (at.rank() == 0) c.refuse("its indices have no axes.", "Check the exporter.");
    const int64_t depth = c.fixed(at.axes.back(), "the number of positions in an index");
    if (depth < 0 || depth > static_cast<int64_t>(most))
        c.refuse("an index has " + std::to_string(depth) + " positions; there are " + std::to_string(most) + " axes.",
                 "Check the exporter.");
    return static_cast<size_t>(depth);
}

std::vector<Value> gather_nd(Context &c) {
    const Value &x = c.in(0), &at = c.in(1);
    const int64_t batch = c.node.integer("batch_dims", 0);
    if (batch < 0 || batch >= std::max<int64_t>(at.rank(), 1) || batch > x.rank())
        c.refuse("its batch_dims are " + std::to_string(batch) + ".", "Check the exporter.");
    const auto first = static_cast<size_t>(batch);
    const size_t depth = depth_of(c, at, x.axes.size() - first), outer = at.axes.size() - 1;
    std::vector<Expr> extents;
    for (size_t i = 0; i < outer; i++) extents.push_back(at.axes[i].extent);
    for (size_t i = first + depth; i < x.axes.size(); i++) extents.push_back(x.axes[i].extent);
    const std::vector<Axis> result = c.new_axes(extents);
    const std::vector<Expr> to = variables(result);
    std::vector<Expr> index(to.begin(), to.begin() + batch);
    bool from_data = false;
    for (size_t i = 0; i < depth; i++) {
        std::vector<Expr> where(to.begin(), to.begin() + static_cast<int64_t>(outer));
        where.push_back(Expr(static_cast<int64_t>(i)));
        const Found found = position_of(c, c.read(at, where, result).value(), x.axes[first + i].extent);
        index.push_back(found.at);
        from_data |= found.from_data;
    }
    index.insert(index.end(), to.begin() + static_cast<int64_t>(outer), to.end());
    return {c.result(c.read(from_data ? c.settled(x) : x, index, result), result, x.dtype)};
}

// x with updates combined into it at positions, one for each of its axes.
Value scattered(Context &c, const Value &x, const std::vector<Axis> &axes, const Tile &data, const Tile &updates,
                const std::vector<Tile> &at) {
    const std::string how = c.node.text("reduction", "none");
    const Tile whole = Context::in_order(data, axes);
    if (how == "none") return c.result(replace_at(whole, updates, at), axes, x.dtype);
    const DType type = whole.dtype();
    if (type == DType::boolean) c.refuse("it combines truths by '" + how + "'.", "Cast them to integers.", "onnx.type");
    for (const auto &[name, monoid] : std::map<std::string, Monoid>{
             {"add", sum_monoid(type)}, {"mul", product_monoid(type)}, {"max", max_monoid(type)}, {"min", min_monoid(type)}})
        if (how == name) return c.result(scatter_into(whole, monoid, updates, at), axes, x.dtype);
    c.refuse("its reduction is '" + how + "'; expected none, add, mul, max or min.", "Check the exporter.");
}

std::vector<Value> scatter_elements(Context &c) {
    const Value &x = c.in(0), &at = c.in(1), &updates = c.in(2);
    const auto axis = static_cast<size_t>(c.axis(c.node.integer("axis", 0), x.rank()));
    if (at.rank() != x.rank() || updates.rank() != x.rank())
        c.refuse("its data, indices and updates have different ranks.", "Check the exporter.");
    std::vector<Axis> axes;
    const Tile data = c.spread(x, axes);
    // Axes of updates that are whole are those of the data; others have dims of their own.
    std::vector<Axis> all = axes, own;
    for (size_t i = 0; i < axes.size(); i++) {
        const Expr n = at.axes[i].extent;
        own.push_back(i != axis && c.space.same(n, axes[i].extent) ? axes[i] : c.new_axis(n, all));
        all.push_back(own.back());
    }
    const std::vector<Expr> index = variables(own);
    std::vector<Tile> positions;
    for (size_t i = 0; i < axes.size(); i++)
        positions.push_back(i == axis ? from_end(c.read(at, index, own), c.dim(axes[i])) : c.f.index(c.dim(own[i])));
    return {scattered(c, x, axes, data, Context::in_order(c.read(updates, index, own), own), positions)};
}

std::vector<Value> scatter_nd(Context &c) {
    const Value &x = c.in(0), &at = c.in(1), &updates = c.in(2);
    const size_t depth = depth_of(c, at, x.axes.size()), outer = at.axes.size() - 1;
    if (updates.axes.size() != outer + x.axes.size() - depth)
        c.refuse(
            "its updates have " + std::to_string(updates.rank()) + " axes; expected " + std::to_string(outer + x.axes.size() - depth) + ".",
            "Check the exporter.");
    std::vector<Axis> axes;
    const Tile data = c.spread(x, axes);
    std::vector<Axis> all = axes, own;
    for (size_t i = 0; i < outer; i++) own.push_back(c.new_axis(at.axes[i].extent, all)), all.push_back(own.back());
    std::vector<Expr> where = variables(own);
    where.emplace_back();
    std::vector<Tile> positions;
    for (size_t i = 0; i < axes.size(); i++) {
        if (i >= depth) {
            positions.push_back(c.f.index(c.dim(axes[i])));
            continue;
        }
        where.back() = Expr(static_cast<int64_t>(i));
        positions.push_back(from_end(c.read(at, where, own), c.dim(axes[i])));
    }
    own.insert(own.end(), axes.begin() + static_cast<int64_t>(depth), axes.end());
    return {scattered(c, x, axes, data, Context::in_order(c.read(updates, variables(own), own), own), positions)};
}

std::vector<Value> one_hot_handler(Context &c) {
    const Value &ids = c.in(0), &values = c.in(2);
    const Expr depth = c.integers(1, "depth").at(0);
    const auto place = static_cast<size_t>(c.axis(c.node.integer("axis", -1), ids.rank() + 1));
    std::vector<Axis> axes;
    Tile id = c.spread(ids, axes);
    if (is_float(id.dtype())) id = cast(DType::i64, trunc(id));
    const Axis classes = c.new_axis(depth, axes);
    const Tile off = c.read(values, {Expr(0)}, {}), on = c.read(values, {Expr(1)}, {});
    const Tile made = one_hot(from_end(id, c.dim(classes)), c.dim(classes), on, off);
    axes.insert(axes.begin() + static_cast<int64_t>(place), classes);
    return {c.result(made, axes, values.dtype)};
}

constexpr int64_t most_ranked = 16;    // elements that one fold keeps
constexpr int64_t most_sorted = 4096;  // elements of a sorting network

std::vector<Value> top_k(Context &c) {
    const Value x = c.settled(c.in(0));
    const int64_t count = c.has(1) ? c.numbers(1, "k").at(0) : c.node.integer("k");
    const auto axis = static_cast<size_t>(c.axis(c.node.integer("axis", -1), x.rank()));
    const bool downwards = c.node.integer("largest", 1) != 0;
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    const std::optional<int64_t> extent = c.space.number(axes[axis].extent);
    if (count < 1 || (extent && count > *extent))
        c.refuse("it takes " + std::to_string(count) + " of " + brief(axes[axis].extent) + " elements.", "Check the exporter.");
    const Dim over = c.dim(axes[axis]);
    const Axis chosen = c.new_axis(Expr(count), axes);
    axes[axis] = chosen;
    Tile at;
    if (count <= most_ranked) {
        std::vector<Tile> positions;
        const auto n = static_cast<int>(count);
        for (const Ranked &one : downwards ? largest(t, over, n) : smallest(t, over, n)) positions.push_back(one.at);
        at = stack(positions, c.dim(chosen));
    } else {
        if (c.fixed({tessera::extent(over.name), over.name}, "the number of elements that it sorts") > most_sorted)
            c.refuse("it takes " + std::to_string(count) + " of more than " + std::to_string(most_sorted) + " elements.",
                     "Take at most " + std::to_string(most_ranked) + ".");
        const Tile all = sorted(t, over, downwards ? Order::downwards : Order::upwards).at;
        std::vector<std::string> dims = all.dims();
        std::replace(dims.begin(), dims.end(), over.name, chosen.dim);
        at = all.at({{over.name, variable(chosen.dim)}}, dims);
    }
    at = Context::in_order(at, axes).named("at");
    return {c.result(gather(t, {{over, at}}), axes, x.dtype), c.result(cast(DType::i64, at), axes, DType::i64)};
}

// Elements, or slices along an axis, whose place a constant says is chosen.
std::vector<Value> compress(Context &c) {
    const bool flat = !c.node.find("axis");
    Value x = c.in(0);
    if (flat) {
        Expr all = 1;
        for (const Axis &a : x.axes) all = all * a.extent;
        x = reshaped(c, x, {c.space.simplified(all)});
    }
    const auto axis = static_cast<size_t>(flat ? 0 : c.axis(c.node.integer("axis"), x.rank()));
    std::vector<Expr> positions;
    const std::vector<int64_t> chosen = c.numbers(1, "condition");
    for (size_t i = 0; i < chosen.size(); i++)
        if (chosen[i]) positions.push_back(Expr(static_cast<int64_t>(i)));
    const auto count = static_cast<int64_t>(positions.size());
    return {taken(c, x, axis, c.integers_value(positions, {count}))};
}

// The letters of each operand and of the result. '.' stands for the axes that an ellipsis means, one each, counted from the last.
struct Equation {
    std::vector<std::vector<std::string>> operands;
    std::vector<std::string> result;
};

Equation equation_of(Context &c) {
    std::string text;
    for (char letter : c.node.text("equation", ""))
        if (letter != ' ') text += letter;
    auto wrong = [&](const std::string &why) { c.refuse("its equation '" + text + "' " + why + ".", "Check the exporter."); };
    const size_t arrow = text.find("->");
    std::vector<std::string> terms = {""};
    for (char letter : text.substr(0, arrow)) {
        if (letter == ',') terms.emplace_back();
        else terms.back() += letter;
    }
    if (terms.size() != c.inputs()) wrong("has " + std::to_string(terms.size()) + " operands, the node " + std::to_string(c.inputs()));
    size_t most = 0;  // axes of an ellipsis
    auto letters = [&](const std::string &term, size_t ellipsis) {
        std::vector<std::string> all;
        for (size_t i = 0; i < term.size(); i++) {
            if (std::isalpha(static_cast<unsigned char>(term[i]))) {
                all.emplace_back(1, term[i]);
            } else {
                if (term.compare(i, 3, "...") != 0 || i != term.find("...") || i != term.rfind("..."))
                    wrong("is none of letters and '...'");
                for (size_t e = ellipsis; e-- > 0;) all.push_back("." + std::to_string(e));
                i += 2;
            }
        }
        return all;
    };
    Equation made;
    for (size_t i = 0; i < terms.size(); i++) {
        const size_t own = letters(terms[i], 0).size(), rank = c.in(i).axes.size();
        const bool has_ellipsis = terms[i].find('.') != std::string::npos;
        if (own > rank || (own < rank && !has_ellipsis)) wrong("names " + std::to_string(own) + " of " + std::to_string(rank) + " axes");
        made.operands.push_back(letters(terms[i], rank - own));
        most = std::max(most, rank - own);
    }
    if (arrow != std::string::npos) {
        made.result = letters(text.substr(arrow + 2), most);
        return made;
    }
    // Without an arrow: the axes of an ellipsis, then the letters that occur once, in their order.
    std::map<std::string, int> times;
    for (const auto &operand : made.operands)
        for (const std::string &letter : operand) times[letter]++;
    for (size_t e = most; e-- > 0;) made.result.push_back("." + std::to_string(e));
    for (const auto &[letter, count] : times)
        if (count == 1 && letter[0] != '.') made.result.push_back(letter);
    return made;
}

std::vector<Value> einsum_handler(Context &c) {
    const Equation equation = equation_of(c);
    // An axis for each letter; one of one element is broadcast.
    std::map<std::string, Axis> by_letter;
    std::vector<Axis> all;
    for (size_t i = 0; i < equation.operands.size(); i++)
        for (size_t a = 0; a < equation.operands[i].size(); a++) {
            Axis &axis = by_letter.try_emplace(equation.operands[i][a], Axis{Expr(1), ""}).first->second;
            const Expr n = c.in(i).axes[a].extent;
            if (n.is_constant(1)) continue;
            if (axis.extent.is_constant(1)) axis = c.new_axis(n, all), all.push_back(axis);
            else if (!c.space.same(axis.extent, n))
                c.refuse(
                    "axes of the letter '" + equation.operands[i][a] + "' have " + brief(axis.extent) + " and " + brief(n) + " elements.",
                    Context::equal_extents, "onnx.broadcast");
        }
    std::vector<Tile> operands;
    for (size_t i = 0; i < equation.operands.size(); i++) {
        std::vector<Expr> index;
        std::vector<Axis> own;
        for (size_t a = 0; a < equation.operands[i].size(); a++) {
            const Axis &axis = by_letter.at(equation.operands[i][a]);
            const bool is_one = c.in(i).axes[a].extent.is_constant(1);
            index.push_back(is_one ? Expr(0) : at(axis));
            if (!is_one && std::none_of(own.begin(), own.end(), [&](const Axis &o) { return o.dim == axis.dim; })) own.push_back(axis);
        }
        operands.push_back(Context::in_order(c.read(c.in(i), index, own), own));
    }
    std::vector<Axis> result;
    std::vector<Dim> dims;
    for (const std::string &letter : equation.result) {
        const auto axis = by_letter.find(letter);
        if (axis == by_letter.end()) c.refuse("no operand has the letter '" + letter + "' of its result.", "Check the exporter.");
        result.push_back(axis->second);
        if (!axis->second.dim.empty()) dims.push_back(c.dim(axis->second));
    }
    return {c.result(einsum(operands, dims), result, c.in(0).dtype)};
}

}  // namespace

std::vector<Operator> indexing_operators() {
    return {
        {"Gather", gather_handler},
        {"GatherElements", gather_elements},
        {"GatherND", gather_nd},
        {"Scatter", scatter_elements},
        {"ScatterElements", scatter_elements},
        {"ScatterND", scatter_nd},
        {"OneHot", one_hot_handler},
        {"TopK", top_k},
        {"Compress", compress},
        {"Einsum", einsum_handler},
    };
}

}  // namespace tessera::onnx
