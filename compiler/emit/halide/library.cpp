#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <set>

#include "compiler/abi/archive.h"
#include "compiler/abi/c_names.h"
#include "compiler/abi/fragment_code.h"
#include "compiler/abi/memory_plan.h"
#include "compiler/abi/object_file.h"
#include "compiler/emit/emit_library.h"
#include "compiler/emit/halide/exact_fma.h"
#include "compiler/emit/halide/processes.h"
#include "compiler/emit/halide/statements.h"
#include "compiler/emit/halide/uniform_loads.h"
#include "compiler/emit/spec.h"
#include "runtime/abi/kernel.h"
#include "support/files/memory_file.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

namespace tessera {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

namespace emit {

static void add_x86_features(H::Target &t, const Target &target) {
    static const std::pair<const char *, H::Target::Feature> known[] = {
        {"sse4_1", H::Target::SSE41}, {"avx", H::Target::AVX},   {"avx2", H::Target::AVX2},
        {"fma", H::Target::FMA},      {"f16c", H::Target::F16C},
    };
    for (auto &[name, feature] : known)
        if (target.has(name)) t.set_feature(feature);
    if (!target.has("avx512f")) return;
    t.set_feature(H::Target::AVX512);
    if (target.has("avx512bw") && target.has("avx512dq") && target.has("avx512vl") && target.has("avx512cd"))
        t.set_feature(H::Target::AVX512_Skylake);
    // Halide names the processors that have dot products of bytes and of bf16, and LLVM uses all that such a processor has.
    static const Target znver4 = target_named("znver4"), znver5 = target_named("znver5"), sapphirerapids = target_named("sapphirerapids");
    auto has_all = [&](const Target &of) {
        return std::all_of(of.features.begin(), of.features.end(), [&](const std::string &f) { return target.has(f); });
    };
    if (has_all(znver5)) t.set_features({H::Target::AVX512_Cannonlake, H::Target::AVX512_Zen4, H::Target::AVX512_Zen5});
    else if (has_all(znver4)) t.set_features({H::Target::AVX512_Cannonlake, H::Target::AVX512_Zen4});
    else if (has_all(sapphirerapids)) t.set_features({H::Target::AVX512_Cannonlake, H::Target::AVX512_SapphireRapids});
}

static H::Target machine_of(const Target &target) {
    H::Target t(H::Target::Linux, H::Target::X86, 64);
    switch (target.arch) {
    case Arch::x86_64: add_x86_features(t, target); return t;
    case Arch::arm64:
        t.arch = H::Target::ARM;
        if (target.has("asimddp")) t.set_feature(H::Target::ARMDotProd);
        return t;
    case Arch::wasm32: return {H::Target::WebAssemblyRuntime, H::Target::WebAssembly, 32, {H::Target::WasmSimd128}};
    case Arch::opencl:
    case Arch::cuda: break;
    }
    throw InternalError("kernels for GPUs are written in their own languages");
}

static H::Target halide_target(const Target &target) {
    H::Target t = machine_of(target);
    // StrictFloat: else what is widened or narrowed is never NaN to LLVM.
    t.set_features({H::Target::UserContext, H::Target::NoRuntime, H::Target::NoBoundsQuery, H::Target::StrictFloat});
    return t;
}

// Rewrites calls of Halide's parallel runtime into calls of ours, which take the pool from the kernel's context, and names the
// tasks after the function that starts them.
class UseOurPool : public IRMutator {
public:
    UseOurPool(std::vector<LoweredFunc> &tasks, const std::string &function) {
        for (LoweredFunc &task : tasks) {
            std::string name = function + ".task" + std::to_string(names.size());
            names["::" + task.name] = "::" + name;
            task.name = name;
        }
    }

private:
    std::map<std::string, std::string> names;
    using IRMutator::visit;
    HExpr visit(const Variable *op) override {
        auto it = names.find(op->name);
        return it == names.end() ? HExpr(op) : Variable::make(op->type, it->second);
    }
    HExpr visit(const Call *op) override {
        if (op->name != "halide_do_par_for") return IRMutator::visit(op);
        std::vector<HExpr> args = {Variable::make(H::Handle(), "__user_context")};
        for (const HExpr &e : op->args) args.push_back(mutate(e));
        return Call::make(op->type, "tess_abi2_do_par_for", args, Call::Extern);
    }
};

// Halide takes no vector that begins at a constant before its buffer, though the lanes there be masked: here it begins at a variable.
class BeginAtVariables : public IRMutator {
    using IRMutator::visit;
    HExpr visit(const Load *op) override {
        const Ramp *ramp = op->index.as<Ramp>();
        const auto first = ramp ? as_const_int(ramp->base) : std::nullopt;
        if (!first || *first >= 0) return IRMutator::visit(op);
        const std::string name = unique_name("begin");
        const HExpr index = Ramp::make(Variable::make(ramp->base.type(), name), ramp->stride, ramp->lanes);
        const HExpr load = Load::make(op->type, op->name, index, op->image, op->param, mutate(op->predicate), op->alignment);
        return Halide::Internal::Let::make(name, ramp->base, load);
    }
};

static LoweredArgument handle(const std::string &name) {
    return LoweredArgument(name, H::Argument::InputScalar, H::Handle(), 0, H::ArgumentEstimates{});
}

static void append(H::Module &module, const std::string &name, const std::vector<LoweredArgument> &args, Stmt s, LinkageType linkage,
                   const H::Target &target) {
    s = simplify(uniquify_variable_names(s));
    s = simplify(unroll_loops(s));
    s = vectorize_loops(with_uniform_loads(s), {});
    s = simplify(s);
    s = common_subexpression_elimination(s);
    s = simplify(flatten_nested_ramps(s));
    if (!has_fma(target)) s = with_exact_fma(s, target);
    s = BeginAtVariables().mutate(s);
    std::vector<LoweredFunc> closures;
    s = lower_parallel_tasks(s, closures, name, target);
    UseOurPool pool(closures, name);
    s = pool.mutate(s);
    for (LoweredFunc &closure : closures) {
        closure.body = pool.mutate(closure.body);
        closure.linkage = LinkageType::Internal;
        module.append(closure);
    }
    module.append(LoweredFunc(name, args, s, linkage, NameMangling::C));
}

static Stmt frame_store(int64_t slot, const HExpr &value) {
    return Store::make("frame", value, make_const(H::Int(32), slot), Halide::Parameter(), const_true(), ModulusRemainder());
}

// plan: the workspace that a variant needs, and the derived extents that arguments carry.
static Stmt plan_of(const TileProgram &program, const EmittedBody &body) {
    std::vector<int64_t> spec = spec_of(program);
    auto write = [](int64_t slot, const HExpr &value) { return frame_store(slot, value); };
    Stmt s = Block::make(write(tess_frame_shared_bytes(spec.data()), body.shared_bytes),
                         write(tess_frame_worker_bytes(spec.data()), body.worker_bytes));
    Addresses none;
    Values values(none);
    std::vector<Dim> dims = spec_dims(program);
    for (const Dim &d : dims) {
        if (d.kind != DimKind::derived) continue;
        int argument = -1, axis = -1;
        for (size_t a = 0; a < program.arguments.size() && argument < 0; a++)
            for (size_t x = 0; x < carried_dims(program.arguments[a]).size() && argument < 0; x++)
                if (carried_dims(program.arguments[a])[x] == d.name) argument = static_cast<int>(a), axis = static_cast<int>(x);
        const HExpr size = values.emit(max(d.size, Expr(0)));
        const HExpr agrees = Variable::make(H::Int(32), extent_name(d.name)) == size;
        const HExpr status = make_const(H::Int(32), tess_abi2_status(TESS_EXTENT_FIXED, argument));
        s = Block::make({write(tess_frame_dimension(spec.data()), make_const(H::Int(64), axis)),
                         write(tess_frame_expected(spec.data()), Cast::make(H::Int(64), size)), AssertStmt::make(agrees, status), s});
    }
    return bind_frame(program, s, true);
}

static HExpr holds(const Condition &c) {
    HExpr n = Variable::make(H::Int(32), extent_name(c.dim));
    if (c.modulus) n = n % make_const(H::Int(32), c.modulus);
    HExpr bound = make_const(H::Int(32), c.bound);
    if (c.relation == "<=") return n <= bound;
    if (c.relation == "<") return n < bound;
    if (c.relation == ">=") return n >= bound;
    if (c.relation == ">") return n > bound;
    if (c.relation == "==") return n == bound;
    return n != bound;
}

// The address of a function of this module.
static HExpr function_address(const std::string &name) { return Variable::make(H::Handle(), "::" + name); }

// Where the body of a variant is entered: the body is in another module.
static std::string entry_of(const Kernel &kernel, const Target &target, size_t variant) {
    return symbol_prefix(kernel, target, variant) + ".entry";
}

// Plans for the first variant whose conditions hold, and chooses its body.
static Stmt choose_variant(const Kernel &kernel, const Target &target, int64_t slot) {
    Stmt s;
    for (size_t v = kernel.variants.size(); v-- > 0;) {
        const HExpr frame = Variable::make(H::Handle(), "frame");
        const HExpr body = H::reinterpret(H::Int(64), function_address(entry_of(kernel, target, v)));
        Stmt call = Block::make(frame_store(slot, body),
                                returning(Call::make(H::Int(32), symbol_prefix(kernel, target, v) + ".plan", {frame}, Call::Extern)));
        HExpr all = const_true();
        for (const Condition &c : kernel.variants[v].when) all = all && holds(c);
        s = s.defined() ? IfThenElse::make(all, call, s) : call;
    }
    return s;
}

// The same of the first target that the frame's features satisfy. The last one's were checked before.
static Stmt dispatch(const std::vector<TargetKernels> &targets, size_t kernel) {
    const TileProgram &program = targets.back().kernels[kernel].general();
    const std::vector<int64_t> spec = spec_of(program);
    HExpr have = frame_word(tess_frame_features(spec.data()));
    Stmt s;
    for (size_t t = targets.size(); t-- > 0;) {
        Stmt chosen = choose_variant(targets[t].kernels[kernel], targets[t].target, tess_frame_body(spec.data()));
        HExpr mask = make_const(H::Int(64), static_cast<int64_t>(feature_mask(targets[t].target.features)));
        s = s.defined() ? IfThenElse::make((have & mask) == mask, chosen, s) : chosen;
    }
    return bind_frame(program, s, true);
}

static H::Buffer<int64_t> constant_table(const std::vector<int64_t> &words, const std::string &name) {
    H::Buffer<int64_t> table(static_cast<int>(words.size()), name);
    std::copy(words.begin(), words.end(), table.begin());
    return table;
}

// The constants of a module's programs as data without a symbol, equal ones once.
class Constants {
public:
    explicit Constants(H::Module &m) : module(m) {}

    // The module's buffer for each constant of `program` that is among `used`.
    std::map<std::string, std::string> add(const TileProgram &program, const std::set<std::string> &used) {
        std::map<std::string, std::string> buffers;
        for (const Tensor &t : program.constants) {
            if (!used.count(t.name)) continue;
            const std::string bytes = constant_bytes(t);
            auto [it, fresh] = known.emplace(std::pair(t.dtype, bytes), "constant." + std::to_string(known.size()));
            if (fresh) append(it->second, t.dtype, bytes);
            buffers[t.name] = it->second;
        }
        return buffers;
    }

private:
    H::Module &module;
    std::map<std::pair<DType, std::string>, std::string> known;

    void append(const std::string &name, DType type, const std::string &bytes) {
        auto count = std::max<size_t>(1, bytes.size() / static_cast<size_t>(size_of(type)));
        H::Buffer<> data(stored_type(type), std::vector<int>{static_cast<int>(count)}, name);
        std::memset(data.data(), 0, data.size_in_bytes());
        std::memcpy(data.data(), bytes.data(), bytes.size());
        module.append(data);
    }
};

static HExpr null_pointer() { return H::reinterpret(H::Handle(), make_const(H::UInt(64), uint64_t{0})); }

// The public functions: they hand a kernel's table and its functions to the runtime, with tensors in a table.
static void add_entry_points(H::Module &module, const std::vector<TargetKernels> &targets, size_t number, const H::Target &target) {
    const TargetKernels &least = targets.back();
    const Kernel &kernel = least.kernels[number];
    const TileProgram &program = kernel.general();
    const std::string table = kernel.name + ".spec";
    module.append(constant_table(spec_of(targets, number), table));
    std::vector<LoweredArgument> by_name;
    std::vector<HExpr> tensors;
    for (const Argument &a : program.arguments) {
        by_name.push_back(handle("argument." + a.tensor.name));
        tensors.push_back(Variable::make(H::Handle(), "argument." + a.tensor.name));
    }
    auto in_table = [](const std::vector<HExpr> &all) {
        return all.empty() ? null_pointer() : Call::make(H::Handle(), Call::make_struct, all, Call::Intrinsic);
    };
    auto variable = [](const char *name) { return Variable::make(H::Handle(), std::string("argument.") + name); };
    const HExpr spec = module_data(table), plan = function_address(kernel.name + ".plan"),
                body = function_address(entry_of(kernel, least.target, kernel.variants.size() - 1));
    const HExpr parameters = program.parameters.empty() ? null_pointer() : variable("parameters"), context = variable("context");
    auto add = [&](const std::string &suffix, std::vector<LoweredArgument> args, const char *function, const std::vector<HExpr> &values) {
        append(module, kernel.name + suffix, args, returning(Call::make(H::Int(32), function, values, Call::Extern)), LinkageType::External,
               target);
    };
    auto with = [](std::vector<LoweredArgument> args, const std::vector<const char *> &more) {
        for (const char *name : more) args.push_back(handle(std::string("argument.") + name));
        return args;
    };
    std::vector<const char *> rest = {"context"};
    if (!program.parameters.empty()) rest.insert(rest.begin(), "parameters");
    const std::vector<LoweredArgument> as_table = {handle("argument.tensors")};
    if (has_named_tensors(program))
        add("", with(by_name, rest), "tess_abi2_call", {spec, plan, body, in_table(tensors), parameters, context});
    add("_table", with(as_table, rest), "tess_abi2_call", {spec, plan, body, variable("tensors"), parameters, context});
    const bool named = has_named_tensors(program);
    add("_workspace", with(named ? by_name : as_table, {"context", "bytes"}), "tess_abi2_workspace",
        {spec, plan, body, named ? in_table(tensors) : variable("tensors"), context, variable("bytes")});
    add("_describe", {handle("argument.kernel")}, "tess_abi2_describe", {spec, plan, body, variable("kernel")});
    if (!is_packing(program)) return;
    const std::string written = "argument." + program.arguments.back().tensor.name;
    by_name.erase(std::find_if(by_name.begin(), by_name.end(), [&](const LoweredArgument &a) { return a.name == written; }));
    tensors.back() = null_pointer();
    add("_size", with(by_name, {"context", "bytes"}), "tess_abi2_packed_bytes", {spec, in_table(tensors), context, variable("bytes")});
}

}  // namespace emit

// A target's name as part of a symbol or a file. Dots keep what is the library's own apart from every C identifier.
static std::string word_of(const Target &target) {
    std::string word = target.name;
    for (char &c : word)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = c == '+' ? '.' : '_';
    return word;
}

std::string object_name(const std::string &archive_stem, const Target &target) { return archive_stem + "." + word_of(target) + ".o"; }

std::string symbol_prefix(const Kernel &kernel, const Target &target, size_t variant) {
    return kernel.name + "." + word_of(target) + ".variant" + std::to_string(variant);
}

namespace emit {

static H::Module module_of(const std::string &name, const H::Target &target) {
    H::Module module(name, target);
    // Without it LLVM may reassociate, contract and assume away NaN everywhere, strict intrinsics included.
    module.set_any_strict_float(true);
    return module;
}

// Positions have 32 bits. Where extents are dynamic, the runtime refuses each call that would need more; where they are fixed, the back
// end finds it out when it folds constants.
[[noreturn]] static void refused(const H::Error &error, const Kernel &kernel) {
    const std::string words = error.what();
    if (words.find("integer overflow occurred during constant-folding") == std::string::npos)
        throw InternalError("the back end refused a verified program: " + words);
    std::vector<std::string> fixed;
    for (const Dim &d : kernel.general().dims)
        if (d.kind == DimKind::fixed) fixed.push_back(d.name + "=" + std::to_string(d.value));
    throw UserError("emit.extent",
                    kernel.name + ": expected positions of at most 31 bits in every buffer, got more with the fixed extents " +
                        join(fixed) + ", so no call could run. Fix smaller extents, or choose a schedule with smaller copies.");
}

// What the back end writes. It does so in memory: it would end its process, with words of its own, where a disk is full.
struct Output {
    std::string name;  // of the object
    MemoryFile object, assembly;
    explicit Output(const std::string &module) : name(module + ".o") {}

    // Its name and bytes, as a library has it.
    std::pair<std::string, std::string> member(const std::set<std::string> &public_names) const {
        std::string bytes = object.text();
        hide_symbols(bytes, public_names);
        return {name, bytes};
    }
};

static void compile(const H::Module &module, const Output &output, bool with_assembly) {
    std::map<H::OutputFileType, std::string> outputs = {{H::OutputFileType::object, output.object.path()}};
    if (with_assembly) outputs[H::OutputFileType::assembly] = output.assembly.path();
    module.compile(outputs);
}

// The code for one target: an object with the bodies of all kernels, one for each further variant, which are compiled side by
// side, and one for each program that they invoke. If LLVM put an invoked body into its caller, it would take two names of one
// buffer for two buffers.
class Code {
public:
    Code(const std::string &archive_stem, const Target &t) : of(t), target(halide_target(t)), stem(archive_stem + "." + word_of(t)) {
        bodies = &add_module(stem);
    }

    EmittedBody add(const std::string &symbol, const std::string &kernel, size_t variant, const TileProgram &program) {
        std::map<std::string, Surroundings::Invoked> invoked;
        for (const TileProgram &p : program.programs) invoked.emplace(p.name, find(kernel, p, invoked));
        // Equal constants are there once.
        const bool alone = variant > 0 && program.constants.empty();
        return add(alone ? add_module(stem + ".variant" + std::to_string(variant) + "." + kernel) : *bodies, symbol, program, invoked);
    }

    // Its objects, name and bytes; their assembly is added to `assembly`, if anywhere. Messages name the kernel.
    std::vector<std::pair<std::string, std::string>> compiled(const Kernel &kernel, std::string *assembly) const {
        std::list<Output> outputs;
        std::vector<std::function<void()>> jobs;
        for (const Part &part : parts) {
            const Output &output = outputs.emplace_back(part.module.name());
            jobs.push_back([&part, &output, &kernel, assembly] {
                try {
                    compile(part.module, output, assembly != nullptr);
                } catch (const H::Error &e) { refused(e, kernel); }
            });
        }
        in_processes(jobs);
        std::vector<std::pair<std::string, std::string>> objects;
        FragmentCode found;
        for (const Output &output : outputs) {
            objects.push_back(output.member({}));
            for (const std::string &code : code_of(objects.back().second)) found += fragment_code_in(code);
            if (assembly) *assembly += output.assembly.text();
        }
        if (meant.steps > 0)
            if (const std::string why = unlike_fragment_code(meant, found); !why.empty())
                throw InternalError(kernel.name + ": the back end wrote " + why);
        return objects;
    }

private:
    struct Part {
        H::Module module;
        Constants constants{module};
        Part(const std::string &name, const H::Target &target) : module(module_of(name, target)) {}
    };
    const Target &of;
    H::Target target;
    std::string stem;
    std::list<Part> parts;
    Part *bodies;
    std::map<std::string, Surroundings::Invoked> known;  // by what they are
    FragmentCode meant;                                  // of all of them, where fragments are registers

    Part &add_module(const std::string &name) { return parts.emplace_back(name, target); }

    EmittedBody add(Part &part, const std::string &symbol, const TileProgram &program,
                    const std::map<std::string, Surroundings::Invoked> &invoked) {
        const MemoryPlan plan = plan_memory(program);
        if (has_tiles_only(program)) meant += fragment_code_of(program.body);
        EmittedBody body = plan.shares ? add_parts(part, symbol, program, invoked, plan)
                                       : emit_body(program, {part.constants.add(program, buffers_used(program.body)), invoked});
        append(part.module, symbol, {handle("__user_context"), handle("frame")}, body.body, LinkageType::External, target);
        return body;
    }

    // The functions of the parts that touch memory, each in an object of its own, and what calls them.
    EmittedBody add_parts(Part &part, const std::string &symbol, const TileProgram &program,
                          const std::map<std::string, Surroundings::Invoked> &invoked, const MemoryPlan &plan) {
        const std::vector<HExpr> arguments = {Variable::make(H::Handle(), "__user_context"), Variable::make(H::Handle(), "frame")};
        HExpr shared = make_const(H::Int(64), 0), of_worker = shared;
        std::vector<Stmt> steps;
        for (size_t number = 0; number < plan.parts.size(); number++) {
            const TileBody step = {plan.parts[number]};
            const bool apart = touches_memory(*plan.parts[number]);
            Part &where = apart ? add_module(stem + ".part" + std::to_string(parts.size())) : part;
            const EmittedBody one = emit_part(program, {where.constants.add(program, buffers_used(step)), invoked}, plan, number);
            shared = H::max(shared, one.shared_bytes), of_worker = H::max(of_worker, one.worker_bytes);
            const std::string own = symbol + ".part" + std::to_string(number);
            if (apart) append(where.module, own, {handle("__user_context"), handle("frame")}, one.body, LinkageType::External, target);
            steps.push_back(apart ? returning(Call::make(H::Int(32), own, arguments, Call::Extern)) : one.body);
        }
        return {Block::make(steps), whole_bytes(program, plan, shared), of_worker};
    }

    // The body of a program that is invoked; it is emitted the first time.
    Surroundings::Invoked find(const std::string &kernel, const TileProgram &program,
                               const std::map<std::string, Surroundings::Invoked> &invoked) {
        std::string what = resolved_hash(program);  // which has the names of what it invokes itself
        walk(program.body, [&](const TileNode &n) {
            if (auto *inner = std::get_if<Invoke>(&n)) what += " " + invoked.at(inner->program).symbol;
        });
        if (auto it = known.find(what); it != known.end()) return it->second;
        std::string callee = ".callee" + std::to_string(known.size()), symbol = kernel + "." + word_of(of) + callee + "." + program.name;
        EmittedBody body = add(add_module(stem + callee), symbol, program, invoked);
        return known.emplace(what, Surroundings::Invoked{&program, symbol, body.shared_bytes, body.worker_bytes}).first->second;
    }
};

// The bodies of one target, and their plans, which any processor runs.
static void add_variants(Code &code, H::Module &entry, const TargetKernels &of, const H::Target &base) {
    for (const Kernel &kernel : of.kernels)
        for (size_t v = 0; v < kernel.variants.size(); v++) {
            const TileProgram &program = kernel.variants[v].program;
            const std::string prefix = symbol_prefix(kernel, of.target, v);
            const std::vector<HExpr> arguments = {Variable::make(H::Handle(), "__user_context"), Variable::make(H::Handle(), "frame")};
            append(entry, entry_of(kernel, of.target, v), {handle("__user_context"), handle("frame")},
                   returning(Call::make(H::Int(32), prefix + ".body", arguments, Call::Extern)), LinkageType::External, base);
            append(entry, prefix + ".plan", {handle("frame")}, plan_of(program, code.add(prefix + ".body", kernel.name, v, program)),
                   LinkageType::External, base);
        }
}

}  // namespace emit

void emit_library(const std::vector<TargetKernels> &targets, const EmitOptions &options) {
    using namespace emit;
    require(!targets.empty() && !targets[0].kernels.empty(), "a library has a target and a kernel");
    const std::string stem = options.archive.stem().string();
    const TargetKernels &least = targets.back();
    Target baseline = least.target;
    baseline.features.clear();
    const H::Target base = halide_target(baseline);
    try {
        std::string assembly;
        std::set<std::string> public_names;
        std::vector<std::pair<std::string, std::string>> objects(1);
        H::Module entry = module_of(stem + ".entry", base);
        for (const TargetKernels &of : targets) {
            Code code(stem, of.target);
            add_variants(code, entry, of, base);
            for (auto &object : code.compiled(of.kernels[0], options.assembly ? &assembly : nullptr)) objects.push_back(std::move(object));
        }
        for (size_t k = 0; k < least.kernels.size(); k++) {
            const std::string &name = least.kernels[k].name;
            append(entry, name + ".plan", {handle("frame")}, dispatch(targets, k), LinkageType::External, base);
            add_entry_points(entry, targets, k, base);
            for (const std::string &function : public_functions(name, least.kernels[k].general())) public_names.insert(function);
        }
        const Output output(entry.name());
        compile(entry, output, false);
        objects[0] = output.member(public_names);
        write_into(options.archive, archive_of(objects));
        if (options.assembly) write_into(*options.assembly, assembly);
    } catch (const H::Error &e) { refused(e, least.kernels[0]); }
}

void emit_library(const std::vector<Kernel> &kernels, const Target &target, const EmitOptions &options) {
    emit_library({{target, kernels}}, options);
}

}  // namespace tessera
