#include "algorithms/expr/expr.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "support/text/error.h"

namespace tessera {

using Node = Expr::Node;

// What walks expressions calls itself for operands: a stack of 8 MiB holds twice as many.
static constexpr int max_nested = 4096;

static size_t mixed(size_t hash, size_t more) { return (std::rotl(hash, 23) ^ more) * 0x9e3779b97f4a7c15; }

static size_t hash_of(const Scalar &s) {
    if (!is_float(s.type)) return static_cast<size_t>(s.integer);
    return std::isnan(s.real) ? 1 : std::bit_cast<size_t>(s.real);
}

static bool is_expanded(DType to, DType from, Rounding rounding, bool saturate) {
    if (is_coded(to) || is_coded(from)) return true;
    return is_narrow_float(to) && (rounding != Rounding::nearest_even || saturate || from == DType::i64);
}

bool is_expanded(const Expr &cast) {
    return cast.kind() == ExprKind::cast && is_expanded(cast.type(), cast->args[0].type(), cast->rounding, cast->saturate);
}

static std::shared_ptr<const Node> described(Node &&node) {
    size_t hash = static_cast<size_t>(node.kind) | static_cast<size_t>(node.type) << 8 | static_cast<size_t>(node.op) << 16 |
                  static_cast<size_t>(node.rounding) << 24 | size_t{node.saturate} << 32 | size_t{node.guarded} << 33 |
                  static_cast<size_t>(node.number) << 34;
    if (node.kind == ExprKind::constant) hash = mixed(hash, hash_of(node.value));
    if (!node.name.empty()) {
        const size_t name = std::hash<std::string>()(node.name);
        hash = mixed(hash, name);
        if (node.kind == ExprKind::variable) node.variables = Node::bit_of(name);
    }
    node.extents = node.kind == ExprKind::extent, node.loads = node.kind == ExprKind::load;
    node.functions = node.kind == ExprKind::function;
    node.conversions = node.kind == ExprKind::cast && is_expanded(node.type, node.args[0].type(), node.rounding, node.saturate);
    for (const Expr &arg : node.args) {
        hash = mixed(hash, arg->hash);
        node.height = std::max(node.height, arg->height + 1);
        node.variables |= arg->variables, node.extents |= arg->extents, node.loads |= arg->loads;
        node.functions |= arg->functions, node.conversions |= arg->conversions;
    }
    node.hash = hash;
    if (node.height > max_nested)
        throw UserError("expr.depth", "an expression: expected at most " + std::to_string(max_nested) +
                                          " operations one inside another, got more, as a loop in C++ makes them; "
                                          "fold over a dim instead, or give parts of it names of their own.");
    return std::make_shared<const Node>(std::move(node));
}

Expr::Expr(Node &&node) : node_(described(std::move(node))) {}

static Expr make(Node &&node) { return Expr(std::move(node)); }

Expr::Expr(int value) : Expr(static_cast<int64_t>(value)) {}
Expr::Expr(int64_t value) : Expr(constant_int(DType::index, value)) {}

bool Expr::is_constant(int64_t v) const { return is_constant() && !is_float(node_->type) && node_->value.integer == v; }

Expr constant(const Scalar &value) {
    return make({.kind = ExprKind::constant, .type = value.type, .name = {}, .value = value, .args = {}});
}

// Indices and truth values are made over and over: a thread keeps those that it made last.
Expr constant_int(DType type, int64_t value) {
    if (type != DType::index && type != DType::boolean) return constant(Scalar::of_integer(type, value));
    thread_local std::array<Expr, 512> made;
    Expr &kept = made[(static_cast<size_t>(value) * 2 + (type == DType::index)) % made.size()];
    if (!kept.defined() || kept.type() != type || !kept.is_constant(value)) kept = constant(Scalar::of_integer(type, value));
    return kept;
}

Expr variable(const std::string &name) {
    return make({.kind = ExprKind::variable, .type = DType::index, .name = name, .value = {}, .args = {}});
}

Expr extent(const std::string &dim) { return make({.kind = ExprKind::extent, .type = DType::index, .name = dim, .value = {}, .args = {}}); }

Expr parameter(const std::string &name, DType type) {
    return make({.kind = ExprKind::parameter, .type = type, .name = name, .value = {}, .args = {}});
}

static Expr monoid_operand(ExprKind kind, int number, DType type) {
    return make({.kind = kind, .type = type, .name = {}, .value = {}, .number = number, .args = {}});
}
Expr left(int part, DType type) { return monoid_operand(ExprKind::left, part, type); }
Expr right(int part, DType type) { return monoid_operand(ExprKind::right, part, type); }
Expr input(int position, DType type) { return monoid_operand(ExprKind::input, position, type); }

Expr load(const std::string &tensor, DType type, Operands index) {
    return make({.kind = ExprKind::load, .type = type, .name = tensor, .value = {}, .args = std::move(index)});
}

Expr load_or(const std::string &tensor, DType type, Operands index, Expr guard, Expr fill) {
    if (guard.is_constant(1)) return load(tensor, type, std::move(index));
    index.push_back(std::move(guard));
    index.push_back(std::move(fill));
    return make({.kind = ExprKind::load, .type = type, .name = tensor, .value = {}, .guarded = true, .args = std::move(index)});
}

Expr load_of(const std::string &tensor, const Expr &like) {
    std::vector<Expr> args = like->args;
    if (!like->guarded) return load(tensor, like.type(), std::move(args));
    Expr fill = args.back(), guard = args[args.size() - 2];
    args.resize(args.size() - 2);
    return load_or(tensor, like.type(), std::move(args), std::move(guard), std::move(fill));
}

Expr bounded(Expr value, Expr lo, Expr hi) {
    return make({.kind = ExprKind::bounded,
                 .type = DType::index,
                 .name = {},
                 .value = {},
                 .args = {cast(DType::index, std::move(value)), std::move(lo), std::move(hi)}});
}

static void check_operands(Op op, const Operands &x) {
    auto fail = [&](const std::string &expected) {
        std::string got;
        for (const Expr &e : x) got += (got.empty() ? "" : ", ") + std::string(name_of(e.type())) + " " + brief(e);
        throw UserError("expr.type",
                        std::string(name_of(op)) + " wants " + expected + ", got (" + got + "); convert with an explicit cast.");
    };
    require(static_cast<int>(x.size()) == arity(op), "operand count");
    const size_t first = op == Op::select ? 1 : 0;
    if (op == Op::select && x[0].type() != DType::boolean) fail("a bool condition");
    for (size_t i = first; i < x.size(); i++) {
        if (x[i].type() != x[first].type()) fail("operands of one type");
        if (op != Op::select && !is_arithmetic(x[i].type())) fail("operands of an arithmetic type (f32, f64, i32, i64, bool, index)");
    }
    DType type = x[first].type();
    const OpRow &row = row_of(op);
    if (!row.integers && !is_float(type)) fail("a float operand");
    if (!row.floats && is_float(type)) fail(row.truths ? "an integer or bool operand" : "an integer operand");
    if (!row.truths && type == DType::boolean) fail("numbers");
}

// Identities that hold exactly for integers, or for every float including NaN and -0.
static Expr simplified(Op op, const Operands &x) {
    bool integer = !is_float(x.back().type());
    if (op == Op::select) {
        if (x[0].is_constant()) return x[0]->value.truth() ? x[1] : x[2];
        if (equal(x[1], x[2])) return x[1];
        return {};
    }
    if (std::all_of(x.begin(), x.end(), [](const Expr &e) { return e.is_constant(); })) {
        Scalar values[3];
        for (size_t i = 0; i < x.size(); i++) values[i] = x[i]->value;
        return constant(apply(op, values));
    }
    if (!integer) return {};
    if (op == Op::add && x[0].is_constant(0)) return x[1];
    if ((op == Op::add || op == Op::sub) && x[1].is_constant(0)) return x[0];
    if (op == Op::mul && (x[0].is_constant(0) || x[1].is_constant(1))) return x[0];
    if (op == Op::mul && (x[1].is_constant(0) || x[0].is_constant(1))) return x[1];
    if (op == Op::div && x[1].is_constant(1)) return x[0];
    if (op == Op::mod && x[1].is_constant(1)) return constant_int(x[0].type(), 0);
    if ((op == Op::min || op == Op::max) && equal(x[0], x[1])) return x[0];
    if (x[0].type() == DType::boolean && (op == Op::bit_and || op == Op::bit_or)) {
        for (int i = 0; i < 2; i++)
            if (x[i].is_constant()) return x[i]->value.truth() == (op == Op::bit_and) ? x[1 - i] : x[i];
        if (equal(x[0], x[1])) return x[0];
    }
    return {};
}

Expr operation(Op op, Operands x) {
    check_operands(op, x);
    if (Expr folded = simplified(op, x); folded.defined()) return folded;
    DType type = is_comparison(op) ? DType::boolean : x.back().type();
    return make({.kind = ExprKind::operation, .type = type, .op = op, .name = {}, .value = {}, .args = std::move(x)});
}

Expr cast(DType type, Expr value, Rounding rounding, bool saturate) {
    if (value.type() == type) return value;
    if (is_float(type) && !is_narrow_float(type) && (rounding != Rounding::nearest_even || saturate))
        throw UserError("expr.cast", std::string("a cast to ") + name_of(type) + " rounds to nearest even and overflows to infinity; got " +
                                         (saturate ? "saturation" : std::string("rounding ") + name_of(rounding)) +
                                         ", which is for integers and for floats that are only stored. Leave it out.");
    if (!is_float(type) && (rounding == Rounding::up || rounding == Rounding::down)) {
        // ceil and floor say so: a cast to integers has two roundings.
        if (is_narrow_float(value.type())) value = cast(DType::f32, std::move(value));
        const bool from_float = is_float(value.type()) && type != DType::boolean;
        if (from_float) value = operation(rounding == Rounding::up ? Op::ceil : Op::floor, {std::move(value)});
        rounding = from_float ? Rounding::toward_zero : Rounding::nearest_even;
    }
    if (value.is_constant()) return constant(convert(type, rounding, saturate, value->value));
    return make({.kind = ExprKind::cast,
                 .type = type,
                 .name = {},
                 .value = {},
                 .rounding = rounding,
                 .saturate = saturate,
                 .args = {std::move(value)}});
}

Expr bitcast(DType type, Expr value) {
    auto pair = [&](DType a, DType b) { return (type == a && value.type() == b) || (type == b && value.type() == a); };
    const DType other = is_coded(type) ? type : value.type();
    if (!pair(DType::f32, DType::i32) && !pair(DType::f64, DType::i64) && !(is_coded(other) && pair(other, DType::u8)))
        throw UserError("expr.bitcast", std::string("bitcast goes between f32 and i32, f64 and i64, or u8 and a type of codes, got ") +
                                            name_of(value.type()) + " to " + name_of(type) + ".");
    if (value.is_constant()) return constant(bitcast(type, value->value));
    return make({.kind = ExprKind::bitcast, .type = type, .name = {}, .value = {}, .args = {std::move(value)}});
}

static Expr operation(Op op, Expr a, Expr b) {
    Operands operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(b));
    return operation(op, std::move(operands));
}

Expr operator+(Expr a, Expr b) { return operation(Op::add, std::move(a), std::move(b)); }
Expr operator-(Expr a, Expr b) { return operation(Op::sub, std::move(a), std::move(b)); }
Expr operator*(Expr a, Expr b) { return operation(Op::mul, std::move(a), std::move(b)); }
Expr operator/(Expr a, Expr b) { return operation(Op::div, std::move(a), std::move(b)); }
Expr operator%(Expr a, Expr b) { return operation(Op::mod, std::move(a), std::move(b)); }
Expr operator-(Expr a) { return operation(Op::neg, {a}); }
Expr operator<(Expr a, Expr b) { return operation(Op::lt, std::move(a), std::move(b)); }
Expr operator<=(Expr a, Expr b) { return operation(Op::le, std::move(a), std::move(b)); }
Expr operator>(Expr a, Expr b) { return operation(Op::lt, std::move(b), std::move(a)); }
Expr operator>=(Expr a, Expr b) { return operation(Op::le, std::move(b), std::move(a)); }
Expr operator==(Expr a, Expr b) { return operation(Op::eq, std::move(a), std::move(b)); }
Expr operator!=(Expr a, Expr b) { return operation(Op::ne, std::move(a), std::move(b)); }
Expr operator&&(Expr a, Expr b) { return operation(Op::bit_and, std::move(a), std::move(b)); }
Expr operator||(Expr a, Expr b) { return operation(Op::bit_or, std::move(a), std::move(b)); }
Expr operator!(Expr a) { return operation(Op::logical_not, {a}); }
Expr min(Expr a, Expr b) { return operation(Op::min, std::move(a), std::move(b)); }
Expr max(Expr a, Expr b) { return operation(Op::max, std::move(a), std::move(b)); }
Expr fma(Expr a, Expr b, Expr c) { return operation(Op::fma, {a, b, c}); }
Expr select(Expr condition, Expr a, Expr b) { return operation(Op::select, {condition, a, b}); }
Expr sqrt(Expr a) { return operation(Op::sqrt, {a}); }
Expr abs(Expr a) { return operation(Op::abs, {a}); }
Expr floor(Expr a) { return operation(Op::floor, {a}); }
Expr round(Expr a) { return operation(Op::round, {a}); }

static int order(auto a, auto b) { return a < b ? -1 : b < a ? 1 : 0; }

static int compare_scalars(const Scalar &a, const Scalar &b) {
    if (a == b) return 0;
    if (int c = order(a.type, b.type)) return c;
    if (!is_float(a.type)) return order(a.integer, b.integer);
    auto key = [](double v) { return std::make_tuple(std::isnan(v), std::isnan(v) ? 0.0 : v, !std::signbit(v)); };
    return order(key(a.real), key(b.real));
}

// Pairs that are alike. Only of those that are high: a tree that shares nodes may have many more paths than nodes.
using Alike = std::set<std::pair<const Expr::Node *, const Expr::Node *>>;
static constexpr int low = 6;

static int compare(const Expr &a, const Expr &b, Alike &alike) {
    if (a.get() == b.get()) return 0;
    if (!a.defined() || !b.defined()) return order(a.defined(), b.defined());
    auto key = [](const Node &n) { return std::tie(n.kind, n.type, n.op, n.name, n.rounding, n.saturate, n.guarded, n.number); };
    if (int c = order(key(*a.get()), key(*b.get()))) return c;
    if (int c = compare_scalars(a->value, b->value)) return c;
    if (a->function != b->function) {  // of one name
        if (int c = compare(a->function->in_f32, b->function->in_f32, alike)) return c;
        if (int c = compare(a->function->in_f64, b->function->in_f64, alike)) return c;
    }
    if (int c = order(a->args.size(), b->args.size())) return c;
    const bool is_high = a->height > low;
    if (is_high && alike.count({a.get(), b.get()})) return 0;
    for (size_t i = 0; i < a->args.size(); i++)
        if (int c = compare(a->args[i], b->args[i], alike)) return c;
    if (is_high) alike.insert({a.get(), b.get()});
    return 0;
}

int compare(const Expr &a, const Expr &b) {
    Alike alike;
    return compare(a, b, alike);
}

bool equal(const Expr &a, const Expr &b) {
    if (a.get() == b.get()) return true;
    return a.defined() && b.defined() && a->hash == b->hash && compare(a, b) == 0;
}

}  // namespace tessera
