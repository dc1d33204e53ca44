#include "generators/kernel/program_record.h"

#include <algorithm>

#include "algorithms/text/hash.h"
#include "compiler/lower/lower.h"
#include "costmodel/model/counted_samples.h"
#include "generators/choose/model_choice.h"
#include "generators/kernel/kernel_bits.h"
#include "generators/registry/versions.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

Prediction Judge::predict(const Featured &features, const Target &target) {
    auto [known, fresh] = models_.try_emplace(target.name);
    if (fresh) known->second = {model_for(registry_, choice_, target), model_hash(registry_, choice_, target)};
    return {features.draft, known->second.model->predict({features}).front(), known->second.hash, feature_hash()};
}

KernelTask task_of(const KernelRequest &request, const Extents &extents, int64_t threads) {
    return {request.declared.name, request.declared.numerics.name, request.options, request.fixed, extents, request.target.name, threads,
            request.transforms};
}

static std::string hash_of(const Kernel &kernel) {
    if (kernel.variants.size() == 1) return resolved_hash(kernel.general());
    std::string all;
    for (const KernelVariant &v : kernel.variants) all += condition_text(v.when) + " " + resolved_hash(v.program) + "\n";
    return sha256(all);
}

static Extents with_nominal(const Algorithm &bound, Extents extents) {
    for (const Dim &d : bound.dims)
        if (d.kind == DimKind::symbolic) extents.emplace(d.name, 128);
    return extents;
}

// What tells people how two programs differ.
static std::map<std::string, double> counts_of(const Profile &p) {
    return {{"arithmetic", p.fma + p.arithmetic + p.slow + p.grouped + p.integer},
            {"loads", p.loads + p.broadcasts + p.gathers},
            {"stores", p.stores + p.scatters},
            {"scalar", p.scalar},
            {"core_time", p.core_time},
            {"from_l2_bytes", p.traffic[0]},
            {"from_l3_bytes", p.traffic[1]},
            {"from_memory_bytes", p.traffic[2]},
            {"copied", p.copied},
            {"statements", p.statements},
            {"stack_bytes", p.stack_bytes},
            {"workspace_bytes", p.workspace_bytes},
            {"parallel", p.parallel}};
}

Provenance provenance_of(const PreparedKernel &p, const Extents &extents, int64_t threads, Judge &judge) {
    Provenance all;
    all.task = task_of(p.request, extents, threads);
    all.resolved = hash_of(p.compiled.kernel), all.bits = bits_of(p.request, p.choice).hash;
    all.semantic = semantic_hash(p.request.declared);
    all.version = tessera_version();
    for (const Schedule &s : p.choice.applied.ancestry)
        if (&s == &p.choice.applied.ancestry.front()) all.stated = stated_hash(s);
        else all.ancestors.emplace_back(s.name(), stated_hash(s));
    for (const CalleeSchedule &callee : p.choice.applied.program.callees)
        for (const Schedule &s : callee.ancestry) {
            const std::pair<std::string, std::string> one(s.name(), stated_hash(s));
            if (std::find(all.ancestors.begin(), all.ancestors.end(), one) == all.ancestors.end()) all.ancestors.push_back(one);
        }
    if (p.request.target.is_gpu()) return all;  // whose blocks the model does not know
    try {
        const Extents symbolic = with_nominal(p.request.bound, extents), every = all_extents(p.request.bound, symbolic);
        const int threads_of = static_cast<int>(threads);
        const Profile profile = profile_of(variant_for(p.compiled.kernel, symbolic).program, every, p.request.target, threads_of);
        const Work work = work_of(p.request.bound, lower(p.request.bound, {}, p.request.target), every);
        all.predicted = judge.predict(features_of(profile, work, p.request.target, threads_of), p.request.target);
        all.counts = counts_of(profile);
    } catch (const UserError &) {  // extents that are not allowed
    }
    return all;
}

}  // namespace tessera
