// tessera-generator import: an ONNX model as a program of Tessera (algorithms/import/onnx).
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command import_command(ProgramLine &program);

}  // namespace tessera
