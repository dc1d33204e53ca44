// Stages that stand beside another in one of its loops. A stage that is placed there for its readers computes what they need; one that
// stands beside computes of all its points those that belong to the iteration. Loops part the dims that the two share, so every point is
// computed once, whoever reads it.
#pragma once
#include "compiler/lower/context/cursor.h"

namespace tessera {

// A stage beside the one of a nest.
struct Owned {
    const Stage *stage = nullptr;
    size_t position = 0;                      // of its loop
    bool comes_first = false;                 // in the program; otherwise it runs after the rest of what the loop contains
    std::map<std::string, std::string> dims;  // of the loops around it -> its own, which they part: no two part the same
    bool accumulates = false;                 // iterations fold parts of one result, each from what is there
};

// For a nest at root, those in its loops, in the order of the program. UserError schedule.place where a loop is none of the nest's, or does
// not part the points of a stage.
std::vector<Owned> owned_in(const Lowering &lowering, const StageNest &nest);
// What belongs to the iteration at the cursor, which is at that loop or outside of it.
Pieces owned_pieces(const Cursor &at, const Owned &owned);
[[noreturn]] void refuse_owned(const Owned &owned, const StageNest &nest, const std::string &why);

}  // namespace tessera
