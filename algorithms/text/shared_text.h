// The text of expressions that are read together. What repeats in them is written once, under a name. Without it the text of an
// elementary function is as long as its tree, which is exponential in the depth of sharing.
//
//     SharedText line({value});
//     out += line.finish("  ", "y[M] = " + line(value));
//
//       y[M] = $0/abs($0)
//         $0 = x[M]*x[M] + 1.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/expr/value_numbering.h"

namespace tessera {

class SharedText {
public:
    // Names what occurs more than once in `expressions` and has more than `few` nodes. Undefined expressions are skipped.
    explicit SharedText(const std::vector<Expr> &expressions, int few = 4);

    // The text of one of the expressions, or of a list of them, over the names. Names depend on the content alone.
    std::string operator()(const Expr &e);
    std::string operator()(const std::vector<Expr> &expressions);
    // `indent` and `text` as a line, and below it, two columns further in, a line for each name.
    std::string finish(const std::string &indent, const std::string &text) const;

private:
    Expr compact(const Expr &e);

    ValueNumbering table_;
    std::map<int, Expr> compact_;  // over the names, by number
    std::vector<std::string> definitions_;
};

}  // namespace tessera
