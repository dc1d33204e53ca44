// Positions made of data. A loaded, computed or passed number that becomes a position may be any number of 32 bits, since such
// casts saturate. Sums with it need more bits, whatever is proved of them under a guard, because the guard itself must be computed.
#pragma once
#include <map>
#include <string>
#include <unordered_map>

#include "algorithms/expr/expr.h"

namespace tessera {

// Checks index expressions. Loop variables, extents and what `bounded` gives are inside some buffer and leave room for sums.
class DataPositions {
public:
    // What a Let's variable stands for.
    void bind(const std::string &variable, const Expr &value);
    // May be any number of 32 bits, or more.
    bool is_data(const Expr &e) { return find(e).data; }
    // Must be computed in 64 bits, and so must what is computed from it.
    bool is_wide(const Expr &e) { return find(e).wide; }

private:
    struct Kind {
        bool data = false, wide = false;
    };
    std::map<std::string, Kind> bound_;
    std::unordered_map<const Expr::Node *, std::pair<Expr, Kind>> known_;  // the expression is held so that its address stays its own
    Kind find(const Expr &e);
    Kind of_operation(const Expr &e);
};

}  // namespace tessera
