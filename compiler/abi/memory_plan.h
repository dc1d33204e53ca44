// Where the buffers of a program lie in the workspace, and which of them share bytes.
//
// A part is a node of the program's top level that is no storage for what follows it: a nest of loops, or a call. Parts run one after
// another, so two buffers that no part lies between the uses of both may have the same bytes. LLVM and C compilers are told that buffers
// of different names do not alias, for whole functions and whatever their lives; so a part of a program that shares is a function of its
// own, which is never inlined.
#pragma once
#include <set>

#include "compiler/tile/tile_program.h"

namespace tessera {

// A buffer of the workspace that is declared at the program's top level.
struct PlannedBuffer {
    Buffer buffer;
    size_t first = 0, last = 0;  // the parts that use it, and all between them
    // Buffers earlier in the plan. It begins where the furthest of them ends, so what it may not share with lies apart from it at every
    // extent.
    std::vector<size_t> behind = {};
};

struct MemoryPlan {
    TileBody parts;                      // in the program's order
    std::vector<PlannedBuffer> buffers;  // in the order in which they are laid out
    bool shares = false;                 // some bytes have several buffers

    // Those that a part uses, or that lie between uses: what it may not write over.
    std::vector<size_t> live_in(size_t part) const;
};

// The layout with the smallest workspace that a local search finds at typical extents; it is right at all. Buffers share bytes where that
// saves a page or more at typical extents; otherwise they lie one behind another, in the program's order. Deterministic.
MemoryPlan plan_memory(const TileProgram &program);

// The bytes of a buffer at the given extents of the program's dims, and where each begins, in the order of the plan. Extents that are not
// given are typical ones.
struct MemoryLayout {
    std::vector<int64_t> begins, bytes;
    int64_t total = 0;
    int64_t largest_live = 0;  // the most that the buffers of one part need together
};
MemoryLayout layout_of(const MemoryPlan &plan, const TileProgram &program, const std::map<std::string, int64_t> &extents = {});

// An expression over extents of the program's dims, at those given and typical others. What only data decides counts as typical.
int64_t extent_value(const Expr &e, const TileProgram &program, const std::map<std::string, int64_t> &extents);

// What the nodes load, store or pass on.
std::set<std::string> buffers_used(const TileBody &body);
// Whether the node reads or writes an element itself, and not only passes buffers on.
bool touches_memory(const TileNode &part);

}  // namespace tessera
