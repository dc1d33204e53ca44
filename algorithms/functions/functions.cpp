#include "algorithms/functions/functions.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "algorithms/functions/definitions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr double infinite = INFINITY;

Expr real(const Expr &like, double value) { return constant(like.type(), value); }
Expr one(const Expr &like) { return real(like, 1); }

// exp(-x^2) times a factor: what the derivatives of erf and of gelu are made of.
Expr bell(const Expr &x, double factor) { return real(x, factor) * exp(-(x * x)); }

// Phi(x) + x Phi'(x), by erfc: nothing cancels on the negative side but the two terms.
Expr derivative_of_gelu(const Expr &x) {
    const Expr scaled = x * real(x, 1 / std::numbers::sqrt2);
    return fma(x, bell(scaled, std::numbers::inv_sqrtpi / std::numbers::sqrt2), real(x, 0.5) * erfc(-scaled));
}

Expr derivative_of_gelu_tanh(const Expr &x) {
    const Expr square = x * x, factor = real(x, 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    const Expr v = factor * (x * (one(x) + real(x, 0.044715) * square)), s = sigmoid(v);
    return s + x * s * (one(x) - s) * factor * (one(x) + real(x, 3 * 0.044715) * square);
}

// One argument.
struct Unary {
    const char *name;
    Expr (*define)(Expr);
    Expr (*derivative)(const Expr &x);
    Course course;
    double least, most, ulp_f32, ulp_f64, absolute_f32 = 0;
};

const Unary unary_functions[] = {
    {"exp", definitions::exp, [](const Expr &x) { return exp(x); }, Course::rising, 0, infinite, 0.892, 0.84},
    {"exp_nonpositive", definitions::exp_nonpositive, [](const Expr &x) { return exp_nonpositive(x); }, Course::rising, 0, infinite, 0.892,
     0.84},
    {"log", definitions::log, [](const Expr &x) { return one(x) / x; }, Course::rising, -infinite, infinite, 0.886, 0.81},
    {"expm1", definitions::expm1, [](const Expr &x) { return exp(x); }, Course::rising, -1, infinite, 1.405, 1.13},
    {"log1p", definitions::log1p, [](const Expr &x) { return one(x) / (one(x) + x); }, Course::rising, -infinite, infinite, 0.935, 0.95},
    {"sin", definitions::sin, [](const Expr &x) { return cos(x); }, Course::any, -1, 1, 0.906, 0.79},
    {"cos", definitions::cos, [](const Expr &x) { return -sin(x); }, Course::any, -1, 1, 0.900, 0.82},
    {"atan", definitions::atan, [](const Expr &x) { return one(x) / fma(x, x, one(x)); }, Course::rising, -std::numbers::pi / 2,
     std::numbers::pi / 2, 1.203, 1.09},
    {"erf", definitions::erf, [](const Expr &x) { return bell(x, 2 * std::numbers::inv_sqrtpi); }, Course::rising, -1, 1, 1.184, 1.23},
    {"erfc", definitions::erfc, [](const Expr &x) { return bell(x, -2 * std::numbers::inv_sqrtpi); }, Course::falling, 0, 2, 1.421, 1.50},
    {"tanh", definitions::tanh, [](const Expr &x) { return one(x) - tanh(x) * tanh(x); }, Course::rising, -1, 1, 1.371, 1.30},
    {"sigmoid", definitions::sigmoid, [](const Expr &x) { return sigmoid(x) * sigmoid(-x); }, Course::rising, 0, 1, 1.647, 1.56},
    {"rsqrt", definitions::rsqrt, [](const Expr &x) { return real(x, -0.5) * rsqrt(x) / x; }, Course::any, 0, infinite, 0.850, 0.85},
    {"relu", definitions::relu, [](const Expr &x) { return select(real(x, 0) < x, one(x), real(x, 0)); }, Course::rising, 0, infinite, 0.5,
     0.5},
    {"softplus", definitions::softplus, [](const Expr &x) { return sigmoid(x); }, Course::rising, 0, infinite, 1.098, 1.03},
    {"gelu", definitions::gelu, derivative_of_gelu, Course::any, -0.17, infinite, 2.571, 5.3, 2e-8},
    {"gelu_tanh", definitions::gelu_tanh, derivative_of_gelu_tanh, Course::any, -0.1701, infinite, 2.313, 1.94},
    {"silu", definitions::silu, [](const Expr &x) { return sigmoid(x) * (one(x) + x * sigmoid(-x)); }, Course::any, -0.2785, infinite,
     2.394, 2.01},
};

// What takes the place of a function of one argument in f32; in f64, and in derivatives, it is that function.
struct Narrower {
    const char *name, *of;
    Expr (*define)(Expr);
    double ulp_f32, absolute_f32 = 0;
};

const Narrower narrower_functions[] = {
    {"exp12", "exp", definitions::exp12, 1300},
    {"exp_nonpositive12", "exp_nonpositive", definitions::exp_nonpositive12, 1300},
    {"log12", "log", definitions::log12, 900},
    {"tanh12", "tanh", definitions::tanh12, 2500},
    {"erf12", "erf", definitions::erf12, 3600},
    {"sigmoid12", "sigmoid", definitions::sigmoid12, 2000},
    {"gelu12", "gelu", definitions::gelu12, 3600, 5e-4},
    {"gelu_tanh12", "gelu_tanh", definitions::gelu_tanh12, 2000, 1e-35},
    {"silu12", "silu", definitions::silu12, 2000, 1e-35},
    {"rsqrt_newton", "rsqrt", definitions::rsqrt_newton, 1.3},
};

// A derivative may use any function, so all are there before the first derivative is made.
struct Row {
    std::shared_ptr<Function> function;
    std::function<Expr(const Operands &, int)> derivative;
};

Row made(const char *name, int arity, const std::function<Expr(const Operands &)> &define,
         const std::function<Expr(const Operands &, int)> &derivative, FunctionFacts facts = {}) {
    return {std::make_shared<Function>(*make_function(name, arity, define, std::move(facts))), derivative};
}

Row made(const Unary &f) {
    return made(
        f.name, 1, [&](const Operands &x) { return f.define(x[0]); }, [of = f.derivative](const Operands &x, int) { return of(x[0]); },
        {f.course, f.least, f.most, f.ulp_f32, f.ulp_f64, {}, {}, f.absolute_f32});
}

Row made(const Narrower &f) {
    const Unary &of =
        *std::find_if(std::begin(unary_functions), std::end(unary_functions), [&](const Unary &u) { return std::string(u.name) == f.of; });
    return made(
        f.name, 1, [&](const Operands &x) { return x[0].type() == DType::f32 ? f.define(x[0]) : of.define(x[0]); },
        [&](const Operands &x, int) { return of.derivative(x[0]); },
        {of.course, of.least, of.most, f.ulp_f32, of.ulp_f64, {}, {}, f.absolute_f32});
}

Row made_atan2() {
    const auto derivative = [](const Operands &x, int of) {
        const Expr square = fma(x[0], x[0], x[1] * x[1]);
        return (of == 0 ? x[1] : -x[0]) / square;
    };
    return made("atan2", 2, [](const Operands &x) { return definitions::atan2(x[0], x[1]); }, derivative,
                {Course::any, -std::numbers::pi, std::numbers::pi, 1.54, 1.46});
}

Row made_pow() {
    const auto derivative = [](const Operands &x, int of) {
        return of == 0 ? x[1] * pow(x[0], x[1] - one(x[0])) : pow(x[0], x[1]) * log(x[0]);
    };
    return made("pow", 2, [](const Operands &x) { return definitions::pow(x[0], x[1]); }, derivative, {.ulp_f32 = 0.80, .ulp_f64 = 0.87});
}

// Its first argument, bit for bit, with the derivative of argument `through`; of none where that is -1.
Row made_itself(const char *name, int arity, int through) {
    FunctionFacts facts;
    facts.rounds = RoundingFacts{};
    return made(
        name, arity, [](const Operands &x) { return x[0]; },
        [through](const Operands &x, int of) { return real(x[0], of == through ? 1 : 0); }, facts);
}

thread_local const std::vector<Row> *being_made = nullptr;

// Never destroyed: a function and those that its derivative uses hold each other.
const std::vector<Row> &rows() {
    if (being_made) return *being_made;
    static const auto &all = *[] {
        auto *list = new std::vector<Row>;
        for (const Unary &f : unary_functions) list->push_back(made(f));
        list->push_back(made_atan2());
        list->push_back(made_pow());
        for (const Narrower &f : narrower_functions) list->push_back(made(f));
        list->push_back(made_itself("stop_gradient", 1, -1));
        list->push_back(made_itself("straight_through", 2, 1));
        being_made = list;
        for (const Row &row : *list) row.function->facts.derivative = derivatives(row.function->arity, row.derivative);
        being_made = nullptr;
        return list;
    }();
    return all;
}

Expr applied(const char *name, Operands x) {
    for (const Row &row : rows())
        if (row.function->name == name) return applied(row.function, std::move(x));
    throw InternalError("every function that is declared has its row");
}

}  // namespace

const std::vector<FunctionRef> &standard_functions() {
    static const auto &all = *[] {
        auto *list = new std::vector<FunctionRef>;
        for (const Row &row : rows()) list->push_back(row.function);
        return list;
    }();
    return all;
}

const FunctionRef *find_function(const std::string &name) {
    for (const FunctionRef &f : standard_functions())
        if (f->name == name) return &f;
    return nullptr;
}

FunctionRef narrower_function(const Function &f) {
    const FunctionRef *standard = find_function(f.name);
    if (!standard || standard->get() != &f) return nullptr;
    for (const Narrower &n : narrower_functions)
        if (f.name == n.of) return *find_function(n.name);
    return nullptr;
}

Expr exp(Expr x) { return applied("exp", {std::move(x)}); }
Expr exp_nonpositive(Expr x) { return applied("exp_nonpositive", {std::move(x)}); }
Expr expm1(Expr x) { return applied("expm1", {std::move(x)}); }
Expr log1p(Expr x) { return applied("log1p", {std::move(x)}); }
Expr log(Expr x) { return applied("log", {std::move(x)}); }
Expr sin(Expr x) { return applied("sin", {std::move(x)}); }
Expr cos(Expr x) { return applied("cos", {std::move(x)}); }
Expr atan(Expr x) { return applied("atan", {std::move(x)}); }
Expr atan2(Expr y, Expr x) { return applied("atan2", {std::move(y), std::move(x)}); }
Expr erf(Expr x) { return applied("erf", {std::move(x)}); }
Expr erfc(Expr x) { return applied("erfc", {std::move(x)}); }
Expr tanh(Expr x) { return applied("tanh", {std::move(x)}); }
Expr sigmoid(Expr x) { return applied("sigmoid", {std::move(x)}); }
Expr rsqrt(Expr x) { return applied("rsqrt", {std::move(x)}); }
Expr relu(Expr x) { return applied("relu", {std::move(x)}); }
Expr softplus(Expr x) { return applied("softplus", {std::move(x)}); }
Expr gelu(Expr x) { return applied("gelu", {std::move(x)}); }
Expr gelu_tanh(Expr x) { return applied("gelu_tanh", {std::move(x)}); }
Expr silu(Expr x) { return applied("silu", {std::move(x)}); }
Expr stop_gradient(Expr x) { return applied("stop_gradient", {std::move(x)}); }
Expr straight_through(Expr x, Expr by) { return applied("straight_through", {std::move(x), std::move(by)}); }
Expr pow(Expr x, Expr y) { return applied("pow", {std::move(x), std::move(y)}); }

Expr pow(Expr x, int n) {
    const bool is_whole = is_integer(x.type()) && x.type() != DType::index;
    if (!is_whole && x.type() != DType::f32 && x.type() != DType::f64)
        throw UserError("functions.type", std::string("pow takes f32, f64, i32 or i64, got ") + name_of(x.type()) +
                                              "; cast the operand to one of them first.");
    if (is_whole && n < 0)
        throw UserError("functions.type", std::string("pow of ") + name_of(x.type()) + " by " + std::to_string(n) +
                                              ": expected a power of at least 0, whose result is an integer. Cast to f32 or f64.");
    Expr result = constant(x.type(), 1), square = x;
    bool is_one = true;
    for (int64_t left = std::abs(static_cast<int64_t>(n)); left > 0; left /= 2) {
        if (left % 2) result = is_one ? square : square * result, is_one = false;
        if (left > 1) square = square * square;
    }
    return n < 0 ? constant(x.type(), 1) / result : result;
}

}  // namespace tessera
