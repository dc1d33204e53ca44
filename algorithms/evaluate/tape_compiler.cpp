// Tape's constructor: one pass over the expressions, operands first.
#include <algorithm>
#include <deque>

#include "algorithms/evaluate/tape.h"
#include "algorithms/evaluate/tape_codes.h"
#include "algorithms/expr/function.h"
#include "support/text/error.h"

namespace tessera {

class Tape::Compiler {
public:
    Compiler(Tape &tape, const TapeResolver &resolver) : tape_(tape), resolver_(resolver) {}
    int emit(const Expr &e);

private:
    int emit_new(const Expr &e);
    int emit_operation(const Expr &e);
    int emit_cast(const Expr &e);
    int emit_load(const Expr &e);
    int emit_function(const Expr &e);
    int add(uint16_t code, int a, int b = 0, int c = 0, int detail = 0);

    Tape &tape_;
    const TapeResolver &resolver_;
    std::unordered_map<const Expr::Node *, int> done_;
    std::vector<const Expr::Node *> order_;  // keys of done_, as they came
    std::deque<Expr> definitions_;           // put in for functions, whose nodes done_ knows by address
};

static Kind kind_of(DType type) {
    switch (held_as(type)) {
    case Held::f32: return Kind::f32;
    case Held::f64: return Kind::f64;
    case Held::i64:
    case Held::position: return Kind::i64;
    case Held::i32: return Kind::i32;
    case Held::truth: return Kind::boolean;
    case Held::half:
    case Held::i8:
    case Held::u8: break;
    }
    throw InternalError(std::string("arithmetic on ") + name_of(type));
}

int Tape::Compiler::add(uint16_t code, int a, int b, int c, int detail) {
    int target = tape_.next_++;
    tape_.code_.push_back({code, target, a, b, c, detail});
    return target;
}

int Tape::Compiler::emit(const Expr &e) {
    if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
    int slot = emit_new(e);
    done_[e.get()] = slot;
    order_.push_back(e.get());
    return slot;
}

int Tape::Compiler::emit_new(const Expr &e) {
    switch (e.kind()) {
    case ExprKind::constant: {
        int slot = tape_.next_++;
        tape_.constants_.push_back({slot, to_register(e->value)});
        return slot;
    }
    case ExprKind::variable:
    case ExprKind::extent:
    case ExprKind::parameter:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input: return resolver_.slot(e);
    case ExprKind::load: return emit_load(e);
    case ExprKind::bounded: {
        int x = emit(e->args[0]), lo = emit(e->args[1]), hi = emit(e->args[2]);
        return add(code_clamp, x, lo, hi);
    }
    case ExprKind::operation: return emit_operation(e);
    case ExprKind::function: return emit_function(e);
    case ExprKind::cast: return emit_cast(e);
    case ExprKind::bitcast: {
        int x = emit(e->args[0]);
        if (e.type() == DType::i32) return add(code_f32_bits, x);
        if (e.type() == DType::f32) return add(code_f32_of_bits, x);
        if (is_coded(e.type()) || e.type() == DType::u8)
            return add(code_bitcast, x, 0, 0, static_cast<int>(e->args[0].type()) | static_cast<int>(e.type()) << 6);
        return add(code_f64_bits, x);
    }
    }
    throw InternalError("an expression of unknown kind");
}

int Tape::Compiler::emit_operation(const Expr &e) {
    int x[3] = {0, 0, 0};
    for (size_t i = 0; i < e->args.size(); i++) x[i] = emit(e->args[i]);
    if (e->op == Op::select) return add(code_select, x[0], x[1], x[2], static_cast<int>(e.type()));
    return add(code(e->op, kind_of(e->args[0].type())), x[0], x[1], x[2]);
}

int Tape::Compiler::emit_cast(const Expr &e) {
    int x = emit(e->args[0]);
    DType from = e->args[0].type(), to = e.type();
    const bool from_float = is_in_f32(from);
    if (from_float && to == DType::f32) return add(code_move, x);
    if (from_float && to == DType::f64) return add(code_f32_to_f64, x);
    const bool as_usual = e->rounding == Rounding::nearest_even && !e->saturate;
    if (from_float && to == DType::bf16 && as_usual) return add(code_f32_to_bf16, x);
    if (from_float && to == DType::f16 && as_usual) return add(code_f32_to_f16, x);
    if (from == DType::f64 && to == DType::f32) return add(code_f64_to_f32, x);
    if (!is_float(from) && to == DType::f32) return add(code_integer_to_f32, x);
    if (!is_float(from) && to == DType::f64) return add(code_integer_to_f64, x);
    if (!is_float(from) && (to == DType::i64 || (to == DType::index && from != DType::i64))) return add(code_move, x);
    int how = static_cast<int>(from) | static_cast<int>(to) << 6 | static_cast<int>(e->rounding) << 12 | (e->saturate ? 1 << 14 : 0);
    return add(code_convert, x, 0, 0, how);
}

int Tape::Compiler::emit_load(const Expr &e) {
    size_t rank = e->args.size() - (e->guarded ? 2 : 0);
    int guard = e->guarded ? emit(e->args[rank]) : 0, fill = e->guarded ? emit(e->args[rank + 1]) : 0;
    int target = tape_.next_++;
    size_t skip = 0, remembered = order_.size();
    if (e->guarded) {
        tape_.code_.push_back({code_move, target, fill});
        skip = tape_.code_.size();
        tape_.code_.push_back({code_skip_unless, target, guard});
    }
    std::vector<int> access{resolver_.tensor(e->name), static_cast<int>(rank)};
    for (size_t i = 0; i < rank; i++) access.push_back(emit(e->args[i]));
    int at = static_cast<int>(tape_.accesses_.size());
    tape_.accesses_.insert(tape_.accesses_.end(), access.begin(), access.end());
    tape_.code_.push_back({code_load, target, 0, 0, 0, at});
    if (e->guarded) {
        tape_.code_[skip].detail = static_cast<int>(tape_.code_.size() - skip - 1);
        // What was evaluated under the guard has no value elsewhere.
        for (; order_.size() > remembered; order_.pop_back()) done_.erase(order_.back());
    }
    return target;
}

int Tape::Compiler::emit_function(const Expr &e) {
    std::vector<int> arguments;
    for (const Expr &x : e->args) arguments.push_back(emit(x));
    const size_t first = tape_.code_.size();
    const int target = emit(definitions_.emplace_back(definition_of(e)));
    tape_.applications_.push_back({first, tape_.code_.size(), target, std::move(arguments), e.type(), e->function});
    return target;
}

Tape::Tape(const std::vector<Expr> &roots, const TapeResolver &resolver, int first) : next_(first) {
    Compiler compiler(*this, resolver);
    for (const Expr &root : roots) {
        results_.push_back(compiler.emit(root));
        types_.push_back(root.type());
    }
    std::sort(applications_.begin(), applications_.end(),
              [](const Application &a, const Application &b) { return a.first != b.first ? a.first < b.first : a.last > b.last; });
}

}  // namespace tessera
