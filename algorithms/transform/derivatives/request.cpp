#include "algorithms/transform/derivatives/request.h"

#include <algorithm>

#include "algorithms/ir/rows.h"
#include "algorithms/transform/as_a_call.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/verify/verify_rule.h"
#include "support/text/error.h"

namespace tessera::differentiation {

Tensor result_of(const Algorithm &f, const std::string &name) {
    for (const Stage &stage : f.stages())
        for (const Tensor &t : results_of(stage))
            if (t.name == name) return t;
    for (const Call &call : f.calls())
        for (const Tensor &t : results_of(call))
            if (t.name == name) return t;
    throw InternalError("there is no result '" + name + "'");
}

static void check_named(const std::string &subject, const std::vector<std::string> &asked, const std::vector<std::string> &there,
                        const std::string &kind) {
    for (size_t i = 0; i < asked.size(); i++) {
        if (std::find(there.begin(), there.end(), asked[i]) == there.end())
            throw UserError("derivative.unknown", subject + ": a derivative was asked " + kind + " '" + asked[i] + "'; there are " +
                                                      (there.empty() ? "none" : join(there)) + "." + did_you_mean(asked[i], there));
        if (std::find(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(i), asked[i]) !=
            asked.begin() + static_cast<std::ptrdiff_t>(i))
            throw UserError("derivative.unknown",
                            subject + ": a derivative was asked " + kind + " '" + asked[i] + "' twice; name it once.");
    }
}

// Integers have no derivative; who names one did not mistype.
static void check_floats(const Algorithm &f, const std::vector<std::string> &asked, const std::vector<std::string> &floats) {
    const auto refuse = [&](const std::string &name, DType type) {
        throw UserError("derivative.unknown",
                        f.name + ": a derivative was asked by '" + name + "', which holds " + name_of(type) +
                            "; expected floats, of which there are " + (floats.empty() ? "none" : join(floats)) + ".",
                        "Leave it out: integers and bools are constant.");
    };
    for (const std::string &name : asked) {
        if (const Tensor *t = f.find_tensor(name); t && !is_float(t->dtype)) refuse(name, t->dtype);
        for (const Parameter &p : f.parameters)
            if (p.name == name && !is_float(p.dtype)) refuse(name, p.dtype);
    }
}

// With no calls but those that repeat, in their callees too, and those of algorithms with a rule.
static Algorithm with_kept_calls_alone(const Algorithm &f) {
    const auto is_kept = [](const Call &call) { return call.repeat || call.callee->rule; };
    Algorithm flat = f.rule ? as_a_call(f) : inline_calls(f, keeps_calls(f, is_kept));
    for (Call &call : flat.calls()) {
        if (call.repeat) call.callee = std::make_shared<const Algorithm>(with_kept_calls_alone(*call.callee));
        else verify_rule(*call.callee);
    }
    return flat;
}

// A pattern's '*' stand for any characters.
static bool fits(std::string_view pattern, std::string_view name) {
    if (pattern.empty()) return name.empty();
    if (pattern[0] != '*') return !name.empty() && pattern[0] == name[0] && fits(pattern.substr(1), name.substr(1));
    for (size_t i = 0; i <= name.size(); i++)
        if (fits(pattern.substr(1), name.substr(i))) return true;
    return false;
}

Request of_round(const Call &call, const RoundActivity &round) {
    Request request;
    request.f = *call.callee;
    request.by = round.by;
    std::set<std::string> by;
    for (const Source &s : round.by) by.insert(s.name);
    for (const std::string &output : round.of) request.of.push_back(result_of(request.f, output));
    request.active = activity(request.f, by, {round.of.begin(), round.of.end()});
    return request;
}

Request checked(const Algorithm &given, const By &asked) {
    refuse_rows(given, "a derivative");
    Request request;
    request.f = with_kept_calls_alone(given);
    for (const auto &[scope, every] : asked.residuals.groups) request.f = checkpoint(request.f, scope, every);
    request.residuals = asked.residuals;
    std::vector<Source> sources;
    std::vector<std::string> names, outputs;
    for (const Tensor &t : request.f.tensors)
        if (t.role != Role::constant && is_float(t.dtype)) sources.push_back({t.name, t.dtype, t.dims, false}), names.push_back(t.name);
    for (const Parameter &p : request.f.parameters)
        if (is_float(p.dtype)) sources.push_back({p.name, p.dtype, {}, true}), names.push_back(p.name);
    std::vector<Tensor> results;
    for (const std::string &output : request.f.outputs) {
        const Tensor t = result_of(request.f, output);
        if (is_float(t.dtype)) results.push_back(t), outputs.push_back(output);
    }
    check_floats(request.f, asked.by, names);
    check_named(given.name, asked.by, names, "by the float input, state or parameter");
    check_named(given.name, asked.of, outputs, "of the float output");
    if (names.empty() || outputs.empty())
        throw UserError(
            "derivative.nothing",
            given.name + ": it has no float " + (names.empty() ? "input or parameter" : "output") + ", so it has no derivative.",
            "Take derivatives of algorithms over floats; what is integers is constant.");
    std::set<std::string> by(asked.by.begin(), asked.by.end()), of(asked.of.begin(), asked.of.end());
    if (by.empty())
        for (const Source &s : sources)
            if (!s.is_parameter) by.insert(s.name);
    if (of.empty()) of.insert(outputs.begin(), outputs.end());
    request.active = activity(request.f, by, of);
    const auto is_active = [&](const std::string &name) { return request.active.tensors.count(name) > 0; };
    for (const std::string &name : asked.by)
        if (!is_active(name))
            throw UserError("derivative.nothing", given.name + ": no float output that is asked of changes with '" + name +
                                                      "': it is read by nothing, or as an integer, or behind stop_gradient. Leave it out.");
    for (const std::string &name : asked.of)
        if (!is_active(name))
            throw UserError("derivative.nothing", given.name + ": '" + name + "' does not change with what the derivative is asked by, " +
                                                      join({by.begin(), by.end()}) + ". Leave it out.");
    // In the order in which they were named, otherwise in that of the algorithm.
    const auto add = [&](const std::string &name) {
        for (const Source &s : sources)
            if (s.name == name && is_active(name)) request.by.push_back(s);
    };
    if (asked.by.empty())
        for (const Source &s : sources) {
            if (by.count(s.name)) add(s.name);
        }
    else
        for (const std::string &name : asked.by) add(name);
    for (const Tensor &t : results)
        if (of.count(t.name) && is_active(t.name)) request.of.push_back(t);
    if (request.by.empty() || request.of.empty())
        throw UserError("derivative.nothing", given.name + ": no float output changes with a float input, so it has no derivative.",
                        "Ask for the derivative of an algorithm that reads its floats, before casts to integers and stop_gradient.");
    return request;
}

}  // namespace tessera::differentiation

namespace tessera {

bool Residuals::saves(const std::string &stage, bool is_of_round) const {
    for (const Choice &c : choices)
        if (differentiation::fits(c.stages, stage)) return c.save;
    return !is_of_round;
}

}  // namespace tessera
