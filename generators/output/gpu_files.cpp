#include "generators/output/gpu_files.h"

#include <fstream>

#include <fmt/format.h>

#include "compiler/emit/emit_gpu.h"
#include "generators/registry/installed_program.h"
#include "support/files/output_folder.h"
#include "support/processes/run_program.h"
#include "support/text/error.h"

namespace tessera {

// PTX of one architecture runs on all that come after it.
static std::string ptx_of(const std::string &source, const std::string &name, const Target &target, const Limits &limits) {
    const auto nvcc = installed_program({"nvcc"});
    if (!nvcc)
        throw UserError(
            "command.nvcc",
            "target '" + target.name +
                "': nvcc makes the PTX, and there is none on the PATH; install the CUDA toolkit (12 or later) and add its bin folder.");
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / (name + ".cu"), made = folder.path() / (name + ".ptx"), log = folder.path() / "log";
    std::ofstream(file) << source;
    const std::string arch = "compute_" + std::to_string(target.compute_capability);
    const std::vector<std::string> command = {nvcc->path.string(), "-ptx",       "-arch=" + arch, "-fmad=false", "-o",
                                              made.string(),       file.string()};
    if (const std::optional<int> status = run_program(compiling(name), limits, command, log); !succeeded(*status))
        throw UserError("command.nvcc", fmt::format("{}: expected it to take the kernels for {}; it ends with {} and says: {}", command[0],
                                                    arch, ended_text(*status), read_file(log).substr(0, 2000)));
    return read_file(made);
}

std::map<std::string, std::string> gpu_files(const PreparedLibrary &library, const Limits &limits) {
    const std::string &name = library.name;
    const Target &target = library.first()[0].request.target;
    const bool cuda = target.arch == Arch::cuda;
    std::vector<Kernel> kernels;
    for (const std::vector<PreparedKernel> &targets : library.kernels) kernels.push_back(targets[0].compiled.kernel);
    const GpuSource source = kernels_of(kernels, target);
    std::map<std::string, std::string> files = {{name + (cuda ? ".cu" : ".cl"), source.kernels}};
    if (cuda) files[name + ".ptx"] = ptx_of(source.kernels, name, target, limits);
    files[name + ".c"] = host_of(kernels, target, cuda ? files.at(name + ".ptx") : source.kernels, source.uses_double);
    return files;
}

}  // namespace tessera
