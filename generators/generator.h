// The main of a generator binary. All of one:
//
//     int main(int argc, char **argv) {
//         Registry registry;
//         registry.add("scaled_add", "y[N] = alpha x[N] + z[N]", scaled_add);
//         return generator_main(argc, argv, registry);
//     }
#pragma once
#include "generators/commands/exit_code.h"
#include "generators/registry/registry.h"

namespace tessera {

// Runs the command line. Throws nothing: every error is printed to stderr and becomes an exit code.
int generator_main(int argc, char **argv, const Registry &registry);

}  // namespace tessera
