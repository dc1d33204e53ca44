#include <cctype>

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/emit/gpu/host.h"
#include "compiler/emit/header.h"
#include "compiler/emit/spec.h"
#include "runtime/gpu/gpu.h"
#include "support/text/error.h"

namespace tessera {

namespace emit_gpu {

static bool is_cuda(const Target &target) {
    switch (target.arch) {
    case Arch::cuda: return true;
    case Arch::opencl: return false;
    case Arch::x86_64:
    case Arch::arm64:
    case Arch::wasm32: break;
    }
    throw InternalError("a target without blocks of threads");
}

static std::string stem_of(const Kernel &kernel, size_t variant) {
    return kernel.variants.size() == 1 ? kernel.name : fmt::format("{}_variant{}", kernel.name, variant);
}

// What the host's expressions call, each before what calls it.
static const std::vector<std::pair<std::string, std::string>> host_definitions = {
    {"div_i64", "(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)); }"},
    {"mod_i64", "(int64_t a, int64_t b) { return a - div_i64(a, b) * b; }"},
    {"min_i64", "(int64_t a, int64_t b) { return a < b ? a : b; }"},
    {"max_i64", "(int64_t a, int64_t b) { return a > b ? a : b; }"},
};

static bool calls(const std::string &text, const std::string &name) {
    for (size_t at = text.find(name + "("); at != std::string::npos; at = text.find(name + "(", at + 1))
        if (at == 0 || (!std::isalnum(static_cast<unsigned char>(text[at - 1])) && text[at - 1] != '_')) return true;
    return false;
}

// Those that the text calls: clang warns of others.
static std::string definitions_for(std::string text) {
    std::string all;
    for (auto it = host_definitions.rbegin(); it != host_definitions.rend(); ++it) {
        if (!calls(text, it->first)) continue;
        const std::string definition = "static inline int64_t " + it->first + it->second + "\n";
        text += definition;
        all = definition + all;
    }
    return all.empty() ? "" : all + "\n";
}

static std::string table(const Kernel &kernel, const Target &target) {
    std::string words;
    for (int64_t word : spec_of({{target, {kernel}}}, 0)) words += fmt::format("{}INT64_C({})", words.empty() ? "" : ", ", word);
    return fmt::format(
        "/* What the arguments must be, and what the kernel is: see runtime/abi/kernel.h. */\nstatic const int64_t {}_spec[] = {{{}}};\n\n",
        kernel.name, words);
}

// "<name>_plan" of the first variant whose conditions hold, which it chooses for the body.
static std::string dispatch(const Kernel &kernel) {
    std::map<std::string, size_t> slots;
    for (const Dim &d : spec_dims(kernel.general())) slots.emplace(d.name, slots.size());
    const int64_t slot = tess_frame_body(spec_of(kernel.general()).data());
    std::string text = fmt::format("static int32_t {}_plan(int64_t *frame) {{\n", kernel.name);
    for (size_t v = 0; v < kernel.variants.size(); v++) {
        std::string all;
        for (const Condition &c : kernel.variants[v].when)
            all += fmt::format("{}frame[{}]{} {} {}", all.empty() ? "" : " && ", slots.at(c.dim),
                               c.modulus ? fmt::format(" % {}", c.modulus) : "", c.relation, c.bound);
        const std::string stem = stem_of(kernel, v);
        text += fmt::format("    {0}{{\n        frame[{1}] = (int64_t)(uintptr_t)&{2}_body;\n        return {2}_plan(frame);\n    }}\n",
                            all.empty() ? "" : "if (" + all + ") ", slot, stem);
    }
    return text + "}\n\n";
}

static std::string entry_points(const Kernel &kernel) {
    const TileProgram &p = kernel.general();
    const bool named = has_named_tensors(p);
    const std::string parameters = c_parameters(kernel.name, p), table = "const TessTensor *const *tensors, ";
    std::string tensors, list;
    for (size_t i = 0; i < p.arguments.size(); i++) {
        tensors += fmt::format("const TessTensor *a{}, ", i);
        list += fmt::format("{}a{}", i ? ", " : "", i);
    }
    const std::string parts = fmt::format("{0}_spec, {0}_plan, {1}_body", kernel.name, stem_of(kernel, kernel.variants.size() - 1));
    const std::string in_table = fmt::format("    const TessTensor *const tensors[] = {{{}}};\n", list);
    std::string text = parameters.empty() ? "" : fmt::format("struct {}_parameters;\n\n", kernel.name);
    auto function = [&](const std::string &suffix, const std::string &arguments, const std::string &body) {
        text += fmt::format("int32_t {0}{1}({2});\n\nint32_t {0}{1}({2}) {{\n{3}}}\n\n", kernel.name, suffix, arguments, body);
    };
    const std::string call =
        fmt::format("    return tess_abi2_call({}, tensors, {}, context);\n", parts, parameters.empty() ? "NULL" : "parameters");
    if (named) function("", tensors + parameters + "const TessContext *context", in_table + call);
    function("_table", table + parameters + "const TessContext *context", call);
    function("_workspace", (named ? tensors : table) + "const TessContext *context, uint64_t *bytes",
             (named ? in_table : "") + fmt::format("    return tess_abi2_workspace({}, tensors, context, bytes);\n", parts));
    function("_describe", "TessKernel *kernel", fmt::format("    return tess_abi2_describe({}, kernel);\n", parts));
    return text;
}

// What a launch hands over: memory, the constants, and numbers.
static void check_launch(const TileProgram &p, const KernelProgram &k) {
    size_t count = spec_dims(p).size() + 3 * p.arguments.size() + p.parameters.size() + k.rooms.size() + k.numbers_after_rooms() + 2;
    for (const Argument &a : p.arguments) count += a.tensor.dims.size();
    if (count > TESS_GPU_MAX_LAUNCH)
        throw UserError("emit.abi", fmt::format("{}: a launch would hand over {} numbers and addresses; expected at most {}. Split the "
                                                "kernel, or give it fewer tensors.",
                                                p.name, count, static_cast<int>(TESS_GPU_MAX_LAUNCH)));
}

// As lines of a string of C; short ones, since compilers need not take long ones.
static std::string as_string(const std::string &text) {
    std::string out;
    for (size_t from = 0; from < text.size();) {
        size_t to = std::min(text.find('\n', from), text.size());
        out += "    \"";
        for (size_t i = from; i < to; i++) {
            if (text[i] == '"' || text[i] == '\\') out += '\\';
            if (text[i] == '\t') out += "\\t";
            else out += text[i];
        }
        out += to < text.size() ? "\\n\"\n" : "\"\n";
        from = to + 1;
    }
    return out;
}

}  // namespace emit_gpu

GpuSource kernels_of(const std::vector<Kernel> &kernels, const Target &target) {
    using namespace emit_gpu;
    const Constants constants(kernels);
    const Callees callees(kernels);
    GpuSource source;
    std::string functions;
    auto add = [&](const TileProgram &program, const std::string &stem, Called called) {
        const KernelProgram k = kernels_of(program, stem, constants, callees, called, is_cuda(target));
        functions += k.text;
        source.uses_double |= k.uses_double;
    };
    for (const Callees::Callee &callee : callees.all()) add(*callee.program, callee.stem, Called::by_program);
    for (const Kernel &kernel : kernels)
        for (size_t v = 0; v < kernel.variants.size(); v++) add(kernel.variants[v].program, stem_of(kernel, v), Called::by_host);
    source.kernels = fmt::format("/* Generated by Tessera for {}. No option that changes floating point may be used{}. */\n", target.name,
                                 is_cuda(target) ? ", and -fmad=false must be" : "") +
                     definitions(is_cuda(target), source.uses_double) + functions;
    return source;
}

std::string host_of(const std::vector<Kernel> &kernels, const Target &target, const std::string &image, bool uses_double) {
    using namespace emit_gpu;
    require(!kernels.empty(), "a host file has a kernel");
    const char *device = is_cuda(target) ? "cuda" : "opencl";
    std::string text = fmt::format(
        "/* Generated by Tessera for {0}. Compile it as C99 with the folder that holds Tessera's runtime/gpu/gpu.h among the include "
        "folders, and\n"
        " * link it with Tessera's runtime, gpu.c and {1}.c beside that header, and {2}. */\n#include <stddef.h>\n\n#include "
        "\"runtime/gpu/gpu.h\"\n\n",
        target.name, device, is_cuda(target) ? "libcuda" : "libOpenCL");
    const Constants constants(kernels);
    const Callees callees(kernels);
    text += fmt::format("static const char image[] =\n{};\n\n", as_string(image));
    if (!constants.empty()) text += constants.definition("constants") + "\n";
    text += fmt::format("static TessGpuProgram program = {{image, {}, {}, {}, {{{{NULL, NULL, NULL, NULL}}}}}};\n\n", uses_double ? 1 : 0,
                        constants.empty() ? "NULL" : "constants", constants.empty() ? "0" : "sizeof constants");
    const Host host{target, constants, callees};
    std::string functions;
    for (const Callees::Callee &callee : callees.all()) {
        const KernelProgram k = kernels_of(*callee.program, callee.stem, constants, callees, Called::by_program, is_cuda(target));
        check_launch(*callee.program, k);
        functions += host.functions_of_callee(*callee.program, k, callee.stem);
    }
    for (const Kernel &kernel : kernels) {
        check_c_name(kernel.name);
        for (const char *own : {"image", "constants", "program"})
            if (kernel.name == own) refuse_c_name(kernel.name, "one of the host file's own");
        for (const auto &[own, definition] : host_definitions)
            if (kernel.name == own) refuse_c_name(kernel.name, "one of the host file's own");
        functions += table(kernel, target);
        for (size_t v = 0; v < kernel.variants.size(); v++) {
            const TileProgram &p = kernel.variants[v].program;
            const KernelProgram k = kernels_of(p, stem_of(kernel, v), constants, callees, Called::by_host, is_cuda(target));
            check_launch(p, k);
            functions += host.functions_of(p, k, stem_of(kernel, v), kernel.name);
        }
        if (kernel.variants.size() > 1) functions += dispatch(kernel);
        functions += entry_points(kernel);
    }
    functions.pop_back();
    return text + definitions_for(functions) + functions;
}

}  // namespace tessera
