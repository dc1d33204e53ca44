#include "bench/measure/caller.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/tile/arguments.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

extern char **environ;

namespace tessera {

static const char *member(DType type) { return type == DType::f32 ? "f" : type == DType::f64 ? "d" : "i"; }

std::string caller_source(const std::string &function, const Kernel &kernel) {
    const TileProgram &p = kernel.general();
    std::string types, values, read_types, read;
    for (size_t i = 0; i < p.arguments.size(); i++) {
        types += "const void *, ", values += fmt::format("t[{}], ", i);
        if (!p.arguments[i].written) read_types += "const void *, ", read += fmt::format("t[{}], ", i);
    }
    for (size_t i = 0; i < p.parameters.size(); i++) {
        types += std::string(c_parameter_type(p.parameters[i].dtype)) + ", ";
        values += fmt::format("({})((const union {{ int64_t i; float f; double d; }} *)p)[{}].{}, ",
                              c_parameter_type(p.parameters[i].dtype), i, member(p.parameters[i].dtype));
    }
    std::string text =
        fmt::format("#include <stdint.h>\nextern int {0}({1}const void *);\nextern int {0}_workspace({1}const void *, uint64_t *);\n",
                    kernel.name, types);
    if (is_packing(p)) text += fmt::format("extern int {}_size({}const void *, uint64_t *);\n", kernel.name, read_types);
    text += fmt::format(
        "int {0}(const void *const *t, const void *p, const void *c, uint64_t *bytes, int32_t query) {{\n    (void)t, (void)p;\n",
        function);
    if (is_packing(p)) text += fmt::format("    if (query == 2) return {}_size({}c, bytes);\n", kernel.name, read);
    return text + fmt::format("    return query ? {0}_workspace({1}c, bytes) : {0}({1}c);\n}}\n", kernel.name, values);
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

void run_cc(const std::vector<std::string> &arguments, const std::filesystem::path &log) {
    std::vector<char *> argv;
    for (const std::string &a : arguments) argv.push_back(const_cast<char *>(a.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (error == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (error != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
        throw UserError("command.cc", "the C compiler '" + arguments[0] + "': expected to find it on the path, to link the kernel with; " +
                                          std::string(std::strerror(error ? error : ENOENT)) + ". Install one.");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        const std::string said = read_file(log).substr(0, 2000), end = WIFEXITED(status)
                                                                           ? "exit code " + std::to_string(WEXITSTATUS(status))
                                                                           : "signal " + std::to_string(WTERMSIG(status));
        throw UserError("command.cc", "the C compiler '" + arguments[0] + "': expected it to link the kernel; it ends with " + end +
                                          (said.empty() ? " and says nothing. Name a C compiler that works here." : " and says: " + said));
    }
}

}  // namespace tessera
