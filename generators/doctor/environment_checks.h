// What generating for this machine and for others needs, and whether it is here.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct EnvironmentCheck {
    std::string what;                  // "nvcc"
    std::optional<std::string> found;  // its version and place; none: missing
    std::string needed_for;            // "compiling CUDA kernels"
    std::string remedy;                // how to get it
    bool required = false;             // to generate, verify and time kernels for this machine
};

// Halide, the C compiler, and a kernel that was generated, loaded and run; then what other targets and
// reading code need. The PATH decides which programs there are.
std::vector<EnvironmentCheck> environment_checks();

}  // namespace tessera
