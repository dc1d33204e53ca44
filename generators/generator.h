// The main of a generator binary. All of one:
//
//     int main(int argc, char **argv) {
//         Registry registry;
//         registry.add("scaled_add", "y[N] = alpha x[N] + z[N]", scaled_add);
//         return generator_main(argc, argv, registry);
//     }
#pragma once
#include "generators/registry.h"

namespace tessera {

// How a generator ends.
enum ExitCode {
    exit_ok = 0,
    exit_check_failed = 1,  // the check that was asked for failed: verify found a difference, diff found differences
    exit_user_error = 2,    // a UserError, printed as its what()
    exit_internal_error = 3
};

// Runs the command line. Throws nothing: every error is printed to stderr and becomes an exit code.
int generator_main(int argc, char **argv, const Registry &registry);

}  // namespace tessera
