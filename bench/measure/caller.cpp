#include "bench/measure/caller.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/tile/arguments.h"
#include "support/files/output_folder.h"
#include "support/processes/run_program.h"
#include "support/text/error.h"

namespace tessera {

static const char *member(DType type) { return type == DType::f32 ? "f" : type == DType::f64 ? "d" : "i"; }

std::string caller_source(const std::string &function, const Kernel &kernel) {
    const TileProgram &p = kernel.general();
    const bool named = has_named_tensors(p), parameters = !p.parameters.empty();
    std::string types, values, members, words;
    for (size_t i = 0; i < p.arguments.size(); i++) types += "const void *, ", values += fmt::format("t[{}], ", i);
    for (size_t i = 0; i < p.parameters.size(); i++) {
        members += fmt::format("{} p{}; ", c_parameter_type(p.parameters[i].dtype), i);
        words += fmt::format("({})((const union {{ int64_t i; float f; double d; }} *)p)[{}].{}, ", c_parameter_type(p.parameters[i].dtype),
                             i, member(p.parameters[i].dtype));
    }
    const std::string struct_of = parameters ? fmt::format("    const struct {{ {}}} all = {{{}}};\n", members, words) : "";
    std::string text = fmt::format(
        "#include <stdint.h>\nextern int32_t {0}_table(const void *const *, {1}const void *);\n"
        "extern int32_t {0}_workspace({2}const void *, uint64_t *);\n",
        kernel.name, parameters ? "const void *, " : "", named ? types : "const void *const *, ");
    text += fmt::format("int {0}(const void *const *t, const void *p, const void *c, uint64_t *bytes, int32_t query) {{\n{1}    (void)p;\n",
                        function, struct_of);
    return text + fmt::format("    return query ? {0}_workspace({1}c, bytes) : {0}_table(t, {2}c);\n}}\n", kernel.name,
                              named ? values : "t, ", parameters ? "&all, " : "");
}

std::vector<int64_t> parameter_words(const TileProgram &program, const std::map<std::string, Scalar> &parameters) {
    std::vector<int64_t> words;
    for (const Parameter &p : program.parameters) {
        const Scalar &value = parameters.at(p.name);
        int64_t word = value.integer;
        const float narrow = static_cast<float>(value.real);
        if (p.dtype == DType::f32) std::memcpy(&word, &narrow, sizeof narrow);
        if (p.dtype == DType::f64) std::memcpy(&word, &value.real, sizeof word);
        words.push_back(word);
    }
    return words;
}

bool run_cc(const std::vector<std::string> &arguments, const std::filesystem::path &log, const Limits &limits,
            const std::function<bool()> &stopped) {
    constexpr int unrunnable = 126, none = 127;
    const std::string compiler = "the C compiler '" + arguments[0] + "'";
    const Activity compiling{compiler, "compiling", "compile.limit", "Find out what it waits for", "--compile-limit-s"};
    const std::optional<int> status = run_program(compiling, limits, arguments, log, stopped);
    if (!status || succeeded(*status)) return status.has_value();
    const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 0;
    if (code == none || code == unrunnable)
        throw UserError("command.cc", compiler + ": expected to find it on the path, to link the kernel with; " +
                                          std::string(std::strerror(code == none ? ENOENT : EACCES)) + ". Install one.");
    const std::string said = read_file(log).substr(0, 2000);
    throw UserError("command.cc", compiler + ": expected it to link the kernel; it ends with " + ended_text(*status) +
                                      (said.empty() ? " and says nothing. Name a C compiler that works here." : " and says: " + said));
}

}  // namespace tessera
