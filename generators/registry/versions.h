// The versions of Tessera, and of the Halide that it was built with.
#pragma once

namespace tessera {

const char *tessera_version();
const char *halide_version();

}  // namespace tessera
