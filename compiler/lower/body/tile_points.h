// The points of a register tile: the loops over them, and the memory that holds a value for each.
#pragma once
#include <functional>

#include "compiler/lower/context/mapping.h"

namespace tessera {

// What one step of a register tile computes: one element, or one vector of them.
struct Point {
    std::map<std::string, Expr> at;   // dim -> index
    std::map<std::string, Expr> own;  // dim -> index within what one thread has of the tile
    std::string thread;               // of a team
    std::string vector_dim;
    Pieces padded;  // dims of a part whose last vector may run past the end
};

// What is done at a point, in the scope inside the loops; `lane_guard` is undefined or says which lanes are inside the limit.
using PointBody = std::function<std::shared_ptr<const TileNode>(const Point &point, const Expr &lane_guard, const Scope &inside)>;
// The same of several nodes: each is done for all lanes before the next.
using PointSteps = std::function<TileBody(const Point &point, const Scope &inside)>;
// Unrolled and vector loops over the register tile, then serial loops over `extra` dims, around what `make` makes; a thread loop around
// all of it where a team shares the tile. `guarded`: not where the tile runs past a limit.
TileBody over_tile(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const std::vector<std::string> &extra,
                   bool guarded, const PointBody &make);
// All steps of a point before the next point, past limits too.
TileBody over_tile_in_steps(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const PointSteps &make);

// The position of a point in a buffer that has a value for each point of the tile: the point relative to the tile's corner, then the part's
// own dims. A team's thread has its own part of the buffer where the fold's part has no such dims.
std::vector<Expr> tile_index(const Cursor &at, const Scope &inside, const Part *part, const Point &point);
// Room for one value at each point of the tile, and its name.
Buffer value_buffer(const Lowering &lowering, const Cursor &at, const Scope &scope, const std::string &suffix, DType dtype, Names &names);
// The same for one part of the fold.
Buffer part_buffer(const Lowering &lowering, const Cursor &at, const Scope &scope, size_t part, const std::string &suffix, Names &names);

}  // namespace tessera
