// Slices of operands that are copied while earlier ones are used: a ring of slots in shared memory.
//
//   for v < count                     s[slots, …]
//     s[…]                            unrolled p < slots - 1
//       fill s for v         =>         if p < count: fill s[p] for p, asynchronously
//       use s                           commit
//                                     for v < count
//                                       await slots - 2, barrier
//                                       if v + (slots - 1) < count: fill s[(v + (slots - 1)) % slots] for that slice, asynchronously
//                                       commit
//                                       use s[v % slots]
//                                     await 0
//
// Past the last slice groups are empty, so that each iteration waits for as many.
#pragma once
#include <functional>
#include <string>

#include "compiler/lower/context/built.h"
#include "compiler/lower/context/cursor.h"
#include "compiler/lower/context/names.h"

namespace tessera {

// How many slices of operands lie near at once where the nest packs them at the loop at the cursor, and which of the buffers there are
// theirs. UserError schedule.pack where packs at one loop state several numbers.
struct Slices {
    int64_t stages = 1;
    std::function<bool(const std::string &buffer)> has_slots = {};
};
Slices slices_at(const Cursor &at);

// A loop of `count` iterations around the body, whose buffers of which `has_slots` holds become rings. What is copied to them as it lies in
// memory is copied asynchronously; what is computed is there at once. UserError schedule.pack where what fills them reads what is made in
// the same iteration.
TileBody in_ring(const std::string &variable, const Expr &count, int64_t slots, const std::function<bool(const std::string &)> &has_slots,
                 TileBody body, Names &names);

}  // namespace tessera
