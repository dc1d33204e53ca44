// Rows of a flat tensor, which offsets group into segments.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Segment p of `parent` has the rows offsets[p] ..= offsets[p + 1] - 1 of the dim `flat`. Both offsets are clamped into 0 ..=
// |flat| first, so no segment has more than |flat| rows whatever they hold. A segment whose offsets decrease is empty. `offsets`
// holds |parent| + 1 integers, and |flat| is at least 1.
struct RaggedRows {
    Dim dim;   // the rows of a segment, ragged in `parent`
    Expr row;  // the index in `flat` of a row of a segment
};
RaggedRows ragged_rows(const std::string &name, const std::string &offsets, DType offsets_type, const std::string &parent,
                       const std::string &flat);

}  // namespace tessera
