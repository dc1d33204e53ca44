#include "algorithms/transform/derivatives/request.h"

#include <algorithm>

#include "algorithms/transform/inline_calls.h"
#include "support/text/error.h"

namespace tessera::differentiation {

Tensor result_of(const Algorithm &f, const std::string &name) {
    for (const Stage &stage : f.stages())
        for (const Tensor &t : results_of(stage))
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

Request checked(const Algorithm &given, const By &asked) {
    for (const Call &call : given.calls())
        if (call.repeat || keeps_repeats(given)(call.scope))
            throw UserError("derivative.repeat",
                            given.name + "." + call.scope + ": it repeats along '" +
                                (call.repeat ? call.repeat->dim : std::string("a dim inside")) + "', and rounds have no derivative yet.",
                            "Call the callee once for each round, by a loop where the algorithm is declared (its extent has to be a number "
                            "then), or take the derivative of the callee itself.")
                .about(call.scope, call.span);
    Request request;
    request.f = inline_calls(given);
    for (const Call &call : request.f.calls())
        throw UserError("derivative.repeat", given.name + "." + call.scope + ": it repeats, and rounds have no derivative yet.",
                        "Call it once for each round.")
            .about(call.scope, call.span);
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
