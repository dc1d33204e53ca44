#include "compiler/compile/compile.h"

#include <set>
#include <utility>

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

Compiled compile(const Algorithm &bound, const ResolvedSchedule &schedule, const Target &target, const ObserveVariant &observe) {
    check(schedule, bound);
    check_requires(schedule, target);
    LoweredVariants lowered = lower_variants(bound, schedule, target, observe);
    std::vector<Kernel> packings = packings_of(lowered.kernel, schedule, bound, target);
    for (const Kernel &packing : packings) check_proved(packing.general(), bound.name);
    for (const KernelVariant &variant : lowered.kernel.variants) check_proved(variant.program, bound.name);
    return {schedule, std::move(lowered.kernel), std::move(packings), std::move(lowered.notes)};
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
