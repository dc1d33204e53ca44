#include "algorithms/build/indexing.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "support/containers/contains.h"
#include "support/text/error.h"

namespace tessera {

static void expect_integers(const char *function, const Tile &at) {
    if (is_float(at.dtype()) || at.dtype() == DType::boolean)
        throw UserError("shape.type", std::string(function) + ": the positions " + at.describe() + " are " + name_of(at.dtype()) +
                                          "; expected integers; convert them with cast.");
}

Tile from_end(const Tile &position, const Dim &in, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    expect_integers("from_end", position);
    const DType type = position.dtype();
    const Expr at = position.value(), n = cast(type, extent(in.name));
    return Tile(&position.builder(), select(at < constant_int(type, 0), at + n, at), position.dims());
}

Tile gather(const Tile &x, const std::vector<Position> &at, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    std::map<std::string, Expr> index;
    std::vector<std::string> dims;
    for (const Position &p : at) {
        if (!contains(x.dims(), p.along.name))
            throw UserError("shape.gather", "gather: " + x.describe() + " has no dim '" + p.along.name + "' to read along; its dims are " +
                                                join(x.dims()) + "." + did_you_mean(p.along.name, x.dims()));
        expect_integers("gather", p.at);
        index[p.along.name] = bounded(p.at.value(), Expr(0), extent(p.along.name));
        for (const std::string &d : p.at.dims())
            if (!contains(dims, d)) dims.push_back(d);
    }
    for (const std::string &d : x.dims())
        if (!index.count(d) && !contains(dims, d)) dims.push_back(d);
    Expr read = x.value();
    while (read.kind() == ExprKind::cast) read = read->args[0];
    const bool is_stored = read.kind() == ExprKind::load || read.is_constant();
    return (is_stored ? x : x.builder().make_stage("gathered", x)).at(index, dims);
}

Tile one_hot(const Tile &id, const Dim &classes, const Tile &on, const Tile &off, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    expect_integers("one_hot", id);
    const Tile number = cast(id.dtype(), id.builder().index(classes));
    std::vector<std::string> dims = id.dims();
    dims.push_back(classes.name);
    const Tile made = select(id == number, on, off);
    for (const std::string &d : made.dims())
        if (!contains(dims, d)) dims.push_back(d);
    return Tile(&id.builder(), made.value(), dims);
}

static std::vector<Dim> dims_of(const Tile &x) {
    std::vector<Dim> dims;
    for (const std::string &d : x.dims()) dims.push_back(x.builder().dim_named(d));
    return dims;
}

Tile scatter_into(const Tile &x, const Monoid &monoid, const Tile &updates, const std::vector<Tile> &at, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    for (const Tile &t : at) expect_integers("scatter_into", t);
    const Tile all = x.builder().scatter(monoid, updates, at, dims_of(x)).named("scattered");
    if (all.dtype() != x.dtype())
        throw UserError("shape.type", "scatter_into: " + monoid.name + " gives " + name_of(all.dtype()) + ", and " + x.describe() + " is " +
                                          name_of(x.dtype()) + "; convert one with cast.");
    const Expr combined = rewrite(monoid.combine[0], [&](const Expr &e) {
        return e.kind() == ExprKind::left ? x.value() : e.kind() == ExprKind::right ? all.value() : Expr();
    });
    return Tile(&x.builder(), combined, x.dims());
}

Monoid last_monoid(DType type) {
    Monoid m;
    const Scalar none = is_float(type) ? Scalar::of_real(type, 0) : Scalar::of_integer(type, 0);
    m.name = "last", m.inputs = {type}, m.commutative = false;
    m.parts = {{"value", none, {}}, {"given", Scalar::of_integer(DType::boolean, 0), {}}};
    const Expr yes = constant_int(DType::boolean, 1), has_right = right(1, DType::boolean);
    m.lift = {input(0, type), yes};
    m.combine = {select(has_right, right(0, type), left(0, type)), left(1, DType::boolean) || has_right};
    m.step = {input(0, type), yes};
    return m;
}

Tile replace_at(const Tile &x, const Tile &updates, const std::vector<Tile> &at, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    for (const Tile &t : at) expect_integers("replace_at", t);
    Builder &f = x.builder();
    // In the order of the updates' dims, whatever positions have.
    const std::vector<Tile> last = f.scatter_parts(last_monoid(x.dtype()), {updates}, at, dims_of(x));
    return Tile(&f, select(last[1].named("scattered").value(), last[0].value(), x.value()), x.dims());
}

Tile einsum(const std::vector<Tile> &operands, const std::vector<Dim> &result, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (operands.empty()) throw UserError("shape.einsum", "einsum: expected at least one operand, got none.");
    const std::vector<std::string> wanted = names_of(result);
    // The dims of a tile that neither the result nor an operand from `next` on has.
    const auto ending = [&](const Tile &t, size_t next) {
        std::vector<std::string> dims;
        for (const std::string &d : t.dims()) {
            bool is_used = contains(wanted, d);
            for (size_t i = next; i < operands.size(); i++) is_used |= contains(operands[i].dims(), d);
            if (!is_used) dims.push_back(d);
        }
        return dims;
    };
    const auto summed = [&](const Tile &t, const std::vector<std::string> &over) {
        return over.empty() ? t : t.builder().fold(sum_monoid(t.dtype()), {t}, over)[0];
    };
    Tile all = summed(operands[0], ending(operands[0], 1));
    for (size_t i = 1; i < operands.size(); i++) {
        Tile next = operands[i];
        std::vector<std::string> own, common;
        for (const std::string &d : ending(next, i + 1)) (contains(all.dims(), d) ? common : own).push_back(d);
        next = summed(next, own);
        if (common.empty()) {
            all = all * next;
            continue;
        }
        std::vector<Dim> over;
        for (const std::string &d : common) over.push_back(all.builder().dim_named(d));
        all = dot(all, next, over);
    }
    for (const std::string &d : wanted)
        if (!contains(all.dims(), d))
            throw UserError("shape.einsum", "einsum: no operand has the result's dim '" + d + "'; they have " + join(all.dims()) + "." +
                                                did_you_mean(d, all.dims()));
    return Tile(&all.builder(), all.value(), wanted);
}

}  // namespace tessera
