// The points at which an index has given values: what turns a gather's transpose into a gather.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/index/bounds.h"

namespace tessera {

// For index(points) = targets. Each point is solved, as an expression of targets and of free points, or free: it takes all of its values.
struct Inversion {
    std::map<std::string, Expr> solved;
    std::vector<std::string> free;  // in the order in which points were given
    // What must hold beside: that quotients have no remainder, that solved points are in range, that what no point decides is the target.
    // Those that the facts prove are left out.
    std::vector<Expr> conditions;
    // Axes whose index is not understood and has free points in it: data at a free point, products of points. Where it is empty, the solved
    // and free points under the conditions are exactly those at which the index is the targets.
    std::vector<size_t> open;
};

// `targets` are one expression for each axis, over no point; `facts` know the ranges of points and of what targets use. Of points that
// the index leaves open, the first ones are solved for and the last ones stay free: windows (s p + d r) are solved for p where p stands
// before r. Understood are variables, sums with factors that are known not to be 0, digits (T b + s with 0 <= s < T), and indices without
// points, whatever they are made of. `extents` are the extents of points.
Inversion invert(const std::vector<Expr> &index, const std::vector<Expr> &targets, const std::vector<std::string> &points,
                 const std::map<std::string, Expr> &extents, const Bounds &facts);

}  // namespace tessera
