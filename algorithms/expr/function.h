// Functions with names: exp, erf, or a user's own. In an expression one is a node (`applied`, expr.h), so that what reads expressions
// knows it: derivatives, f64 twins, texts. `expand_functions` puts definitions in their place before loops are made; evaluators do so by
// themselves.
#pragma once
#include <functional>
#include <string>

#include "algorithms/expr/expr.h"

namespace tessera {

inline constexpr int max_function_arguments = 8;

// `define` is called for arguments of f32 and for those of f64, and gives a value of their type, made of its arguments, constants and
// other functions (UserError function.definition: the name is no name, or the definition or a derivative has loads, indices or another
// type).
// The same definition must be right in both types; take constants of the arguments' type.
FunctionRef make_function(const std::string &name, int arity, const std::function<Expr(const Operands &)> &define,
                          FunctionFacts facts = {});
// The same of definitions that are there already, as a document has them.
FunctionRef make_function(const std::string &name, int arity, Expr in_f32, Expr in_f64, FunctionFacts facts = {});

// The derivatives of a function of so many arguments; `by` gives the one by argument `of`, over the arguments, and is called as `define`.
Derivatives derivatives(int arity, const std::function<Expr(const Operands &x, int of)> &by);
// The derivative of a node by one of its arguments, with the node's operands in place of the inputs; undefined where nobody said it.
Expr derivative_of(const Expr &applied, size_t argument);

// A node's definition with the node's operands in place of the inputs; functions in it stay.
Expr definition_of(const Expr &applied);
// The expression without functions. A shared node is expanded once.
Expr expand_functions(const Expr &e);
// How many operations and casts that is, counting shared ones once.
int operations_of(const Function &function, DType type);

}  // namespace tessera
