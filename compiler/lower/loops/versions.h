// Versions of what a loop contains: of full tiles and partial ones, inside an image and at its border.
#pragma once
#include "compiler/lower/context/build.h"

namespace tessera {

// What is inside the loop at the cursor, whose piece is cut already. Inside the last loop that cuts register tiles, a full version is told
// from one with points to spare; most of an image is not at its border, and there no load needs its guard.
Built inside_loop(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera
