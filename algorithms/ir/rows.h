// Who does not know stages that keep rows of segments (Rows, algorithm.h) says so.
#pragma once
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Its own stages, and those of its calls.
bool keeps_rows(const Algorithm &algorithm);
// UserError algorithm.rows: "<what> of ...", where it has one.
void refuse_rows(const Algorithm &algorithm, const std::string &what);

}  // namespace tessera
