// Elements of results that no point of their stage has, where it keeps rows of segments: before the first segment and behind the last.
#pragma once
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// With dims for them, "<stage>.<rows>.before" and ".after", wherever the rows of one segment end where those of the next begin.
Algorithm with_dims_of_rests(Algorithm algorithm);

// Maps of 0 to these elements, of the results that somebody reads by elements of the flat axis; none where all readers go by points. Each
// writes a result of `stage`, by its name.
std::vector<Stage> rests_of(const Algorithm &algorithm, const Stage &stage);

}  // namespace tessera
