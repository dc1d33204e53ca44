// Stages that keep rows of segments (Rows, algorithm.h). Who does not know them says so.
#pragma once
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Its own stages, and those of its calls.
bool keeps_rows(const Algorithm &algorithm);
// UserError algorithm.rows: "<what> of ...", where it has one.
void refuse_rows(const Algorithm &algorithm, const std::string &what);

// Whether rows that some stage keeps begin where results of `stage` say. That is read around the loops of their stages too.
bool begins_rows(const Algorithm &algorithm, const Stage &stage);

}  // namespace tessera
