// What of the stages that are placed inside a nest its loops need.
#pragma once
#include "compiler/lower/context/cursor.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

// A piece for each dim of a tensor, by tensor.
using Regions = std::map<std::string, std::vector<Piece>>;

// Adds what the stage's loads need where its dims are those pieces.
void add_needed(const Lowering &lowering, const Scope &scope, const Stage &stage, Pieces pieces, Regions &regions);
// Adds what producers that are placed somewhere need for the regions of theirs, and for what is added.
void add_needed_by_placed(const Lowering &lowering, const Scope &scope, Regions &regions);
// What every producer that is placed somewhere inside this nest must have filled at this point.
Regions regions_needed(const Lowering &lowering, const Cursor &at, const Scope &scope);
// Among them, the pieces of the stage; none where nothing loads it.
Pieces pieces_of(const Lowering &lowering, const Scope &scope, const Stage &stage, const Regions &needed);
// Whether all of them are known to have 0 points or more.
bool have_sizes(const Regions &regions, const Bounds &facts);

}  // namespace tessera
