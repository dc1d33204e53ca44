#include "compiler/emit/header.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/emit/spec.h"
#include "compiler/rewrite/prepack.h"
#include "compiler/tile/arguments.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera {

static std::string layout(const Packing &packing) {
    std::vector<std::string> axes;
    for (const LayoutAxis &axis : packing.layout) axes.push_back(to_string(axis));
    return fmt::format("{}, hash 0x{:016x}", join(axes), layout_hash(packing));
}

// The layouts of an argument that is packed, target by target where they differ.
static std::string layouts(const std::vector<TargetKernels> &targets, size_t kernel, size_t argument) {
    std::vector<std::string> all;
    bool alike = true;
    for (const TargetKernels &t : targets) {
        all.push_back(layout(*t.kernels[kernel].general().arguments[argument].packed));
        alike = alike && all.back() == all.front();
    }
    if (alike) return all.front();
    for (size_t t = 0; t < all.size(); t++) all[t] += " for " + targets[t].target.name;
    return join(all, "; ");
}

static std::string shape(const TileProgram &program, const Tensor &t) {
    std::string text;
    for (const std::string &name : t.dims) {
        std::string dim = name;
        for (const Dim &d : program.dims) {
            if (d.name != name) continue;
            if (d.kind == DimKind::fixed) dim += " = " + std::to_string(d.value);
            if (d.kind == DimKind::derived) dim += " = " + to_string(d.size);
            if (d.multiple_of > 1) dim += " (a multiple of " + std::to_string(d.multiple_of) + ")";
        }
        text += (text.empty() ? "" : ", ") + dim;
    }
    return std::string(name_of(t.dtype)) + " [" + text + "]";
}

std::string c_tensors(const TileProgram &program, bool written) {
    const std::vector<std::string> names = c_argument_names(program);
    std::string arguments;
    for (size_t i = 0; i < program.arguments.size(); i++)
        if (written || !program.arguments[i].written) arguments += fmt::format("const TessTensor *{}, ", names[i]);
    return arguments;
}

std::string c_parameters(const std::string &kernel, const TileProgram &program) {
    return program.parameters.empty() ? "" : fmt::format("const struct {}_parameters *parameters, ", kernel);
}

// "avx2 (sse4_1, …, f16c)", or "avx512, else avx2, else x86-64".
static std::string written(const std::vector<TargetKernels> &targets) {
    std::vector<std::string> all;
    if (targets.size() == 1 && !targets[0].target.features.empty())
        return targets[0].target.name + " (" + join(targets[0].target.features) + ")";
    for (const TargetKernels &of : targets) all.push_back(of.target.name);
    return join(all, ", else ");
}

static std::string declaration(const std::vector<TargetKernels> &all, size_t number) {
    const Kernel &kernel = all[0].kernels[number];
    const std::string targets = written(all);
    const TileProgram &p = kernel.general();
    const bool takes_packed = std::any_of(p.arguments.begin(), p.arguments.end(), [](const Argument &a) { return a.packed && !a.written; });
    const std::vector<std::string> c_names = c_argument_names(p);
    std::string doc, names;
    for (size_t i = 0; i < p.arguments.size(); i++) {
        const Argument &a = p.arguments[i];
        const char *role = !a.written ? "read" : a.read ? "read and written" : "written";
        std::string form = shape(p, declared_tensor(a));
        if (a.packed)
            form = fmt::format("bytes (tess_packed), '{}', {}, packed as {}", a.packed->operand.name, form, layouts(all, number, i));
        doc += fmt::format(" *    {}: {}, {}{}\n", c_names[i], form, role, a.large ? ", large" : "");
        names += fmt::format("\"{}\", ", a.tensor.name);
    }
    std::string members, parameters;
    for (size_t i = 0; i < p.parameters.size(); i++) {
        const Parameter &q = p.parameters[i];
        members += fmt::format("    {} {};{}\n", c_parameter_type(q.dtype), c_names[p.arguments.size() + i],
                               q.range ? " /**< " + to_string(*q.range) + " */" : "");
        names += fmt::format("\"{}\", ", q.name);
    }
    if (!members.empty()) {
        parameters =
            fmt::format("/** The parameters of {0}. */\ntypedef struct {0}_parameters {{\n{1}}} {0}_parameters;\n\n", kernel.name, members);
        doc += fmt::format(" *    parameters: {}_parameters\n", kernel.name);
    }
    const bool named = has_named_tensors(p);
    const std::string rest = c_parameters(kernel.name, p), table = "const TessTensor *const *tensors, ";
    const std::string about = fmt::format(
        "/** {0}, for {1}. {2}:\n{3}"
        " *    context: threads, pool, workspace and more; null for one thread and no workspace\n"
        " *  Returns TESS_OK or a status for tess_status_message; {0}_argument_names are the names it can print. */\n",
        kernel.name, targets, named ? "Arguments" : "Tensors in a table, in this order, and other arguments", doc);
    std::string text = parameters + about;
    if (named)
        text +=
            fmt::format("int32_t {0}({1}{2}const TessContext *context);\n\n/** The same with the tensors in a table, in this order. */\n",
                        kernel.name, c_tensors(p), rest);
    text += fmt::format(
        "int32_t {0}_table({1}{2}const TessContext *context);\n\n"
        "/** Bytes of workspace, aligned to 64, that {0} needs for these arguments and this context. Data pointers may be null{4}. */\n"
        "int32_t {0}_workspace({3}const TessContext *context, uint64_t *bytes);\n\n"
        "/** The kernel as a value, to be described, planned and run (tess_kernel_info, tess_plan_make). Begin with tess_kernel(). */\n"
        "int32_t {0}_describe(TessKernel *kernel);\n\n"
        "static const char *const {0}_argument_names[] = {{{5}TESS_NULL}};\n",
        kernel.name, table, rest, named ? c_tensors(p) : table,
        takes_packed ? ", but not that of a packed operand, whose header is read" : "", names);
    if (is_packing(p))
        text += fmt::format(
            "\n/** Bytes, aligned to TESS_PACKED_ALIGNMENT, that {0} writes for these arguments and this context. Data pointers may be "
            "null. */\n"
            "int32_t {0}_size({1}const TessContext *context, uint64_t *bytes);\n",
            kernel.name, c_tensors(p, false));
    return text;
}

// What an application does with the file beside the header.
static std::string how_to_link(const Target &target, Beside beside) {
    if (target.is_gpu())
        return fmt::format(
            "Compile the C file of the same name, and link Tessera's runtime for {}.\n"
            " * Tensors are on the device, which the context names with the stream; a function returns when its work is in there.",
            target.arch == Arch::cuda ? "CUDA and the CUDA driver (-lcuda)" : "OpenCL and an OpenCL loader (-lOpenCL)");
    return beside == Beside::c_file ? "Compile the C file of the same name, and link Tessera's runtime."
                                    : "Link it with the library of the same name and with Tessera's runtime.";
}

std::string header_of(const std::string &stem, const std::vector<TargetKernels> &targets, Beside beside,
                      const std::vector<std::string> &about) {
    std::string comment = how_to_link(targets[0].target, beside);
    for (const std::string &line : about) comment += "\n * " + line;
    std::string guard = "TESSERA_GENERATED_" + stem + "_H", body;
    for (char &c : guard) {
        const auto u = static_cast<unsigned char>(c);
        c = std::isalnum(u) ? static_cast<char>(std::toupper(u)) : '_';
    }
    for (size_t k = 0; k < targets[0].kernels.size(); k++) body += "\n" + declaration(targets, k);
    return fmt::format(
        "/* Generated by Tessera. {2} */\n"
        "#ifndef {0}\n#define {0}\n\n#include {3}\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n{1}\n"
        "#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
        guard, body, comment, beside == Beside::c_file ? "\"runtime/abi/tessera.h\"" : "<tessera.h>");
}

}  // namespace tessera
