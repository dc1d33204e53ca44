#include "compiler/emit/halide/vector_loops.h"

#include <algorithm>

#include "compiler/instructions/families.h"
#include "support/text/error.h"

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

namespace {

H::Type type_of(LaneType type, int lanes) {
    switch (type.kind) {
    case 'f': return H::Float(type.bits, lanes);
    case 'b': return H::BFloat(type.bits, lanes);
    case 'u': return H::UInt(type.bits, lanes);
    default: return H::Int(type.bits, lanes);
    }
}

// A family's form over the vectors that it stands for.
HExpr translated(const VectorForm &form, const HExpr &sum, const HExpr &a, const HExpr &b) {
    const int lanes = sum.type().lanes();
    std::vector<HExpr> x;
    for (const VectorForm &arg : form->args) x.push_back(translated(arg, sum, a, b));
    const auto as = [&](const HExpr &e) { return type_of(form->type, e.type().lanes()); };
    switch (form->op) {
    case VectorOp::sum: return sum;
    case VectorOp::a: return a;
    case VectorOp::b: return b;
    case VectorOp::constant: return make_const(type_of(form->type, form->each * lanes), form->number);
    case VectorOp::cast: return Cast::make(as(x[0]), x[0]);
    case VectorOp::bits_as: {
        const H::Type from = x[0].type();
        return H::reinterpret(type_of(form->type, from.lanes() * from.bits() / form->type.bits), x[0]);
    }
    case VectorOp::add: return x[0] + x[1];
    case VectorOp::subtract: return x[0] - x[1];
    case VectorOp::multiply: return x[0] * x[1];
    case VectorOp::widened_product: return Call::make(as(x[0]), Call::widening_mul, {x[0], x[1]}, Call::PureIntrinsic);
    case VectorOp::bit_and: return x[0] & x[1];
    case VectorOp::bit_xor: return x[0] ^ x[1];
    case VectorOp::shift_left: return x[0] << static_cast<int>(form->number);
    case VectorOp::shift_right: return x[0] >> static_cast<int>(form->number);
    case VectorOp::added_up: return VectorReduce::make(VectorReduce::Add, x[0], form->each * lanes);
    case VectorOp::added_up_saturated: return VectorReduce::make(VectorReduce::SaturatingAdd, x[0], form->each * lanes);
    }
    throw InternalError("a vector operation without a translation");
}

class VectorLoop {
public:
    VectorLoop(const Loop &loop, const Addresses &addresses, Values &values)
        : lane(loop.variable), lanes(static_cast<int>(loop.count->value.integer)), addresses(addresses), values(values) {}

    Stmt emit(const Instruction &family, const Compute &step, const std::vector<Expr> &operands, const std::vector<std::string> &features) {
        std::vector<Expr> pair[2];
        for (size_t i = 1; i < operands.size(); i++) pair[1 - i % 2].push_back(operands[i]);
        int64_t largest = 0;
        for (const Expr &e : pair[0]) largest = std::max(largest, largest_value(e));
        const VectorForm form = family.vectors(features, largest);
        if (!form.defined()) return {};
        HExpr a = group(pair[0]), b = group(pair[1]);
        HExpr to = contiguous(flat(step.buffer, step.index)), from = contiguous(flat(operands[0]));
        if (!a.defined() || !b.defined() || !to.defined() || !from.defined()) return {};
        const HExpr value = translated(form, vector_load(operands[0], from), a, b);
        return Store::make(step.buffer, value, to, addresses.origin(step.buffer), const_true(lanes), ModulusRemainder());
    }

    Stmt emit_copies(const std::string &unrolled, int64_t count, const std::string &buffer, const std::vector<Expr> &index,
                     const Expr &value) {
        HExpr to = flat(buffer, index), from = position_of(value);
        auto at = [&](const HExpr &position, int64_t u) { return substitute(unrolled, make_const(H::Int(32), u), position); };
        HExpr first = at(at_lane(to, 0), 0);
        std::vector<HExpr> rows;
        HExpr inside = value->guarded ? below_limit(value->args[value->args.size() - 2]) : const_true(lanes);
        if (!inside.defined()) return {};
        for (int64_t u = 0; u < count; u++) {
            HExpr row = contiguous(at(from, u));
            if (!row.defined() || !apart_by(first, at(at_lane(to, 0), u), u) || !apart_by(first, at(at_lane(to, 1), u), count + u))
                return {};
            rows.push_back(vector_load(value, row, at(inside, u)));
            if (value->guarded)
                rows.back() = Select::make(at(inside, u), rows.back(), Broadcast::make(values.emit(value->args.back()), lanes));
        }
        int all = static_cast<int>(count) * lanes;
        return Store::make(buffer, Shuffle::make_interleave(rows), Ramp::make(first, make_one(first.type()), all), addresses.origin(buffer),
                           const_true(all), ModulusRemainder());
    }

private:
    std::string lane;
    int lanes;
    const Addresses &addresses;
    Values &values;

    // The most that an element can be, as far as it says; of a float, any number.
    static int64_t largest_value(const Expr &e) {
        if (!is_integer(e.type())) return INT64_MAX;
        const int64_t any = traits_of(e.type()).highest;
        if (e.is_constant()) return e->value.integer;
        if (e.kind() != ExprKind::cast || !e->args[0].is_operation(Op::bit_and)) return any;
        for (const Expr &mask : e->args[0]->args)
            if (mask.is_constant() && mask->value.integer >= 0) return std::min(any, mask->value.integer);
        return any;
    }

    HExpr flat(const std::string &buffer, const std::vector<Expr> &index) { return values.position(buffer, index); }

    HExpr position_of(const Expr &load) { return flat(load->name, index_of(load)); }

    // Undefined for what is no plain load.
    HExpr flat(const Expr &e) { return e.kind() == ExprKind::load && !e->guarded ? position_of(e) : HExpr(); }

    // The lanes for which `a < b` holds where a - b grows by 1 from lane to lane; undefined for other conditions.
    HExpr below_limit(const Expr &condition) {
        if (!condition.is_operation(Op::lt) || condition->args[0].type() != DType::index) return {};
        HExpr a = values.emit(condition->args[0]), b = values.emit(condition->args[1]);
        if (a.type() != H::Int(32) || b.type() != H::Int(32)) return {};
        HExpr beyond = a - b;
        if (!apart_by(at_lane(beyond, 0), at_lane(beyond, 1), 1)) return {};
        return Ramp::make(at_lane(beyond, 0), make_one(H::Int(32)), lanes) < make_zero(H::Int(32, lanes));
    }

    HExpr at_lane(const HExpr &position, int i) { return substitute(lane, make_const(H::Int(32), i), position); }
    static bool apart_by(const HExpr &a, const HExpr &b, int64_t distance) { return is_const(simplify(b - a), distance); }

    HExpr contiguous(const HExpr &position) {
        if (!position.defined() || !apart_by(at_lane(position, 0), at_lane(position, 1), 1)) return {};
        return Ramp::make(at_lane(position, 0), make_one(position.type()), lanes);
    }

    HExpr vector_load(const Expr &e, const HExpr &index, HExpr predicate = {}) {
        int width = index.type().lanes();
        if (!predicate.defined()) predicate = const_true(width);
        return Load::make(stored_type(e.type()).with_lanes(width), e->name, index, H::Buffer<>(), addresses.origin(e->name), predicate,
                          ModulusRemainder());
    }

    // The lanes' groups one after the other: what is the same everywhere, one group for all lanes, or what lies side by side; and
    // operations on integers of these.
    HExpr group(const std::vector<Expr> &elements) {
        const Expr &e = elements[0];
        if (e.kind() == ExprKind::load) return group_of_loads(elements);
        auto is_alike = [&](const Expr &other) {
            return other.kind() == e.kind() && other.type() == e.type() && other->args.size() == e->args.size() && other->op == e->op;
        };
        auto same = [&](const Expr &other) { return equal(other, e); };
        if (!has_load(e) && !uses_variable(e, lane) && std::all_of(elements.begin(), elements.end(), same))
            return Broadcast::make(values.emit(e), static_cast<int>(elements.size()) * lanes);
        const bool is_cast = e.kind() == ExprKind::cast && is_integer(e.type()) && is_integer(e->args[0].type()) && !e->saturate;
        if (!is_cast && (e.kind() != ExprKind::operation || e.type() != DType::i32 || e->op == Op::select)) return {};
        if (!std::all_of(elements.begin(), elements.end(), is_alike)) return {};
        std::vector<HExpr> args;
        for (size_t k = 0; k < e->args.size(); k++) {
            std::vector<Expr> those;
            for (const Expr &other : elements) those.push_back(other->args[k]);
            args.push_back(group(those));
            if (!args.back().defined()) return {};
        }
        if (is_cast) return Cast::make(value_type(e.type()).with_lanes(args[0].type().lanes()), args[0]);
        return integer_operation(e->op, e.type(), args);
    }

    HExpr group_of_loads(const std::vector<Expr> &elements) {
        int size = static_cast<int>(elements.size());
        HExpr first = flat(elements[0]);
        if (!first.defined()) return {};
        for (int i = 1; i < size; i++) {
            if (elements[i].kind() != ExprKind::load) return {};
            HExpr other = flat(elements[i]);
            if (!other.defined() || elements[i]->name != elements[0]->name || !apart_by(first, other, i)) return {};
        }
        HExpr base = at_lane(first, 0), one = make_one(first.type());
        if (apart_by(base, at_lane(first, 1), 0)) return Broadcast::make(vector_load(elements[0], Ramp::make(base, one, size)), lanes);
        if (!apart_by(base, at_lane(first, 1), size)) return {};
        return vector_load(elements[0], Ramp::make(base, one, size * lanes));
    }
};

}  // namespace

Stmt vector_instruction(const Loop &loop, const std::vector<std::string> &features, const Addresses &addresses, Values &values) {
    const Compute *step = only<Compute>(loop.body);
    if (!step || step->guard.defined() || !loop.count.is_constant() || loop.count->value.integer < 2) return {};
    for (const Instruction &family : families()) {
        if (!family.vectors || !is_on(family, features)) continue;
        const std::vector<Expr> operands = match(family, step->value);
        if (operands.empty()) continue;
        Stmt statement = VectorLoop(loop, addresses, values).emit(family, *step, operands, features);
        if (statement.defined()) return statement;
    }
    return {};
}

Stmt interleaved_copy(const Loop &unrolled, const Addresses &addresses, Values &values) {
    const Loop *loop = only<Loop>(unrolled.body);
    if (!loop || loop->kind != LoopKind::vector || !loop->count.is_constant() || loop->count->value.integer < 2) return {};
    if (!unrolled.count.is_constant() || unrolled.count->value.integer < 2 || unrolled.count->value.integer > 4) return {};
    const Copy *copy = only<Copy>(loop->body);
    if (!copy || copy->guard.defined() || copy->value.kind() != ExprKind::load || copy->value->name == copy->buffer) return {};
    if (copy->value->guarded && std::any_of(copy->value->args.begin(), copy->value->args.end() - 2, has_load)) return {};
    return VectorLoop(*loop, addresses, values)
        .emit_copies(unrolled.variable, unrolled.count->value.integer, copy->buffer, copy->index, copy->value);
}

}  // namespace tessera::emit
