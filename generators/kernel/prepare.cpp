#include "generators/kernel/prepare.h"

#include <algorithm>
#include <utility>

#include "compiler/abi/c_names.h"
#include "compiler/interpret/numerics_checks.h"
#include "support/text/error.h"

namespace tessera {

static void tell(const PreparationObserver &observer, const std::vector<Note> &notes) {
    if (!observer.notes) return;
    for (const Note &note : notes) observer.notes(note);
}

static Target one_target(const Registry &registry, const std::string &text) {
    if (text.find(',') == std::string::npos) return registry.target(text);
    throw UserError("command.one-target",
                    "--target '" + text + "': expected one target; only 'generate' takes several. Choose one of them.");
}

static KernelRequest requested(const Registry &registry, const KernelOptions &options, const Target &target,
                               const PreparationObserver &observer) {
    KernelRequest request = request_of(registry, options, target);
    check_numerics(request.elements);
    tell(observer, request.notes);
    return request;
}

ScheduledKernel prepare_schedule(const Registry &registry, const KernelOptions &options, const PreparationObserver &observer) {
    KernelRequest request = requested(registry, options, one_target(registry, options.target), observer);
    Choice choice = choose(registry, options, request, observer);
    return {std::move(request), std::move(choice)};
}

PreparedKernel compiled_as_chosen(KernelRequest request, Choice choice, const PreparationObserver &observer) {
    if (!choice.compiled) choice.compiled = compile(request.bound, choice.applied.resolved, request.target, observer.of(request.bound));
    Compiled compiled = *std::exchange(choice.compiled, std::nullopt);
    tell(observer, compiled.notes);
    return {std::move(request), std::move(choice), std::move(compiled)};
}

static PreparedKernel prepare_for(const Registry &registry, const KernelOptions &options, const Target &target, const std::string &given,
                                  const PreparationObserver &observer) {
    KernelRequest request = requested(registry, options, target, observer);
    std::string name = given.empty() ? request.declared.name : given;
    if (given.empty() && !request.transforms.empty()) std::replace(name.begin(), name.end(), '.', '_');  // linear.grad
    check_c_name(name);
    Choice choice = choose(registry, options, request, observer);
    PreparedKernel prepared = compiled_as_chosen(std::move(request), std::move(choice), observer);
    prepared.compiled = named(std::move(prepared.compiled), name);
    return prepared;
}

PreparedKernel prepare(const Registry &registry, const KernelOptions &options, const std::string &name,
                       const PreparationObserver &observer) {
    return prepare_for(registry, options, one_target(registry, options.target), name, observer);
}

// Layouts may differ: the library packs for the processor that it runs on.
static void check_packed_operands(const PreparedKernel &a, const PreparedKernel &b) {
    auto operands = [](const PreparedKernel &p) {
        std::vector<std::string> names;
        for (const Argument &argument : p.compiled.kernel.general().arguments)
            if (argument.packed) names.push_back(argument.packed->operand.name);
        return names;
    };
    auto text = [](const std::vector<std::string> &names) { return names.empty() ? "none" : join(names); };
    if (operands(a) != operands(b))
        throw UserError("schedule.prepack",
                        a.compiled.kernel.name +
                            ": the schedules of all targets must take the same operands packed ahead of time; that of " +
                            a.request.target.name + " takes " + text(operands(a)) + ", that of " + b.request.target.name + " " +
                            text(operands(b)) + ". Name a schedule for each target with --schedule-for.");
}

static void check_schedules_have_targets(const std::map<std::string, std::string> &schedules, const std::vector<Target> &targets) {
    std::vector<std::string> names;
    for (const Target &target : targets) names.push_back(target.name);
    for (const auto &[target, schedule] : schedules)
        if (std::find(names.begin(), names.end(), target) == names.end())
            throw UserError("command.schedule-for", "--schedule-for '" + target + "=" + schedule + "': the library is not for '" + target +
                                                        "'; its targets are " + join(names) + ".");
}

std::vector<PreparedKernel> prepare_all(const Registry &registry, const KernelOptions &options,
                                        const std::map<std::string, std::string> &schedules, const std::string &name,
                                        const PreparationObserver &observer) {
    const std::vector<Target> targets = targets_named(options.target, [&](const std::string &named) { return registry.target(named); });
    check_schedules_have_targets(schedules, targets);
    std::vector<PreparedKernel> all;
    for (const Target &target : targets) {
        KernelOptions one = options;
        if (auto own = schedules.find(target.name); own != schedules.end()) one.schedule = own->second;
        all.push_back(prepare_for(registry, one, target, name, observer));
        check_packed_operands(all.front(), all.back());
    }
    return all;
}

}  // namespace tessera
