#include "generators/output/loaded_kernel.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "bench/measure/caller.h"
#include "compiler/emit/emitter.h"
#include "compiler/emit/spec.h"
#include "generators/output/emitted.h"
#include "runtime/abi/kernel.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// The callers, and the runtime's functions by way of a table that the loading program fills.
std::string source_of(const std::vector<Kernel> &kernels) {
    std::string text = R"(#include <stdint.h>
typedef int32_t (*Call)(const int64_t *, void *, void *, const void *const *, const void *, const void *);
typedef int32_t (*Workspace)(const int64_t *, void *, void *, const void *const *, const void *, uint64_t *);
typedef int32_t (*Bytes)(const int64_t *, const void *const *, const void *, uint64_t *);
typedef int32_t (*Describe)(const int64_t *, void *, void *, void *);
typedef int32_t (*Each)(void *, int32_t (*)(void *, int32_t, uint8_t *), int32_t, int32_t, uint8_t *);
struct { Call call; Workspace workspace; Bytes packed_bytes; Describe describe; Each each; int32_t (*worker)(void *);
         int32_t (*stream)(void *, const void *, int64_t, int32_t); int32_t (*end_stream)(void); } tessera_runtime;
int32_t tess_abi2_call(const int64_t *s, void *plan, void *body, const void *const *t, const void *p, const void *c) {
    return tessera_runtime.call(s, plan, body, t, p, c);
}
int32_t tess_abi2_workspace(const int64_t *s, void *plan, void *body, const void *const *t, const void *c, uint64_t *n) {
    return tessera_runtime.workspace(s, plan, body, t, c, n);
}
int32_t tess_abi2_packed_bytes(const int64_t *s, const void *const *t, const void *c, uint64_t *n) {
    return tessera_runtime.packed_bytes(s, t, c, n);
}
int32_t tess_abi2_describe(const int64_t *s, void *plan, void *body, void *k) { return tessera_runtime.describe(s, plan, body, k); }
int32_t tess_abi2_do_par_for(void *c, int32_t (*f)(void *, int32_t, uint8_t *), int32_t min, int32_t n, uint8_t *closure) {
    return tessera_runtime.each(c, f, min, n, closure);
}
int32_t tess_abi2_worker(void *c) { return tessera_runtime.worker(c); }
int32_t tess_abi2_stream(void *to, const void *from, int64_t n, int32_t bytes) { return tessera_runtime.stream(to, from, n, bytes); }
int32_t tess_abi2_end_stream(void) { return tessera_runtime.end_stream(); }
)";
    for (const Kernel &kernel : kernels) text += caller_source("call_" + kernel.name, kernel);
    return text;
}

struct RuntimeTable {
    decltype(&tess_abi2_call) call;
    decltype(&tess_abi2_workspace) workspace;
    decltype(&tess_abi2_packed_bytes) packed_bytes;
    decltype(&tess_abi2_describe) describe;
    decltype(&tess_abi2_do_par_for) each;
    decltype(&tess_abi2_worker) worker;
    decltype(&tess_abi2_stream) stream;
    decltype(&tess_abi2_end_stream) end_stream;
};

}  // namespace

void check_runs_here(const Target &target) {
    if (target.is_gpu())
        throw UserError(
            "command.target",
            "target '" + target.name +
                "': this command runs kernels on the processor, and not on a GPU; choose --target host. 'generate' writes the kernel for " +
                target.name + ".");
    if (target.arch != host_arch())
        throw UserError(
            "command.target",
            "target '" + target.name + "': this machine is " + name_of(host_arch()) +
                ", so its code cannot run here. Choose --target host, or generate it and run it on a machine of the target's kind.");
    const std::vector<std::string> have = host_features();
    for (const std::string &feature : target.features)
        if (std::find(have.begin(), have.end(), feature) == have.end())
            throw UserError("command.target", "target '" + target.name + "': this processor lacks " + feature +
                                                  ", so its code cannot run here; its features are " + join(have) +
                                                  ". Choose --target host, or use the machine that the target describes.");
}

fs::path link_kernel(const PreparedKernel &p, const Limits &limits, const TemporaryFolder &folder) {
    check_runs_here(p.request.target);
    const fs::path source = folder.path() / "caller.c", object = folder.path() / "kernel.so";
    const PreparedLibrary library = library_of({p});
    write_into(source, source_of(p.compiled.kernels()));
    std::vector<std::string> command = {"cc", "-std=c99", "-O1", "-fPIC", "-shared", "-o", object.string(), source.string()};
    for (std::string &argument : library_emitter().load({library.name, kernels_of(library), {}, false, limits}, folder.path()))
        command.push_back(std::move(argument));
    run_cc(command, folder.path() / "cc.log", limits);
    return object;
}

LoadedKernel::LoadedKernel(const fs::path &object, const Kernel &kernel) : program_(kernel.general()) {
    // By a descriptor, as the loader replaces $ORIGIN and its like in a path. It stays open: the loader knows libraries by their paths.
    file_ = open(object.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) exhausted("the kernel's shared object", errno);
    handle_ = dlopen(("/proc/self/fd/" + std::to_string(file_)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw InternalError("a kernel that was just linked cannot be loaded: " + std::string(dlerror()));
    call_ = reinterpret_cast<Call>(dlsym(handle_, ("call_" + kernel.name).c_str()));
    auto *table = static_cast<RuntimeTable *>(dlsym(handle_, "tessera_runtime"));
    require(call_ && table, "a loaded kernel has its caller");
    *table = {tess_abi2_call,       tess_abi2_workspace, tess_abi2_packed_bytes, tess_abi2_describe,
              tess_abi2_do_par_for, tess_abi2_worker,    tess_abi2_stream,       tess_abi2_end_stream};
}

LoadedKernel::~LoadedKernel() { dlclose(handle_), close(file_); }

int LoadedKernel::call(const std::vector<TessTensor> &arguments, const std::map<std::string, Scalar> &parameters,
                       const TessContext &context, uint64_t *bytes, Query query) const {
    TessContext own = context;
    fault_ = tess_fault();
    own.fault = &fault_;
    std::vector<const void *> tensors;
    for (const TessTensor &a : arguments) tensors.push_back(&a);
    const std::vector<int64_t> words = parameter_words(program_, parameters);
    return call_(tensors.data(), words.data(), &own, bytes, query);
}

int LoadedKernel::run(const std::vector<TessTensor> &arguments, const std::map<std::string, Scalar> &parameters,
                      const TessContext &context) const {
    return call(arguments, parameters, context, nullptr, none);
}

int LoadedKernel::workspace(const std::vector<TessTensor> &arguments, const std::map<std::string, Scalar> &parameters,
                            const TessContext &context, uint64_t &bytes) const {
    return call(arguments, parameters, context, &bytes, of_workspace);
}

int LoadedKernel::size(const std::vector<TessTensor> &arguments, const TessContext &context, uint64_t &bytes) const {
    return call(arguments, {}, context, &bytes, of_packed);
}

std::string LoadedKernel::message(int status) const {
    std::vector<const char *> names;
    for (const Argument &a : program_.arguments) names.push_back(a.tensor.name.c_str());
    for (const Parameter &p : program_.parameters) names.push_back(p.name.c_str());
    char text[256];
    tess_status_message(status, &fault_, names.data(), text, sizeof text);
    return text;
}

TessTensor descriptor_of(DType type, const std::vector<int64_t> &shape, void *data) {
    return tess_dense(data, static_cast<TessDType>(abi_dtype(type)), static_cast<int32_t>(shape.size()), shape.data());
}

}  // namespace tessera
