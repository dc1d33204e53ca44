// The value of index arithmetic where the loops of a tile program stand at given iterations.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "algorithms/expr/expr.h"

namespace tessera {

// Whether remembering what is known of its nodes pays: a low tree has few paths, a high one that shares may have 2^height.
inline bool may_share_much(const Expr &e) { return e->height > 6; }

struct LoopPositions {
    std::unordered_map<std::string, int64_t> loops;    // variable -> iteration
    std::unordered_map<std::string, Expr> lets;        // variable -> its value
    std::unordered_map<std::string, int64_t> extents;  // dim -> extent

    // Where data bounds rows, as offsets do, each counts as so long, unless `steps` has their list.
    static constexpr int64_t typical = 64;
    std::unordered_map<std::string, int64_t> steps;  // list of positions -> how far apart they are
    // Notes that a list of so many elements ascends to `most`, in equal steps of at least 1.
    void set_step(const std::string &list, int64_t elements, int64_t most);
    // Whether it is loaded from a list of positions. The list counts as 0, a step, 2 steps and so on; other data that an index loads
    // counts as 0, and so does what is divided by zero.
    static bool is_position(const Expr &load);
    int64_t step_of(const Expr &load) const;
    int64_t value(const Expr &e) const;

private:
    using Known = AddressMap<int64_t>;
    int64_t value(const Expr &e, Known *known) const;
    int64_t make_value(const Expr &e, Known *known) const;
};

}  // namespace tessera
