#include "generators/registry/kernel_request.h"

#include <algorithm>

#include "algorithms/transform/bind_extents.h"
#include "algorithms/transform/half_bytes.h"
#include "algorithms/transform/inline_calls.h"
#include "generators/registry/algorithm_file.h"
#include "generators/registry/transforms.h"
#include "support/text/error.h"

namespace tessera {

// The algorithm of a file says its own numerics and has no options.
static Algorithm algorithm_of_file(const Registry &registry, const KernelOptions &options, const Options &given) {
    Algorithm algorithm = read_algorithm(options.algorithm);
    complete_options(options.algorithm, {}, given);
    if (!options.numerics.empty() && options.numerics != algorithm.numerics.name &&
        registry.numerics(options.numerics) != algorithm.numerics)
        throw UserError("command.numerics", "--numerics '" + options.numerics + "': expected the numerics of " + options.algorithm +
                                                ", which are '" + algorithm.numerics.name + "'; leave out --numerics.");
    return algorithm;
}

static Algorithm declared_algorithm(const Registry &registry, const KernelOptions &options, Options *complete) {
    if (options.given) return *options.given;
    if (is_algorithm_file(options.algorithm))
        return algorithm_of_file(registry, options, parse_options(options.options, options.algorithm, {}));
    const std::vector<Option> &declared = registry.find(options.algorithm).options;
    const Options all = complete_options(options.algorithm, declared, parse_options(options.options, options.algorithm, declared));
    if (complete) *complete = all;
    return registry.make(options.algorithm, registry.numerics(options.numerics.empty() ? "f32" : options.numerics), all);
}

Algorithm load_algorithm(const Registry &registry, const KernelOptions &options, Options *complete) {
    const Algorithm algorithm =
        transformed(declared_algorithm(registry, options, complete), options.transforms, parse_shape(options.shape));
    for (const Effect e : effects_of(algorithm))
        if (std::count(options.suspended.begin(), options.suspended.end(), name_of(e)))
            throw UserError("effects.suspended",
                            algorithm.name + ": it " + (e == Effect::memory ? "updates states" : "draws random numbers") +
                                ", and --suspend refuses the effect '" + name_of(e) + "'. Choose another algorithm, or suspend less.");
    return algorithm;
}

// Calls that do not stay calls, as a schedule has to name their stages.
static std::vector<Note> notes_of_inlined(const Algorithm &author, const Algorithm &in_bytes) {
    std::vector<Note> notes;
    for (const Call &call : author.calls()) {
        const bool stays =
            std::any_of(in_bytes.calls().begin(), in_bytes.calls().end(), [&](const Call &c) { return c.scope == call.scope; });
        if (!stays)
            notes.push_back({"algorithm.inlined-call", author.name + ": call '" + call.scope +
                                                           "' has tensors of four bits an element and is inlined; a schedule names its "
                                                           "stages, '" +
                                                           call.scope + ".…', and not the call"});
    }
    return notes;
}

// Null where no stage has a role.
static std::shared_ptr<const MadeOf> made_of(const Registry &registry, const KernelOptions &options, const Algorithm &declared) {
    if (options.made_of.empty() && options.transforms.empty()) return nullptr;
    KernelOptions before = options;
    if (!options.made_of.empty()) before.algorithm = options.made_of, before.given = nullptr;
    if (is_algorithm_file(before.algorithm) && before.algorithm != options.algorithm) before.numerics.clear(), before.options.clear();
    const Algorithm algorithm = in_bytes(declared_algorithm(registry, before, nullptr));
    const std::vector<StageRole> roles = roles_in(inline_calls(declared), inline_calls(algorithm));
    return roles.empty() ? nullptr : std::make_shared<const MadeOf>(MadeOf{algorithm, roles});
}

KernelRequest request_of(const Registry &registry, const KernelOptions &options, const Target &target) {
    KernelRequest request;
    const Algorithm author = load_algorithm(registry, options, &request.options);
    request.declared = in_bytes(author);
    request.transforms = options.transforms;
    request.made_of = made_of(registry, options, request.declared);
    request.notes = notes_of_inlined(author, request.declared);
    request.fixed = parse_shape(options.shape);
    request.bound = bind_extents(request.declared, request.fixed);
    request.elements = bind_extents(author, request.fixed);
    request.target = target;
    return request;
}

}  // namespace tessera
