// Whether asynchronous copies have arrived where they have to.
//
// Copies that a block's threads issue are in flight, until a Commit makes a group of them and an Await waits for that. Groups arrive in
// their order. What the check knows of a loop is that an iteration leaves in flight what the next one expects: slots that go round with the
// loop's variable.
#pragma once
#include <string>

#include "compiler/tile/tile_program.h"

namespace tessera {

// What is wrong, in words, or "": an element that is read or stored, or whose buffer or block ends, where a copy to it may be in flight; an
// Await of nothing that was issued; branches or iterations that leave different groups in flight.
std::string wrong_await(const TileBody &body);

}  // namespace tessera
