#include "generators/loaded_kernel.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "algorithms/error.h"
#include "compiler/emit_library.h"
#include "compiler/header.h"
#include "generators/generate.h"
#include "runtime/kernel.h"

extern char **environ;

namespace tessera {

namespace fs = std::filesystem;

namespace {

const char *c_type(DType type) {
    switch (type) {
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::i32: return "int32_t";
    case DType::i64: return "int64_t";
    default: return "uint8_t";
    }
}

const char *member(DType type) { return type == DType::f32 ? "f" : type == DType::f64 ? "d" : "i"; }

// One signature for every kernel.
std::string caller_of(const Kernel &kernel) {
    const TileProgram &p = kernel.variants[0].program;
    std::string types, values, read_types, read;
    for (size_t i = 0; i < p.arguments.size(); i++) {
        types += "const void *, ", values += fmt::format("t[{}], ", i);
        if (!p.arguments[i].written) read_types += "const void *, ", read += fmt::format("t[{}], ", i);
    }
    for (size_t i = 0; i < p.parameters.size(); i++) {
        types += std::string(c_type(p.parameters[i].dtype)) + ", ";
        values += fmt::format("({})p[{}].{}, ", c_type(p.parameters[i].dtype), i, member(p.parameters[i].dtype));
    }
    std::string text =
        fmt::format("extern int {0}({1}const void *);\nextern int {0}_workspace({1}const void *, uint64_t *);\n", kernel.name, types);
    if (is_packing(p)) text += fmt::format("extern int {}_size({}const void *, uint64_t *);\n", kernel.name, read_types);
    text += fmt::format(
        "int call_{0}(const void *const *t, const Parameter *p, const void *c, uint64_t *bytes, int32_t query) {{\n    (void)t, (void)p;\n",
        kernel.name);
    if (is_packing(p)) text += fmt::format("    if (query == 2) return {}_size({}c, bytes);\n", kernel.name, read);
    return text + fmt::format("    return query ? {0}_workspace({1}c, bytes) : {0}({1}c);\n}}\n", kernel.name, values);
}

// The callers, and the runtime's functions by way of a table that the loading program fills.
std::string caller_source(const std::vector<Kernel> &kernels) {
    std::string text = R"(#include <stdint.h>
typedef int (*Run)(const int64_t *, const void *const *, const int64_t *, const void *, void *, void *);
typedef int (*Workspace)(const int64_t *, const void *const *, const int64_t *, const void *, void *, uint64_t *);
typedef int (*Each)(void *, int (*)(void *, int, uint8_t *), int, int, uint8_t *);
typedef int (*Bytes)(const int64_t *, const void *const *, const int64_t *, const void *, uint64_t *);
struct { Run run; Workspace workspace; Bytes packed_bytes; Each each; int32_t (*worker)(void *); } tessera_runtime;
int tess_abi1_run(const int64_t *s, const void *const *a, const int64_t *p, const void *c, void *plan, void *body) { return tessera_runtime.run(s, a, p, c, plan, body); }
int tess_abi1_workspace(const int64_t *s, const void *const *a, const int64_t *p, const void *c, void *plan, uint64_t *n) { return tessera_runtime.workspace(s, a, p, c, plan, n); }
int tess_abi1_packed_bytes(const int64_t *s, const void *const *a, const int64_t *p, const void *c, uint64_t *n) { return tessera_runtime.packed_bytes(s, a, p, c, n); }
int tess_abi1_do_par_for(void *c, int (*f)(void *, int, uint8_t *), int min, int n, uint8_t *closure) { return tessera_runtime.each(c, f, min, n, closure); }
int32_t tess_abi1_worker(void *c) { return tessera_runtime.worker(c); }
typedef union { int64_t i; float f; double d; } Parameter;
)";
    for (const Kernel &kernel : kernels) text += caller_of(kernel);
    return text;
}

void run_cc(const std::vector<std::string> &arguments, const fs::path &log) {
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
        throw UserError("command.cc", "the C compiler 'cc': expected to find it on the path, to link the kernel with; " + std::string(std::strerror(error ? error : ENOENT)) + ". Install one.");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw UserError("command.cc", "the C compiler 'cc': expected it to link the kernel; it says: " + read_file(log).substr(0, 2000));
}

struct RuntimeTable {
    decltype(&tess_abi1_run) run;
    decltype(&tess_abi1_workspace) workspace;
    decltype(&tess_abi1_packed_bytes) packed_bytes;
    decltype(&tess_abi1_do_par_for) each;
    decltype(&tess_abi1_worker) worker;
};

}  // namespace

void check_runs_here(const Target &target) {
    if (target.is_gpu())
        throw UserError("command.target", "target '" + target.name + "': this command runs kernels on the processor, and not on a GPU; choose --target host. 'generate' writes the kernel for " + target.name + ".");
    if (target.arch != host_arch())
        throw UserError("command.target", "target '" + target.name + "': this machine is " + host_arch() + ", so its code cannot run here. Choose --target host, or generate it and run it on a machine of the target's kind.");
    const std::vector<std::string> have = host_features();
    for (const std::string &feature : target.features)
        if (std::find(have.begin(), have.end(), feature) == have.end())
            throw UserError("command.target", "target '" + target.name + "': this processor lacks " + feature + ", so its code cannot run here; its features are " + join(have) +
                                                  ". Choose --target host, or use the machine that the target describes.");
}

fs::path link_kernel(const PreparedKernel &p, const Limits &limits, const TemporaryFolder &folder) {
    check_runs_here(p.target);
    const fs::path archive = folder.path() / ("lib" + p.kernel.name + ".a"), source = folder.path() / "caller.c", object = folder.path() / "kernel.so";
    emit_limited({p}, {archive, {}}, limits);
    std::ofstream(source) << caller_source(p.kernels());
    run_cc({"cc", "-std=c99", "-O1", "-fPIC", "-shared", "-o", object.string(), source.string(), archive.string()}, folder.path() / "cc.log");
    return object;
}

LoadedKernel::LoadedKernel(const fs::path &object, const Kernel &kernel) : program_(kernel.variants[0].program) {
    handle_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw InternalError("a kernel that was just linked cannot be loaded: " + std::string(dlerror()));
    call_ = reinterpret_cast<Call>(dlsym(handle_, ("call_" + kernel.name).c_str()));
    auto *table = static_cast<RuntimeTable *>(dlsym(handle_, "tessera_runtime"));
    require(call_ && table, "a loaded kernel has its caller");
    *table = {tess_abi1_run, tess_abi1_workspace, tess_abi1_packed_bytes, tess_abi1_do_par_for, tess_abi1_worker};
}

LoadedKernel::~LoadedKernel() { dlclose(handle_); }

int LoadedKernel::call(const std::vector<TessTensorDesc> &arguments, const std::map<std::string, Scalar> &parameters,
                       const TessContext &context, uint64_t *bytes, Query query) const {
    std::vector<const void *> tensors;
    for (const TessTensorDesc &a : arguments) tensors.push_back(&a);
    std::vector<int64_t> words;
    for (const Parameter &p : program_.parameters) {
        const Scalar &value = parameters.at(p.name);
        int64_t word = value.integer;
        const float narrow = static_cast<float>(value.real);
        if (p.dtype == DType::f32) std::memcpy(&word, &narrow, sizeof narrow);
        if (p.dtype == DType::f64) std::memcpy(&word, &value.real, sizeof word);
        words.push_back(word);
    }
    return call_(tensors.data(), words.data(), &context, bytes, query);
}

int LoadedKernel::run(const std::vector<TessTensorDesc> &arguments, const std::map<std::string, Scalar> &parameters, const TessContext &context) const {
    return call(arguments, parameters, context, nullptr, none);
}

int LoadedKernel::workspace(const std::vector<TessTensorDesc> &arguments, const std::map<std::string, Scalar> &parameters, const TessContext &context, uint64_t &bytes) const {
    return call(arguments, parameters, context, &bytes, of_workspace);
}

int LoadedKernel::size(const std::vector<TessTensorDesc> &arguments, const TessContext &context, uint64_t &bytes) const {
    return call(arguments, {}, context, &bytes, of_packed);
}

std::string LoadedKernel::message(int status) const {
    std::vector<const char *> names;
    for (const Argument &a : program_.arguments) names.push_back(a.tensor.name.c_str());
    char text[256];
    tess_status_message(status, names.data(), text, sizeof text);
    return text;
}

TessTensorDesc descriptor_of(DType type, const std::vector<int64_t> &shape, void *data) {
    return tess_dense(data, static_cast<TessDType>(abi_dtype(type)), static_cast<int32_t>(shape.size()), shape.data());
}

}  // namespace tessera
