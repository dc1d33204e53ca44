// The sizes of register tile that compute what is left over of a dim whose tail is narrow.
#pragma once
#include <string>
#include <vector>

#include "compiler/lower/context/cursor.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

// A dim that a partial tile may run past. The tile is computed in the smallest of the sizes, ascending, that covers what is left.
struct NarrowDim {
    std::string dim;
    std::vector<int64_t> sizes;
};

// A full tile and the sizes of partial ones are bodies of their own, inside each other where stages are placed in them. So many bodies are
// made of one register tile at most: where there would be more, every second size is left out, the largest one never.
constexpr int64_t max_narrow_bodies = 16;

// Those of the cursor's partial dims whose tail is narrow, by what is known of what is left over of each.
std::vector<NarrowDim> narrow_dims(const Cursor &at, const Scope &scope);
// How many bodies these and the full tile are; 1 where there are none.
int64_t versions_of(const std::vector<NarrowDim> &narrow);

}  // namespace tessera
