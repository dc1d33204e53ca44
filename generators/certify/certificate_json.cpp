#include "generators/certify/certificate_json.h"

#include <cmath>

#include "support/text/error.h"

namespace tessera {

using nlohmann::ordered_json;

namespace {

constexpr double most_steps_to_certify = 1e7;  // of a shape that nobody asked for: a second or so

ordered_json json_of(const Spread &s) { return {{"largest", s.largest}, {"p999", s.most}}; }

ordered_json json_of(const Certificate &c) {
    return {{"output", c.output},
            {"elements", c.elements},
            {"unbounded", c.unbounded},
            {"unknown", c.unknown},
            {"bound", c.unbounded == c.elements && c.elements > 0 ? ordered_json() : ordered_json(c.bound)},
            {"error", json_of(c.error)},
            {"ulp", json_of(c.units)},
            {"relative", json_of(c.relative)},
            {"ratio", c.ratio},
            {"median_ratio", c.median_ratio}};
}

ordered_json json_of(const StageRange &s) {
    // JSON has no infinity: null where nothing is known.
    const auto number = [](double v) { return std::isfinite(v) ? ordered_json(v) : ordered_json(); };
    return {{"stage", s.stage},
            {"lowest", number(s.range.values.lo)},
            {"highest", number(s.range.values.hi)},
            {"error", number(s.range.error)},
            {"trouble", s.trouble}};
}

}  // namespace

ordered_json certificate_json(const PreparedKernel &p, const std::vector<Extents> &shapes, bool is_asked, uint64_t seed,
                              std::vector<std::string> &wrong, const StatedInputs &stated) {
    ErrorSamples samples;
    ordered_json outputs = ordered_json::array(), taken = ordered_json::array();
    wrong.assign(shapes.size(), "");
    for (size_t i = 0; i < shapes.size(); i++) {
        if (!is_asked && steps_to_certify(p, shapes[i]) > most_steps_to_certify) continue;
        wrong[i] = samples.add(p, shapes[i], seed, stated);
        taken.push_back(shapes[i]);
    }
    for (const Certificate &c : samples.certificates()) outputs.push_back(json_of(c));
    return {{"seed", seed}, {"shapes", taken}, {"shapes_left_out", shapes.size() - taken.size()}, {"outputs", outputs}};
}

ordered_json stability_json(const PreparedKernel &p, const Extents &extents, const std::vector<std::string> &ranges, uint64_t seed) {
    const Stability s = stability_of(p, extents, parse_ranges(p.request.bound, ranges), seed);
    ordered_json stages = ordered_json::array();
    for (const StageRange &stage : s.stages) stages.push_back(json_of(stage));
    return {{"proved", s.is_proved()}, {"samples", s.samples}, {"found", s.found}, {"stages", stages}};
}

ordered_json certificate_json(const PreparedKernel &p, const CertificateRequest &request) {
    const bool is_asked = !request.extents.empty();
    const Extents extents = parse_shape(request.extents, "--extents");
    if (is_asked || !request.ranges.empty()) all_extents(p.request.bound, extents);
    std::vector<std::string> wrong;
    ordered_json certificate = certificate_json(
        p, is_asked ? std::vector{extents} : awkward_shapes(p.request.bound, request.shapes, request.seed), is_asked, request.seed, wrong);
    for (const std::string &what : wrong)
        if (!what.empty())
            throw UserError("certificate.wrong", p.compiled.kernel.name + " on " + p.request.target.name + ": " + what +
                                                     ". This is a defect of Tessera: 'verify --certificate' shows it; leave --certificate "
                                                     "out to have the library all the same.");
    if (request.ranges.empty()) return certificate;
    certificate["ranges"] = request.ranges;
    certificate["for_all_inputs"] = stability_json(p, extents, request.ranges, request.seed);
    return certificate;
}

}  // namespace tessera
