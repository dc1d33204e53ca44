#include "schedules/check/check.h"

#include <algorithm>

#include "algorithms/text/hash.h"
#include "algorithms/transform/inline_calls.h"
#include "schedules/check/check_stage.h"
#include "schedules/knobs/condition.h"
#include "schedules/knobs/knob.h"
#include "schedules/knobs/notation.h"
#include "schedules/knobs/pieces.h"
#include "schedules/knobs/reduction_tree.h"
#include "schedules/target/target.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Stages = KnobsByStage;

std::vector<std::string> stage_names(const Algorithm &algorithm) {
    std::vector<std::string> names;
    for (const Stage &stage : algorithm.stages()) names.push_back(stage.name);
    return names;
}

void check_feature(const std::string &feature, const std::vector<std::string> &dims, const FieldPlace &where) {
    const std::vector<std::string> known = known_features();
    if (std::find(known.begin(), known.end(), feature) != known.end()) return;
    if (std::find(dims.begin(), dims.end(), feature) != dims.end())
        where.fail("schedule.unknown-feature", "'" + feature + "' is a dim, not a feature; compare it, as in \"" + feature + " <= 16\".");
    where.fail("schedule.unknown-feature",
               "there is no feature '" + feature + "'; the features are " + join(known) + "." + did_you_mean(feature, known));
}

void check_condition(const Condition &c, const Algorithm &algorithm, const FieldPlace &where) {
    std::vector<std::string> dims;
    for (const Dim &dim : algorithm.dims)
        if (dim.kind != DimKind::derived) dims.push_back(dim.name);
    if (c.dim.empty()) return check_feature(c.feature, dims, where);
    if (std::find(dims.begin(), dims.end(), c.dim) == dims.end())
        where.fail("schedule.unknown-dim", algorithm.name + " has no dim '" + c.dim + "' to choose by; its dims are " + join(dims) + "." +
                                               did_you_mean(c.dim, dims));
}

// A variant runs at some extents, and what is behind it at others.
void check_variant(const Variant &variant, const Algorithm &algorithm, const FieldPlace &where) {
    bool always = true;
    for (const Condition &c : variant.when) {
        if (c.dim.empty()) always = false;
        if (c.dim.empty()) continue;
        const Dim &dim = algorithm.dim(c.dim);
        if (dim.kind == DimKind::fixed) {  // by an option: decided before anything runs
            always = false;
            continue;
        }
        always = always && always_hold(variant.when, dim);
        if (extents_that_meet(variant.when, dim).empty()) {
            std::vector<std::string> all;
            for (const Condition &other : variant.when)
                if (other.dim == c.dim) all.push_back(to_string(other));
            where.fail("schedule.condition", "no extent of " + c.dim + " meets " + join(all, " and ") +
                                                 ", so that the variant would never run; " + c.dim + " is a multiple of " +
                                                 std::to_string(dim.multiple_of) + " in " + std::to_string(dim.min) +
                                                 " ..= " + std::to_string(dim.max) + ". Fix the conditions, or remove the variant.");
        }
    }
    if (always)
        where.fail("schedule.condition",
                   "these conditions hold at all extents, so that nothing behind the variant would ever run. Fix them, or state its knobs "
                   "in the schedule itself.");
}

void check_split(const std::string &name, const Knobs &k, const Algorithm &inlined, const FieldPlace &where) {
    if (k.split.empty()) return;
    const Stage *stage = inlined.find_stage(name);
    const std::string subject = inlined.name + "." + name;
    // What another split makes ("sum.partial", "K.i") is known when splits are applied, which refuses what is not there.
    if (!stage && std::ranges::any_of(inlined.stages(), [&](const Stage &s) { return name.starts_with(s.name + "."); })) return;
    if (!stage) {
        const std::vector<std::string> names = stage_names(inlined);
        where.fail("schedule.unknown-stage",
                   inlined.name + " has no stage '" + name + "' to split; its stages are " + join(names) + "." + did_you_mean(name, names));
    }
    const std::vector<std::string> dims = folded_dims(*stage);
    if (dims.empty()) where.fail("schedule.split", subject + " is no reduction and no scan, so nothing can be split. Remove the knob.");
    for (const auto &[dim, split] : k.split)
        if (std::none_of(dims.begin(), dims.end(), [&](const std::string &d) { return dim == d || dim.starts_with(d + "."); }))
            (where / "split" / dim)
                .fail("schedule.unknown-dim",
                      subject + " does not reduce over '" + dim + "'; it reduces over " + join(dims) + "." + did_you_mean(dim, dims));
}

// A scope is what the names of a call's stages begin with.
void check_call(const std::string &scope, const Knobs &k, const Algorithm &declared, const Algorithm &inlined, const FieldPlace &where) {
    if (!k.call) return;
    const bool exists = std::ranges::any_of(inlined.stages(), [&](const Stage &s) { return s.name.starts_with(scope + "."); });
    if (exists) return;
    std::vector<std::string> scopes;
    for (const Call &call : declared.calls()) scopes.push_back(call.scope);
    where.fail("schedule.unknown-stage",
               declared.name + " has no call '" + scope + "'; its calls are " + join(scopes) + "." + did_you_mean(scope, scopes));
}

void check_declared(const Stages &stages, const Algorithm &declared, const Algorithm &inlined, const FieldPlace &where) {
    for (const auto &[name, k] : stages) {
        check_split(name, k, inlined, where / name);
        check_call(name, k, declared, inlined, where / name / "call");
    }
}

bool is_only_for_declared(const Knobs &k) {
    bool only = true;
    for_each_knob(k, [&](Knob knob, const auto &field) { only = only && (rule_of(knob).about == About::declared || !is_stated(field)); });
    return only;
}

// A call that repeats takes `parallel`, for its rounds; which dim that may be, lowering knows.
bool is_of_rounds(const std::string &scope, const Knobs &k, const Algorithm &inlined) {
    bool only_parallel = true;
    for_each_knob(k, [&](Knob knob, const auto &field) {
        only_parallel = only_parallel && (knob == Knob::parallel || rule_of(knob).about == About::declared || !is_stated(field));
    });
    return only_parallel && std::ranges::none_of(inlined.stages(), [&](const Stage &s) { return s.name == scope; }) &&
           std::ranges::any_of(inlined.stages(), [&](const Stage &s) { return s.name.starts_with(scope + "."); });
}

}  // namespace

FieldPlace place_of(const ResolvedSchedule &schedule, int variant) {
    FieldPlace where{schedule.name, "", {}};
    if (!schedule.chain.empty()) where.ancestors.assign(schedule.chain.begin() + 1, schedule.chain.end());
    return variant < 0 ? where : where / "variants" / std::to_string(variant);
}

void check(const ResolvedSchedule &schedule, const Algorithm &declared) {
    const FieldPlace where = place_of(schedule);
    if (!schedule.algorithm.empty() && schedule.algorithm != declared.name)
        (where / "algorithm" / "name")
            .fail("schedule.algorithm", "expected a schedule for '" + declared.name + "'; it is one for '" + schedule.algorithm +
                                            "'. Choose another schedule or algorithm.");
    if (!schedule.surface.empty() && schedule.surface != surface_hash(declared))
        (where / "algorithm" / "surface")
            .fail("schedule.surface", "expected the surface " + surface_hash(declared) + " of '" + declared.name + "'; got " +
                                          schedule.surface +
                                          ": stages, tensors or dims were renamed, added or removed since. Check the schedule and write "
                                          "the new hash, or remove the field.");
    for (size_t i = 0; i < schedule.requires_features.size(); i++)
        check_feature(schedule.requires_features[i], {}, where / "requires" / std::to_string(i));
    const Algorithm inlined = inline_calls(declared);
    check_declared(schedule.stages, declared, inlined, where / "stages");
    for (size_t i = 0; i < schedule.variants.size(); i++) {
        const FieldPlace at = where / "variants" / std::to_string(i);
        for (size_t c = 0; c < schedule.variants[i].when.size(); c++)
            check_condition(schedule.variants[i].when[c], declared, at / "when" / std::to_string(c));
        check_variant(schedule.variants[i], declared, at / "when");
        check_declared(schedule.variants[i].stages, declared, inlined, at / "stages");
    }
}

void check_stages(const ResolvedSchedule &schedule, int variant, const Algorithm &after_splits) {
    const FieldPlace where = place_of(schedule, variant);
    require(variant < static_cast<int>(schedule.variants.size()), "a variant has a number");
    const Stages stages =
        without_trees(variant < 0 ? schedule.stages : schedule.variants[static_cast<size_t>(variant)].stages, after_splits);
    const Algorithm addressed = as_addressed(after_splits);
    for (const auto &[name, k] : stages)
        if (!is_only_for_declared(k) && !is_of_rounds(name, k, addressed)) check_stage(name, stages, addressed, where / "stages" / name);
}

}  // namespace tessera
