// Whether iterations of one loop stay out of each other's way: the part of verify_tiles.h that compares accesses.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/index/prove.h"

namespace tessera {

// What holds inside a node: a variable with its range, or a condition. A scope is a list from the innermost fact outwards.
struct TileScope;
using EnclosingScope = std::shared_ptr<const TileScope>;
struct TileScope {
    EnclosingScope outer;
    std::string variable;  // "" for a condition
    Expr lo, hi;           // of the variable
    Expr count;            // of a loop: it is above 0 inside
    Expr condition;
};

// How much of a scope a proof starts from. With more facts more can be proved, but some proofs become too long.
enum class Facts : uint8_t { ranges, conditions, counts };  // counts: also that the loops run

// Adds the facts of `scope`, outermost first, up to but without `end`; variables are renamed.
void add_facts(Bounds &facts, const EnclosingScope &scope, const EnclosingScope &end, Facts which,
               const std::map<std::string, Expr> &names = {});

struct TileAccess {
    std::string buffer;
    std::vector<Expr> index;
    bool store = false;
    EnclosingScope scope;
};

// Two accesses of one buffer with which two iterations may touch the same element.
struct TileConflict {
    const TileAccess *first, *second;
};

// `loop` binds the loop's variable. `digits` are variables bound inside the loop that together identify its iteration, or the
// loop's own variable. `facts` are those outside the loop; `accesses` are those of one buffer inside.
std::optional<TileConflict> find_conflict(const Bounds &facts, const EnclosingScope &loop, const std::vector<std::string> &digits,
                                          const std::vector<const TileAccess *> &accesses);

}  // namespace tessera
