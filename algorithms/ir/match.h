// Whether an expression is an instance of a pattern, and of what.
#pragma once
#include <map>
#include <unordered_map>

#include "algorithms/ir/expr.h"

namespace tessera {

// In a pattern input(i) and left(i) stand for any expression of their type, the same one wherever they occur; all else stands
// for itself. A cast of an operand matches an integer constant that is a value of the operand's type. What is shared in the pattern is
// compared once, so the time is the pattern's size as a graph.
class Matcher {
public:
    // May be called for several patterns in turn, which then share what inputs and lefts stand for.
    bool match(const Expr &pattern, const Expr &e);

    std::map<int, Expr> inputs, lefts;  // by number

private:
    std::unordered_map<const Expr::Node *, Expr> matched_;
};

}  // namespace tessera
