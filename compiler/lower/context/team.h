// The threads of a GPU's block that compute a tile together, one part of it each. Blocks of a stage at root run in any order; those of a
// stage inside another's loops one after the other, by the team of that other stage.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/lower/context/cursor.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

// How many threads there are along each dim, and which of them a thread is. Of a stage whose instruction family is of warps, each of them
// is a warp.
struct Team {
    LoopKind kind = LoopKind::thread;
    int64_t threads = 1;
    std::vector<std::pair<std::string, int64_t>> along;  // dims with more than one, outermost first
    std::string thread;                                  // the variable of the thread loop
    std::map<std::string, Expr> digits;                  // of the thread's number, by dim
    std::vector<std::string> rests;                      // the thread, without the digits before each of `along`
    int64_t of(const std::string &dim) const;
};

// The team of the register tile at the cursor: a thread for each part of `micro` points. UserError schedule.threads where the tile is not
// made of whole parts.
Team team_of(const Cursor &at);
// Its thread and digits as variables, which the scope then knows.
void name_threads(Team &team, const Lowering &lowering, Scope &scope, Names &names);
// The thread loop; with several dims, the number of a thread taken apart into its digits.
TileBody by_threads(const Team &team, TileBody body);

}  // namespace tessera
