// What the pieces of a split dim are called. A split of K makes the dims K.o, which counts pieces, and K.i, positions in one.
// Stages that split K alike share them; pieces of another size have dims of their own, K.o2 and K.i2, in the order of stages.
//
// A schedule says K.o and K.i in any case. In the knobs of a stage they are the pieces that this stage runs over; behind the name
// of a stage or operand they are that one's. So a split changes only the addresses of its own stage.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

struct PieceNames {
    std::string outer, inner;
};
// 1: "K.o" and "K.i"; 2: "K.o2" and "K.i2".
PieceNames piece_names(const std::string &dim, int number);

// What a schedule calls a dim: "K.i.o" for "K.i2.o". A dim with a dot whose beginning is no dim is not a piece: "layer.o2".
std::string name_in_schedules(const std::string &dim, const Algorithm &after_splits);

// The one of `dims` that a schedule calls `name`; `name` itself where none is. No two dims of a stage have one name.
std::string dim_called(const std::string &name, const std::vector<std::string> &dims, const Algorithm &after_splits);

// The algorithm with the dims of its stages as schedules call them, to check addresses against; its expressions stay as they are.
Algorithm as_addressed(const Algorithm &after_splits);

// The knobs with the algorithm's own names of dims. A name that is no dim's stays.
KnobsByStage with_dims_of(const Algorithm &after_splits, const KnobsByStage &stages);

}  // namespace tessera
