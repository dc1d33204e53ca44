#include "generators/registry/devices.h"

#include "tests/generators/harness.h"

namespace tessera::test_devices {

TEST_CASE("asking for devices gives them, or says why there are none, and never fails") {
    for (const Devices &d : {cuda_devices(), opencl_devices()}) {
        if (!d.driver) CHECK((d.devices.empty() && d.problem.empty()));
        for (const std::string &device : d.devices) CHECK(!device.empty());
    }
    for (const std::string &device : cuda_devices().devices) CHECK_THAT(device, Catch::Contains(", sm_"));
}

}  // namespace tessera::test_devices
