#include "compiler/emit/halide/values.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "algorithms/index/prove.h"
#include "compiler/emit/one_comparison.h"
#include "schedules/knobs/schedule.h"
#include "support/text/error.h"

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

static const H::Type narrow = H::Int(32), wide = H::Int(64);

H::Type stored_type(DType type) {
    switch (held_as(type)) {
    case Held::f32: return H::Float(32);
    case Held::f64: return H::Float(64);
    case Held::half: return H::UInt(16);
    case Held::i8: return H::Int(8);
    case Held::u8:
    case Held::truth: return H::UInt(8);
    case Held::i32: return H::Int(32);
    case Held::i64: return H::Int(64);
    case Held::position: return H::Int(32);
    }
    throw InternalError("unknown dtype");
}

H::Type value_type(DType type) { return type == DType::boolean ? H::Bool() : stored_type(type); }

std::string stride_name(const std::string &buffer, size_t axis) { return buffer + ".stride." + std::to_string(axis); }
std::string extent_name(const std::string &dim) { return "extent." + dim; }
std::string parameter_name(const std::string &parameter) { return "parameter." + parameter; }

void Addresses::declare(const Buffer &buffer, bool is_large) {
    buffers[buffer.name] = buffer;
    if (is_large) large.insert(buffer.name);
    if (buffer.space == Space::argument) origins[buffer.name] = Halide::Parameter(stored_type(buffer.dtype), true, 1, buffer.name);
}

Halide::Parameter Addresses::origin(const std::string &buffer) const {
    auto it = origins.find(buffer);
    return it == origins.end() ? Halide::Parameter() : it->second;
}

DType Addresses::dtype(const std::string &buffer) const { return buffers.at(buffer).dtype; }
H::Type Addresses::position_type(const std::string &buffer) const { return large.count(buffer) ? wide : narrow; }

HExpr Addresses::flat(const std::string &name, const std::vector<HExpr> &index) const {
    const Buffer &b = buffers.at(name);
    HExpr position = make_zero(position_type(name));
    if (b.space == Space::argument && b.extents.empty()) {
        // The last stride is 1: the runtime checked it.
        for (size_t i = 0; i + 1 < index.size(); i++) position += index[i] * Variable::make(position_type(name), stride_name(name, i));
        if (!index.empty()) position += index.back();
        return position;
    }
    Addresses none;
    Values extents(none);
    for (size_t i = 0; i < index.size(); i++) position = (i == 0 ? HExpr(0) : position * extents.emit(b.extents[i])) + index[i];
    return position;
}

static bool takes_apart(const Expr &e) {
    bool result = false;
    walk(e, [&](const Expr &n) { result |= n.is_operation(Op::div) || n.is_operation(Op::mod); });
    return result;
}

Expr Addresses::simply_flat(const std::string &name, const std::vector<Expr> &index) const {
    const Buffer &b = buffers.at(name);
    if (b.extents.empty() || std::any_of(index.begin(), index.end(), has_load)) return {};
    if (std::none_of(index.begin(), index.end(), takes_apart)) return {};
    Expr position = index[0];
    for (size_t i = 1; i < index.size(); i++) {
        if (!b.extents[i].is_constant()) return {};
        position = position * b.extents[i] + index[i];
    }
    return simplify(position, Bounds());
}

HExpr Values::position(const std::string &buffer, const std::vector<Expr> &at) {
    const H::Type type = addresses.position_type(buffer);
    if (Expr flat = addresses.simply_flat(buffer, at); flat.defined()) return index(flat, type);
    std::vector<HExpr> axes;
    for (const Expr &e : at) axes.push_back(index(e, type));
    return addresses.flat(buffer, axes);
}

static HExpr intrinsic(H::Type type, Call::IntrinsicOp op, std::vector<HExpr> args) {
    return Call::make(type, op, std::move(args), Call::PureIntrinsic);
}

static HExpr external(H::Type type, const std::string &name, std::vector<HExpr> args) {
    return Call::make(type, name, std::move(args), Call::PureExtern);
}

static H::Type unsigned_of(H::Type t) { return t.with_code(halide_type_uint); }
static HExpr as(H::Type t, const HExpr &e) { return e.type() == t ? e : H::reinterpret(t, e); }

static const char *llvm_suffix(H::Type t) { return t.bits() == 64 ? "f64" : "f32"; }

HExpr Values::emit(const Expr &e) {
    // What is read under a weaker condition anyway is not read again.
    for (HExpr weaker = context;; weaker = around.at(weaker.get())) {
        auto it = done.find({e.get(), weaker.get()});
        if (it != done.end()) return it->second;
        if (!weaker.defined()) break;
    }
    kept.emplace_back(e, context);
    const Key key{e.get(), context.get()};
    return done[key] = emit_node(e);
}

void Values::enter_statement() { done.clear(), kept.clear(), around.clear(); }

void Values::enter_lanes(const std::string &variable, int64_t count) {
    lane = variable, lanes = count;
    enter_statement();
}

void Values::name(const Expr &e, const std::string &variable) {
    HExpr value = Variable::make(emit(e).type(), variable);
    done[Key{e.get(), nullptr}] = value;
}

bool Values::varies(const HExpr &e) const { return lanes && expr_uses_var(e, lane); }

// A 16-bit value as a vector of the lanes even where it is the same in all. LLVM's cast of a single f16 inserts it into a register that
// something else was computed in, and waits for that.
HExpr Values::in_lanes(const HExpr &v) const {
    if (!lanes || lane.empty() || varies(v)) return v;  // a run of elements has no variable for its lanes
    const HExpr number = Cast::make(v.type(), Variable::make(H::Int(32), lane));
    return v | external(v.type(), "llvm.umin.i16", {number, make_zero(v.type())});  // 0, as LLVM knows and Halide does not
}

HExpr Values::in_some_lane(const HExpr &condition) const {
    if (!varies(condition)) return condition;
    if (const And *both = condition.as<And>(); both && (!varies(both->a) || !varies(both->b)))
        return in_some_lane(both->a) && in_some_lane(both->b);
    HExpr some = const_false();
    for (int64_t i = 0; i < lanes; i++) some = some || graph_substitute(lane, make_const(H::Int(32), i), condition);
    return some;
}

static HExpr emit_constant(const Scalar &s) {
    // Halide takes -0 for 0, and NaN for any number, when it looks for equal subexpressions; so these are written by their bits.
    const bool by_bits = std::isnan(s.real) || (s.real == 0 && std::signbit(s.real));
    switch (held_as(s.type)) {
    case Held::f32:
        if (!by_bits) return FloatImm::make(H::Float(32), s.real);
        return H::reinterpret(H::Float(32), make_const(H::UInt(32), uint64_t{std::bit_cast<uint32_t>(static_cast<float>(s.real))}));
    case Held::f64:
        if (!by_bits) return FloatImm::make(H::Float(64), s.real);
        return H::reinterpret(H::Float(64), make_const(H::UInt(64), std::bit_cast<uint64_t>(s.real)));
    case Held::half:
    case Held::u8: return make_const(stored_type(s.type), stored_bits(s));
    case Held::truth: return make_bool(s.integer != 0);
    case Held::i8:
    case Held::i32:
    case Held::position:
    case Held::i64: return make_const(value_type(s.type), s.integer);
    }
    throw InternalError("unknown dtype");
}

HExpr Values::emit_node(const Expr &e) {
    switch (e.kind()) {
    case ExprKind::constant: return widths.is_wide(e) ? make_const(wide, e->value.integer) : emit_constant(e->value);
    case ExprKind::variable: return Variable::make(widths.is_wide(e) ? H::Int(64) : H::Int(32), e->name);
    case ExprKind::extent: return Variable::make(H::Int(32), extent_name(e->name));
    case ExprKind::parameter: return Variable::make(value_type(e.type()), parameter_name(e->name));
    case ExprKind::load: return emit_load(e);
    case ExprKind::bounded: return emit_bounded(e);
    case ExprKind::operation: return emit_operation(e);
    case ExprKind::cast: return emit_cast(e);
    case ExprKind::bitcast: return H::reinterpret(value_type(e.type()), emit(e->args[0]));
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: break;
    }
    throw InternalError("a definition's operand or a function in a tile program");
}

// What of a condition is the same for all lanes, and the rest. The former is asked before a load of many lanes: a masked load of nothing
// waits for older stores at the same place of any page, and takes some 500 cycles where no memory is, as before a padded image (Zen 5).
std::pair<HExpr, HExpr> Values::split_by_lanes(const HExpr &condition) const {
    std::vector<HExpr> conjuncts;
    split_into_ands(condition, conjuncts);
    HExpr common = const_true(), by_lane = const_true();
    for (const HExpr &c : conjuncts) {
        HExpr &part = varies(c) ? by_lane : common;
        part = is_const_one(part) ? c : And::make(part, c);
    }
    return {common, by_lane};
}

// Nothing is read where the guard fails, nor by the index: what that loads may have been proved inside under the guard only.
HExpr Values::emit_load(const Expr &e) {
    const size_t rank = e->args.size() - (e->guarded ? 2 : 0);
    const HExpr outer = context, own = e->guarded ? emit(e->args[rank]) : HExpr();
    const HExpr fill = own.defined() ? emit(e->args[rank + 1]) : HExpr();
    const HExpr guard = own.defined() && outer.defined() ? And::make(outer, own) : own.defined() ? own : outer;
    if (!guard.same_as(outer)) around.emplace(guard.get(), outer);
    const std::vector<Expr> index(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank));
    if (std::any_of(index.begin(), index.end(), has_load)) context = guard;
    const HExpr at = position(e->name, index);
    context = outer;
    // One element for all lanes is read where some lane needs it: Halide has no such load under a condition of many lanes.
    HExpr needed = guard.defined() ? guard : const_true();
    if (!varies(at)) needed = in_some_lane(needed);
    const auto [common, by_lane] = varies(at) ? split_by_lanes(needed) : std::pair(const_true(), needed);
    HExpr value = Load::make(stored_type(e.type()), e->name, at, H::Buffer<>(), addresses.origin(e->name), by_lane, ModulusRemainder());
    if (e.type() == DType::boolean) value = value != make_const(H::UInt(8), uint64_t{0});
    if (!guard.defined()) return value;
    const HExpr otherwise = own.defined() ? fill : make_zero(value.type());
    if (is_const_one(common)) return Select::make(own.defined() ? guard : needed, value, otherwise);
    if (!is_const_one(by_lane)) value = Select::make(by_lane, value, otherwise);
    return Call::make(value.type(), Call::if_then_else, {common, value, otherwise}, Call::PureIntrinsic);
}

HExpr Values::widened(const Expr &e) {
    if (e.is_constant()) return make_const(wide, e->value.integer);
    HExpr v = emit(e);
    return v.type() == narrow ? Cast::make(wide, v) : v;
}

static void add_terms(const Expr &e, bool negative, std::vector<std::pair<Expr, bool>> &terms) {
    constexpr size_t many = 256;  // a sum that is added to itself again and again would have 2^n
    const bool difference = e.is_operation(Op::sub);
    if (terms.size() >= many || (!difference && !e.is_operation(Op::add))) return terms.emplace_back(e, negative), void();
    add_terms(e->args[0], negative, terms);
    add_terms(e->args[1], negative != difference, terms);
}

// What is the same for all lanes is added up in 64 bits and the rest in 32, where Halide sees which lanes are contiguous. The rest is
// small, so that the former fits 32 bits wherever the sum is a position of 32.
HExpr Values::index(const Expr &e, const H::Type &type) {
    const HExpr whole = emit(e);
    const HExpr as_it_is = whole.type() == type ? whole : Cast::make(type, whole);
    if (!varies(whole) || (whole.type() == narrow && type == narrow)) return as_it_is;
    std::vector<std::pair<Expr, bool>> terms;
    add_terms(e, false, terms);
    HExpr base = make_zero(wide), rest = make_zero(narrow);
    Expr by_lane = Expr(0);
    for (auto &[term, negative] : terms) {
        HExpr v = emit(term);
        if (varies(v) && v.type() == wide) return as_it_is;
        if (varies(v)) rest = negative ? rest - v : rest + v, by_lane = negative ? by_lane - term : by_lane + term;
        else base = negative ? base - widened(term) : base + widened(term);
    }
    Bounds facts;
    facts.set(lane, Expr(0), Expr(lanes - 1));
    const auto range = constant_range(by_lane, facts);
    if (!range || range->first < -max_tile || range->second > max_tile) return as_it_is;
    return type == narrow ? Cast::make(narrow, base) + rest : base + Cast::make(wide, rest);
}

HExpr Values::count(const Expr &e) {
    const HExpr n = emit(e);
    return n.type() == narrow ? n : Cast::make(narrow, Max::make(Min::make(n, make_const(wide, INT32_MAX)), make_zero(wide)));
}

// A 64-bit index is clamped before it is narrowed.
HExpr Values::emit_bounded(const Expr &e) {
    const Expr &value = e->args[0];
    const bool loaded = value.kind() == ExprKind::cast && value->args[0].type() == DType::i64;
    if (!loaded && !widths.is_wide(value) && !widths.is_wide(e))
        return Max::make(Min::make(emit(value), emit(e->args[2]) - 1), emit(e->args[1]));
    const HExpr inside = Max::make(Min::make(loaded ? emit(value->args[0]) : widened(value), widened(e->args[2]) - 1), widened(e->args[1]));
    return widths.is_wide(e) ? inside : Cast::make(narrow, inside);
}

static HExpr below_or_equal(const HExpr &a, const HExpr &b) {  // strict_le has NaN <= x
    auto strict = [&](Call::IntrinsicOp op) { return Call::make(H::Bool(), op, {a, b}, Call::PureIntrinsic); };
    return strict(Call::strict_lt) || strict(Call::strict_eq);
}

// LLVM makes x < 0 ? x : 0 a minimum with -0 before 0 where the processor has one, though of x = -0 it is 0. It does not see one in
// the same question about the greatest number below 0.
static HExpr choose(const HExpr &condition, const HExpr &x, const HExpr &otherwise) {
    const Call *below = condition.as<Call>();
    const bool min_of_0 = x.type().is_float() && is_const_zero(otherwise) && below && below->is_intrinsic(Call::strict_lt) &&
                          equal(below->args[0], x) && is_const_zero(below->args[1]);
    if (!min_of_0) return Select::make(condition, x, otherwise);
    const double least = x.type().bits() == 32 ? std::numeric_limits<float>::denorm_min() : std::numeric_limits<double>::denorm_min();
    return Select::make(below_or_equal(x, make_const(x.type(), -least)), x, otherwise);
}

// LLVM makes an instruction of x86 of it.
static HExpr by_one_comparison(bool least, const HExpr &first, const HExpr &second) {
    if (least) return choose(intrinsic(H::Bool(), Call::strict_lt, {first, second}), first, second);
    return Select::make(intrinsic(H::Bool(), Call::strict_lt, {second, first}), first, second);
}

static HExpr float_operation(Op op, H::Type t, const std::vector<HExpr> &x) {
    H::Type bits = unsigned_of(t);
    HExpr sign = make_const(bits, uint64_t{1} << (t.bits() - 1));
    std::string suffix = llvm_suffix(t);
    switch (op) {
    case Op::neg: return H::reinterpret(t, H::reinterpret(bits, x[0]) ^ sign);
    case Op::abs: return H::reinterpret(t, H::reinterpret(bits, x[0]) & ~sign);
    case Op::sqrt: return external(t, "llvm.sqrt." + suffix, x);
    case Op::floor: return external(t, "llvm.floor." + suffix, x);
    case Op::ceil: return external(t, "llvm.ceil." + suffix, x);
    case Op::trunc: return external(t, "llvm.trunc." + suffix, x);
    case Op::round: return external(t, "llvm.rint." + suffix, x);
    case Op::add: return intrinsic(t, Call::strict_add, x);
    case Op::sub: return intrinsic(t, Call::strict_sub, x);
    case Op::mul: return intrinsic(t, Call::strict_mul, x);
    case Op::div:
        // Halide refuses to divide by what it finds to be the constant 0. A sum with -0 is none to it, and the other operand to LLVM.
        return intrinsic(t, Call::strict_div, {x[0], intrinsic(t, Call::strict_add, {x[1], H::reinterpret(t, sign)})});
    case Op::min:
    case Op::max: {
        // All bits set are a NaN. LLVM makes one choice by both comparisons of a choice between x[1] and another one.
        const HExpr number = intrinsic(H::Bool(), Call::strict_eq, {x[1], x[1]});
        return H::reinterpret(t, H::reinterpret(bits, by_one_comparison(op == Op::min, x[1], x[0])) |
                                     Select::make(number, make_zero(bits), ~make_zero(bits)));
    }
    case Op::eq: return intrinsic(H::Bool(), Call::strict_eq, x);
    case Op::ne: return !intrinsic(H::Bool(), Call::strict_eq, x);
    case Op::lt: return intrinsic(H::Bool(), Call::strict_lt, x);
    case Op::le: return below_or_equal(x[0], x[1]);
    case Op::fma: return external(t, "llvm.fma." + suffix, x);
    case Op::logical_not:
    case Op::mod:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shl:
    case Op::shr:
    case Op::select: break;
    }
    undefined_on(op, "floats");
}

using HExprs = std::vector<HExpr>;
static constexpr OpTable<HExpr (*)(const HExprs &)> bool_operations(is_on_truths,
                                                                    {{Op::logical_not, [](const HExprs &x) { return !x[0]; }},
                                                                     {Op::bit_and, [](const HExprs &x) { return x[0] && x[1]; }},
                                                                     {Op::bit_or, [](const HExprs &x) { return x[0] || x[1]; }},
                                                                     {Op::bit_xor, [](const HExprs &x) { return x[0] != x[1]; }},
                                                                     {Op::ne, [](const HExprs &x) { return x[0] != x[1]; }},
                                                                     {Op::eq, [](const HExprs &x) { return x[0] == x[1]; }},
                                                                     {Op::lt, [](const HExprs &x) { return !x[0] && x[1]; }},
                                                                     {Op::le, [](const HExprs &x) { return !x[0] || x[1]; }},
                                                                     {Op::min, [](const HExprs &x) { return x[0] && x[1]; }},
                                                                     {Op::max, [](const HExprs &x) { return x[0] || x[1]; }}});

static HExpr bool_operation(Op op, const HExprs &x) { return bool_operations.at(op, "bools")(x); }

// Halide's division rounds toward minus infinity for a positive divisor, as ours does; ours is also defined for
// negative divisors and 0, where the machine's instruction may trap.
static HExpr floor_divide(const HExpr &a, const HExpr &b) {
    if (is_positive_const(b)) return a / b;
    H::Type t = a.type();
    HExpr zero = make_zero(t), one = make_one(t);
    HExpr safe = select(b == zero || b == make_const(t, -1), one, b);
    HExpr q = intrinsic(t, Call::div_round_to_zero, {a, safe}), r = intrinsic(t, Call::mod_round_to_zero, {a, safe});
    q = q - select(r != zero && ((r < zero) != (safe < zero)), one, zero);
    H::Type u = unsigned_of(t);
    HExpr negated = H::reinterpret(t, make_zero(u) - H::reinterpret(u, a));
    return select(b == zero, zero, b == make_const(t, -1), negated, q);
}

HExpr integer_operation(Op op, DType type, const std::vector<HExpr> &x) {
    H::Type t = x[0].type();
    // Positions never overflow, which lets Halide simplify them; data wraps.
    bool wraps = type != DType::index;
    H::Type u = wraps ? unsigned_of(t) : t;
    auto in = [&](size_t i) { return as(u, x[i]); };
    switch (op) {
    case Op::neg: return as(t, make_zero(u) - in(0));
    case Op::abs: return select(x[0] < make_zero(t), as(t, make_zero(u) - in(0)), x[0]);
    case Op::logical_not: return as(t, ~in(0));
    case Op::add: return as(t, in(0) + in(1));
    case Op::sub: return as(t, in(0) - in(1));
    case Op::mul: return as(t, in(0) * in(1));
    case Op::fma: return as(t, in(0) * in(1) + in(2));
    case Op::div: return floor_divide(x[0], x[1]);
    case Op::mod: {
        if (is_positive_const(x[1])) return x[0] % x[1];
        H::Type v = unsigned_of(t);
        HExpr q = as(v, floor_divide(x[0], x[1]));
        return select(x[1] == make_zero(t), make_zero(t), as(t, as(v, x[0]) - q * as(v, x[1])));
    }
    case Op::min: return Min::make(x[0], x[1]);
    case Op::max: return Max::make(x[0], x[1]);
    case Op::bit_and: return x[0] & x[1];
    case Op::bit_or: return x[0] | x[1];
    case Op::bit_xor: return x[0] ^ x[1];
    case Op::shl: return as(t, as(unsigned_of(t), x[0]) << (as(unsigned_of(t), x[1]) & make_const(unsigned_of(t), uint64_t(t.bits() - 1))));
    case Op::shr: return x[0] >> (as(unsigned_of(t), x[1]) & make_const(unsigned_of(t), uint64_t(t.bits() - 1)));
    case Op::eq: return x[0] == x[1];
    case Op::ne: return x[0] != x[1];
    case Op::lt: return x[0] < x[1];
    case Op::le: return x[0] <= x[1];
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::select: break;
    }
    undefined_on(op, "integers");
}

HExpr Values::size(const Expr &root) {
    AddressMap<HExpr> sizes;
    walk(root, [&](const Expr &e) {
        std::vector<HExpr> x;
        for (const Expr &arg : e->args) x.push_back(*sizes.find(arg.get()));
        HExpr made;
        if (e.kind() != ExprKind::operation) made = widened(e);
        else if (e->op == Op::select) made = Select::make(x[0], x[1], x[2]);
        else made = e->args[0].type() == DType::boolean ? bool_operation(e->op, x) : integer_operation(e->op, DType::index, x);
        *sizes.add(e.get()).first = made;
    });
    return *sizes.find(root.get());
}

HExpr Values::emit_operation(const Expr &e) {
    if (const auto one = as_one_comparison(e)) return by_one_comparison(one->least, emit(one->first), emit(one->second));
    DType type = e->args.back().type();
    const bool in_64 = type == DType::index &&
                       (widths.is_wide(e) || std::any_of(e->args.begin(), e->args.end(), [&](const Expr &a) { return widths.is_wide(a); }));
    std::vector<HExpr> x;
    for (const Expr &arg : e->args) x.push_back(in_64 && arg.type() == DType::index ? widened(arg) : emit(arg));
    if (e->op == Op::select) return choose(x[0], x[1], x[2]);
    if (is_float(type)) return float_operation(e->op, x[0].type(), x);
    if (type == DType::boolean) return bool_operation(e->op, x);
    return integer_operation(e->op, type, x);
}

// f32 bits of a bf16 or f16, and back with round to nearest even, in integer code: the same on every target.
static HExpr widen_bf16(const HExpr &bits) { return H::reinterpret(H::Float(32), Cast::make(H::UInt(32), bits) << 16); }

static HExpr narrow_to_bf16(const HExpr &value) {
    HExpr bits = H::reinterpret(H::UInt(32), value);
    auto k = [](uint32_t v) { return make_const(H::UInt(32), uint64_t{v}); };
    HExpr rounded = (bits + k(0x7fff) + ((bits >> 16) & k(1))) >> 16;
    HExpr nan = (bits >> 16) | k(0x40);
    return Cast::make(H::UInt(16), select((bits & k(0x7fffffff)) > k(0x7f800000), nan, rounded));
}

static HExpr widen_f16(const HExpr &bits) {
    auto k = [](uint32_t v) { return make_const(H::UInt(32), uint64_t{v}); };
    HExpr wide = Cast::make(H::UInt(32), bits);
    HExpr magnitude = (wide & k(0x7fff)) << 13, sign = (wide & k(0x8000)) << 16;
    // 2^112 moves the exponent's bias, and makes subnormals normal; it is exact.
    HExpr scaled =
        intrinsic(H::Float(32), Call::strict_mul, {H::reinterpret(H::Float(32), magnitude), FloatImm::make(H::Float(32), 0x1p112)});
    HExpr special = (wide & k(0x7c00)) == k(0x7c00);
    HExpr out = select(special, magnitude | k(0x7f800000), H::reinterpret(H::UInt(32), scaled));
    return H::reinterpret(H::Float(32), out | sign);
}

static HExpr narrow_to_f16(const HExpr &value) {
    auto k = [](uint32_t v) { return make_const(H::UInt(32), uint64_t{v}); };
    HExpr bits = H::reinterpret(H::UInt(32), value);
    HExpr sign = (bits >> 16) & k(0x8000), magnitude = bits & k(0x7fffffff);
    HExpr normal = (magnitude - k(112u << 23) + k(0xfff) + ((magnitude >> 13) & k(1))) >> 13;
    // Adding 0.5 leaves a subnormal's bits, rounded by the addition itself, at the bottom of the mantissa.
    HExpr shifted = intrinsic(H::Float(32), Call::strict_add, {H::reinterpret(H::Float(32), magnitude), FloatImm::make(H::Float(32), 0.5)});
    HExpr subnormal = H::reinterpret(H::UInt(32), shifted) - k(0x3f000000);
    HExpr out =
        select(magnitude > k(0x7f800000), k(0x7e00), magnitude >= k(0x477ff000), k(0x7c00), magnitude < k(113u << 23), subnormal, normal);
    return Cast::make(H::UInt(16), out | sign);
}

static HExpr float_to_f32(DType from, const HExpr &v) {
    if (from == DType::bf16) return widen_bf16(v);
    if (from == DType::f16) return widen_f16(v);
    return v;
}

// A double rounded to a narrower format by way of f32 must not round twice: round to odd on the way.
static HExpr f64_to_odd_f32(const HExpr &v) {
    HExpr near = Cast::make(H::Float(32), v);
    HExpr back = Cast::make(H::Float(64), near);
    HExpr bits = H::reinterpret(H::UInt(32), near);
    HExpr magnitude_of_v = float_operation(Op::abs, H::Float(64), {v}), magnitude_of_back = float_operation(Op::abs, H::Float(64), {back});
    HExpr inexact = !intrinsic(H::Bool(), Call::strict_eq, {v, back}) && intrinsic(H::Bool(), Call::strict_eq, {v, v});
    HExpr above = intrinsic(H::Bool(), Call::strict_lt, {magnitude_of_v, magnitude_of_back});
    HExpr toward_zero = select(above, bits - make_one(H::UInt(32)), bits);
    return H::reinterpret(H::Float(32), select(inexact, toward_zero | make_one(H::UInt(32)), bits));
}

static HExpr to_float(DType type, DType from, const HExpr &v) {
    if (type == DType::f64) return Cast::make(H::Float(64), is_float(from) ? float_to_f32(from, v) : v);
    HExpr f = v;
    if (from == DType::f64) f = type == DType::f32 ? Cast::make(H::Float(32), v) : f64_to_odd_f32(v);
    else if (is_float(from)) f = float_to_f32(from, v);
    else f = type == DType::f32 ? Cast::make(H::Float(32), v) : f64_to_odd_f32(Cast::make(H::Float(64), v));
    if (type == DType::bf16) return narrow_to_bf16(f);
    if (type == DType::f16) return narrow_to_f16(f);
    return f;
}

HExpr Values::emit_cast(const Expr &e) {
    require(!is_expanded(e), "lowering expands conversions that no emitter has");
    DType type = e.type(), from = e->args[0].type();
    HExpr v = emit(e->args[0]);
    if (from == DType::f16 && has_f16c) v = Cast::make(H::Float(32), H::reinterpret(H::Float(16), in_lanes(v))), from = DType::f32;
    if (type == DType::boolean) {
        if (!is_float(from)) return v != make_zero(v.type());
        HExpr f = float_to_f32(from, v);
        return !intrinsic(H::Bool(), Call::strict_eq, {f, make_zero(f.type())});
    }
    if (from == DType::boolean) v = select(v, make_one(H::Int(32)), make_zero(H::Int(32))), from = DType::i32;
    if (is_float(type)) return to_float(type, from, v);
    H::Type t = value_type(type);
    const int64_t lowest = traits_of(type).lowest, highest = traits_of(type).highest;
    const double lo = static_cast<double>(lowest), hi = highest_real(type);
    if (is_float(from)) {
        HExpr f = float_to_f32(from, v);
        HExpr r = float_operation(e->rounding == Rounding::nearest_even ? Op::round : Op::trunc, f.type(), {f});
        // Compared in the source format: its largest value below the limit converts without overflow.
        double top =
            f.type().bits() == 32 && type != DType::i8 && type != DType::u8 ? (t.bits() == 64 ? 9223371487098961920.0 : 2147483520.0) : hi;
        HExpr low = FloatImm::make(f.type(), lo), high = FloatImm::make(f.type(), top);
        HExpr below = intrinsic(H::Bool(), Call::strict_lt, {r, low}), above = intrinsic(H::Bool(), Call::strict_lt, {high, r});
        HExpr nan = !intrinsic(H::Bool(), Call::strict_eq, {r, r});
        HExpr in_range = select(below || above || nan, make_zero(f.type()), r);
        H::Type through = t.bits() < 32 ? H::Int(32) : t;
        HExpr converted = Cast::make(t, Cast::make(through, in_range));
        HExpr minimum = make_const(t, lowest);
        if (!e->saturate) return select(below || above || nan, minimum, converted);
        return select(nan, make_zero(t), below, minimum, above, make_const(t, highest), converted);
    }
    if (!e->saturate) {
        if (type == DType::index && from == DType::i64)
            return Cast::make(t, Max::make(Min::make(v, make_const(H::Int(64), INT32_MAX)), make_const(H::Int(64), INT32_MIN)));
        return Cast::make(t, v);
    }
    HExpr wide = Cast::make(H::Int(64), v);
    return Cast::make(t, Max::make(Min::make(wide, make_const(H::Int(64), highest)), make_const(H::Int(64), lowest)));
}

HExpr Values::stored(DType type, const HExpr &value) const {
    if (type == DType::boolean) return select(value, make_one(H::UInt(8)), make_zero(H::UInt(8)));
    return value;
}

}  // namespace tessera::emit
