// Value numbering: one number for each distinct expression, by content (Cocke, Schwartz 1970). Comparing two trees costs
// time exponential in their sharing, because a shared node is met once on every path; comparing numbers is exact and the
// numbering is linear in the nodes. Printing, JSON and hashes need it, for functions such as erf share a lot.
#pragma once
#include <deque>
#include <unordered_map>
#include <vector>

#include "algorithms/expr/expr.h"

namespace tessera {

class ValueNumbering {
public:
    // equal(a, b) exactly when number(a) == number(b). Operands get their numbers before what uses them, so the numbers
    // of a fresh table depend on the content alone. The expression must be defined.
    int number(const Expr &e);
    // One node for all equal expressions, and so are its operands.
    const Expr &unique(const Expr &e) { return expr(number(e)); }

    const Expr &expr(int number) const { return rows_[index(number)].expr; }
    const std::vector<int> &operands(int number) const { return rows_[index(number)].operands; }
    int height(int number) const { return rows_[index(number)].height; }  // nodes on the longest path down; a leaf has 1
    int size() const { return static_cast<int>(rows_.size()); }

private:
    struct Row {
        Expr expr;  // over the expressions of other rows
        std::vector<int> operands;
        int height;
    };
    static size_t index(int number) { return static_cast<size_t>(number); }
    static bool is_of(const Row &row, const Expr::Node &node, const std::vector<int> &operands);

    std::deque<Row> rows_;    // references to rows hold while others are numbered
    std::vector<Expr> kept_;  // addresses in seen_ stay taken
    std::unordered_map<const Expr::Node *, int> seen_;
    std::unordered_multimap<size_t, int> numbers_;  // by hash
};

// The subexpressions of `roots` to write once and refer to, operands first: those that occur more than once and are more
// than `few` nodes, and those that cut what would nest deeper than `depth`. With them, the written size is linear in the
// distinct nodes.
std::vector<int> worth_naming(const ValueNumbering &table, const std::vector<int> &roots, int depth, int few = 4);

}  // namespace tessera
