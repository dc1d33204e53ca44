#include "tests/algorithms/derivative_laws.h"

#include <cmath>

#include "algorithms/transform/inline_calls.h"

namespace tessera::test {

namespace {

constexpr double step = 0x1p-12;

int64_t extent_in(const Algorithm &f, const std::string &dim, const Extents &extents) {
    const Dim &d = f.dim(dim);
    if (d.kind == DimKind::fixed) return d.value;
    if (const auto it = extents.find(dim); it != extents.end()) return it->second;
    if (!d.equals.empty()) return extent_in(f, d.equals, extents);
    const Expr size = rewrite(
        d.size, [&](const Expr &e) -> Expr { return e.kind() == ExprKind::extent ? Expr(extent_in(f, e->name, extents)) : Expr(); });
    return std::max<int64_t>(0, size->value.integer);
}

Array of_few_bits(DType type, const std::vector<int64_t> &shape, std::mt19937 &random) {
    int64_t size = 1;
    for (const int64_t n : shape) size *= n;
    std::vector<double> values;
    for (int64_t i = 0; i < size; i++) values.push_back((static_cast<double>(random() % 385) - 192) / 128);
    return Array(type, shape, values);
}

std::map<std::string, Array> run(const Algorithm &f, const Given &given) {
    EvaluationOptions options;
    options.precision = Precision::f64, options.extents = given.extents;
    return evaluate(f, given.tensors, given.parameters, options);
}

// What the derivative is by, with directions.
struct Directions {
    std::map<std::string, Array> tangents;  // by x.tangent
};

Given moved(const Given &given, const Directions &v, double by) {
    Given result = given;
    for (const auto &[name, tangent] : v.tangents) {
        const std::string source = name.substr(0, name.size() - std::string(".tangent").size());
        if (const auto it = result.parameters.find(source); it != result.parameters.end()) {
            it->second.real += by * tangent.values()[0];
            continue;
        }
        Array &x = result.tensors.at(source);
        std::vector<double> values = x.values();
        const std::vector<double> direction = tangent.values();
        for (size_t i = 0; i < values.size(); i++) values[i] += by * direction[i];
        x = Array(x.dtype, x.extents, values);
    }
    return result;
}

bool is_new(const Algorithm &f, const std::string &name) { return f.find_tensor(name) == nullptr; }

Directions directions(const Algorithm &f, const Algorithm &derived, const Given &given, std::mt19937 &random) {
    Directions v;
    for (const Tensor &t : derived.tensors) {
        if (t.role != Role::input || !is_new(f, t.name)) continue;
        std::vector<int64_t> shape;
        for (const std::string &d : t.dims) shape.push_back(extent_in(derived, d, given.extents));
        v.tangents[t.name] = of_few_bits(t.dtype, shape, random);
    }
    return v;
}

std::map<std::string, Array> run_with(const Algorithm &derived, const Given &given, const Directions &v) {
    Given all = given;
    for (const auto &[name, tangent] : v.tangents) all.tensors[name] = tangent;
    return run(derived, all);
}

}  // namespace

Given random_given(const Algorithm &f, const Extents &extents, std::mt19937 &random, const std::map<std::string, Array> &fixed,
                   int64_t below) {
    Given given{extents, {}, {}};
    for (const Tensor &t : f.tensors) {
        if (t.role == Role::constant) continue;
        if (const auto it = fixed.find(t.name); it != fixed.end()) {
            given.tensors[t.name] = it->second;
            continue;
        }
        std::vector<int64_t> shape;
        for (const std::string &d : t.dims) shape.push_back(extent_in(f, d, extents));
        if (is_float(t.dtype)) {
            given.tensors[t.name] = of_few_bits(t.dtype, shape, random);
            continue;
        }
        Array array(t.dtype, shape);
        for (int64_t i = 0; i < array.size(); i++)
            array.set(i, Scalar::of_integer(t.dtype,
                                            static_cast<int64_t>(random() % static_cast<uint64_t>(t.dtype == DType::boolean ? 2 : below))));
        given.tensors[t.name] = array;
    }
    for (const Parameter &p : f.parameters)
        given.parameters[p.name] = is_float(p.dtype) ? Scalar::of_real(p.dtype, 0.5) : Scalar::of_integer(p.dtype, 1);
    return given;
}

std::optional<double> error_of_jvp(const Algorithm &f, const By &by, const Given &given, std::mt19937 &random) {
    const Algorithm derived = jvp(f, by);
    const Directions v = directions(f, derived, given, random);
    const auto exact = run_with(derived, given, v);
    const auto differences = [&](double h) {
        const auto up = run(f, moved(given, v, h)), down = run(f, moved(given, v, -h));
        std::map<std::string, std::vector<double>> result;
        for (const auto &[name, value] : up) {
            const std::vector<double> a = value.values(), b = down.at(name).values();
            for (size_t i = 0; i < a.size(); i++) result[name].push_back((a[i] - b[i]) / (2 * h));
        }
        return result;
    };
    const auto near = differences(step), far = differences(2 * step);
    double worst = 0;
    for (const auto &[name, value] : exact) {
        if (!name.ends_with(".tangent")) continue;
        const std::string output = name.substr(0, name.size() - std::string(".tangent").size());
        const std::vector<double> got = value.values(), at = exact.at(output).values();
        for (size_t i = 0; i < got.size(); i++) {
            const double a = near.at(output)[i], b = far.at(output)[i], size = 1 + std::fabs(a) + std::fabs(at[i]);
            if (std::isnan(got[i]) && std::isnan(a)) continue;
            if (!(std::fabs(a - b) <= 1e-3 * size)) return std::nullopt;
            // Errors of the differences fall with the square of the step: what is left is that of the fourth power.
            const double best = a + (a - b) / 3;
            const double error = std::fabs(got[i] - best) / size;
            worst = std::isnan(error) ? INFINITY : std::max(worst, error);
        }
    }
    return worst;
}

double error_of_vjp(const Algorithm &f, const By &by, const Given &given, std::mt19937 &random,
                    const std::optional<Algorithm> &given_backward) {
    const Algorithm forward = jvp(f, by), backward = given_backward ? *given_backward : vjp(f, by);
    const Directions v = directions(f, forward, given, random), w = directions(f, backward, given, random);
    const auto changes = run_with(forward, given, v), gradients = run_with(backward, given, w);
    double left = 0, right = 0, size = 1e-30;
    const auto add = [&](double &sum, const Array &a, const Array &b) {
        const std::vector<double> x = a.values(), y = b.values();
        for (size_t i = 0; i < x.size(); i++) sum += x[i] * y[i], size += std::fabs(x[i] * y[i]);
    };
    for (const auto &[name, weight] : w.tangents) add(left, weight, changes.at(name.substr(0, name.size() - 5) + ".tangent"));
    for (const auto &[name, gradient] : gradients) {
        const std::string base = name.substr(0, name.find_last_not_of("0123456789") + 1);  // a second gradient by x is x.grad2
        if (base.ends_with(".grad")) add(right, gradient, v.tangents.at(base.substr(0, base.size() - 5) + ".tangent"));
    }
    const double error = std::fabs(left - right) / size;
    return std::isnan(error) ? INFINITY : error;
}

}  // namespace tessera::test
