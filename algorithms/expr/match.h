// Whether an expression is an instance of a pattern, and of what.
#pragma once
#include <map>
#include <unordered_map>

#include "algorithms/expr/expr.h"

namespace tessera {

// In a pattern, input(i) and left(i) stand for any expression of their type, and for the same one wherever they occur. All else
// stands for itself. A cast of an operand matches an integer constant that is a value of the operand's type. Shared nodes of the
// pattern are compared once, so the time is linear in the pattern's nodes.
class Matcher {
public:
    // May be called for several patterns in turn; they then share what inputs and lefts stand for.
    bool match(const Expr &pattern, const Expr &e);

    std::map<int, Expr> inputs, lefts;  // by number

private:
    std::unordered_map<const Expr::Node *, Expr> matched_;
};

}  // namespace tessera
