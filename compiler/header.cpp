#include "compiler/header.h"

#include <set>

#include <fmt/format.h>

#include "algorithms/error.h"

namespace tessera {

static const std::set<std::string> &reserved_words() {
    static const std::set<std::string> words = {
        "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const", "continue", "default", "delete",
        "do", "double", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int",
        "long", "main", "mutable", "namespace", "new", "not", "operator", "or", "private", "protected", "public", "register", "requires",
        "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try",
        "typedef", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "xor"};
    return words;
}

bool is_c_name(const std::string &name) {
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
    for (char c : name)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
    return !reserved_words().count(name);
}

static constexpr size_t longest_name = 200;

void check_c_name(const std::string &name) {
    if (!is_c_name(name))
        throw UserError("emit.name", "a kernel's name must be a C identifier (letters, digits and _, not a keyword), got '" + name +
                                         "'; give another one with --name.");
    if (name.size() > longest_name)
        throw UserError("emit.name", "a kernel's name must have at most " + std::to_string(longest_name) +
                                         " characters, since files are named after it; '" + name.substr(0, 20) + "…' has " +
                                         std::to_string(name.size()) + ". Give another one with --name.");
}

// An argument's name in C; scopes and parts have dots.
std::string c_argument_name(const std::string &name) {
    std::string out;
    for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return is_c_name(out) ? out : "arg_" + out;
}

static const char *c_type(DType type) {
    switch (type) {
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::i32: return "int32_t";
    case DType::i64: return "int64_t";
    case DType::boolean: return "_Bool";
    default: throw InternalError("a parameter has an arithmetic type");
    }
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

std::string c_arguments(const TileProgram &program) {
    std::string arguments;
    for (const Argument &a : program.arguments) arguments += fmt::format("const TessTensorDesc *{}, ", c_argument_name(a.tensor.name));
    for (const Parameter &q : program.parameters)
        arguments += fmt::format("{} {}, ", q.dtype == DType::boolean ? "uint8_t" : c_type(q.dtype), c_argument_name(q.name));
    return arguments;
}

// "avx2 (sse4_1, …, f16c)", or "avx512, else avx2, else x86-64".
static std::string written(const std::vector<TargetKernels> &targets) {
    std::vector<std::string> all;
    if (targets.size() == 1 && !targets[0].target.features.empty()) return targets[0].target.name + " (" + join(targets[0].target.features) + ")";
    for (const TargetKernels &of : targets) all.push_back(of.target.name);
    return join(all, ", else ");
}

static std::string declaration(const Kernel &kernel, const std::string &targets) {
    const TileProgram &p = kernel.variants[0].program;
    std::string doc, names;
    for (const Argument &a : p.arguments) {
        const char *role = !a.written ? "read" : a.read ? "read and written" : "written";
        doc += fmt::format(" *    {}: {}, {}\n", c_argument_name(a.tensor.name), shape(p, a.tensor), role);
        names += fmt::format("\"{}\", ", a.tensor.name);
    }
    for (const Parameter &q : p.parameters) {
        doc += fmt::format(" *    {}: {}\n", c_argument_name(q.name), q.dtype == DType::boolean ? "uint8_t" : c_type(q.dtype));
    }
    return fmt::format(
        "/** {0}, for {1}. Arguments:\n{2}"
        " *    context: threads, pool and workspace; null for one thread and no workspace\n"
        " *  Returns TESS_OK or a status for tess_status_message; {0}_argument_names are the names it can print. */\n"
        "int {0}({3}const TessContext *context);\n\n"
        "/** Bytes of workspace, aligned to 64, that {0} needs for these arguments and this context. Data pointers may be null. */\n"
        "int {0}_workspace({3}const TessContext *context, uint64_t *bytes);\n\n"
        "static const char *const {0}_argument_names[] = {{{4}0}};\n",
        kernel.name, targets, doc, c_arguments(p), names);
}

std::string header_of(const std::string &stem, const std::vector<TargetKernels> &targets) {
    std::string guard = "TESSERA_GENERATED_" + c_argument_name(stem) + "_H", body;
    for (char &c : guard) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    for (const Kernel &k : targets[0].kernels) body += "\n" + declaration(k, written(targets));
    return fmt::format(
        "/* Generated by Tessera. Link it with the library of the same name and with Tessera's runtime. */\n"
        "#ifndef {0}\n#define {0}\n\n#include <tessera.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n{1}\n"
        "#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
        guard, body);
}

}  // namespace tessera
