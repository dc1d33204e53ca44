#pragma once

namespace tessera {

// How a generator ends.
enum ExitCode {
    exit_ok = 0,
    exit_check_failed = 1,  // the check that was asked for failed: verify found a difference, diff found differences
    exit_user_error = 2,    // a UserError, printed as its what()
    exit_internal_error = 3
};

}  // namespace tessera
