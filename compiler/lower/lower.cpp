#include "compiler/lower/lower.h"

#include "algorithms/transform/half_bytes.h"
#include "algorithms/transform/narrow_positions.h"
#include "algorithms/transform/shared_expressions.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/instructions/families.h"
#include "compiler/lower/check_instructions.h"
#include "compiler/lower/context/mapping.h"
#include "compiler/lower/program_frame.h"
#include "compiler/lower/root_stages.h"
#include "compiler/rewrite/fragments.h"
#include "compiler/rewrite/inline_stages.h"
#include "compiler/rewrite/join.h"
#include "compiler/rewrite/order.h"
#include "compiler/rewrite/prepack_calls.h"
#include "compiler/rewrite/rests.h"
#include "compiler/rewrite/split.h"
#include "runtime/abi/tessera.h"
#include "schedules/knobs/directives.h"
#include "schedules/knobs/pieces.h"
#include "schedules/knobs/reduction_tree.h"
#include "support/text/error.h"

namespace tessera {

static_assert(max_extent == TESS_MAX_ELEMENTS, "the runtime and schedules leave the same room for tiles");

namespace {

// An algorithm after every rewrite that the schedule asks for, and the calls that stay.
struct Rewritten {
    Algorithm algorithm;
    KnobsByStage stages;
    KeptCalls kept;
    std::vector<PackedInput> packed;  // in the order of the inputs
};

struct Lowered {
    TileProgram program;
    bool has_border_version;
};

}  // namespace

// Directives become the knobs that say the same.
static void expand_directives(KnobsByStage &stages, const Algorithm &a) {
    for (auto &[name, k] : stages)
        k = with_directives(
            k, [&](const std::string &d) { return a.find_dim(d) != nullptr; },
            [&, stage = name](size_t, const std::string &id, const std::string &why) { throw UserError(id, stage + ": " + why); });
}

static Rewritten rewrite_all(const Algorithm &algorithm, const KnobsByStage &knobs, const Target &target, const Mapping &mapping,
                             const LoweringObserver &observer, FunctionForm form = FunctionForm::defined) {
    Rewritten r;
    KnobsByStage &stages = r.stages = knobs;
    Algorithm &a = r.algorithm;
    show_step(observer, "the algorithm", algorithm);
    mapping.check_before_rewrites(stages);
    r.kept = keep_calls(algorithm, stages);
    r.kept.algorithm = with_shared_expressions(std::move(r.kept.algorithm));
    show_step(observer, "inline calls", r.kept.algorithm);
    stages = without_trees(stages, r.kept.algorithm);
    a = narrow_positions(r.kept.algorithm);
    show_step(observer, "hold positions in 32 bits", a);
    a = apply_splits(std::move(a), stages);
    show_step(observer, "split reductions and scans", a);
    a = join_stages(std::move(a), stages);
    show_step(observer, "join stages beside each other", a);
    stages = with_dims_of(a, stages);
    check_order(a, stages);
    a = inline_stages(std::move(a), stages);
    show_step(observer, "inline stages", a);
    a = with_steps_of_families(std::move(a), stages);
    show_step(observer, "round products by themselves", a);
    check_updates(a);
    stages = with_fragment_layouts(a, std::move(stages));
    a = prepack(std::move(a), stages, r.packed, r.kept.results);
    a = prepack_calls(
        std::move(a), r.kept.callees,
        [&](const Callee &callee) { return rewrite_all(callee.algorithm, callee.stages, target, mapping, {}).packed; }, r.packed,
        r.kept.results);
    show_step(observer, "take operands packed ahead of time", a);
    a = insert_packs(std::move(a), stages, mapping.pack_lanes());
    show_step(observer, "pack operands at loops", a);
    a = with_dims_of_rests(std::move(a));
    // Definitions of functions may share otherwise than what they are put into.
    if (form == FunctionForm::defined) a = with_shared_expressions(expanded(std::move(a)));
    show_step(observer, "put in what functions are defined as", a);
    expand_directives(stages, a);
    for (const auto &[stage, k] : stages) mapping.check(stage, k);
    check_instructions(algorithm, a, stages, target);
    return r;
}

// `tells_borders` is whether tiles at the border of an image are told from others.
static Lowered lower_once(const Algorithm &algorithm, const KnobsByStage &knobs, const Target &target, bool tells_borders,
                          const LoweringObserver &observer, FunctionForm form) {
    const std::shared_ptr<const Mapping> mapping = mapping_for(target);
    const Rewritten r = rewrite_all(algorithm, knobs, target, *mapping, observer, form);
    const Lowering lowering(r.algorithm, r.stages, mapping, tells_borders);
    TileProgram program = program_frame(algorithm, r.algorithm, r.kept, r.packed, target);
    auto lower_callee = [&](const Callee &callee) {
        return lower(callee.algorithm, callee.stages, target, observer_of_call(observer, callee.scope), form);
    };
    RootStages roots = build_roots(lowering, r.kept, scope_of(lowering, program), lower_callee, program);
    program.body = roots.whole_body();
    show_step(observer, "build a nest for each stage at root", program.body);
    for (const NestPass &pass : mapping->nest_passes(roots.names, program)) {
        for (RootPart &part : roots.parts)
            if (part.stage) part.body = pass.run(*part.stage, part.body);
        program.body = roots.whole_body();
        show_step(observer, pass.name, program.body);
    }
    for (const BodyPass &pass : mapping->body_passes(program)) {
        program.body = pass.run(program.body);
        show_step(observer, pass.name, program.body);
    }
    return {std::move(program), roots.has_border_version};
}

TileProgram lower(const Algorithm &declared, const KnobsByStage &knobs, const Target &target, const LoweringObserver &observer,
                  FunctionForm form, std::optional<int64_t> max_proof_steps) {
    if (has_half_bytes(declared)) return lower(in_bytes(declared), knobs, target, observer, form, max_proof_steps);
    HeldSteps steps(observer);
    Lowered lowered = lower_once(declared, knobs, target, true, steps.observer(), form);
    if (!lowered.has_border_version || is_proved(lowered.program, max_proof_steps)) {
        steps.show();
        return std::move(lowered.program);
    }
    // Where the verifier cannot follow what was known inside an image, every load keeps its guard.
    return lower_once(declared, knobs, target, false, observer, form).program;
}

TileProgram lower_packing(const Algorithm &algorithm, const PackedInput &input, const Target &target) {
    TileProgram program = lower(packing_algorithm(algorithm, input), packing_schedule(input, target), target);
    program.arguments.back().packed = input.packing;
    program.arguments.back().half_bytes = program.arguments.front().half_bytes;
    return program;
}

std::vector<TileProgram> lower_packings(const Algorithm &algorithm, const KnobsByStage &stages, const Target &target) {
    if (has_half_bytes(algorithm)) return lower_packings(in_bytes(algorithm), stages, target);
    std::vector<TileProgram> programs;
    const Rewritten r = rewrite_all(algorithm, stages, target, *mapping_for(target), {});
    for (const PackedInput &input : r.packed) programs.push_back(lower_packing(algorithm, input, target));
    return programs;
}

}  // namespace tessera
