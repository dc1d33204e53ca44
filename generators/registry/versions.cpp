#include "generators/registry/versions.h"

namespace tessera {

const char *tessera_version() { return TESSERA_VERSION; }
const char *halide_version() { return TESSERA_HALIDE_VERSION; }

}  // namespace tessera
