#include "generators/certify/certificate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "algorithms/evaluate/in_double.h"
#include "algorithms/transform/inline_calls.h"
#include "autotune/measure/sampled.h"
#include "compiler/compile/specialize.h"
#include "compiler/interpret/operation_error.h"
#include "compiler/interpret/running_error.h"
#include "compiler/tile/arguments.h"

namespace tessera {

namespace {

struct Bounded {
    std::map<std::string, Array> values;
    RunningErrors errors;
};

Bounded bounded(const TileProgram &program, const Inputs &inputs, const Extents &extents) {
    Bounded b{arguments_before(program, inputs, extents), {}};
    std::map<std::string, TensorView> views;
    for (auto &[name, array] : b.values) views[name] = array.view(name);
    b.errors = running_errors(program, views, extents, inputs.parameters);
    return b;
}

// The program that runs for these extents, with functions by name.
TileProgram named_program(const PreparedKernel &p, const Extents &extents) {
    return lower_variant(p.request.bound, variant_for(p.compiled.kernel, extents).when, knobs_for(p.request, p.choice, extents),
                         p.request.target, {}, FunctionForm::named);
}

// The algorithm in f64 in its declared order, as the reference evaluates it; nothing where a call repeats.
std::optional<TileProgram> reference_program(const PreparedKernel &p) {
    const Algorithm whole = inline_calls(p.request.bound, keeps_repeats(p.request.bound));
    if (whole.calls().begin() != whole.calls().end()) return {};
    return lower(in_double(whole), {}, p.request.target, {}, FunctionForm::named);
}

double share(std::vector<double> values, double part) {
    if (values.empty()) return 0;
    const auto at = static_cast<ptrdiff_t>(std::ceil(part * static_cast<double>(values.size()))) - 1;
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<size_t>(at)];
}

Spread spread_of(const std::vector<double> &values) { return {share(values, 1), share(values, 0.999)}; }

}  // namespace

double steps_to_certify(const PreparedKernel &p, const Extents &symbolic) {
    const Extents extents = all_extents(p.request.bound, symbolic);
    return 2 * steps_of(variant_for(p.compiled.kernel, extents).program, extents);
}

std::string ErrorSamples::add(const PreparedKernel &p, const Extents &symbolic, uint64_t seed, const StatedInputs &stated) {
    const Extents extents = all_extents(p.request.bound, symbolic);
    const TileProgram program = named_program(p, extents);
    const std::optional<TileProgram> reference = reference_program(p);
    const Inputs inputs = random_inputs(program, extents, seed, stated);
    const Bounded got = bounded(program, with_packed(p, inputs, extents), extents);
    const Bounded own = reference ? bounded(*reference, inputs, extents) : Bounded{};
    const auto exact = reference_results(p, inputs, {Precision::f64, extents, false});
    std::string wrong;
    for (const Argument &a : program.arguments) {
        if (!a.written) continue;
        const std::string &name = a.tensor.name;
        Samples &samples = samples_[name];
        std::vector<double> bounds = got.errors.bounds.at(name);
        const DType type = declared_tensor(a).dtype;
        const std::vector<double> values = as_declared(a, got.values.at(name), extents).values(), truth = exact.at(name).values();
        if (a.half_bytes) {  // two numbers in a byte, the bits of which no bound follows
            bounds.assign(values.size(), unknown_error);
            if (samples.unknown.empty()) samples.unknown = "two rounded numbers are the bits of a byte";
        }
        for (size_t i = 0; i < values.size(); i++) {
            if (!std::isfinite(truth[i])) continue;
            const double error = std::fabs(values[i] - truth[i]);
            if (!std::isfinite(values[i]) && bounds[i] < unknown_error)
                wrong = fmt::format("{} element {} is {}, and its error bound is {:.3g}", name, i, values[i], bounds[i]);
            if (!std::isfinite(error)) continue;
            const double unit = is_float(type) ? 2 * half_unit(type, truth[i]) : 1;
            const double allowed = bounds[i] + (reference && !a.half_bytes ? own.errors.bounds.at(name)[i] : 0);
            samples.bounds.push_back(bounds[i]), samples.allowed.push_back(allowed);
            samples.errors.push_back(error), samples.units.push_back(error / unit);
            samples.relative.push_back(error == 0 ? 0 : error / std::max(std::fabs(truth[i]), unit));
            if (!(bounds[i] < unknown_error) && samples.unknown.empty()) samples.unknown = got.errors.unknown;
            if (wrong.empty() && reference && !(error <= allowed))
                wrong = fmt::format("{} element {}: the error {:.9g} is above its bound {:.9g}", name, i, error, bounds[i]);
        }
    }
    return wrong;
}

std::vector<Certificate> ErrorSamples::certificates() const {
    std::vector<Certificate> all;
    for (const auto &[name, s] : samples_) {
        Certificate c{
            name, static_cast<int64_t>(s.bounds.size()), 0, s.unknown, 0, spread_of(s.errors), spread_of(s.units), spread_of(s.relative)};
        std::vector<double> ratios;
        double error = 0, allowed = 0;  // the largest of those that have a bound
        for (size_t i = 0; i < s.bounds.size(); i++) {
            if (!(s.bounds[i] < unknown_error)) {
                c.unbounded++;
                continue;
            }
            c.bound = std::max(c.bound, s.bounds[i]), error = std::max(error, s.errors[i]);
            if (!std::isfinite(s.allowed[i])) continue;  // the reference has no bound
            allowed = std::max(allowed, s.allowed[i]);
            if (s.errors[i] > 0) ratios.push_back(s.allowed[i] / s.errors[i]);
        }
        if (error > 0) c.ratio = allowed / error, c.median_ratio = share(ratios, 0.5);
        all.push_back(std::move(c));
    }
    return all;
}

}  // namespace tessera
