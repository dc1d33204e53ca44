#include "algorithms/transform/licensed.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "algorithms/functions/functions.h"

namespace tessera {

namespace {

bool is_real(const Expr &e) { return e.type() == DType::f32 || e.type() == DType::f64; }

// A constant of the type, undefined where what is said is no normal number of it.
Expr normal(DType type, double value) {
    const Expr c = constant(type, value);
    const double least = type == DType::f32 ? 0x1p-126 : 0x1p-1022;
    return std::isfinite(c->value.real) && std::fabs(c->value.real) >= least ? c : Expr();
}

Expr contracted(const Expr &e) {
    const bool minus = e.is_operation(Op::sub);
    if (!is_real(e) || (!minus && !e.is_operation(Op::add))) return {};
    const Expr &a = e->args[0], &b = e->args[1];
    if (a.is_operation(Op::mul)) return fma(a->args[0], a->args[1], minus ? -b : b);
    if (b.is_operation(Op::mul)) return fma(minus ? -b->args[0] : b->args[0], b->args[1], a);
    return {};
}

// x and c of x * c, c * x, x + c, c + x.
struct WithConstant {
    Expr x, c;
};
WithConstant with_constant(const Expr &e, Op op) {
    if (!e.is_operation(op)) return {};
    const bool first = e->args[0].is_constant();
    if (first == e->args[1].is_constant()) return {};
    return {e->args[first ? 1 : 0], e->args[first ? 0 : 1]};
}

Expr reassociated(const Expr &e) {
    if (!is_real(e)) return {};
    for (const Op op : {Op::mul, Op::add}) {
        const WithConstant outer = with_constant(e, op);
        if (!outer.c.defined()) continue;
        const WithConstant inner = with_constant(outer.x, op);
        if (!inner.c.defined()) return {};
        const double a = outer.c->value.real, b = inner.c->value.real;
        const Expr c = normal(e.type(), op == Op::mul ? a * b : a + b);
        return c.defined() ? operation(op, {inner.x, c}) : Expr();
    }
    return {};
}

// Whether `x` varies with a variable that `y` lacks.
bool varies_more(const Expr &x, const Expr &y) {
    const std::set<std::string> of_x = variables_in(x), of_y = variables_in(y);
    return !std::includes(of_y.begin(), of_y.end(), of_x.begin(), of_x.end());
}

Expr narrower(const Expr &e) {
    const FunctionRef f = e.type() == DType::f32 ? narrower_function(*e->function) : nullptr;
    return f ? applied(f, e->args) : Expr();
}

Expr with_reciprocals(const Expr &e) {
    if (!e.is_operation(Op::div) || !is_real(e)) return {};
    const Expr &x = e->args[0], &y = e->args[1];
    if (y.is_constant()) {
        const Expr c = normal(e.type(), 1 / y->value.real);
        return c.defined() ? x * c : Expr();
    }
    if (y.is_operation(Op::sqrt)) return x * applied(*find_function(e.type() == DType::f32 ? "rsqrt_newton" : "rsqrt"), {y->args[0]});
    return varies_more(x, y) ? x * (constant(e.type(), 1) / y) : Expr();
}

class Licensed {
public:
    explicit Licensed(const std::set<Licence> &licensed) : licensed_(licensed) {}

    // Functions alone: a monoid says how its elements are added.
    Expr functions_in(const Expr &e) const {
        return rewrite(e, [&](const Expr &n) -> Expr {
            if (n.kind() != ExprKind::function) return {};
            return has(n->function->name == "rsqrt" ? Licence::reciprocals : Licence::functions) ? narrower(n) : Expr();
        });
    }

    Expr operator()(const Expr &e) const {
        Expr made = functions_in(e);
        if (has(Licence::reciprocals)) made = rewrite(made, with_reciprocals);
        if (has(Licence::reassociation)) made = rewrite(made, reassociated);
        if (has(Licence::contraction)) made = rewrite(made, contracted);
        return made;
    }

    bool has(Licence l) const { return licensed_.count(l); }

private:
    const std::set<Licence> &licensed_;
};

bool is_the(const Monoid &m, const Monoid &standard) {
    return m.parts.size() == 1 && m.inputs == standard.inputs && equal(m.step[0], standard.step[0]) &&
           equal(m.combine[0], standard.combine[0]) && m.parts[0].name == standard.parts[0].name;
}
bool is_sum(const Monoid &m) {
    return m.inputs.size() == 1 && (m.inputs[0] == DType::f32 || m.inputs[0] == DType::f64) && is_the(m, sum_monoid(m.inputs[0]));
}
bool is_dot(const Monoid &m) {
    return m.inputs.size() == 2 && (m.inputs[0] == DType::f32 || m.inputs[0] == DType::f64) && is_the(m, dot_monoid(m.inputs[0]));
}

// A sum of products as a fold by dot.
void sum_as_dot(Monoid &monoid, std::vector<Expr> &inputs) {
    if (!is_sum(monoid) || !inputs[0].is_operation(Op::mul)) return;
    const Expr product = inputs[0];
    monoid = dot_monoid(product.type());
    inputs = {product->args[0], product->args[1]};
}

void factors_of(const Expr &e, std::vector<Expr> &all) {
    if (!e.is_operation(Op::mul)) return all.push_back(e);
    for (const Expr &arg : e->args) factors_of(arg, all);
}

Expr product_of(const std::vector<Expr> &factors) {
    Expr product;
    for (const Expr &f : factors) product = product.defined() ? product * f : f;
    return product;
}

// Sums without the factors that no term varies; undefined where there are none.
Expr taken_out(Reduce &fold, const Algorithm &a) {
    if (!(is_sum(fold.monoid) || is_dot(fold.monoid)) || !fold.at.empty()) return {};
    const auto stays = [&](const Expr &e) {
        bool stays = false;
        walk(e, [&](const Expr &n) {
            stays |= n.kind() == ExprKind::variable && std::find(fold.dims.begin(), fold.dims.end(), n->name) != fold.dims.end();
            const Tensor *tensor = n.kind() == ExprKind::load ? a.find_tensor(n->name) : nullptr;
            stays |= tensor && tensor->role == Role::state;  // may be another where it would be read
        });
        return stays;
    };
    std::vector<Expr> out;
    for (Expr &input : fold.inputs) {
        std::vector<Expr> all, left;
        factors_of(input, all);
        for (const Expr &f : all)
            if (stays(f)) left.push_back(f);
        if (left.empty() || left.size() == all.size()) continue;
        for (const Expr &f : all)
            if (!stays(f)) out.push_back(f);
        input = product_of(left);
    }
    return product_of(out);
}

// Whether what a stage gives is read by stages over as many dims alone, as it is.
bool is_read_by_stages_alone(const Algorithm &a, const Stage &stage) {
    const std::string &name = stage.name;
    if (!stage.rows.empty() || results_of(stage).size() != 1 || results_of(stage)[0].name != name || a.checks.count(name)) return false;
    if (std::find(a.outputs.begin(), a.outputs.end(), name) != a.outputs.end()) return false;
    for (const Call &call : a.calls()) {
        for (const auto &[own, view] : call.tensors)
            if (view.tensor == name) return false;
        for (const auto &[own, value] : call.parameters)
            if (has_load(value)) return false;
    }
    bool fits = true;
    for (const Stage &reader : a.stages())
        for (const Expr &e : expressions_of(reader))
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load && n->name == name)
                    fits &= !n->guarded && reader.dims.size() + folded_dims(reader).size() == stage.dims.size();
            });
    return fits;
}

void take_factors_out(Algorithm &a) {
    for (size_t at = 0; at < a.steps.size(); at++) {
        auto *stage = std::get_if<Stage>(&a.steps[at]);
        auto *fold = stage ? std::get_if<Reduce>(&stage->body) : nullptr;
        if (!fold || !is_read_by_stages_alone(a, *stage)) continue;
        const Expr factor = taken_out(*fold, a);
        if (!factor.defined()) continue;
        const std::string name = stage->name;
        const std::vector<std::string> dims = stage->dims;
        for (size_t later = at + 1; later < a.steps.size(); later++) {
            auto *reader = std::get_if<Stage>(&a.steps[later]);
            if (!reader) continue;
            *reader = map_expressions(std::move(*reader), [&](const Expr &e) {
                return replace_loads(e, [&](const Expr &n) -> Expr {
                    if (n->name != name) return {};
                    std::map<std::string, Expr> index;
                    for (size_t i = 0; i < dims.size(); i++) index[dims[i]] = n->args[i];
                    return n * substitute(factor, index);
                });
            });
        }
    }
}

}  // namespace

Algorithm with_licences(Algorithm algorithm) {
    const std::set<Licence> licences = algorithm.numerics.licensed;
    if (licences.empty()) return algorithm;
    const Licensed licensed(licences);
    if (licensed.has(Licence::reassociation)) take_factors_out(algorithm);
    for (Stage &stage : algorithm.stages()) {
        stage = map_expressions(std::move(stage), licensed);
        stage = map_monoid(std::move(stage),
                           [&](const Monoid &m) { return map_expressions(m, [&](const Expr &e) { return licensed.functions_in(e); }); });
        if (!licensed.has(Licence::contraction)) continue;
        if (auto *reduce = std::get_if<Reduce>(&stage.body)) sum_as_dot(reduce->monoid, reduce->inputs);
        if (auto *scan = std::get_if<Scan>(&stage.body)) sum_as_dot(scan->monoid, scan->inputs);
    }
    return algorithm;
}

}  // namespace tessera
