#include "generators/choose/program_schedule.h"

#include <algorithm>
#include <tuple>

#include "algorithms/text/hash.h"
#include "algorithms/transform/bind_extents.h"
#include "generators/choose/callees.h"

namespace tessera {

namespace {

constexpr size_t most_workloads = 4;  // extents that one derived schedule is for

using Key = std::tuple<std::string, std::string, std::string, Extents>;

Key key_of(const Algorithm &callee, const Extents &fixed) { return {callee.name, semantic_hash(callee), surface_hash(callee), fixed}; }

// Stages that fold nothing, in vectors along their last dim where its extent is known.
KnobsByStage vectors(const Algorithm &program, const Extents &fixed, const Target &target) {
    KnobsByStage stages;
    for (const Stage &stage : program.stages()) {
        if (is_fold(stage) || stage.dims.empty() || updates(stage)) continue;
        int bytes = 1;
        for (const Tensor &t : results_of(stage)) bytes = std::max(bytes, size_of(t.dtype));
        for (const Expr &e : expressions_of(stage))
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load || is_float(n.type()))
                    bytes = std::max(bytes, n.type() == DType::index ? 4 : size_of(n.type()));
            });
        const int64_t lanes = target.vector_bytes / bytes;
        const std::string &last = stage.dims.back();
        const Dim *dim = program.find_dim(last);
        int64_t extent = dim && dim->kind == DimKind::fixed ? dim->value : 0;
        if (const auto given = fixed.find(last); given != fixed.end()) extent = given->second;
        if (extent >= lanes && lanes > 1) stages[stage.name].vector[last] = lanes;
    }
    return stages;
}

// The knobs without packings of arguments that are views: their dims are not those of the tensor, so the caller has no names for them.
KnobsByStage without_packed_views(KnobsByStage stages, const Algorithm &program, const std::string &scope) {
    for (const Call &call : program.calls()) {
        if (call.scope != scope) continue;
        std::vector<std::string> gone;
        for (auto &[stage, knobs] : stages)
            std::erase_if(knobs.pack, [&](const auto &packed) {
                const auto bound = call.tensors.find(packed.first);
                const bool is_view = bound != call.tensors.end() && !bound->second.index.empty();
                if (is_view) gone.push_back(stage + "." + packed.first + ".packed");
                return is_view;
            });
        for (const std::string &copy : gone) stages.erase(copy);
    }
    return stages;
}

}  // namespace

ProgramDerivation program_schedule(const KernelRequest &request, const Extents &extents, const Target &target, CostModel &model,
                                   Chooser &chooser, const DeriveProgress &progress) {
    const Algorithm &declared = request.declared;
    ProgramDerivation made{Schedule(declared.name), 0};
    Extents dynamic = extents;
    const std::vector<ExpectedWorkload> usual = expected_workloads(request.bound, extents);
    if (!usual.empty())
        for (const auto &[dim, extent] : usual[0].workload.extents)
            if (!request.fixed.count(dim)) dynamic.emplace(dim, extent);
    // What is known of a callee at a call decides which schedule it takes; calls that differ in dynamic extents share one.
    std::map<Key, std::vector<CalledKernel>> called;
    for (const CalledKernel &kernel : callees_of(declared, request.fixed, dynamic).all)
        if (kernel.is_leaf()) called[key_of(*kernel.algorithm, kernel.fixed)].push_back(kernel);
    std::map<Key, KnobsByStage> derived;
    std::map<Key, Schedule> shipped;
    for (const auto &[key, kernels] : called) {
        const CalledKernel &first = kernels.front();
        if (const Match match = chooser.applying(*first.algorithm, first.fixed); match.schedule) {
            shipped.emplace(key, *match.schedule);
            continue;
        }
        const Algorithm bound = bind_extents(*first.algorithm, first.fixed);
        std::vector<ExpectedWorkload> workloads;
        for (const CalledKernel &kernel : kernels) {
            if (workloads.size() == most_workloads) break;
            ExpectedWorkload &one = workloads.emplace_back();
            one.workload.extents = kernel.dynamic, one.workload.threads = 1;
        }
        const size_t before = made.candidates;
        const Derivation of_callee = derive(bound, target, workloads, model, [&](size_t candidates) { progress(before + candidates); });
        made.candidates += of_callee.candidates;
        derived.emplace(key, of_callee.stages);
    }
    const std::string name = declared.name + "/" + declared.numerics.name + "/" + target.name;
    const Schedule own = tuned_schedule(name, vectors(declared, request.fixed, target), {}, Library(), target.features)
                             .for_algorithm(declared.name, surface_hash(declared));
    const auto match = [&](const std::string &scope, const Algorithm &callee, const Extents &fixed) -> std::optional<Schedule> {
        const Key key = key_of(callee, fixed);
        if (const auto it = shipped.find(key); it != shipped.end()) return it->second;
        if (const auto it = derived.find(key); it != derived.end()) {
            const std::string own_name = callee.name + "/" + callee.numerics.name + "/" + target.name;
            return tuned_schedule(own_name, without_packed_views(it->second, declared, scope), {}, Library(), target.features)
                .for_algorithm(callee.name, surface_hash(callee));
        }
        return chooser.applying(callee, fixed).schedule;
    };
    const AppliedSchedule applied = applied_schedule(own, declared, request.fixed, Library(), match);
    made.schedule = flatten(own, applied.program, declared);
    return made;
}

}  // namespace tessera
