// tessera-generator quantize: the tensors of a safetensors file as codes with scales (algorithms/quantization).
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command quantize_command(ProgramLine &program);

// Whether a name is what a pattern says: '*' is any characters, '?' any one; behind "re:" stands a regular expression (ECMAScript) of the
// whole name. UserError quantization.pattern for one that is none.
bool matches_pattern(const std::string &name, const std::string &pattern);

}  // namespace tessera
