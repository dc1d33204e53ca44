#include "compiler/emit/emit_source.h"

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/emit/c/statements.h"
#include "compiler/emit/header.h"
#include "compiler/emit/spec.h"
#include "runtime/kernel.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera {

namespace emit_c {

// As gcc's and clang's target attribute names them.
static std::string compiler_feature(const std::string &feature) {
    static const std::map<std::string, std::string> names = {{"sse4_1", "sse4.1"},    {"sse4_2", "sse4.2"},     {"abm", "lzcnt"},
                                                             {"bmi1", "bmi"},         {"amx_tile", "amx-tile"}, {"amx_int8", "amx-int8"},
                                                             {"amx_bf16", "amx-bf16"}};
    if (auto it = names.find(feature); it != names.end()) return it->second;
    std::string out;
    for (char c : feature)
        if (c != '_') out += c;
    return out;
}

static std::string preamble(const Target &target) {
    std::string features;
    for (const std::string &f : target.features) features += (features.empty() ? "" : ",") + compiler_feature(f);
    const std::string machine =
        features.empty() || target.arch != Arch::x86_64 ? "" : fmt::format(" __attribute__((target(\"{}\")))", features);
    std::string text = R"(#include <stdint.h>

#include "runtime/kernel.h"

/* Every rounding is written down: nothing may be contracted, reassociated or assumed away. */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || defined(__ASSOCIATIVE_MATH__) || \
    defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "compile this file without -ffast-math and its parts"
#endif
#ifdef __clang__
#ifdef __x86_64__
#pragma float_control(precise, on) /* clang does not tell of parts of -ffast-math */
#endif
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* padding is computed from what is there; nothing comes of it */
#endif
#pragma GCC diagnostic ignored "-Wunused-variable" /* storage that the program has and does not need */
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

)";
    if (target.arch == Arch::x86_64)
        text += fmt::format(
            "#if defined(__x86_64__) && !defined(TESS_PORTABLE)\n#include <immintrin.h>\n#define TESS_X86_64 1\n#define "
            "TESS_MACHINE{0}\n#define TESS_CPU_FEATURES INT64_C(0x{1:x})\n#else\n"
            "#define TESS_MACHINE\n#define TESS_CPU_FEATURES 0\n#endif\n",
            machine, feature_mask(target.features));
    else if (target.has("asimddp"))
        text += fmt::format(
            "#if defined(__aarch64__) && !defined(TESS_PORTABLE) && (defined(__ARM_FEATURE_DOTPROD) || !defined(__clang__))\n#ifndef "
            "__ARM_FEATURE_DOTPROD\n"
            "#pragma GCC target(\"arch=armv8.2-a+dotprod\")\n#endif\n#include <arm_neon.h>\n#define TESS_DOTPROD 1\n"
            "#define TESS_CPU_FEATURES INT64_C(0x{:x})\n#else\n#define TESS_CPU_FEATURES 0\n#endif\n#define TESS_MACHINE\n",
            feature_mask({"asimddp"}));
    else text += "#define TESS_MACHINE\n#define TESS_CPU_FEATURES 0\n";
    return text + "#define TESS_INLINE static inline __attribute__((always_inline, unused))\n\n";
}

static std::string table(const Kernel &kernel) {
    const std::vector<int64_t> spec = spec_of(kernel.general(), 0);
    std::string text =
        fmt::format("/* What the arguments must be: see runtime/kernel.h. */\nstatic const int64_t {}_spec[] = {{\n", kernel.name);
    auto row = [&](size_t from, size_t n) {
        text += "    ";
        for (size_t i = from; i < from + n; i++) {
            if (i == TESS_SPEC_VERSION) text += spec[i] == TESS_SPEC_PACKED ? "TESS_SPEC_PACKED, " : "TESS_SPEC_ABI1, ";
            else if (i == TESS_SPEC_CPU_FEATURES) text += "TESS_CPU_FEATURES, ";
            else text += fmt::format("{},{}", spec[i], i + 1 < from + n ? " " : "");
        }
        text += "\n";
    };
    row(0, TESS_SPEC_HEADER);
    size_t at = TESS_SPEC_HEADER;
    for (int64_t d = 0; d < spec[TESS_SPEC_N_DIMS]; d++, at += TESS_SPEC_DIM_WORDS) row(at, TESS_SPEC_DIM_WORDS);
    for (int64_t t = 0; t < spec[TESS_SPEC_N_TENSORS]; t++, at += TESS_SPEC_TENSOR_WORDS) row(at, TESS_SPEC_TENSOR_WORDS);
    if (at < spec.size()) row(at++, 1);
    for (; at < spec.size(); at += TESS_SPEC_LAYOUT_WORDS) row(at, TESS_SPEC_LAYOUT_WORDS);
    return text + "};\n\n";
}

static std::string condition_text(const Condition &c, const std::map<std::string, std::string> &extents) {
    const std::string n = extents.at(c.dim) + (c.modulus ? fmt::format(" % {}", c.modulus) : "");
    return fmt::format("{} {} {}", n, c.relation, c.bound);
}

// "<name>_plan" and "<name>_body": those of the first variant whose conditions hold.
static std::string dispatch(const Kernel &kernel) {
    const std::vector<Dim> dims = spec_dims(kernel.general());
    std::string text;
    for (const char *what : {"plan", "body"}) {
        const bool body = what == std::string("body");
        text += fmt::format("static int {}_{}({}int64_t *frame) {{\n", kernel.name, what, body ? "void *call, " : "");
        std::map<std::string, std::string> extents;
        for (size_t d = 0; d < dims.size(); d++) extents[dims[d].name] = fmt::format("frame[{}]", d);
        for (size_t v = 0; v < kernel.variants.size(); v++) {
            std::string all, said;
            for (const Condition &c : kernel.variants[v].when)
                all += (all.empty() ? "" : " && ") + condition_text(c, extents), said += (said.empty() ? "" : " and ") + to_string(c);
            text += fmt::format("    {}return {}_variant{}_{}({}frame);{}\n", all.empty() ? "" : "if (" + all + ") ", kernel.name, v, what,
                                body ? "call, " : "", said.empty() ? "" : " /* " + said + " */");
        }
        text += "}\n\n";
    }
    return text;
}

static std::string entry_points(const Kernel &kernel, Operations &operations) {
    const TileProgram &p = kernel.general();
    const std::vector<std::string> names = c_argument_names(p);
    std::string descriptors, words;
    for (size_t i = 0; i < p.arguments.size(); i++) descriptors += (i ? ", " : "") + names[i];
    for (size_t i = 0; i < p.parameters.size(); i++) {
        const Parameter &q = p.parameters[i];
        const std::string &name = names[p.arguments.size() + i];
        words += words.empty() ? "" : ", ";
        if (q.dtype == DType::f32) words += operations.bitcast(DType::i32, {DType::f32, 0}) + "(" + name + ")";
        else if (q.dtype == DType::f64) words += operations.bitcast(DType::i64, {DType::f64, 0}) + "(" + name + ")";
        else words += q.dtype == DType::boolean ? name + " != 0" : name;
    }
    const std::string arguments = c_arguments(p);
    const std::string shared = fmt::format("{}_spec, (const TessTensorDesc *const[]){{{}}}, {}, context, {}_plan, ", kernel.name,
                                           descriptors, words.empty() ? "0" : "(const int64_t[]){" + words + "}", kernel.name);
    const std::string text = fmt::format(
        "int {0}({1}const TessContext *context);\nint {0}_workspace({1}const TessContext *context, uint64_t *bytes);\n\n"
        "int {0}({1}const TessContext *context) {{\n    return tess_abi1_run({2}{0}_body);\n}}\n\n"
        "int {0}_workspace({1}const TessContext *context, uint64_t *bytes) {{\n    return tess_abi1_workspace({2}bytes);\n}}\n",
        kernel.name, arguments, shared);
    if (!is_packing(p)) return text;
    std::string read;
    for (size_t i = 0; i < p.arguments.size(); i++) read += (i ? ", " : "") + (p.arguments[i].written ? "0" : names[i]);
    return text + fmt::format(
                      "\nint {0}_size({1}const TessContext *context, uint64_t *bytes);\n\nint {0}_size({1}const TessContext *context, "
                      "uint64_t *bytes) {{\n"
                      "    return tess_abi1_packed_bytes({0}_spec, (const TessTensorDesc *const[]){{{2}}}, 0, context, bytes);\n}}\n",
                      kernel.name, c_size_arguments(p), read);
}

// Which options of the compiler the target wants.
static std::string options_text(const Target &target) {
    switch (target.arch) {
    case Arch::x86_64:
        return "It needs no -m option: what uses the target's instructions is marked\n * TESS_MACHINE, and a processor without them is "
               "refused with a status. -DTESS_PORTABLE leaves "
               "out the intrinsics and asks\n * for nothing.";
    case Arch::arm64:
        if (!target.has("asimddp")) break;
        return "gcc needs no -m option; clang has dot products with\n * -march=armv8.2-a+dotprod, and plain C in their place without. "
               "Where they are in, a processor without them is "
               "refused with a\n * status. -DTESS_PORTABLE leaves them out and asks for nothing.";
    case Arch::wasm32: return "-msimd128 gives it vectors.";
    case Arch::opencl:
    case Arch::cuda: break;
    }
    return "It needs no -m option.";
}

static std::string about_text(const std::vector<Kernel> &kernels, const Target &target, const std::vector<std::string> &about) {
    std::string names, text;
    for (const Kernel &k : kernels) names += (names.empty() ? "" : ", ") + k.name;
    text = fmt::format("/* Generated by Tessera: {}, for {}{}.\n *\n", names, target.name,
                       target.features.empty() ? "" : " (" + join(target.features) + ")");
    for (const std::string &line : about) text += " * " + line + "\n";
    for (const Kernel &k : kernels)
        for (const KernelVariant &v : k.variants) {
            std::string when;
            for (const Condition &c : v.when) when += (when.empty() ? " where " : " and ") + to_string(c);
            text += fmt::format(" * {}{}: tile program {}\n", k.name, when, resolved_hash(v.program));
        }
    return text + R"( *
 * Compile it with gcc (12 or later) or clang (14 or later):
 *
 *     cc -std=c11 -O2 -Wno-psabi -c <this file> -I<the folder that holds Tessera's runtime/kernel.h>
 *
 * and link it with Tessera's runtime and libm. )" +
           options_text(target) + R"(
 * -ffast-math and its parts are not for this file; no other option changes a bit of a result, NaN's payload aside.
 *
 * A comment before straight-line code is the statement of the tile program that it carries out. */
)";
}

}  // namespace emit_c

std::string source_of(const std::vector<Kernel> &kernels, const Target &target, const std::vector<std::string> &about) {
    using namespace emit_c;
    require(!kernels.empty(), "a source file has a kernel");
    Operations operations(target);
    std::string code;
    for (const Kernel &kernel : kernels) {
        check_c_name(kernel.name);
        const bool one = kernel.variants.size() == 1;
        for (size_t v = 0; v < kernel.variants.size(); v++)
            code += functions_of(kernel.variants[v].program, one ? kernel.name : fmt::format("{}_variant{}", kernel.name, v), operations);
        code += table(kernel) + (one ? "" : dispatch(kernel)) + entry_points(kernel, operations) + "\n";
    }
    code.pop_back();
    for (const Kernel &kernel : kernels)
        if (operations.defines(kernel.name)) refuse_c_name(kernel.name, "that of an operation of its own C");
    return about_text(kernels, target, about) + preamble(target) + operations.text() + code;
}

}  // namespace tessera
