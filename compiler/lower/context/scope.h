// What is known at a place of the tile program: facts, the values that are stored, and the loops that are open. A scope is a value. Who
// begins a block copies the scope around it, adds to the copy, and drops the copy at the end of the block. Copies share what they have
// in common, so they cost little.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "algorithms/index/bounds.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

// Where a tensor's values are while they are needed: a buffer, the tensor index that its origin stands for, and how the
// axes of the buffer are made of the tensor's.
struct Stored {
    Buffer buffer;
    std::vector<Expr> origin;          // one for each of `dims`
    std::vector<std::string> dims;     // of the tensor, or those that name its elements by points
    std::vector<LayoutAxis> layout;    // empty: one axis for each dim, in order
    int depth = 0;                     // the loop depth at which it was stored; 0 for arguments and root stages
    bool padded = false;               // an argument with room past the ends of its operand
    bool exact = false;                // without room past the tensor's ends
    const Stage *by_points = nullptr;  // what keeps rows flat at root, where a piece of it is stored by the points of that stage
    std::set<std::string> whole;       // dims of which it has all and nothing past the end, though it was stored inside a tile
};

// A loop around a place. What is left over of a loop that has ended counts as inside it, and has no variable.
struct OpenLoop {
    std::string name;      // "stage.loop"
    std::string variable;  // "" for what is left over
    std::shared_ptr<const OpenLoop> outer;
};

struct Scope {
    Bounds facts;
    std::shared_ptr<const OpenLoop> open_loops;  // the innermost one
    int depth = 0;                               // how many loops are open, written out or not
    int64_t versions = 1;                        // how many versions, by the sizes of partial tiles, this is one of (narrow_tiles.h)
    std::vector<std::pair<Expr, Expr>> limits;   // what data says of where folds end or begin, and the variable that has it (live_part.h)

    // The facts of an algorithm's dims and parameters.
    Scope(const std::vector<Dim> &dims, const std::vector<Parameter> &parameters);

    void open_loop(const std::string &name, const std::string &variable);
    void store(const std::string &tensor, Stored stored);
    // Null where the tensor's values are not there.
    const Stored *find(const std::string &tensor) const;
    // For a tensor that is there.
    const Stored &at(const std::string &tensor) const;

private:
    std::shared_ptr<const std::map<std::string, std::shared_ptr<const Stored>>> stored_;
};

// The index along the dims of what is stored, of a tensor's element. UserError schedule.place: it is stored by points, and this element may
// be of any.
std::vector<Expr> index_along(const Stored &where, std::vector<Expr> index);
// The position in the buffer of what has that index along the dims of what is stored.
std::vector<Expr> locate(const Stored &where, const std::vector<Expr> &index, const Bounds &facts);

}  // namespace tessera
