#include "generators/doctor/environment_checks.h"

#include <link.h>

#include <chrono>

#include <fmt/format.h>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "generators/output/loaded_kernel.h"
#include "generators/registry/devices.h"
#include "generators/registry/versions.h"
#include "support/processes/installed_program.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// The file of the Halide library in this process.
std::string halide_file() {
    std::string file;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *result) {
            if (std::filesystem::path(info->dlpi_name).filename().string().starts_with("libHalide"))
                *static_cast<std::string *>(result) = info->dlpi_name;
            return 0;
        },
        &file);
    return file;
}

Algorithm twice(const Numerics &numerics) {
    Builder f("twice", numerics);
    Tile x = f.input("x", {f.dim("N")});
    return f.output("y", x + x).build();
}

// The whole path, on the smallest kernel there is.
EnvironmentCheck a_kernel() {
    EnvironmentCheck check{"a kernel", {}, "everything: it is generated for this machine, loaded and run", "", true};
    try {
        Registry registry;
        registry.add("twice", "y[N] = 2 x[N]", twice);
        KernelOptions options;
        options.algorithm = "twice", options.schedule = "none";
        const auto start = std::chrono::steady_clock::now();
        const TemporaryFolder folder;
        const PreparedKernel prepared = prepare(registry, options);
        const LoadedKernel kernel(library_to_load(prepared, {}, folder), prepared.compiled.kernel);
        std::vector<float> x = {1, 2, 3}, y(3);
        const int status =
            kernel.run({descriptor_of(DType::f32, {3}, x.data()), descriptor_of(DType::f32, {3}, y.data())}, {}, tess_context());
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (status == TESS_OK && y == std::vector<float>{2, 4, 6}) check.found = fmt::format("right, in {:.2f} s", seconds);
        else check.remedy = "It gave a wrong result: please report this. " + kernel.message(status);
    } catch (const std::exception &error) { check.remedy = error.what(); }
    return check;
}

EnvironmentCheck program(const std::string &what, const std::vector<std::string> &names, const std::string &needed_for,
                         const std::string &remedy, bool required = false) {
    EnvironmentCheck check{what, {}, needed_for, remedy, required};
    if (const auto found = installed_program(names))
        check.found = (found->version.empty() ? "" : found->version + ", ") + found->path.string();
    return check;
}

EnvironmentCheck devices(const std::string &what, const Devices &d, const std::string &needed_for, const std::string &no_driver,
                         const std::string &no_device) {
    EnvironmentCheck check{what,
                           {},
                           needed_for,
                           !d.driver           ? no_driver
                           : d.problem.empty() ? no_device
                                               : no_device + " Now: " + d.problem + "."};
    if (!d.devices.empty()) check.found = join(d.devices, "; ") + " by " + *d.driver;
    return check;
}

}  // namespace

std::vector<EnvironmentCheck> environment_checks() {
    std::vector<EnvironmentCheck> all;
    const std::string halide = halide_file();
    all.push_back({"Halide", halide.empty() ? std::nullopt : std::optional(std::string(halide_version()) + ", " + halide),
                   "machine code for every target", "Run ./tessera setup.", true});
    all.push_back(
        program("cc", {"cc"}, "programs with kernels in them; tune, for GPUs and other machines", "Install a C compiler: Debian's gcc."));
    all.push_back(a_kernel());
    all.push_back(program("cmake", {"cmake"}, "tessera_add_kernel, in the build of a project", "Install Debian's cmake."));
    all.push_back(
        program("clang", {"clang", "clang-19", "clang-16", "clang-14"}, "a second opinion on generated C", "Install Debian's clang."));
    all.push_back(
        program("llvm-mca", {"llvm-mca-19", "llvm-mca"}, "judging the loops of a kernel's assembly", "Install Debian's llvm-19, or llvm."));
    all.push_back(program("llvm-objdump", {"llvm-objdump-19", "llvm-objdump"}, "reading a library's machine code",
                          "Install Debian's llvm-19, or llvm."));
    all.push_back(
        program("FileCheck", {"FileCheck-19", "FileCheck"}, "tests that read assembly", "Install Debian's llvm-19-tools, or llvm."));
    all.push_back(program("aarch64 gcc", {"aarch64-linux-gnu-gcc"}, "linking kernels for 64-bit ARM here",
                          "Install Debian's gcc-aarch64-linux-gnu."));
    all.push_back(program("qemu-aarch64", {"qemu-aarch64-static", "qemu-aarch64"}, "running kernels for 64-bit ARM here",
                          "Install Debian's qemu-user-static."));
    all.push_back(program("wasm-ld", {"wasm-ld", "wasm-ld-14"}, "linking kernels for WebAssembly here",
                          "Install Debian's clang, lld, wasi-libc and libclang-rt-14-dev-wasm32."));
    all.push_back(program("node", {"node"}, "running kernels for WebAssembly here", "Install Debian's nodejs."));
    all.push_back(
        program("nvcc", {"nvcc"}, "compiling kernels for NVIDIA GPUs", "Install the CUDA toolkit and add its bin folder to the PATH."));
    all.push_back(program("ptxas", {"ptxas"}, "checking code for NVIDIA GPUs without one",
                          "Install the CUDA toolkit and add its bin folder to the PATH."));
    all.push_back(devices("CUDA devices", cuda_devices(), "running kernels for NVIDIA GPUs",
                          "Install NVIDIA's driver, on a machine that has a GPU.", "Check the GPU and its driver with nvidia-smi."));
    all.push_back(devices("OpenCL devices", opencl_devices(), "running OpenCL kernels",
                          "Install Debian's ocl-icd-libopencl1, and pocl-opencl-icd for a device on the CPU.",
                          "Install a device's driver: Debian's pocl-opencl-icd has one for the CPU."));
    return all;
}

}  // namespace tessera
