// replay/expected.json of a bundle: what to run, and the hashes of what comes out (docs/bundle.md, "replay"). Who ran it writes it; it is
// checked here.
#pragma once
#include <string>

#include "generators/bundle/format.h"

namespace tessera {

// `inputs` is the text of replay/inputs.safetensors, null where there is none. UserErrors json.*; replay.version; replay.run for a kernel,
// argument, dim, tensor or parameter that is not there, or one that is missing.
void check_replay(const BundleManifest &bundle, const std::string &text, const std::string *inputs, const std::string &subject);

}  // namespace tessera
