// tessera-generator export: an algorithm as an ONNX model (algorithms/export/onnx).
#pragma once
#include "generators/commands/command.h"

namespace tessera {

Command export_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
