#include "generators/registry/devices.h"

#include <dlfcn.h>

#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/processes/limited_process.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// A function of a shared library; null where the library has none of this name.
template <typename Function>
Function *function(void *library, const char *name) {
    return reinterpret_cast<Function *>(dlsym(library, name));
}

std::string trimmed(const std::string &text) {
    const std::string plain = quotable(text.c_str());
    const size_t first = plain.find_first_not_of(' ');
    return first == std::string::npos ? "" : plain.substr(first, plain.find_last_not_of(' ') - first + 1);
}

// The CUDA driver API; CUdevice and CUresult are ints.
Devices ask_cuda() {
    Devices found;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return found;
    const auto init = function<int(unsigned)>(library, "cuInit");
    const auto version = function<int(int *)>(library, "cuDriverGetVersion");
    const auto count = function<int(int *)>(library, "cuDeviceGetCount");
    const auto device = function<int(int *, int)>(library, "cuDeviceGet");
    const auto name = function<int(char *, int, int)>(library, "cuDeviceGetName");
    const auto attribute = function<int(int *, int, int)>(library, "cuDeviceGetAttribute");
    found.driver = "libcuda.so.1";
    if (!init || !version || !count || !device || !name || !attribute) {
        found.problem = "the driver lacks a function of CUDA's";
        return found;
    }
    int v = 0, n = 0;
    if (version(&v) == 0) found.driver = fmt::format("driver for CUDA {}.{}", v / 1000, v % 1000 / 10);
    if (const int error = init(0); error != 0 || count(&n) != 0) {
        found.problem = fmt::format("the driver does not start (CUDA error {})", error);
        return found;
    }
    for (int i = 0; i < n; i++) {
        constexpr int major_attribute = 75, minor_attribute = 76;
        char text[256] = {};
        int handle = 0, major = 0, minor = 0;
        if (device(&handle, i) != 0 || name(text, sizeof text - 1, handle) != 0) continue;
        attribute(&major, major_attribute, handle), attribute(&minor, minor_attribute, handle);
        found.devices.push_back(fmt::format("{}, sm_{}{}", trimmed(text), major, minor));
    }
    return found;
}

// OpenCL 1.2 by its ICD loader; handles are pointers.
Devices ask_opencl() {
    constexpr uint32_t platform_version = 0x0901, platform_name = 0x0902, device_name = 0x102B;
    constexpr uint64_t all_devices = 0xFFFFFFFF;
    Devices found;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return found;
    const auto platforms = function<int32_t(uint32_t, void **, uint32_t *)>(library, "clGetPlatformIDs");
    const auto platform_info = function<int32_t(void *, uint32_t, size_t, void *, size_t *)>(library, "clGetPlatformInfo");
    const auto devices = function<int32_t(void *, uint64_t, uint32_t, void **, uint32_t *)>(library, "clGetDeviceIDs");
    const auto device_info = function<int32_t(void *, uint32_t, size_t, void *, size_t *)>(library, "clGetDeviceInfo");
    found.driver = "libOpenCL.so.1";
    if (!platforms || !platform_info || !devices || !device_info) {
        found.problem = "the loader lacks a function of OpenCL's";
        return found;
    }
    auto text_of = [](const auto &info, void *of, uint32_t what) {
        char text[512] = {};
        return info(of, what, sizeof text - 1, text, nullptr) == 0 ? trimmed(text) : "unnamed";
    };
    constexpr uint32_t most = 64;
    void *ids[most], *inner[most];
    uint32_t n = 0;
    if (const int32_t error = platforms(most, ids, &n); error != 0) {
        found.problem = fmt::format("the loader finds no platform (OpenCL error {})", error);
        return found;
    }
    for (uint32_t p = 0; p < std::min(n, most); p++) {
        const std::string platform =
            text_of(platform_info, ids[p], platform_name) + ", " + text_of(platform_info, ids[p], platform_version);
        uint32_t m = 0;
        if (devices(ids[p], all_devices, most, inner, &m) != 0) continue;
        for (uint32_t d = 0; d < std::min(m, most); d++)
            found.devices.push_back(fmt::format("{} ({})", text_of(device_info, inner[d], device_name), platform));
    }
    return found;
}

Devices apart(const std::string &what, Devices (*ask)()) {
    using json = nlohmann::ordered_json;
    const TemporaryFolder folder;
    const OutputFolder out(folder.path());
    try {
        // Drivers reserve address space by the terabyte.
        const Limits limits{30, UINT64_MAX};
        run_limited({what, "asking for devices", "doctor.limit", "Look at the driver's own tools", ""}, limits, [&] {
            const Devices found = ask();
            json all = {{"devices", found.devices}, {"problem", found.problem}};
            if (found.driver) all["driver"] = *found.driver;
            out.write("devices.json", json_text(all));
        });
    } catch (const std::exception &error) { return {what, {}, error.what()}; }
    const json all = from_json_text(out.read("devices.json"));
    Devices found{{}, all["devices"], all["problem"]};
    if (all.contains("driver")) found.driver = all["driver"];
    return found;
}

}  // namespace

Devices cuda_devices() { return apart("the CUDA driver", ask_cuda); }
Devices opencl_devices() { return apart("the OpenCL loader", ask_opencl); }

}  // namespace tessera
