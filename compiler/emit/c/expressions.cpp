#include "compiler/emit/c/expressions.h"

#include <cmath>

#include <fmt/format.h>

#include "algorithms/index/prove.h"
#include "compiler/emit/one_comparison.h"
#include "support/text/error.h"

namespace tessera::emit_c {

static constexpr size_t widest = 96;  // longer expressions are taken apart

Run::Value Run::make(CType type, std::vector<Piece> pieces, int precedence, bool cheap, const std::string &hint, const std::string &key) {
    std::string whole = key + "|" + std::to_string(static_cast<int>(type.element)) + "x" + std::to_string(type.lanes) + "|";
    for (const Piece &p : pieces) whole += p.term < 0 ? p.text : "#" + std::to_string(p.term) + "#";
    auto [it, fresh] = known_.emplace(whole, static_cast<int>(terms_.size()));
    if (fresh) terms_.push_back({type, std::move(pieces), precedence, cheap, hint, 0, ""});
    return {it->second, type};
}

Run::Value Run::leaf(CType type, const std::string &text, int precedence) { return make(type, {{text, -1, 0}}, precedence, true); }

Run::Value Run::call(CType type, const std::string &function, const std::vector<Value> &arguments, const std::string &hint) {
    std::vector<Piece> pieces = {{function + "(", -1, 0}};
    for (size_t i = 0; i < arguments.size(); i++) {
        if (i) pieces.push_back({", ", -1, 0});
        pieces.push_back(operand(arguments[i]));
    }
    pieces.push_back({")", -1, 0});
    return make(type, std::move(pieces), primary, false, hint);
}

Run::Value Run::infix(CType type, const Value &a, const std::string &sign, const Value &b, int precedence, int left, int right) {
    const bool cheap = type.element == DType::index && !type.lanes && precedence <= sum;
    return make(type, {operand(a, left), {sign, -1, 0}, operand(b, right)}, precedence, cheap);
}

Run::Value Run::widened(const Value &v, int lanes) {
    if (v.lanes() || !lanes) return v;
    const CType wide{v.type.element, lanes};
    if (v.type.element == DType::boolean) return call(wide, operations_.splat(wide), {negated(v)});
    const Value all = call(wide, operations_.splat(wide), {v}, terms_[static_cast<size_t>(v.term)].hint);
    const Term &one = terms_[static_cast<size_t>(v.term)];
    terms_[static_cast<size_t>(all.term)].cheap = one.cheap && one.pieces.size() == 1;
    return all;
}

Run::Value Run::negated(const Value &v) { return make(v.type, {{"-", -1, 0}, operand(v, primary)}, prefix); }

Run::Value Run::both(const Value &a, const Value &b) {
    const int lanes = std::max(a.lanes(), b.lanes());
    return infix({DType::boolean, lanes}, widened(a, lanes), lanes ? " & " : " && ", widened(b, lanes), conditional, prefix, prefix);
}

Run::Value Run::emit(const Expr &e) {
    const auto key = std::make_pair(e.get(), context_.term);
    if (auto it = done_.find(key); it != done_.end()) return it->second;
    kept_.push_back(e);
    return done_[key] = emit_node(e);
}

static std::string real_literal(double v, bool narrow) {
    const char *suffix = narrow ? "f" : "";
    if (std::isnan(v)) return fmt::format("__builtin_nan{}(\"\")", suffix);
    if (std::isinf(v)) return fmt::format("{}__builtin_inf{}()", v < 0 ? "-" : "", suffix);
    std::string text = narrow ? fmt::format("{}", static_cast<float>(v)) : fmt::format("{}", v);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text + suffix;
}

std::string literal(const Scalar &s) {
    switch (held_as(s.type)) {
    case Held::f32: return real_literal(s.real, true);
    case Held::f64: return real_literal(s.real, false);
    case Held::half: return fmt::format("0x{:04x}", stored_bits(s));
    case Held::u8: return is_coded(s.type) ? fmt::format("0x{:02x}", stored_bits(s)) : std::to_string(s.integer);
    case Held::i64: return s.integer == INT64_MIN ? "INT64_MIN" : fmt::format("INT64_C({})", s.integer);
    case Held::i32: return s.integer == INT32_MIN ? "INT32_MIN" : std::to_string(s.integer);
    case Held::i8:
    case Held::truth:
    case Held::position: return std::to_string(s.integer);
    }
    throw InternalError("unknown dtype");
}

Run::Value Run::emit_constant(const Scalar &s) {
    const std::string text = literal(s);
    if (s.type == DType::index && s.integer > INT32_MAX) return leaf({s.type, 0}, fmt::format("INT64_C({})", text));
    return leaf({s.type, 0}, text, text[0] == '-' ? prefix : primary);
}

Run::Value Run::emit_node(const Expr &e) {
    switch (e.kind()) {
    case ExprKind::constant: return emit_constant(e->value);
    case ExprKind::variable: {
        if (lanes_ && e->name == lanes_->variable) return call({DType::index, lanes_->count}, operations_.lanes(lanes_->count), {});
        const size_t stride = e->name.find("\n");  // made by flat()
        if (stride != std::string::npos)
            return leaf({DType::index, 0}, scope_.stride(e->name.substr(0, stride), std::stoul(e->name.substr(stride + 1))));
        return leaf({e.type(), 0}, scope_.variable(e->name));
    }
    case ExprKind::extent: return leaf({DType::index, 0}, scope_.extent(e->name));
    case ExprKind::parameter: return leaf({e.type(), 0}, scope_.parameter(e->name));
    case ExprKind::load: return emit_load(e);
    case ExprKind::bounded: {
        Value v = emit(e->args[0]), lo = emit(e->args[1]), hi = emit(minus(e->args[2], Expr(1)));
        const CType type{DType::index, std::max({v.lanes(), lo.lanes(), hi.lanes()})};
        if (v.type.element == DType::i32 && v.lanes())
            v = call({DType::index, v.lanes()}, operations_.cast(DType::index, v.type, Rounding::nearest_even, false), {v});
        return call(
            type, operations_.binary(Op::max, type),
            {call(type, operations_.binary(Op::min, type), {widened(v, type.lanes), widened(hi, type.lanes)}), widened(lo, type.lanes)});
    }
    case ExprKind::operation: return emit_operation(e);
    case ExprKind::cast: return emit_cast(e);
    case ExprKind::bitcast: {
        Value v = emit(e->args[0]);
        if (held_as(e.type()) == held_as(v.type.element)) return {v.term, {e.type(), v.lanes()}};  // the same to C
        return call({e.type(), v.lanes()}, operations_.bitcast(e.type(), v.type), {v});
    }
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: break;
    }
    throw InternalError("a definition's operand or a function in a tile program");
}

// Positions that go up or down with the lane are compared once for all lanes.
Run::Value Run::compare(Op op, const Expr &a, const Expr &b) {
    if (a.type() == DType::index && (varies(a) || varies(b)) && (op == Op::lt || op == Op::le)) {
        const auto x = linear(a), y = linear(b);
        const Expr step = x && y ? minus(x->step, y->step) : Expr();
        if (step.defined() && (step.is_constant(1) || step.is_constant(-1))) {
            const int count = lanes_->count;
            const CType type{DType::boolean, count};
            const int64_t more = (op == Op::le) == step.is_constant(1) ? 1 : 0;
            const Expr n = plus(step.is_constant(1) ? minus(y->base, x->base) : minus(x->base, y->base), Expr(more));
            const Value below = call(type, operations_.first(count), {emit(n)});
            return step.is_constant(1) ? below : make(type, {{"~", -1, 0}, operand(below, primary)}, prefix);
        }
    }
    Value x = emit(a), y = emit(b);
    const int lanes = std::max(x.lanes(), y.lanes());
    const CType type{DType::boolean, lanes}, from{a.type(), lanes};
    if (!lanes) return infix(type, x, sign_of(op), y, relation, sum, sum);
    return call(type, operations_.compare(op, from), {widened(x, lanes), widened(y, lanes)});
}

static bool orders_floats(const Expr &condition) {
    if (condition.kind() != ExprKind::operation) return false;
    if (condition->op == Op::logical_not) return orders_floats(condition->args[0]);
    return (condition->op == Op::lt || condition->op == Op::le) && is_float(condition->args[0].type());
}

// An operation on bools by the four that C has.
enum class Truth { itself, both, either, differ };
struct TruthCode {
    Truth by;
    bool first_inverted = false, inverted = false;
};

static constexpr OpTable<TruthCode> truth_codes(is_on_truths, {{Op::logical_not, {Truth::itself, true}},
                                                               {Op::bit_and, {Truth::both}},
                                                               {Op::min, {Truth::both}},
                                                               {Op::bit_or, {Truth::either}},
                                                               {Op::max, {Truth::either}},
                                                               {Op::bit_xor, {Truth::differ}},
                                                               {Op::ne, {Truth::differ}},
                                                               {Op::eq, {Truth::differ, false, true}},
                                                               {Op::lt, {Truth::both, true}},
                                                               {Op::le, {Truth::either, true}}});

Run::Value Run::emit_operation(const Expr &e) {
    if (const auto one = as_one_comparison(e)) {
        const Value first = emit(one->first), second = emit(one->second);
        const CType type{e.type(), std::max(first.lanes(), second.lanes())};
        return call(type, operations_.one_comparison(one->least, type), {widened(first, type.lanes), widened(second, type.lanes)});
    }
    const DType element = e->args[0].type();
    if (is_comparison(e->op) && element != DType::boolean) return compare(e->op, e->args[0], e->args[1]);
    std::vector<Value> x;
    int lanes = 0;
    for (const Expr &arg : e->args) x.push_back(emit(arg)), lanes = std::max(lanes, x.back().lanes());
    const CType type{e.type(), lanes};
    for (size_t i = e->op == Op::select ? 1 : 0; i < x.size(); i++) x[i] = widened(x[i], lanes);
    if (e->op == Op::select) {
        if (is_float(type.element) && x[0].lanes() == lanes && orders_floats(e->args[0])) return call(type, operations_.choose(type), x);
        if (!x[0].lanes())
            return make(type, {operand(x[0], prefix), {" ? ", -1, 0}, operand(x[1], prefix), {" : ", -1, 0}, operand(x[2], prefix)},
                        conditional);
        return call(type, operations_.select(type), x);
    }
    if (element == DType::boolean) {
        const char *no = lanes ? "~" : "!", *either = lanes ? " | " : " || ";
        auto inverted = [&](const Value &v) { return make(type, {{no, -1, 0}, operand(v, primary)}, prefix); };
        const TruthCode &code = truth_codes.at(e->op, "bools");
        const Value a = code.first_inverted ? inverted(x[0]) : x[0];
        switch (code.by) {
        case Truth::itself: return a;
        case Truth::both: return both(a, x[1]);
        case Truth::either: return infix(type, a, either, x[1], conditional, prefix, prefix);
        case Truth::differ: break;
        }
        const Value differ = infix(type, a, " ^ ", x[1], conditional, prefix, prefix);
        return code.inverted ? inverted(differ) : differ;
    }
    const bool real = is_float(element), position = element == DType::index;
    switch (e->op) {
    case Op::neg:
        if (real || position) return negated(x[0]);
        return call(type, operations_.unary(e->op, type), x);
    case Op::logical_not: return make(type, {{"~", -1, 0}, operand(x[0], primary)}, prefix);
    case Op::abs:
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc: return call(type, operations_.unary(e->op, type), x);
    case Op::fma: return call(type, operations_.fma(type), x);
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: return infix(type, x[0], sign_of(e->op), x[1], conditional, prefix, prefix);
    case Op::add:
    case Op::sub:
        if (real || position) return infix(type, x[0], sign_of(e->op), x[1], sum, sum, product);
        break;
    case Op::mul:
        if (real || position) return infix(type, x[0], sign_of(e->op), x[1], product, product, prefix);
        break;
    case Op::div:
        if (real) return infix(type, x[0], sign_of(e->op), x[1], product, product, prefix);
        break;
    case Op::mod:
    case Op::min:
    case Op::max:
    case Op::shl:
    case Op::shr: break;
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select: undefined_on(e->op, "numbers here: it is compared or chosen above");
    }
    return call(type, operations_.binary(e->op, type), x);
}

Run::Value Run::emit_cast(const Expr &e) {
    require(!is_expanded(e), "lowering expands conversions that no emitter has");
    Value v = emit(e->args[0]);
    DType from = v.type.element;
    const int lanes = v.lanes();
    const CType type{e.type(), lanes};
    if (from == DType::boolean) {  // 0 or 1
        v = lanes ? make({DType::i32, lanes}, {{"-", -1, 0}, operand(v, primary)}, prefix) : Value{v.term, {DType::i32, 0}};
        from = DType::i32;
        if (e.type() == DType::i32) return v;
    }
    if (e.type() == DType::boolean) {
        if (is_float(from) && from != DType::f64 && from != DType::f32)
            v = call({DType::f32, lanes}, operations_.cast(DType::f32, v.type, Rounding::nearest_even, false), {v}), from = DType::f32;
        const Value zero = emit(constant(from, 0));
        if (!lanes) return infix(type, v, " != ", zero, relation, sum, sum);
        return call(type, operations_.compare(Op::ne, {from, lanes}), {v, widened(zero, lanes)});
    }
    const std::string function = operations_.cast(e.type(), v.type, e->rounding, e->saturate);
    if (!function.empty()) return call(type, function, {v});
    return make(type, {{"(" + operations_.type(type) + ")", -1, 0}, operand(v, prefix)}, prefix);
}

void Run::prefetch(const std::string &buffer, const std::vector<Expr> &index) {
    const Place &place = scope_.place(buffer);
    const Expr position = flat(place, buffer, index);
    std::vector<Piece> statement = {{operations_.prefetch(place.written) + "(" + scope_.pointer(buffer) + ", ", -1, 0},
                                    operand(emit(position)),
                                    {", sizeof *" + scope_.pointer(buffer) + ");", -1, 0}};
    statements_.push_back(std::move(statement));
}

void Run::store(const std::string &buffer, const std::vector<Expr> &index, const Expr &value, const Expr &guard,
                const std::optional<Lanes> &lanes) {
    if (value.kind() == ExprKind::load && value->name == buffer && !value->guarded && reads_element(value, index)) return;  // it is there
    if (lanes.has_value() != lanes_.has_value() || (lanes && lanes->variable != lanes_->variable)) done_.clear();
    lanes_ = lanes;
    const Place &place = scope_.place(buffer);
    const Expr position = flat(place, buffer, index);
    const std::optional<Value> step = grouped(value);
    Value v = step ? *step : emit(value), g;
    if (guard.defined()) g = emit(guard);
    std::vector<Piece> statement;
    auto text = [&](const std::string &t) { statement.push_back({t, -1, 0}); };
    if (place.named) {
        const auto line = linear(position);
        require(line && line->base.is_constant(), "named storage is written at constants");
        const std::string name = scope_.slot(buffer, line->base->value.integer / std::max(1, place.lanes));
        v = widened(v, place.lanes);
        if (guard.defined() && g.lanes()) {
            const Value old = make(v.type, {{name, -1, 0}}, primary, true, "", buffer + "@" + std::to_string(versions_[buffer]));
            v = call(v.type, operations_.select(v.type), {g, v, old});
        } else if (guard.defined()) {
            text("if ("), statement.push_back(operand(g)), text(") ");
        }
        text(name + " = "), statement.push_back(operand(v));
    } else if (lanes) {
        const int count = lanes->count;
        std::string how;
        v = widened(v, count);
        const bool masked = guard.defined() && g.lanes();
        if (guard.defined() && !masked) text("if ("), statement.push_back(operand(g)), text(") ");
        const std::vector<Piece> where = access(position, buffer, how);
        text(operations_.store({place.buffer.dtype, count}, how, masked) + "(");
        statement.insert(statement.end(), where.begin(), where.end());
        text(", "), statement.push_back(operand(v));
        if (masked) text(", "), statement.push_back(operand(g));
        text(")");
    } else {
        if (guard.defined()) text("if ("), statement.push_back(operand(g)), text(") ");
        text(scope_.pointer(buffer) + "["), statement.push_back(operand(emit(position))), text("] = ");
        if (place.buffer.dtype == DType::boolean) text("(uint8_t)"), statement.push_back(operand(v, prefix));
        else statement.push_back(operand(v));
    }
    text(";");
    statements_.push_back(std::move(statement));
    versions_[buffer]++;
    // What was read before may be read anew.
    done_.clear();
}

void Run::scalar(const Expr &e) {
    lanes_.reset();
    statements_.push_back({operand(emit(e))});
}

std::string Run::render(const std::vector<Piece> &pieces, std::vector<std::string> &lines, std::vector<std::string> &taken) {
    std::string text;
    for (const Piece &p : pieces) {
        if (p.term < 0) {
            text += p.text;
            continue;
        }
        const std::string inner = render(p.term, lines, taken);
        const Term &t = terms_[static_cast<size_t>(p.term)];
        text += t.name.empty() && t.precedence > p.max_precedence ? "(" + inner + ")" : inner;
    }
    return text;
}

std::string Run::render(int term, std::vector<std::string> &lines, std::vector<std::string> &taken) {
    const auto at = static_cast<size_t>(term);
    if (!terms_[at].name.empty()) return terms_[at].name;
    const std::string text = render(std::vector<Piece>(terms_[at].pieces), lines, taken);
    Term &t = terms_[at];
    const bool shared = t.uses > 1 && !t.cheap;
    if (!shared && text.size() <= widest) return text;
    t.name = identifiers_.take(t.hint.empty() ? "t" : t.hint);
    taken.push_back(t.name);
    lines.push_back(fmt::format("const {} {} = {};", operations_.type(t.type), t.name, text));
    return t.name;
}

std::vector<std::string> Run::text(std::vector<std::string> &taken) {
    std::vector<bool> seen(terms_.size());
    std::function<void(const std::vector<Piece> &)> count = [&](const std::vector<Piece> &pieces) {
        for (const Piece &p : pieces) {
            if (p.term < 0) continue;
            const auto at = static_cast<size_t>(p.term);
            terms_[at].uses++;
            if (!seen[at]) seen[at] = true, count(terms_[at].pieces);
        }
    };
    for (const auto &s : statements_) count(s);
    std::vector<std::string> lines;
    for (const auto &s : statements_) {
        const std::string line = render(s, lines, taken);
        lines.push_back(line);
    }
    return lines;
}

}  // namespace tessera::emit_c
