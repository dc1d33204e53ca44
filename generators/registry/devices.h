// The accelerators that this machine's drivers show. Drivers are found when the program runs; nothing is linked.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct Devices {
    std::optional<std::string> driver;  // what was found of the driver, with its version; none: its library is missing
    std::vector<std::string> devices;   // "NVIDIA H200, sm_90"
    std::string problem;                // why there are none, where the driver says so
};

// Each asks the driver in a process of its own: a driver may crash, hang, or bring an LLVM that ours does not get along with.
Devices cuda_devices();
Devices opencl_devices();

}  // namespace tessera
