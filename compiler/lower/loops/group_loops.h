#pragma once
#include "compiler/lower/context/build.h"

namespace tessera {

// The innermost folded dim, `group` elements at a time: whole groups first, then one of what is left over and zeros.
Built over_groups(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, int64_t group);

}  // namespace tessera
