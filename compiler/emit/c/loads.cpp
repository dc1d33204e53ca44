// Where an element is, and how lanes of them are read. See expressions.h.
#include <algorithm>
#include <cmath>

#include "compiler/emit/c/expressions.h"
#include "support/text/error.h"

namespace tessera::emit_c {

Expr plus(const Expr &a, const Expr &b) { return a.is_constant(0) ? b : b.is_constant(0) ? a : a + b; }
Expr minus(const Expr &a, const Expr &b) { return b.is_constant(0) ? a : a - b; }
Expr times(const Expr &a, const Expr &b) {
    if (a.is_constant(0) || b.is_constant(0)) return Expr(0);
    return a.is_constant(1) ? b : b.is_constant(1) ? a : a * b;
}

std::optional<Run::Linear> Run::linear(const Expr &e) const {
    if (!varies(e)) return Linear{e, Expr(0)};
    if (e.kind() == ExprKind::variable) return Linear{Expr(0), Expr(1)};
    if (e.kind() != ExprKind::operation) return {};
    if (e->op == Op::neg) {
        auto a = linear(e->args[0]);
        if (!a) return {};
        return Linear{minus(Expr(0), a->base), minus(Expr(0), a->step)};
    }
    if (e->op != Op::add && e->op != Op::sub && e->op != Op::mul) return {};
    auto a = linear(e->args[0]), b = linear(e->args[1]);
    if (!a || !b) return {};
    if (e->op == Op::add) return Linear{plus(a->base, b->base), plus(a->step, b->step)};
    if (e->op == Op::sub) return Linear{minus(a->base, b->base), minus(a->step, b->step)};
    if (!varies(e->args[1])) return Linear{times(a->base, e->args[1]), times(a->step, e->args[1])};
    if (!varies(e->args[0])) return Linear{times(e->args[0], b->base), times(e->args[0], b->step)};
    return {};
}

// The position of an element: by the run-time strides of an argument, row by row in every other buffer.
Expr Run::flat(const Place &place, const std::string &buffer, const std::vector<Expr> &index) const {
    Expr position = 0;
    for (size_t i = 0; i < index.size(); i++) {
        if (!place.strided) position = i ? times(position, place.buffer.extents[i]) : position;
        const bool strided = place.strided && i + 1 < index.size();
        position = plus(position, strided ? times(index[i], variable(buffer + "\n" + std::to_string(i))) : index[i]);
    }
    return position;
}

// How lanes at a position are accessed, and the arguments that say where.
std::vector<Run::Piece> Run::access(const Expr &position, const std::string &buffer, std::string &how) {
    const auto line = linear(position);
    how = !line ? "indexed" : line->step.is_constant(1) ? "" : "strided";
    std::vector<Piece> pieces = {{scope_.pointer(buffer), -1, 0}};
    if (line && !line->base.is_constant(0)) pieces.push_back({" + ", -1, 0}), pieces.push_back(operand(emit(line->base), sum));
    if (how == "strided") pieces.push_back({", ", -1, 0}), pieces.push_back(operand(emit(line->step)));
    if (how == "indexed") pieces.push_back({", ", -1, 0}), pieces.push_back(operand(widened(emit(position), lanes_->count)));
    return pieces;
}

Run::Value Run::emit_load(const Expr &e) {
    const size_t rank = e->args.size() - (e->guarded ? 2 : 0);
    const std::vector<Expr> index(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank));
    const Place &place = scope_.place(e->name);
    const Expr own = e->guarded ? e->args[rank] : Expr(), fill_expression = e->guarded ? e->args[rank + 1] : constant(e.type(), 0);
    const Expr position = flat(place, e->name, index);
    const std::string version = e->name + "@" + std::to_string(versions_[e->name]);
    const int count = varies(position) || (own.defined() && (varies(own) || varies(fill_expression))) ? lanes_->count : 0;
    const CType type{e.type(), count};
    Value read, g;
    if (place.named) {  // no memory is prefetched
        const auto line = linear(position);
        require(line && line->base.is_constant(), "named storage is read at constants");
        const int64_t slot = line->base->value.integer / std::max(1, place.lanes);
        read = make({e.type(), place.lanes}, {{scope_.slot(e->name, slot), -1, 0}}, primary, true, "", version);
        if (!own.defined()) return read;
        g = emit(own);
        const Value fill = widened(emit(fill_expression), type.lanes);
        read = widened(read, type.lanes);
        if (g.lanes()) return call(type, operations_.select(type), {g, read, fill});
        return make(type, {operand(g, prefix), {" ? ", -1, 0}, operand(read, prefix), {" : ", -1, 0}, operand(fill, prefix)}, conditional);
    }
    const Value outer = context_;
    Value guard = own.defined() ? emit(own) : outer;
    if (own.defined() && outer.term >= 0) guard = both(outer, guard);
    if (has_load(position)) context_ = guard;
    const std::string hint = identifier(e->name);
    std::string how;
    std::vector<Piece> where;
    Value scalar_position;
    if (count) where = access(position, e->name, how);
    else scalar_position = emit(position);
    context_ = outer;
    if (!count) {
        std::vector<Piece> pieces = {
            {scope_.pointer(e->name) + "[", -1, 0}, operand(scalar_position), {e.type() == DType::boolean ? "] != 0" : "]", -1, 0}};
        const int precedence = e.type() == DType::boolean ? relation : primary;
        if (guard.term < 0) return make(type, std::move(pieces), precedence, false, hint, version);
        g = guard;
        if (g.lanes()) g = call({DType::boolean, 0}, operations_.any(g.lanes()), {g});  // some lane needs it
        const Value fill = emit(fill_expression);
        pieces.insert(pieces.begin(), {operand(g, prefix), {" ? ", -1, 0}});
        pieces.push_back({" : ", -1, 0}), pieces.push_back(operand(fill, prefix));
        return make(type, std::move(pieces), conditional, false, hint, version);
    }
    const bool guarded = guard.term >= 0, masked = guarded && guard.lanes();
    where.insert(where.begin(), {operations_.load(type, how, masked) + "(", -1, 0});
    if (masked) where.push_back({", ", -1, 0}), where.push_back(operand(guard));
    where.push_back({")", -1, 0});
    if (!guarded) return make(type, std::move(where), primary, false, hint, version);
    if (masked) {
        read = make(type, std::move(where), primary, false, hint, version);
        const bool zero = fill_expression.is_constant() && fill_expression->value.integer == 0 && fill_expression->value.real == 0 &&
                          !std::signbit(fill_expression->value.real);
        return zero ? read : call(type, operations_.select(type), {guard, read, widened(emit(fill_expression), count)});
    }
    where.insert(where.begin(), {operand(guard, prefix), {" ? ", -1, 0}});
    where.push_back({" : ", -1, 0}), where.push_back(operand(widened(emit(fill_expression), count), prefix));
    return make(type, std::move(where), conditional, false, hint, version);
}

}  // namespace tessera::emit_c
