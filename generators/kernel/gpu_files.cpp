#include "generators/kernel/gpu_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "compiler/emit/emit_gpu.h"
#include "generators/kernel/installed_program.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

extern char **environ;

namespace tessera {

static int run_program(const std::vector<std::string> &arguments, const std::filesystem::path &log) {
    std::vector<char *> argv;
    for (const std::string &a : arguments) argv.push_back(const_cast<char *>(a.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (error == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return error ? error : status;
}

// PTX of one architecture runs on all that come after it.
static std::string ptx_of(const std::string &source, const PreparedKernel &p, const Limits &limits) {
    const auto nvcc = installed_program({"nvcc"});
    if (!nvcc)
        throw UserError(
            "command.nvcc",
            "target '" + p.target.name +
                "': nvcc makes the PTX, and there is none on the PATH; install the CUDA toolkit (12 or later) and add its bin folder.");
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / (p.kernel.name + ".cu"), made = folder.path() / (p.kernel.name + ".ptx"),
                                log = folder.path() / "log";
    std::ofstream(file) << source;
    const std::string arch = "compute_" + std::to_string(p.target.compute_capability);
    run_limited(compiling(p.kernel.name), limits, [&] {
        if (run_program({nvcc->path.string(), "-ptx", "-arch=" + arch, "-fmad=false", "-o", made.string(), file.string()}, log) != 0)
            throw UserError("command.nvcc", nvcc->path.string() + ": expected it to take the kernels for " + arch +
                                                "; it says: " + read_file(log).substr(0, 2000));
    });
    return read_file(made);
}

std::map<std::string, std::string> gpu_files(const PreparedKernel &p, const Limits &limits) {
    const bool cuda = p.target.arch == Arch::cuda;
    const GpuSource source = kernels_of({p.kernel}, p.target);
    std::map<std::string, std::string> files = {{p.kernel.name + (cuda ? ".cu" : ".cl"), source.kernels}};
    if (cuda) files[p.kernel.name + ".ptx"] = ptx_of(source.kernels, p, limits);
    files[p.kernel.name + ".c"] =
        host_of({p.kernel}, p.target, cuda ? files.at(p.kernel.name + ".ptx") : source.kernels, source.uses_double);
    return files;
}

}  // namespace tessera
