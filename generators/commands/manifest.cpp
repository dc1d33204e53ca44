#include "generators/commands/manifest.h"
#include "generators/registry/versions.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/text/hash.h"
#include "compiler/abi/archive.h"
#include "compiler/abi/memory_plan.h"
#include "compiler/abi/object_file.h"
#include "compiler/abi/workspace.h"
#include "compiler/emit/emit_library.h"
#include "compiler/rewrite/prepack.h"
#include "compiler/tile/arguments.h"
#include "generators/kernel/kernel_bits.h"
#include "schedules/knobs/notation.h"
#include "support/files/json_text.h"
#include "support/processes/installed_program.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

using nlohmann::ordered_json;

static ordered_json schedule_json(const PreparedKernel &p) {
    if (!p.choice.match.schedule) return nullptr;
    ordered_json chain = ordered_json::array();
    for (const Schedule &s : p.choice.applied.ancestry) {
        ordered_json link = {{"name", s.name()}};
        if (s.file()) link["file"] = s.file()->filename().string();
        link["hash"] = s.hash();
        chain.push_back(link);
    }
    ordered_json schedule = {{"name", p.choice.match.schedule->name()}, {"match", name_of(p.choice.match.how)}, {"chain", chain}};
    for (const CalleeSchedule &callee : p.choice.applied.program.callees)
        schedule["calls"].push_back({{"call", callee.scope},
                                     {"name", callee.ancestry.front().name()},
                                     {"match", callee.is_named ? "named" : "best"},
                                     {"hash", callee.ancestry.front().hash()}});
    if (p.choice.match.how == Match::How::nearest) schedule["tuned_for"] = p.choice.match.tuned_for;
    if (p.choice.match.is_predicted) schedule["predicted"] = true;
    return schedule;
}

namespace {

// What the library holds, by member.
struct Contents {
    std::map<std::string, std::string> members;

    ordered_json loaded(const std::string &member) const {
        const std::string &object = members.at(member);
        return is_object(object) ? ordered_json(loaded_bytes(object)) : ordered_json(nullptr);
    }
    // In a target's object: those of further variants, those of parts, and those of what its bodies invoke.
    ordered_json loaded_with_others(const std::string &member) const {
        const std::string stem = member.substr(0, member.rfind('.'));
        ordered_json bytes = loaded(member);
        for (const auto &[name, object] : members) {
            const bool of_target =
                name.starts_with(stem + ".callee") || name.starts_with(stem + ".variant") || name.starts_with(stem + ".part");
            if (of_target && bytes.is_number()) bytes = bytes.get<uint64_t>() + loaded_bytes(object);
        }
        return bytes;
    }
    ordered_json code(const std::string &member, const std::string &prefix) const {
        if (!is_object(members.at(member))) return nullptr;
        const std::string stem = member.substr(0, member.rfind('.'));
        uint64_t bytes = 0;
        for (const auto &[name, object] : members) {
            if (name != member && !name.starts_with(stem + ".variant") && !name.starts_with(stem + ".part")) continue;
            for (const ObjectSymbol &s : symbols_of(object))
                if (s.function && s.defined && s.name.starts_with(prefix + ".")) bytes += s.bytes;
        }
        return bytes;
    }
    ordered_json symbols() const {
        std::set<std::string> shown, defined, needed;
        for (const auto &[name, object] : members)
            for (const ObjectSymbol &s : symbols_of(object)) {
                require(!s.name.starts_with("halide_"), "a library has and needs nothing of Halide's runtime, not " + s.name);
                if (!s.global) continue;
                (s.defined ? defined : needed).insert(s.name);
                if (s.defined && !s.hidden) shown.insert(s.name);
            }
        for (const std::string &name : defined) needed.erase(name);
        return {{"public", shown}, {"needs", needed}};
    }
};

}  // namespace

// Where the buffers of the workspace lie: each behind the furthest of those that it names.
static ordered_json memory_json(const TileProgram &program) {
    const MemoryPlan plan = plan_memory(program);
    ordered_json buffers = ordered_json::array();
    for (const PlannedBuffer &b : plan.buffers) {
        ordered_json behind = ordered_json::array();
        for (size_t other : b.behind) behind.push_back(plan.buffers[other].buffer.name);
        buffers.push_back(
            {{"buffer", b.buffer.name}, {"bytes", to_string(workspace_bytes(b.buffer))}, {"parts", {b.first, b.last}}, {"behind", behind}});
    }
    return buffers;
}

static ordered_json variants_json(const PreparedKernel &p, const Kernel &kernel, const Contents *contents, const std::string &member) {
    ordered_json variants = ordered_json::array();
    for (size_t v = 0; v < kernel.variants.size(); v++) {
        const KernelVariant &variant = kernel.variants[v];
        ordered_json when = ordered_json::array();
        for (const Condition &c : variant.when) when.push_back(to_string(c));
        variants.push_back({{"when", when}, {"resolved", resolved_hash(variant.program)}, {"workspace", memory_json(variant.program)}});
        if (contents) variants.back()["bytes"] = contents->code(member, symbol_prefix(kernel, p.request.target, v));
    }
    return variants;
}

// What packs each operand that the kernel takes packed.
static ordered_json packings_json(const PreparedKernel &p, const Contents *contents, const std::string &member) {
    ordered_json packings = ordered_json::array();
    for (const Kernel &kernel : p.compiled.packings) {
        const Packing &packing = *kernel.general().arguments.back().packed;
        ordered_json layout = ordered_json::array();
        for (const LayoutAxis &axis : packing.layout) layout.push_back(to_string(axis));
        packings.push_back({{"function", kernel.name},
                            {"operand", packing.operand.name},
                            {"layout", layout},
                            {"layout_hash", fmt::format("0x{:016x}", layout_hash(packing))},
                            {"variants", variants_json(p, kernel, contents, member)}});
    }
    return packings;
}

static ordered_json constants_json(const Kernel &kernel) {
    ordered_json constants = ordered_json::array();
    for (const Tensor &t : kernel.general().constants)
        constants.push_back(
            {{"name", t.name}, {"dtype", name_of(t.dtype)}, {"bytes", static_cast<int64_t>(t.values.size()) * size_of(t.dtype)}});
    return constants;
}

// What an application links besides the generated files.
static ordered_json linked_json(const Emitter &emitter) {
    std::vector<LinkedLibrary> all = {{"tessera_runtime", "Apache-2.0", "LICENSE"}};
    all.insert(all.end(), emitter.links.begin(), emitter.links.end());
    ordered_json linked = ordered_json::array();
    for (const LinkedLibrary &one : all)
        linked.push_back(
            {{"name", one.name}, {"licence", one.licence}, {"text", one.text ? ordered_json(*one.text) : ordered_json(nullptr)}});
    return linked;
}

// What a target has beside its kernels.
static ordered_json target_json(const Target &target) {
    return {{"name", target.name}, {"arch", name_of(target.arch)}, {"features", target.features}};
}

// What a target has of one kernel.
static ordered_json lowered_json(const PreparedKernel &p, const Contents *contents, const std::string &member,
                                 const CertificateRequest *request) {
    const KernelBits bits = bits_of(p.request, p.choice);
    ordered_json lowered = {{"schedule", schedule_json(p)},
                            {"bits", bits.hash},
                            {"batch_invariant", bits.batch_invariant},
                            {"variants", variants_json(p, p.compiled.kernel, contents, member)},
                            {"packings", packings_json(p, contents, member)}};
    if (request) lowered["certificate"] = certificate_json(p, *request);
    return lowered;
}

static ordered_json parameters_json(const Algorithm &algorithm) {
    ordered_json parameters = ordered_json::array();
    for (const Parameter &p : algorithm.parameters) {
        parameters.push_back({{"name", p.name}, {"dtype", name_of(p.dtype)}});
        if (p.range) parameters.back()["range"] = to_string(*p.range);
    }
    return parameters;
}

// As callers pass them: an operand that is packed is itself.
static ordered_json arguments_json(const Kernel &kernel) {
    ordered_json arguments = ordered_json::array();
    for (const Argument &a : kernel.general().arguments) {
        const Tensor tensor = declared_tensor(a);
        arguments.push_back({{"name", tensor.name},
                             {"role", !a.written ? "input"
                                      : a.read   ? "inout"
                                                 : "output"},
                             {"dtype", name_of(tensor.dtype)},
                             {"dims", tensor.dims}});
    }
    return arguments;
}

static ordered_json kernel_json(const PreparedKernel &p) {
    ordered_json fixed = ordered_json::object(), options = ordered_json::object(), effects = ordered_json::array();
    for (const Effect e : effects_of(p.request.declared)) effects.push_back(name_of(e));
    for (const auto &[name, value] : p.request.options) options[name] = value;
    for (const auto &[dim, extent] : p.request.fixed) fixed[dim] = extent;
    return {{"kernel", p.compiled.kernel.name},
            {"algorithm",
             {{"name", p.request.declared.name},
              {"semantic", semantic_hash(p.request.declared)},
              {"surface", surface_hash(p.request.declared)}}},
            {"options", options},
            {"numerics", p.request.declared.numerics.name},
            {"policy", text_of(p.request.declared.numerics)},
            {"effects", effects},
            {"fixed", fixed},
            {"arguments", arguments_json(p.compiled.kernel)},
            {"parameters", parameters_json(p.request.declared)},
            {"constants", constants_json(p.compiled.kernel)}};
}

std::string manifest_of(const PreparedLibrary &library, const Emitter &emitter, const std::string &archive,
                        const std::map<std::string, std::string> &files, const CertificateRequest *request) {
    const Target &first = library.first()[0].request.target;
    const bool objects = emitter.makes_objects;
    const Contents contents{objects ? members_of(files.at(archive)) : decltype(Contents::members)()};
    const std::string stem = std::filesystem::path(archive).stem().string();
    auto lowered = [&](const PreparedKernel &p) {
        return lowered_json(p, objects ? &contents : nullptr, object_name(stem, p.request.target), request);
    };
    ordered_json manifest = {{"format", "tessera-manifest"}, {"version", 1},    {"tessera", tessera_version()},
                             {"halide", halide_version()},   {"nvcc", nullptr}, {"emit", emitter.name}};
    if (library.is_module) {
        manifest["library"] = library.name;
        for (const std::vector<PreparedKernel> &targets : library.kernels) {
            ordered_json kernel = kernel_json(targets[0]);
            for (const PreparedKernel &p : targets) {
                kernel["targets"].push_back({{"name", p.request.target.name}});
                kernel["targets"].back().update(lowered(p));
            }
            manifest["kernels"].push_back(kernel);
        }
    } else {
        manifest.update(kernel_json(library.first()[0]));
    }
    for (const PreparedKernel &p : library.first()) {
        ordered_json target = target_json(p.request.target);
        if (!library.is_module) target.update(lowered(p));
        if (objects) target["bytes"] = contents.loaded_with_others(object_name(stem, p.request.target));
        manifest["targets"].push_back(target);
    }
    manifest["entry_bytes"] = objects ? contents.loaded(stem + ".entry.o") : ordered_json(nullptr);
    manifest["symbols"] = objects ? contents.symbols() : ordered_json(nullptr);
    manifest["licences"] = {{"embedded", ordered_json::array()}, {"linked", linked_json(emitter)}};
    for (const auto &[name, content] : files) manifest["files"][name] = sha256(content);
    if (!objects)
        for (const char *key : {"halide", "entry_bytes", "symbols"}) manifest.erase(key);
    if (const auto nvcc = first.arch == Arch::cuda ? installed_program({"nvcc"}) : std::nullopt) manifest["nvcc"] = nvcc->version;
    else manifest.erase("nvcc");
    return json_text(manifest, 2) + "\n";
}

}  // namespace tessera
