#include "compiler/emit/header.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/emit/spec.h"
#include "compiler/rewrite/prepack.h"
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

static std::string arguments_of(const TileProgram &program, bool written) {
    const std::vector<std::string> names = c_argument_names(program);
    std::string arguments;
    size_t at = 0;
    for (const Argument &a : program.arguments) {
        const std::string &name = names[at++];
        if (written || !a.written) arguments += fmt::format("const TessTensorDesc *{}, ", name);
    }
    for (const Parameter &q : program.parameters) arguments += fmt::format("{} {}, ", c_parameter_type(q.dtype), names[at++]);
    return arguments;
}

std::string c_arguments(const TileProgram &program) { return arguments_of(program, true); }
std::string c_size_arguments(const TileProgram &program) { return arguments_of(program, false); }

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
        std::string form = shape(p, a.packed ? a.packed->operand : a.tensor);
        if (a.packed)
            form = fmt::format("bytes (tess_packed), '{}', {}, packed as {}", a.packed->operand.name, form, layouts(all, number, i));
        doc += fmt::format(" *    {}: {}, {}\n", c_names[i], form, role);
        names += fmt::format("\"{}\", ", a.tensor.name);
    }
    for (size_t i = 0; i < p.parameters.size(); i++) {
        const DType type = p.parameters[i].dtype;
        doc += fmt::format(" *    {}: {}\n", c_names[p.arguments.size() + i], c_parameter_type(type));
    }
    std::string text = fmt::format(
        "/** {0}, for {1}. Arguments:\n{2}"
        " *    context: threads, pool and workspace; null for one thread and no workspace\n"
        " *  Returns TESS_OK or a status for tess_status_message; {0}_argument_names are the names it can print. */\n"
        "int {0}({3}const TessContext *context);\n\n"
        "/** Bytes of workspace, aligned to 64, that {0} needs for these arguments and this context. Data pointers may be null{5}. */\n"
        "int {0}_workspace({3}const TessContext *context, uint64_t *bytes);\n\n"
        "static const char *const {0}_argument_names[] = {{{4}0}};\n",
        kernel.name, targets, doc, c_arguments(p), names, takes_packed ? ", but not that of a packed operand, whose header is read" : "");
    if (is_packing(p))
        text += fmt::format(
            "\n/** Bytes, aligned to TESS_PACKED_ALIGNMENT, that {0} writes for these arguments and this context. Data pointers may be "
            "null. */\n"
            "int {0}_size({1}const TessContext *context, uint64_t *bytes);\n",
            kernel.name, c_size_arguments(p));
    return text;
}

// What an application does with the file beside the header.
static std::string how_to_link(const Target &target, Beside beside) {
    if (target.is_gpu())
        return fmt::format(
            "Compile the C file of the same name, and link Tessera's runtime for {}.\n"
            " * Data pointers are host memory, and results are there when a function returns.",
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
        guard, body, comment, beside == Beside::c_file ? "\"runtime/tessera.h\"" : "<tessera.h>");
}

}  // namespace tessera
