// The algorithms of this folder, each by its name.
#pragma once
#include "generators/registry/registry.h"

namespace tessera::test {

Registry unseen_algorithms();

}  // namespace tessera::test
