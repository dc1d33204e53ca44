#include <cmath>

#include "algorithms/expr/expr.h"

namespace tessera {

static std::string number(const Scalar &s) {
    if (!is_float(s.type)) {
        if (s.type == DType::boolean) return s.integer ? "true" : "false";
        return std::to_string(s.integer) + (s.type == DType::index ? "" : std::string(":") + name_of(s.type));
    }
    if (std::isnan(s.real)) return std::string("nan:") + name_of(s.type);
    if (std::isinf(s.real)) return std::string(s.real < 0 ? "-inf:" : "inf:") + name_of(s.type);
    char text[40];
    snprintf(text, sizeof text, s.type == DType::f64 ? "%.17g" : "%.9g", s.real);
    std::string digits = text;
    if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
    return s.type == DType::f32 ? digits : digits + ":" + name_of(s.type);
}

namespace {

// Appends the text of expressions until it is longer than `most`: that of a tree is exponential in the depth of its sharing.
class Text {
public:
    explicit Text(size_t most) : max_(most) {}

    bool full() const { return text_.size() > max_; }
    std::string take() { return std::move(text_); }

    void write(const Expr &e) {
        if (full()) return;
        if (!e.defined()) return add("undefined");
        switch (e.kind()) {
        case ExprKind::constant: return add(number(e->value));
        case ExprKind::variable: return add(e->name);
        case ExprKind::extent: return add("|" + e->name + "|");
        case ExprKind::parameter: return add("$" + e->name);
        case ExprKind::left: return add("left." + std::to_string(e->number));
        case ExprKind::right: return add("right." + std::to_string(e->number));
        case ExprKind::input: return add("in." + std::to_string(e->number));
        case ExprKind::bounded: return list("bounded(", e, 3, ")");
        case ExprKind::bitcast: return list(std::string("bitcast<") + name_of(e.type()) + ">(", e, 1, ")");
        case ExprKind::cast:
            if (is_coded_float(e.type()) || (is_float(e.type()) && (e->saturate || e->rounding != Rounding::nearest_even)))
                return list(std::string("cast<") + name_of(e.type()) + ">(", e, 1,
                            std::string(", ") + name_of(e->rounding) + (e->saturate ? ", saturate)" : ")"));
            return list(
                std::string(name_of(e.type())) + (e->saturate ? ".sat" : "") + (e->rounding == Rounding::toward_zero ? ".rtz" : "") + "(",
                e, 1, ")");
        case ExprKind::load: {
            if (!e->guarded) return list(e->name + "[", e, e->args.size(), "]");
            const size_t rank = e->args.size() - 2;
            list("load_or(" + e->name + "[", e, rank, "], ");
            write(e->args[rank]);
            add(", ");
            write(e->args[rank + 1]);
            return add(")");
        }
        case ExprKind::function: return list(e->name + "(", e, e->args.size(), ")");
        case ExprKind::operation: break;
        }
        const char *symbol = row_of(e->op).infix;
        if (!symbol) return list(std::string(name_of(e->op)) + "(", e, e->args.size(), ")");
        operand(e->args[0], e->op, false);
        add(symbol);
        operand(e->args[1], e->op, true);
    }

private:
    size_t max_;
    std::string text_;

    void add(const std::string &piece) { text_ += piece; }

    void list(const std::string &before, const Expr &e, size_t count, const std::string &after) {
        add(before);
        for (size_t i = 0; i < count; i++) {
            if (i) add(", ");
            write(e->args[i]);
        }
        add(after);
    }

    // In parentheses where the text would otherwise group differently; comparisons always are, for the reader.
    void operand(const Expr &e, Op outer, bool right) {
        if (e.kind() != ExprKind::operation || !row_of(e->op).infix) return write(e);
        const int inner = row_of(e->op).precedence, around = row_of(outer).precedence;
        const bool grouped = inner > around || (inner == around && !right && inner != 1);
        if (grouped && inner >= 2) return write(e);
        add("(");
        write(e);
        add(")");
    }
};

}  // namespace

std::string to_string(const Expr &e) {
    Text text(std::string::npos);
    text.write(e);
    return text.take();
}

std::string brief(const Expr &e, size_t most) {
    Text text(most);
    text.write(e);
    const bool cut = text.full();
    return cut ? text.take().substr(0, most) + "..." : text.take();
}

}  // namespace tessera
