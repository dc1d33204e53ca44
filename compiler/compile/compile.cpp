#include "compiler/compile/compile.h"

#include <algorithm>
#include <set>
#include <utility>

#include "algorithms/transform/inline_calls.h"
#include "compiler/abi/c_names.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/compile/variants.h"
#include "compiler/lower/lower.h"
#include "schedules/check/check.h"
#include "support/text/error.h"

namespace tessera {

std::vector<Kernel> Compiled::kernels() const {
    std::vector<Kernel> all = {kernel};
    all.insert(all.end(), packings.begin(), packings.end());
    return all;
}

// With the knobs of the variant that is tried first; all variants pack alike.
static std::vector<Kernel> packings_of(const Kernel &kernel, const ResolvedSchedule &schedule, const Algorithm &bound,
                                       const Target &target) {
    std::vector<Kernel> kernels;
    if (packed_operands(kernel.general()) == "nothing") return kernels;
    const ApplyingVariant first = applying_variants(schedule, bound, target).front();
    for (TileProgram &program : lower_packings(bound, *first.stages, target)) {
        const std::string name = program.name;
        kernels.push_back({name, {{{}, std::move(program)}}});
    }
    return kernels;
}

// What the interpreter would find out while it runs, a kernel would not.
static void check_proved(const TileProgram &program, const std::string &algorithm) {
    if (const std::vector<std::string> assumed = verify(program); !assumed.empty())
        throw UserError("schedule.unproved",
                        algorithm + ": " + assumed.front() +
                            ", so the schedule is refused; use tiles that divide one another, or fewer levels of them.");
}

// An error says of which stage it speaks: in its place in the schedule, or as what its words begin with.
static void locate(UserError &error, const Algorithm &algorithm) {
    if (!error.stage().empty()) error.about(error.stage(), declared_at(algorithm, error.stage()));
    const std::string subject = error.subject(), prefix = algorithm.name + ".";
    const std::string name = subject.starts_with(prefix) ? subject.substr(prefix.size()) : subject;
    const Algorithm flat = inline_calls(algorithm);
    const bool is_step = flat.find_stage(name) || std::ranges::any_of(algorithm.calls(), [&](const Call &c) { return c.scope == name; });
    if (error.stage().empty() && is_step) error.about(name, declared_at(algorithm, name));
}

static Compiled compiled(const Algorithm &bound, const ResolvedSchedule &schedule, const Target &target, const ObserveVariant &observe) {
    check(schedule, bound);
    check_requires(schedule, target);
    LoweredVariants lowered = lower_variants(bound, schedule, target, observe);
    std::vector<Kernel> packings = packings_of(lowered.kernel, schedule, bound, target);
    for (const Kernel &packing : packings) check_proved(packing.general(), bound.name);
    for (const KernelVariant &variant : lowered.kernel.variants) check_proved(variant.program, bound.name);
    return {schedule, std::move(lowered.kernel), std::move(packings), std::move(lowered.notes)};
}

Compiled compile(const Algorithm &bound, const ResolvedSchedule &schedule, const Target &target, const ObserveVariant &observe) {
    try {
        return compiled(bound, schedule, target, observe);
    } catch (UserError &error) {
        locate(error, bound);
        throw;
    }
}

Compiled named(Compiled compiled, const std::string &name) {
    check_c_name(name);
    std::set<std::string> of_packings;
    for (Kernel &packing : compiled.packings) {
        packing.name = name + packing.name.substr(compiled.kernel.name.size());
        check_c_name(packing.name);
        if (!of_packings.insert(packing.name).second)
            throw UserError("emit.name", compiled.kernel.name + ": two operands would be packed by a function '" + packing.name +
                                             "'; expected names that differ in more than '.' and '_'. Rename one of the operands.");
    }
    compiled.kernel.name = name;
    return compiled;
}

}  // namespace tessera
