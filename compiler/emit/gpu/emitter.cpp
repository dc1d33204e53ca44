#include "compiler/emit/emitter.h"

#include <fstream>

#include <fmt/format.h>

#include "compiler/emit/emit_gpu.h"
#include "support/processes/installed_program.h"
#include "support/processes/run_program.h"
#include "support/text/error.h"

namespace tessera {

// PTX of one architecture runs on all that come after it.
static std::string ptx_of(const std::string &source, const Emission &emission) {
    const std::string &name = emission.name;
    const Target &target = emission.targets[0].target;
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
    if (const std::optional<int> status = run_program(compiling(name), emission.limits, command, log); !succeeded(*status))
        throw UserError("command.nvcc", fmt::format("{}: expected it to take the kernels for {}; it ends with {} and says: {}", command[0],
                                                    arch, ended_text(*status), read_file(log).substr(0, 2000)));
    return read_file(made);
}

static GpuSource device_source(const Emission &emission) { return kernels_of(emission.targets.at(0).kernels, emission.targets[0].target); }

static void check_gpu(const std::vector<Target> &targets, bool assembly) {
    if (targets.size() > 1) {
        std::string all;
        for (const Target &target : targets) all += (all.empty() ? "" : ",") + target.name;
        throw UserError(
            "command.targets",
            "targets '" + all +
                "': a kernel for a GPU is made for one target; PTX of cuda-sm80 runs on every later GPU of NVIDIA's. Name one.");
    }
    if (assembly)
        throw UserError("command.assembly",
                        "target '" + targets[0].name +
                            "': kernels for GPUs have no assembly: their source or PTX is written anyway. Leave out --emit-assembly.");
}

// The host's C file, and what it hands to the device.
static Emitter gpu_emitter(Arch arch, const std::string &runtime, const std::string &driver) {
    Emitter gpu;
    gpu.name = "c", gpu.summary = "source for the device, with a host file in C, <name>.c";
    gpu.accepts = [arch](const Target &target) { return target.arch == arch; };
    gpu.emit = [arch](const Emission &emission, const OutputFolder &out) {
        const bool cuda = arch == Arch::cuda;
        const std::string &name = emission.name, kernels = name + (cuda ? ".cu" : ".cl"), host = name + ".c";
        const GpuSource source = device_source(emission);
        std::string image = source.kernels;
        std::vector<std::string> files = {kernels};
        if (cuda) {
            image = ptx_of(source.kernels, emission);
            files.push_back(name + ".ptx");
            out.write(files.back(), image);
        }
        out.write(kernels, source.kernels);
        out.write(host, host_of(emission.targets[0].kernels, emission.targets[0].target, image, source.uses_double));
        files.push_back(host);
        return files;
    };
    gpu.check = check_gpu;
    gpu.listing = [](const Emission &emission) { return device_source(emission).kernels; };
    gpu.links = {{runtime, "Apache-2.0", "LICENSE"}, {driver, "of the driver that is installed", std::nullopt}};
    return gpu;
}

Emitter opencl_emitter() { return gpu_emitter(Arch::opencl, "tessera_opencl", "libOpenCL"); }
Emitter cuda_emitter() { return gpu_emitter(Arch::cuda, "tessera_cuda", "libcuda"); }

}  // namespace tessera
