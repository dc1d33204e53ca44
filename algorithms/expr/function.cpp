#include "algorithms/expr/function.h"

#include <algorithm>

#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

static bool is_name(const std::string &name) {
    auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !name.empty() && name.size() <= 64 && is_letter(name[0]) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

[[noreturn]] static void refuse(const std::string &name, const std::string &why) {
    throw UserError("function.definition", "function '" + printable(name.substr(0, 64)) + "': " + why);
}

static void check_definition(const std::string &name, int arity, DType type, const Expr &body, const std::string &what = "its definition") {
    const std::string of_type = what + " of " + name_of(type);
    if (!body.defined()) refuse(name, of_type + " is missing; give an expression over its arguments.");
    if (body.type() != type) refuse(name, of_type + " gives " + name_of(body.type()) + "; end it with a cast to " + name_of(type) + ".");
    walk(body, [&](const Expr &e) {
        switch (e.kind()) {
        case ExprKind::input:
            if (e->number < arity && e.type() == type) return;
            refuse(name, of_type + " uses argument " + std::to_string(e->number) + " as " + name_of(e.type()) + "; there are " +
                             std::to_string(arity) + ", of " + name_of(type) + ".");
        case ExprKind::constant:
        case ExprKind::operation:
        case ExprKind::function:
        case ExprKind::bitcast:
        case ExprKind::cast: return;
        case ExprKind::variable:
        case ExprKind::extent:
        case ExprKind::parameter:
        case ExprKind::load:
        case ExprKind::bounded:
        case ExprKind::left:
        case ExprKind::right: refuse(name, of_type + " reads " + brief(e) + "; a function has its arguments alone. Pass it as one.");
        }
    });
}

static void check_derivatives(const std::string &name, int arity, const Derivatives &known) {
    if (!known.known() && known.in_f64.empty()) return;
    for (const DType type : {DType::f32, DType::f64}) {
        const std::vector<Expr> &all = known.of(type);
        if (all.size() != static_cast<size_t>(arity))
            refuse(name, "it has " + std::to_string(all.size()) + " derivatives of " + name_of(type) + "; expected one by each of its " +
                             std::to_string(arity) + " arguments, or none.");
        for (const Expr &e : all) check_definition(name, arity, type, e, "a derivative");
    }
}

FunctionRef make_function(const std::string &name, int arity, Expr in_f32, Expr in_f64, FunctionFacts facts) {
    if (!is_name(name)) refuse(name, "expected a name of letters, digits and underscores, 64 at most, with no digit in front.");
    if (arity < 1 || arity > max_function_arguments)
        refuse(name, "expected 1 to " + std::to_string(max_function_arguments) + " arguments, got " + std::to_string(arity) + ".");
    check_definition(name, arity, DType::f32, in_f32);
    check_definition(name, arity, DType::f64, in_f64);
    check_derivatives(name, arity, facts.derivative);
    return std::make_shared<const Function>(Function{name, arity, std::move(in_f32), std::move(in_f64), std::move(facts)});
}

static Operands arguments_of(int arity, DType type) {
    Operands x;
    for (int i = 0; i < arity; i++) x.push_back(input(i, type));
    return x;
}

FunctionRef make_function(const std::string &name, int arity, const std::function<Expr(const Operands &)> &define, FunctionFacts facts) {
    return make_function(name, arity, define(arguments_of(arity, DType::f32)), define(arguments_of(arity, DType::f64)), std::move(facts));
}

Derivatives derivatives(int arity, const std::function<Expr(const Operands &, int)> &by) {
    Derivatives all;
    for (int of = 0; of < arity; of++) {
        all.in_f32.push_back(by(arguments_of(arity, DType::f32), of));
        all.in_f64.push_back(by(arguments_of(arity, DType::f64), of));
    }
    return all;
}

static void check_arguments(const Function &f, const Operands &x) {
    if (static_cast<int>(x.size()) != f.arity)
        throw UserError("functions.type",
                        f.name + " takes " + std::to_string(f.arity) + " arguments, got " + std::to_string(x.size()) + ".");
    for (const Expr &argument : x) {
        const DType type = argument.type();
        if (type != DType::f32 && type != DType::f64)
            throw UserError("functions.type",
                            f.name + " takes f32 or f64, got " + name_of(type) + "; cast the operand to f32 or f64 first.");
        if (type != x[0].type())
            throw UserError("functions.type", f.name + " takes arguments of one type, got " + name_of(x[0].type()) + " and " +
                                                  name_of(type) + "; cast one of them.");
    }
}

Expr applied(const FunctionRef &function, Operands x) {
    check_arguments(*function, x);
    const bool folds = std::all_of(x.begin(), x.end(), [](const Expr &e) { return e.is_constant(); });
    const DType type = x[0].type();
    Expr node({.kind = ExprKind::function, .type = type, .name = function->name, .value = {}, .function = function, .args = std::move(x)});
    return folds ? expand_functions(node) : node;
}

static Expr with_arguments(const Expr &body, const Operands &x) {
    return rewrite(body, [&](const Expr &e) -> Expr { return e.kind() == ExprKind::input ? x[static_cast<size_t>(e->number)] : Expr(); });
}

Expr definition_of(const Expr &applied) { return with_arguments(applied->function->definition(applied.type()), applied->args); }

Expr derivative_of(const Expr &applied, size_t argument) {
    const Derivatives &known = applied->function->facts.derivative;
    return known.known() ? with_arguments(known.of(applied.type())[argument], applied->args) : Expr();
}

Expr expand_functions(const Expr &e) {
    return replace_functions(e, [](const Expr &applied) { return expand_functions(definition_of(applied)); });
}

int operations_of(const Function &function, DType type) {
    int count = 0;
    walk(expand_functions(function.definition(type)),
         [&](const Expr &e) { count += e.kind() == ExprKind::operation || e.kind() == ExprKind::cast; });
    return count;
}

}  // namespace tessera
