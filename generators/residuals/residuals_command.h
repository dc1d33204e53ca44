// tessera-generator residuals: what a gradient keeps of its forward part within a budget of memory.
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command residuals_command(ProgramLine &program, const Registry &registry);

// "64MB", "1.5GiB", "4096": bytes; k, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024, in letters of
// either case. UserError command.arguments.
int64_t parse_bytes(const std::string &text, const std::string &option);

}  // namespace tessera
