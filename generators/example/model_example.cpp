#include "generators/example/model_example.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "algorithms/transform/inline_calls.h"
#include "compiler/abi/c_names.h"
#include "support/text/printable.h"

namespace tessera {

// The text of main.c (generators/CMakeLists.txt).
const std::map<std::string, std::string> &example_sources();

namespace {

constexpr int64_t usual_extent = 32;

std::string c_string(const std::string &text) {
    std::string made = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') made += std::string("\\") + c;
        else if (byte < 32 || byte > 126 || c == '?') made += fmt::format("\\{:03o}", byte);
        else made += c;
    }
    return made + "\"";
}

// Inputs, states and outputs, in the order of the program.
std::vector<Tensor> tensors_of(const Algorithm &program) {
    std::vector<Tensor> all, results;
    for (const Tensor &t : program.tensors)
        if (t.role != Role::constant) all.push_back(t);
    for (const Step &step : program.steps) {
        const std::vector<Tensor> made = std::visit([](const auto &s) { return results_of(s); }, step);
        for (const Tensor &t : made)
            if (std::find(program.outputs.begin(), program.outputs.end(), t.name) != program.outputs.end()) all.push_back(t);
    }
    return all;
}

// Extents as C computes them: of dims that a call decides d[i], of others what their sizes say.
class ExtentsInC {
public:
    // Results of calls may have dims of the callee, which the program has when it is inlined.
    explicit ExtentsInC(const Algorithm &program) : program_(inline_calls(program)) {
        for (const Tensor &t : tensors_of(program))
            for (size_t axis = 0; axis < t.dims.size(); axis++)
                if (known_.insert(t.dims[axis]).second) {
                    const Dim &dim = program_.dim(t.dims[axis]);
                    if (dim.kind != DimKind::fixed) all_.push_back(dim.name);
                    if (axis == 0 && t.role == Role::input) first_.insert(dim.name);
                }
        for (const std::string &dim : all_) texts_.emplace_back(dim, text_of_dim(dim));
    }

    const std::vector<std::string> &decided() const { return decided_; }
    const std::vector<std::pair<std::string, std::string>> &texts() const { return texts_; }

    int64_t usual(const std::string &name) const {
        const Dim &dim = program_.dim(name);
        const int64_t step = std::max<int64_t>(1, dim.multiple_of), wanted = std::max(first_.count(name) ? 1 : usual_extent, dim.min);
        const int64_t extent = (wanted + step - 1) / step * step;
        return extent <= dim.max ? extent : dim.max / step * step;
    }

private:
    const Algorithm program_;
    std::set<std::string> known_, first_;
    std::vector<std::string> all_, decided_;
    std::vector<std::pair<std::string, std::string>> texts_;

    std::string decide(const std::string &dim) {
        const auto known = std::find(decided_.begin(), decided_.end(), dim);
        const auto number = known - decided_.begin();
        if (known == decided_.end()) decided_.push_back(dim);
        return fmt::format("d[{}]", number);
    }

    std::string text_of_dim(const std::string &name) {
        const Dim &dim = program_.dim(name);
        if (dim.kind == DimKind::fixed) return std::to_string(dim.value);
        if (dim.kind == DimKind::symbolic) return dim.equals.empty() ? decide(name) : text_of_dim(dim.equals);
        const std::optional<std::string> size = text_of(dim.size);
        return size ? *size : decide(name);  // it follows from data
    }

    // Nothing for what does not follow from extents.
    std::optional<std::string> text_of(const Expr &e) {
        if (e.kind() == ExprKind::constant) return fmt::format("INT64_C({})", e->value.integer);
        if (e.kind() == ExprKind::extent) return text_of_dim(e->name);
        if (e.kind() != ExprKind::operation) return std::nullopt;
        std::vector<std::string> a;
        for (const Expr &operand : e->args) {
            std::optional<std::string> text = text_of(operand);
            if (!text) return std::nullopt;
            a.push_back(std::move(*text));
        }
        switch (e->op) {
        case Op::neg: return fmt::format("-({})", a[0]);
        case Op::logical_not: return fmt::format("!({})", a[0]);
        case Op::add:
        case Op::sub:
        case Op::mul:
        case Op::eq:
        case Op::ne:
        case Op::lt:
        case Op::le: return fmt::format("({}{}{})", a[0], row_of(e->op).infix, a[1]);
        case Op::div: return fmt::format("quotient({}, {})", a[0], a[1]);
        case Op::mod: return fmt::format("remainder_of({}, {})", a[0], a[1]);
        case Op::min: return fmt::format("least({}, {})", a[0], a[1]);
        case Op::max: return fmt::format("most({}, {})", a[0], a[1]);
        case Op::bit_and: return fmt::format("({} & {})", a[0], a[1]);
        case Op::bit_or: return fmt::format("({} | {})", a[0], a[1]);
        case Op::select: return fmt::format("({} ? {} : {})", a[0], a[1], a[2]);
        default: return std::nullopt;
        }
    }
};

constexpr const char *arithmetic = R"(/* Integers as the model's extents are computed: divided toward minus infinity, by zero 0. */
static inline int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int64_t remainder_of(int64_t a, int64_t b) { return b == 0 ? 0 : a - b * quotient(a, b); }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
)";

std::string header(const Algorithm &program, const std::string &model, const ExtentsInC &extents) {
    std::string names, defaults, cases;
    for (const std::string &dim : extents.decided()) names += c_string(dim) + ", ", defaults += fmt::format("{}, ", extents.usual(dim));
    for (const auto &[dim, text] : extents.texts()) cases += fmt::format("    if (strcmp(dim, {}) == 0) return {};\n", c_string(dim), text);
    return fmt::format(
        "/* What main.c has to know of the program {0}, which was imported from {1}. */\n"
        "#ifndef MODEL_H\n#define MODEL_H\n\n#include <stdint.h>\n#include <string.h>\n\n"
        "#define MODEL_NAME {2}\n\n"
        "/* The dims that a call decides, and their extents where the command line says none. */\n"
        "static const char *const model_dims[] = {{{3}0}};\n"
        "static const int64_t model_defaults[] = {{{4}0}};\n\n{5}\n"
        "/* The extent of a dim, d having those of model_dims; -1 for a dim that the model does not have. */\n"
        "static inline int64_t model_extent(const char *dim, const int64_t *d) {{\n{6}    (void)dim, (void)d;\n"
        "    return -1;\n}}\n\n#endif\n",
        program.name, printable(model), c_string(program.name), names, defaults, arithmetic, cases);
}

std::string cmake(const Algorithm &program, const std::string &model, const ExtentsInC &extents, bool has_weights) {
    std::string usual;
    for (const std::string &dim : extents.decided())
        if (is_c_name(dim)) usual += fmt::format(" {}={}", dim, extents.usual(dim));  // what CMake takes for a dim
    std::string text = fmt::format(
        "# Builds the program {0}, which was imported from {1}, into one file with its weights, and main.c, which runs it:\n"
        "#\n"
        "#     cmake -B build -DCMAKE_PREFIX_PATH=<where Tessera is installed> && cmake --build build\n"
        "#     build/run_{0} build/{0}_bundle.tess\n"
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(run_{0} LANGUAGES C)\n\n"
        "find_package(Tessera REQUIRED)\n\n"
        "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
        "set(CMAKE_C_STANDARD 99)\nset(CMAKE_C_EXTENSIONS OFF)\n"
        "set(TARGETS host CACHE STRING \"What the kernel is generated for, such as avx512 avx2\")\n",
        program.name, printable(model));
    if (!usual.empty()) text += fmt::format("set(DERIVE_FOR{} CACHE STRING \"Extents that it mostly runs with\")\n", usual);
    text += fmt::format("\ntessera_add_kernel({} ALGORITHM ../program.json{} TARGETS ${{TARGETS}} COMPILE_LIMIT 600)\n", program.name,
                        usual.empty() ? "" : " DERIVE_FOR ${DERIVE_FOR}");
    text += fmt::format("tessera_add_bundle({0}_bundle KERNELS {0}{1})\n\n", program.name,
                        has_weights ? " WEIGHTS ../weights.safetensors" : "");
    return text + fmt::format("add_executable(run_{0} main.c)\ntarget_link_libraries(run_{0} PRIVATE Tessera::bundle)\n", program.name);
}

}  // namespace

std::map<std::string, std::string> model_example(const Algorithm &program, const std::string &model, bool has_weights) {
    const ExtentsInC extents(program);
    return {{"CMakeLists.txt", cmake(program, model, extents, has_weights)},
            {"main.c", example_sources().at("generators/example/main.c")},
            {"model.h", header(program, model, extents)}};
}

}  // namespace tessera
