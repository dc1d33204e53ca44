#include "compiler/emit/emit_source.h"

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/emit/c/statements.h"
#include "compiler/emit/header.h"
#include "compiler/emit/spec.h"
#include "runtime/abi/kernel.h"
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

struct ArmFeature {
    const char *name, *compilers, *macro;
};
static const ArmFeature arm_features[] = {{"asimdhp", "fp16", "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC"},
                                          {"asimddp", "dotprod", "__ARM_FEATURE_DOTPROD"},
                                          {"i8mm", "i8mm", "__ARM_FEATURE_MATMUL_INT8"},
                                          {"bf16", "bf16", "__ARM_FEATURE_BF16"}};

// gcc is told of the target's features where its options have not; clang has those of its options alone.
static std::string arm_preamble(const Target &target) {
    std::string architecture = "armv8.2-a", all;
    for (const ArmFeature &f : arm_features) {
        if (!target.has(f.name)) continue;
        architecture += std::string("+") + f.compilers;
        all += (all.empty() ? "defined(" : " && defined(") + std::string(f.macro) + ")";
    }
    return fmt::format(
        "#if defined(__aarch64__) && !defined(TESS_PORTABLE) && (({0}) || !defined(__clang__))\n#if !({0})\n"
        "#pragma GCC target(\"arch={1}\")\n#endif\n#include <arm_neon.h>\n#define TESS_ARM64 1\n"
        "#define TESS_CPU_FEATURES INT64_C(0x{2:x})\n#else\n#define TESS_CPU_FEATURES 0\n#endif\n#define TESS_MACHINE\n",
        all, architecture, feature_mask(target.features));
}

static std::string preamble(const Target &target) {
    std::string features;
    for (const std::string &f : target.features) features += (features.empty() ? "" : ",") + compiler_feature(f);
    const std::string machine =
        features.empty() || target.arch != Arch::x86_64 ? "" : fmt::format(" __attribute__((target(\"{}\")))", features);
    std::string text = R"(#include <stdint.h>

#include "runtime/abi/kernel.h"

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
#pragma GCC diagnostic ignored "-Warray-bounds" /* a masked load may begin past an end, where its mask is empty */

)";
    if (target.arch == Arch::x86_64)
        text += fmt::format(
            "#if defined(__x86_64__) && !defined(TESS_PORTABLE)\n#include <immintrin.h>\n#define TESS_X86_64 1\n#define "
            "TESS_MACHINE{0}\n#define TESS_CPU_FEATURES INT64_C(0x{1:x})\n#else\n"
            "#define TESS_MACHINE\n#define TESS_CPU_FEATURES 0\n#endif\n",
            machine, feature_mask(target.features));
    else if (target.arch == Arch::arm64 && !target.features.empty()) text += arm_preamble(target);
    else text += "#define TESS_MACHINE\n#define TESS_CPU_FEATURES 0\n";
    return text + "#define TESS_INLINE static inline __attribute__((always_inline, unused))\n\n";
}

// A comment may hold any text.
static std::string in_comment(std::string text) {
    for (size_t at = 0; (at = text.find("*/", at)) != std::string::npos;) text.replace(at, 2, "* /");
    return text;
}

static std::string table(const Kernel &kernel, const Target &target) {
    std::vector<TargetKernels> all = {{target, {kernel}}};
    const std::vector<int64_t> spec = spec_of(all, 0);
    std::string text = fmt::format(
        "/* What the arguments must be, and what the kernel is: see runtime/abi/kernel.h. */\nstatic const int64_t {}_spec[] = {{\n",
        kernel.name);
    size_t at = 0;
    auto row = [&](size_t n, size_t features, const std::string &comment = "") {
        text += "    ";
        for (size_t i = 0; i < n; i++, at++) {
            if (at == TESS_SPEC_VERSION) text += spec[at] == TESS_SPEC_ABI2 ? "TESS_SPEC_ABI2," : "TESS_SPEC_ABI2_RANGES,";
            else if (i == features) text += "TESS_CPU_FEATURES,";
            else if (spec[at] == INT64_MIN) text += "INT64_MIN,";
            else text += fmt::format("{},", spec[at]);
            if (i + 1 < n) text += " ";
        }
        text += comment.empty() ? "\n" : " /* " + in_comment(comment) + " */\n";
    };
    const size_t none = spec.size();
    const TileProgram &p = kernel.general();
    row(TESS_SPEC_HEADER, TESS_SPEC_CPU_FEATURES);
    for (const Dim &d : spec_dims(p)) row(TESS_SPEC_DIM_WORDS, none, d.name);
    for (const Argument &a : p.arguments) row(TESS_SPEC_TENSOR_WORDS, none, a.tensor.name);
    for (const Parameter &q : p.parameters) row(static_cast<size_t>(tess_spec_parameter_words(spec.data())), none, q.name);
    for (const KernelVariant &v : kernel.variants)
        row(TESS_SPEC_CODE_WORDS, TESS_SPEC_CODE_CPU_FEATURES, v.when.empty() ? target.name : "");
    for (int64_t i = 0; i < spec[TESS_SPEC_N_PACKED] * spec[TESS_SPEC_N_LAYOUTS]; i++)
        row(TESS_SPEC_LAYOUT_WORDS, TESS_SPEC_LAYOUT_CPU_FEATURES, "layout");
    text += "    /* texts */\n";
    constexpr size_t words = 4;
    while (at < spec.size()) {
        text += "    ";
        for (size_t i = 0; i < words && at < spec.size(); i++, at++)
            text += fmt::format("{}0x{:x},", i ? " " : "", static_cast<uint64_t>(spec[at]));
        text += "\n";
    }
    return text + "};\n\n";
}

static std::string condition_text(const Condition &c, const std::map<std::string, std::string> &extents) {
    const std::string n = extents.at(c.dim) + (c.modulus ? fmt::format(" % {}", c.modulus) : "");
    return fmt::format("{} {} {}", n, c.relation, c.bound);
}

// "<name>_plan": that of the first variant whose conditions hold, which it chooses for the body. "<name>_body" is the last one's.
static std::string dispatch(const Kernel &kernel) {
    const std::vector<Dim> dims = spec_dims(kernel.general());
    std::map<std::string, std::string> extents;
    for (size_t d = 0; d < dims.size(); d++) extents[dims[d].name] = fmt::format("frame[{}]", d);
    std::string text = fmt::format("static int32_t {}_plan(int64_t *frame) {{\n", kernel.name);
    const int64_t slot = tess_frame_body(spec_of(kernel.general()).data());
    for (size_t v = 0; v < kernel.variants.size(); v++) {
        std::string all, said;
        for (const Condition &c : kernel.variants[v].when)
            all += (all.empty() ? "" : " && ") + condition_text(c, extents), said += (said.empty() ? "" : " and ") + to_string(c);
        const std::string chosen = fmt::format("frame[{0}] = (int64_t)(uintptr_t)&{1}_variant{2}_body;", slot, kernel.name, v),
                          plan = fmt::format("return {}_variant{}_plan(frame);", kernel.name, v);
        text += all.empty() ? fmt::format("    {}\n    {}\n", chosen, plan)
                            : fmt::format("    if ({}) {{ /* {} */\n        {}\n        {}\n    }}\n", all, said, chosen, plan);
    }
    return text + "}\n\n";
}

static std::string entry_points(const Kernel &kernel) {
    const TileProgram &p = kernel.general();
    const std::vector<std::string> names = c_argument_names(p);
    const bool named = has_named_tensors(p);
    std::string tensors, read;
    for (size_t i = 0; i < p.arguments.size(); i++) {
        tensors += (i ? ", " : "") + names[i];
        read += (i ? ", " : "") + (p.arguments[i].written ? "0" : names[i]);
    }
    const std::string body =
        kernel.variants.size() == 1 ? kernel.name : fmt::format("{}_variant{}", kernel.name, kernel.variants.size() - 1);
    const std::string kernel_text = fmt::format("{0}_spec, {0}_plan, {1}_body", kernel.name, body);
    const std::string by_name = p.arguments.empty() ? "0" : fmt::format("(const TessTensor *const[]){{{}}}", tensors);
    const std::string parameters = c_parameters(kernel.name, p), table = "const TessTensor *const *tensors, ";
    const std::string given = parameters.empty() ? "0" : "parameters";
    std::string text = parameters.empty() ? "" : fmt::format("struct {}_parameters;\n\n", kernel.name);
    auto function = [&](const std::string &suffix, const std::string &arguments, const std::string &value) {
        text +=
            fmt::format("int32_t {0}{1}({2});\n\nint32_t {0}{1}({2}) {{\n    return {3};\n}}\n\n", kernel.name, suffix, arguments, value);
    };
    auto call = [&](const std::string &all) { return fmt::format("tess_abi2_call({}, {}, {}, context)", kernel_text, all, given); };
    if (named) function("", c_tensors(p) + parameters + "const TessContext *context", call(by_name));
    function("_table", table + parameters + "const TessContext *context", call("tensors"));
    function("_workspace", (named ? c_tensors(p) : table) + "const TessContext *context, uint64_t *bytes",
             fmt::format("tess_abi2_workspace({}, {}, context, bytes)", kernel_text, named ? by_name : "tensors"));
    function("_describe", "TessKernel *kernel", fmt::format("tess_abi2_describe({}, kernel)", kernel_text));
    if (is_packing(p))
        function("_size", c_tensors(p, false) + "const TessContext *context, uint64_t *bytes",
                 fmt::format("tess_abi2_packed_bytes({}_spec, (const TessTensor *const[]){{{}}}, context, bytes)", kernel.name, read));
    text.pop_back();
    return text;
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
 *     cc -std=c11 -O2 -Wno-psabi -c <this file> -I<the folder that holds Tessera's runtime/abi/kernel.h>
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
        code += table(kernel, target) + (one ? "" : dispatch(kernel)) + entry_points(kernel) + "\n";
    }
    code.pop_back();
    for (const Kernel &kernel : kernels)
        if (operations.defines(kernel.name)) refuse_c_name(kernel.name, "that of an operation of its own C");
    return about_text(kernels, target, about) + preamble(target) + operations.text() + code;
}

}  // namespace tessera
