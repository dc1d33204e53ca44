#include "compiler/emit/halide/vector_loops.h"

#include <algorithm>

#include "compiler/tile/instruction.h"

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

namespace {

// What the processor multiplies where a family means bytes of either sign.
enum class Multiplies { bytes, signed_bytes, words };

class VectorLoop {
public:
    VectorLoop(const Loop &loop, const Addresses &addresses, Values &values)
        : lane(loop.variable), lanes(static_cast<int>(loop.count->value.integer)), addresses(addresses), values(values) {}

    Stmt emit(const Instruction &family, const Compute &step, const std::vector<Expr> &operands, Multiplies multiplies) {
        std::vector<Expr> pair[2];
        for (size_t i = 1; i < operands.size(); i++) pair[1 - i % 2].push_back(operands[i]);
        HExpr a = group(pair[0]), b = group(pair[1]);
        HExpr to = contiguous(flat(step.buffer, step.index)), from = contiguous(flat(operands[0]));
        if (!a.defined() || !b.defined() || !to.defined() || !from.defined()) return {};
        HExpr sum = vector_load(operands[0], from), value;
        const auto is_short = [](const Expr &e) { return largest_byte(e) <= INT8_MAX; };
        if (family.first == DType::bf16) {
            auto wide = [](const HExpr &x) {
                return Cast::make(H::Float(32, x.type().lanes()), H::reinterpret(H::BFloat(16, x.type().lanes()), x));
            };
            value = Add::make(sum, VectorReduce::make(VectorReduce::Add, Mul::make(wide(a), wide(b)), lanes));
        } else if (multiplies == Multiplies::signed_bytes) {
            value = plus_signed_products(sum, a, b);
        } else if (multiplies == Multiplies::words) {
            const bool fits = std::all_of(pair[0].begin(), pair[0].end(), is_short);
            value = fits ? plus_products_in_words(sum, a, b) : plus_products_of_words(sum, a, b);
        } else {
            value = plus_products(sum, a, b);
        }
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

    HExpr plus_products(const HExpr &sum, const HExpr &a, const HExpr &b) const {
        const H::Type narrow = H::Int(16, a.type().lanes());
        const HExpr product =
            Cast::make(sum.type().with_lanes(a.type().lanes()), Call::make(narrow, Call::widening_mul, {a, b}, Call::PureIntrinsic));
        return Add::make(sum, VectorReduce::make(VectorReduce::Add, product, lanes));
    }

    // a b is (a - 128) b - (-128) b; the latter is the same for all rows of a register tile. Sums wrap.
    HExpr plus_signed_products(const HExpr &sum, const HExpr &a, const HExpr &b) const {
        const int all = a.type().lanes();
        const HExpr least = Broadcast::make(make_const(H::Int(8), -128), all);
        const HExpr shifted = H::reinterpret(H::Int(8, all), a ^ Broadcast::make(make_const(H::UInt(8), uint64_t{128}), all));
        auto bits = [](const HExpr &x) { return H::reinterpret(H::UInt(32, x.type().lanes()), x); };
        return H::reinterpret(sum.type(), bits(plus_products(sum, shifted, b)) - bits(plus_products(make_zero(sum.type()), least, b)));
    }

    // The even bytes as words of 16 bits, then the odd ones. A sum of two of their products fits 32 bits, and is one instruction.
    HExpr plus_products_of_words(const HExpr &sum, const HExpr &a, const HExpr &b) const {
        const int count = 2 * lanes;
        const H::Type word = H::Int(16, count);
        const HExpr u = H::reinterpret(H::UInt(16, count), a), s = H::reinterpret(word, b);
        auto bits = [](const HExpr &x) { return H::reinterpret(H::UInt(32, x.type().lanes()), x); };
        auto pairs = [&](const HExpr &x, const HExpr &y) {
            const HExpr products = Call::make(H::Int(32, count), Call::widening_mul, {H::reinterpret(word, x), y}, Call::PureIntrinsic);
            return bits(VectorReduce::make(VectorReduce::Add, products, lanes));
        };
        const HExpr even = pairs(u & make_const(u.type(), 0xff), (s << 8) >> 8), odd = pairs(u >> 8, s >> 8);
        return H::reinterpret(sum.type(), bits(sum) + even + odd);
    }

    // The most that an unsigned byte can be.
    static int64_t largest_byte(const Expr &e) {
        const int64_t any = traits_of(DType::u8).highest;
        if (e.is_constant()) return e->value.integer;
        if (e.kind() != ExprKind::cast || !e->args[0].is_operation(Op::bit_and)) return any;
        for (const Expr &mask : e->args[0]->args)
            if (mask.is_constant() && mask->value.integer >= 0) return std::min(any, mask->value.integer);
        return any;
    }

    // Where a is at most 127: a sum of two products of bytes fits 16 bits, and is one instruction, which saturates.
    HExpr plus_products_in_words(const HExpr &sum, const HExpr &a, const HExpr &b) const {
        const int count = 2 * lanes;
        const H::Type word = H::Int(16, count);
        const HExpr products = Call::make(H::Int(16, 2 * count), Call::widening_mul, {a, b}, Call::PureIntrinsic);
        const HExpr pairs = VectorReduce::make(VectorReduce::SaturatingAdd, products, count);
        const HExpr fours = Call::make(H::Int(32, count), Call::widening_mul, {pairs, make_one(word)}, Call::PureIntrinsic);
        auto bits = [](const HExpr &x) { return H::reinterpret(H::UInt(32, x.type().lanes()), x); };
        return H::reinterpret(sum.type(), bits(sum) + bits(VectorReduce::make(VectorReduce::Add, fours, lanes)));
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
    for (const Instruction &family : instructions()) {
        auto has = [&](const std::string &f) { return std::find(features.begin(), features.end(), f) != features.end(); };
        if (std::none_of(family.features.begin(), family.features.end(), has)) continue;
        std::vector<Expr> operands = match(family, step->value);
        if (operands.empty()) continue;
        const bool finds_vnni = has("avx512_vnni") && has("avx512_bf16");  // Halide, which has a name for processors with both only
        const Multiplies multiplies = has("asimddp") ? Multiplies::signed_bytes : finds_vnni ? Multiplies::bytes : Multiplies::words;
        Stmt statement = VectorLoop(loop, addresses, values).emit(family, *step, operands, multiplies);
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
