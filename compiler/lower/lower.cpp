#include "compiler/lower/lower.h"

#include <algorithm>
#include <cctype>

#include "compiler/check/barriers.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/nest.h"
#include "compiler/rewrite/calls.h"
#include "compiler/rewrite/inline_stages.h"
#include "compiler/rewrite/order.h"
#include "compiler/rewrite/split.h"
#include "compiler/rewrite/target_knobs.h"
#include "compiler/tile/arguments.h"
#include "compiler/tile/instruction.h"
#include "runtime/tessera.h"
#include "schedules/knobs/directives.h"
#include "schedules/knobs/pieces.h"
#include "support/text/error.h"

namespace tessera {

static_assert(max_extent == TESS_MAX_ELEMENTS, "the runtime and schedules leave the same room for tiles");

// Names of one letter are all a letter apart: those in the other case are near.
static std::string near_dim(const std::string &name, std::vector<std::string> dims) {
    auto lower = [](const std::string &n) { return std::tolower(static_cast<unsigned char>(n[0])); };
    if (name.size() == 1) std::erase_if(dims, [&](const std::string &d) { return d.size() != 1 || lower(d) != lower(name); });
    return did_you_mean(name, dims);
}

Algorithm bind_extents(const Algorithm &algorithm, const Extents &extents) {
    Algorithm result = algorithm;
    std::vector<std::string> symbolic;
    for (const Dim &d : algorithm.dims)
        if (d.kind == DimKind::symbolic) symbolic.push_back(d.name);
    for (auto &[name, value] : extents) {
        auto it = std::find_if(result.dims.begin(), result.dims.end(), [&](const Dim &d) { return d.name == name; });
        if (it != result.dims.end() && it->kind == DimKind::fixed)
            throw UserError("shape.unknown-dim", algorithm.name + ": dim " + name + " is fixed at " + std::to_string(it->value) +
                                                     " by the algorithm's declaration and options, got " + std::to_string(value) +
                                                     "; the symbolic dims are " + join(symbolic) +
                                                     ". Leave it out, or choose other options.");
        if (it != result.dims.end() && it->kind == DimKind::derived)
            throw UserError("shape.unknown-dim", algorithm.name + ": dim " + name + " is derived, as " + to_string(it->size) +
                                                     "; the symbolic dims are " + join(symbolic) + ". Fix those that it is derived of.");
        if (it == result.dims.end() || it->kind != DimKind::symbolic)
            throw UserError("shape.unknown-dim", algorithm.name + ": there is no symbolic dim '" + name +
                                                     "' to fix; the symbolic dims are " + join(symbolic) + "." + near_dim(name, symbolic));
        auto refuse = [&](const std::string &rule) {
            throw UserError("shape.constraint",
                            algorithm.name + ": dim " + name + " = " + std::to_string(value) + " must be " + rule + ".");
        };
        if (value < it->min) refuse("at least " + std::to_string(it->min));
        if (int64_t most = std::min(it->max, max_extent); value > most) refuse("at most " + std::to_string(most));
        if (value % it->multiple_of) refuse("a multiple of " + std::to_string(it->multiple_of));
        it->kind = DimKind::fixed;
        it->value = value;
    }
    for (Dim &d : result.dims) {
        if (d.equals.empty()) continue;
        const Dim &other = result.dim(d.equals);
        if (other.kind == DimKind::fixed && d.kind == DimKind::fixed && other.value != d.value)
            throw UserError("shape.constraint", algorithm.name + ": dim " + d.name + " = " + std::to_string(d.value) + " must equal " +
                                                    other.name + " = " + std::to_string(other.value) + ".");
        if (other.kind == DimKind::fixed) d.kind = DimKind::fixed, d.value = other.value;
        if (d.kind == DimKind::fixed) d.equals.clear();
    }
    return result;
}

// A Let whose value is a constant or that nothing uses is no information.
static std::shared_ptr<const TileNode> bind_values(const TileNode &node, const std::map<std::string, Expr> &values);

static bool is_leaf(const TileNode &node) {
    return std::holds_alternative<Compute>(node) || std::holds_alternative<Copy>(node) || std::holds_alternative<Prefetch>(node);
}

static TileBody bind_values(const TileBody &body, const std::map<std::string, Expr> &values) {
    TileBody result;
    for (const auto &node : body) {
        if (auto *let = std::get_if<Let>(node.get()); let && let->value.is_constant()) {
            std::map<std::string, Expr> more = values;
            more[let->variable] = let->value;
            TileBody inner = bind_values(let->body, more);
            result.insert(result.end(), inner.begin(), inner.end());
            continue;
        }
        result.push_back(is_leaf(*node) && values.empty() ? node : bind_values(*node, values));
    }
    return result;
}

static std::shared_ptr<const TileNode> bind_values(const TileNode &node, const std::map<std::string, Expr> &values) {
    auto at = [&](const Expr &e) { return e.defined() && !values.empty() ? substitute(e, values) : e; };
    auto all = [&](std::vector<Expr> list) {
        for (Expr &e : list) e = at(e);
        return list;
    };
    TileNode copy = node;
    if (auto *n = std::get_if<Loop>(&copy)) n->count = at(n->count), n->body = bind_values(n->body, values);
    if (auto *n = std::get_if<Compute>(&copy)) n->index = all(n->index), n->value = at(n->value), n->guard = at(n->guard);
    if (auto *n = std::get_if<Prefetch>(&copy)) n->index = all(n->index);
    if (auto *n = std::get_if<Copy>(&copy)) n->index = all(n->index), n->value = at(n->value), n->guard = at(n->guard);
    if (auto *n = std::get_if<Guard>(&copy))
        n->condition = at(n->condition), n->then = bind_values(n->then, values), n->otherwise = bind_values(n->otherwise, values);
    if (auto *n = std::get_if<Let>(&copy)) n->value = at(n->value), n->body = bind_values(n->body, values);
    if (auto *n = std::get_if<Alloc>(&copy)) n->body = bind_values(n->body, values);
    if (auto *n = std::get_if<Invoke>(&copy)) {
        for (auto &[name, e] : n->extents) e = at(e);
        for (auto &[name, e] : n->parameters) e = at(e);
    }
    return tile_node(std::move(copy));
}

static TileBody without_trivial_lets(const TileBody &body) { return bind_values(body, {}); }

// What is left of parallel loops (or blocks) further in runs serially, inside one worker.
static TileBody serial_within(const TileBody &body, LoopKind kind) {
    TileBody out;
    for (const auto &n : body) {
        TileNode c = *n;
        if (auto *l = std::get_if<Loop>(&c)) {
            if (l->kind == kind) l->kind = LoopKind::serial;
            l->body = serial_within(l->body, kind);
        }
        if (auto *l = std::get_if<Let>(&c)) l->body = serial_within(l->body, kind);
        if (auto *l = std::get_if<Alloc>(&c)) l->body = serial_within(l->body, kind);
        if (auto *l = std::get_if<Guard>(&c)) l->then = serial_within(l->then, kind), l->otherwise = serial_within(l->otherwise, kind);
        out.push_back(tile_node(std::move(c)));
    }
    return out;
}

// Two parallel loops (or loops of blocks), one directly in the other, run as one over all pairs.
static TileBody fuse_parallel(const TileBody &body, LoopKind kind) {
    TileBody result;
    for (const auto &node : body) {
        auto *outer = std::get_if<Loop>(node.get());
        if (!outer || outer->kind != kind) {
            TileNode copy = *node;
            if (auto *n = std::get_if<Alloc>(&copy)) n->body = fuse_parallel(n->body, kind);
            if (auto *n = std::get_if<Let>(&copy)) n->body = fuse_parallel(n->body, kind);
            result.push_back(tile_node(std::move(copy)));
            continue;
        }
        std::vector<const Let *> lets;
        const TileBody *inside = &outer->body;
        while (inside->size() == 1 && std::holds_alternative<Let>(*inside->front())) {
            lets.push_back(&std::get<Let>(*inside->front()));
            inside = &lets.back()->body;
        }
        const Loop *inner = inside->size() == 1 ? std::get_if<Loop>(inside->front().get()) : nullptr;
        bool fuses = inner && inner->kind == kind && !uses_variable(inner->count, outer->variable);
        for (const Let *let : lets) fuses = fuses && !uses_variable(inner->count, let->variable);
        if (!fuses) {
            Loop copy = *outer;
            copy.body = serial_within(fuse_parallel(copy.body, kind), kind);
            result.push_back(tile_node(std::move(copy)));
            continue;
        }
        std::string pair = outer->variable + "*" + inner->variable;
        TileBody both = {tile_node(Let{inner->variable, variable(pair) % inner->count, inner->body})};
        for (auto it = lets.rbegin(); it != lets.rend(); ++it) both = {tile_node(Let{(*it)->variable, (*it)->value, std::move(both)})};
        both = {tile_node(Let{outer->variable, variable(pair) / inner->count, std::move(both)})};
        Loop fused{pair, outer->count * inner->count, kind, std::move(both)};
        TileBody again = fuse_parallel({tile_node(std::move(fused))}, kind);
        result.insert(result.end(), again.begin(), again.end());
    }
    return result;
}

// One stage at root for a GPU: nothing but loops of blocks.
static TileBody in_blocks(const TileBody &body, const std::string &variable) {
    TileBody fused = fuse_parallel(without_trivial_lets(body), LoopKind::block);
    bool all = std::all_of(fused.begin(), fused.end(), [](const auto &n) {
        auto *loop = std::get_if<Loop>(n.get());
        return loop && loop->kind == LoopKind::block;
    });
    if (all) return fused;
    return {tile_node(Loop{variable, Expr(1), LoopKind::block, serial_within(fused, LoopKind::block)})};
}

static Algorithm rewrite_stages(const Algorithm &algorithm, KnobsByStage &stages, const Target &target, std::vector<PackedInput> &packed,
                                const std::vector<WritingCall> &calls = {}) {
    Algorithm a = apply_splits(algorithm, stages);
    stages = with_dims_of(a, stages);
    check_order(a, algorithm, stages, calls);
    a = with_mul_add(inline_stages(std::move(a), stages), stages);
    check_updates(a);
    a = prepack(std::move(a), stages, packed);
    std::sort(packed.begin(), packed.end(),
              [&](const PackedInput &p, const PackedInput &q) { return a.find_tensor(p.tensor.name) < a.find_tensor(q.tensor.name); });
    int lanes = target.is_gpu() ? 0 : std::max(1, target.vector_bytes / 4);
    return insert_packs(std::move(a), stages, lanes);
}

Algorithm rewritten(const Algorithm &algorithm, KnobsByStage &stages, const Target &target) {
    std::vector<PackedInput> packed;
    return rewrite_stages(inline_calls(algorithm), stages, target, packed);
}

// What a GPU target lacks and a rewrite would hide.
static void check_rewrites(const KnobsByStage &stages, const Target &target) {
    if (!target.is_gpu()) return;
    for (auto &[name, k] : stages) {
        if (k.call && *k.call != "inline")
            throw UserError("schedule.call", name + ": calls are inlined on this target; got call '" + *k.call + "', expected 'inline'.");
        for (auto &[operand, pack] : k.pack)
            if (pack.is_ahead())
                throw UserError("schedule.gpu", name + ": packing '" + operand + "' ahead of time is not for " + target.name +
                                                    "; delete it (null). Pack it at a loop, which stages it in shared memory.");
    }
}

// Directives become the knobs that say the same; what has no meaning on the target is refused.
static void expand_directives(KnobsByStage &stages, const Algorithm &a, const Target &target) {
    for (auto &[name, k] : stages) {
        auto refuse = [&, stage = name](const std::string &what) {
            if (target.is_gpu())
                throw UserError(
                    "schedule.gpu",
                    stage + ": " + what + " is not for " + target.name +
                        "; delete it (null). Blocks and threads come from block and micro, and shared memory from pack and place.");
            throw UserError("schedule.cpu", stage + ": " + what + " is for GPU targets; delete it (null) in the schedule of a CPU.");
        };
        k = with_directives(
            k, [&](const std::string &d) { return a.find_dim(d) != nullptr; },
            [&, stage = name](size_t, const std::string &id, const std::string &why) { throw UserError(id, stage + ": " + why); });
        if (const std::optional<Knob> knob = knob_without_use(k, target)) refuse("'" + std::string(name_of(*knob)) + "'");
        for (const auto &[dim, extent] : k.micro)
            if (!target.is_gpu() && !k.loops.empty() && std::find(k.loops.begin(), k.loops.end(), "micro." + dim) == k.loops.end())
                throw UserError("schedule.loops",
                                name + ": the tile 'micro." + dim + "' is in no loop; the loops are " + join(k.loops) +
                                    ". Add it to them, or delete the tile: only on a GPU is it a thread's part of block." + dim + ".");
        if (!target.is_gpu()) continue;
        for (auto &[dim, policy] : k.tail)
            if (policy == Tail::loop) refuse("'tail' with the policy loop");
        auto is_micro = [](const std::string &loop) { return loop == "micro" || loop.starts_with("micro."); };
        auto no_micro = [&](bool found, const std::string &what) {
            if (found) refuse(what + " in micro, a thread's part of a block's tile and no loop,");
        };
        no_micro(k.place && k.place->kind == Place::Kind::at && is_micro(k.place->loop), "a place");
        for (auto &[operand, pack] : k.pack) no_micro(is_micro(pack.at), "a pack of '" + operand + "'");
    }
}

// Every instruction family that the schedule names exists, on this target, for this fold.
static void check_instructions(const Algorithm &a, const KnobsByStage &stages, const Target &target) {
    for (auto &[name, k] : stages) {
        if (!k.instruction) continue;
        auto refuse = [&, stage = name](const std::string &why) { throw UserError("schedule.instruction", stage + ": " + why); };
        const Instruction *family = find_instruction(*k.instruction);
        if (!family)
            refuse("there is no instruction family '" + *k.instruction + "'; the families are " + join(instruction_names()) + "." +
                   did_you_mean(*k.instruction, instruction_names()));
        if (!is_on(*family, target)) {
            std::vector<std::string> own;
            for (const Instruction &i : instructions())
                if (is_on(i, target)) own.push_back(i.name);
            const std::vector<std::string> known = known_features(target.arch);
            const auto first = std::find_first_of(known.begin(), known.end(), family->features.begin(), family->features.end());
            const std::string with = first == known.end() ? "" : "generate for '" + name_with(target, {*first}) + "', or ";
            refuse("the instruction family " + family->name + " needs " + join(family->features, " or ") + ", which target '" +
                   target.name + "' has not; its families are " + join(own) + "; " + with + "delete the knob (null).");
        }
        const Stage *stage = a.find_stage(name);
        auto *reduce = stage ? std::get_if<Reduce>(&stage->body) : nullptr;
        if (family->name == "mul_add") continue;  // the fold is rewritten
        if (family->group == 1) {
            if (!reduce || !is_sum_of_products(reduce->monoid))
                refuse("the instruction family " + family->name +
                       " sums products, each added with one rounding; this stage is no such sum. Delete the knob (null).");
            continue;
        }
        if (!reduce || !reduce->at.empty() || reduce->where.defined() || !operands_for(*family, *reduce))
            refuse("the instruction family " + family->name + " sums products of " + name_of(family->first) + " and " +
                   name_of(family->second) + " elements in " + name_of(family->accumulator) +
                   ", each cast once and unconditionally; this stage is no such sum.");
    }
}

// The dims of a callee that no dim of the caller stands for, as far as arguments and constants have them.
static void add_carried_dims(TileProgram &program, const Algorithm &a) {
    std::function<void(const std::string &)> add = [&](const std::string &name) {
        if (std::any_of(program.dims.begin(), program.dims.end(), [&](const Dim &d) { return d.name == name; })) return;
        const Dim &dim = a.dim(name);
        if (!dim.equals.empty()) add(dim.equals);
        if (dim.size.defined())
            walk(dim.size, [&](const Expr &n) {
                if (n.kind() == ExprKind::extent) add(n->name);
            });
        program.dims.push_back(dim);
    };
    for (const Argument &argument : program.arguments)
        for (const std::string &d : argument.tensor.dims) add(d);
    for (const Tensor &t : program.constants)
        for (const std::string &d : t.dims) add(d);
}

// Adds `callee` and what it invokes to `program`, unless they are there; gives its name.
static std::string add_program(TileProgram &program, TileProgram callee) {
    std::map<std::string, std::string> renamed;
    for (const TileProgram &inner : std::exchange(callee.programs, {})) renamed[inner.name] = add_program(program, inner);
    for (auto &node : callee.body) {
        std::function<std::shared_ptr<const TileNode>(const TileNode &)> rename = [&](const TileNode &n) {
            TileNode copy = n;
            if (auto *alloc = std::get_if<Alloc>(&copy))
                for (auto &inner : alloc->body) inner = rename(*inner);
            if (auto *invoke = std::get_if<Invoke>(&copy)) invoke->program = renamed.at(invoke->program);
            return tile_node(std::move(copy));
        };
        node = rename(*node);
    }
    for (const TileProgram &known : program.programs)
        if (resolved_hash(known) == resolved_hash(callee)) return known.name;
    std::string name = callee.name;
    for (int n = 2;
         std::any_of(program.programs.begin(), program.programs.end(), [&](const TileProgram &p) { return p.name == callee.name; }); n++)
        callee.name = name + std::to_string(n);
    program.programs.push_back(callee);
    return callee.name;
}

// Runs `program`, which was made of `callee`, on what the caller binds.
static Invoke invoke(const Callee &callee, const std::string &name, const TileProgram &program, const Nests &nests) {
    Invoke node{name, {}, {}, callee.parameters};
    auto refuse = [&](const std::string &what) {
        throw UserError("schedule.call", callee.scope + ": the call is emitted once, and " + what + ", or inline the call.");
    };
    for (const Argument &a : program.arguments) {
        const std::string &tensor = callee.tensors.at(a.tensor.name);
        const Realized *where = nests.find(tensor);
        if (!where || where->depth > 0) refuse("takes '" + tensor + "', which is not stored in full before it; place it at root");
        if (!where->layout.empty()) refuse("takes '" + tensor + "', which has a layout; delete the layout (null)");
        node.buffers.push_back(where->buffer.name);
    }
    for (const Dim &d : spec_dims(program)) {
        Expr e = d.kind == DimKind::fixed ? Expr(d.value) : nests.extent_of(callee.dims.at(d.name));
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::load)
                refuse("the extent of its dim '" + d.name + "' is data (" + brief(e) + "); declare it by a dim");
        });
        node.extents[d.name] = e;
    }
    return node;
}

namespace {

// An algorithm after every rewrite, and the calls that stay.
struct Rewritten {
    KnobsByStage stages;
    PartlyInlined inlined;
    std::vector<Callee> callees;
    std::set<std::string> called;  // the results of calls, which stages load as if they were inputs
    std::vector<PackedInput> packed;
    Algorithm algorithm;
};

}  // namespace

static Rewritten rewrite_all(const Algorithm &algorithm, const KnobsByStage &knobs, const Target &target) {
    Rewritten r;
    r.stages = knobs;
    check_rewrites(r.stages, target);
    r.inlined = inline_calls(algorithm, emitted_once(algorithm, r.stages));
    r.callees = take_callees(r.inlined.algorithm, r.stages);
    for (const Callee &callee : r.callees)
        for (const auto &[stage, k] : callee.stages)
            for (const auto &[operand, pack] : k.pack)
                if (pack.is_ahead())
                    throw UserError("schedule.prepack", callee.scope + "." + stage + ": cannot pack '" + operand +
                                                            "' ahead of time: the call '" + callee.scope +
                                                            "' is emitted once, and what it takes is not its caller's argument; inline the "
                                                            "call, or pack it at a loop of the stage.");
    Algorithm a = r.inlined.algorithm;
    for (const Call &call : a.calls)
        for (const Tensor &t : results_of(call)) a.tensors.push_back(t), r.called.insert(t.name);
    std::vector<WritingCall> writing;
    for (size_t i = 0; i < a.calls.size(); i++) {
        WritingCall call{a.calls[i].scope, {}, r.inlined.before[i]};
        for (const auto &[own, callers] : a.calls[i].tensors)
            if (const Tensor *t = a.calls[i].callee->find_tensor(own); t && t->role == Role::state) call.states.insert(callers);
        writing.push_back(call);
    }
    r.algorithm = rewrite_stages(a, r.stages, target, r.packed, writing);
    expand_directives(r.stages, r.algorithm, target);
    check_instructions(r.algorithm, r.stages, target);
    return r;
}

TileProgram lower_packing(const Algorithm &algorithm, const PackedInput &input, const Target &target) {
    TileProgram program = lower(packing_algorithm(algorithm, input), packing_schedule(input, target), target);
    program.arguments.back().packed = input.packing;
    return program;
}

std::vector<TileProgram> lower_packings(const Algorithm &algorithm, const KnobsByStage &stages, const Target &target) {
    const Rewritten r = rewrite_all(algorithm, stages, target);
    std::vector<TileProgram> programs;
    for (const PackedInput &input : r.packed) programs.push_back(lower_packing(algorithm, input, target));
    return programs;
}

// `borders` is whether tiles at the border of an image are told from others; with the program comes whether any were.
static std::pair<TileProgram, bool> lower_once(const Algorithm &algorithm, const KnobsByStage &knobs, const Target &target, bool borders) {
    const Rewritten rewritten = rewrite_all(algorithm, knobs, target);
    const auto &[stages, inlined, callees, called, packed, a] = rewritten;
    TileProgram program;
    program.name = algorithm.name;
    program.target = target.name;
    program.features = target.features;
    program.dims = algorithm.dims;
    program.parameters = a.parameters;
    Nests nests(a, stages, target, borders);
    for (const Tensor &t : a.tensors) {
        if (called.count(t.name)) continue;
        const auto prepacked = std::find_if(packed.begin(), packed.end(), [&](const PackedInput &p) { return p.tensor.name == t.name; });
        nests.add_argument(t, prepacked != packed.end());
        if (t.role == Role::constant) program.constants.push_back(t);
        else program.arguments.push_back({t, t.role == Role::state, true});
        if (prepacked != packed.end()) program.arguments.back().packed = prepacked->packing;
    }
    std::set<std::string> outputs(a.outputs.begin(), a.outputs.end());
    for (const std::string &name : a.outputs) {
        const Stage *stage = defining_stage(a, name);
        require(stage || called.count(name), "an output has a stage or a call");
        for (const Tensor &t : stage ? results_of(*stage) : a.tensors)
            if (t.name == name) program.arguments.push_back({t, true, false}), nests.add_argument(t);
    }
    add_carried_dims(program, a);
    std::vector<std::pair<std::vector<Buffer>, TileBody>> parts;
    size_t made = 0;
    auto run_calls_until = [&](const std::string &stage) {
        for (; made < callees.size() && (stage.empty() || !comes_of(stage, inlined.before[made], inlined.algorithm.stages)); made++) {
            const Callee &callee = callees[made];
            TileProgram own = lower(callee.algorithm, callee.stages, target);
            std::vector<Buffer> buffers;
            for (const Tensor &t : results_of(a.calls[made]))
                if (!outputs.count(t.name)) buffers.push_back(nests.allocate_result(t));
            parts.emplace_back(buffers, TileBody{tile_node(invoke(callee, add_program(program, own), own, nests))});
        }
    };
    for (const Stage &stage : a.stages) {
        run_calls_until(stage.name);
        auto it = stages.find(stage.name);
        bool at_root = it == stages.end() || !it->second.place || it->second.place->kind == Place::Kind::root;
        if (!at_root) {
            for (const Tensor &t : results_of(stage))
                if (outputs.count(t.name)) throw UserError("schedule.place", stage.name + ": an output must be placed at root.");
            continue;
        }
        std::vector<Buffer> buffers;
        for (const Tensor &t : results_of(stage))
            if (!outputs.count(t.name)) buffers.push_back(nests.allocate_root(stage, t));
        TileBody nest = nests.root(stage);
        parts.emplace_back(buffers, target.is_gpu() ? in_blocks(nest, stage.name + ".block") : nest);
    }
    run_calls_until("");
    TileBody body;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        body.insert(body.begin(), part->second.begin(), part->second.end());
        for (auto b = part->first.rbegin(); b != part->first.rend(); ++b) body = {tile_node(Alloc{*b, std::move(body)})};
    }
    program.body = target.is_gpu() ? with_barriers(body, program.dims) : fuse_parallel(without_trivial_lets(body), LoopKind::parallel);
    return {std::move(program), nests.told_borders_apart()};
}

TileProgram lower(const Algorithm &algorithm, const KnobsByStage &knobs, const Target &target) {
    auto [program, told_apart] = lower_once(algorithm, knobs, target, true);
    if (!told_apart || is_proved(program)) return std::move(program);
    // Where the verifier cannot follow what was known inside an image, every load keeps its guard.
    return lower_once(algorithm, knobs, target, false).first;
}

}  // namespace tessera
