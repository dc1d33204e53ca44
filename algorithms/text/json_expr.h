// JSON of expressions. An array opens with the kind's name, an integer is an index constant, a string is a variable:
//
//   5 · "m" · ["f32", "0x1.8p+0"] · ["i32", -3] · ["bool", true] · ["extent", "M"] · ["parameter", "eps", "f32"]
//   ["load", "x", "f32", i, j] · ["load_or", "x", "f32", i, j, guard, fill] · ["bounded", e, lo, hi]
//   ["add", a, b] and so on for every operation · ["exp", a] and so on for every function of functions.h
//   ["apply", {"name": "mish", "arity": 1, "f32": e, "f64": e}, a]    a function of somebody's own, with its definitions over inputs
//   ["bitcast", "i32", a] · ["cast", "i8", a, "toward_zero", "saturate"]
//   ["left", 0, "f32"] · ["right", 0, "f32"] · ["input", 0, "f32"]
//   ["let", [d0, d1, …], e]    where ["@", i] in e and in later definitions stands for definition i
//
// What is written says all of that. What is read may leave out what follows where the names are declared (Declared): the type of a load or
// parameter, the index of a load where it is at the tensor's own dims, and the type of a number beside floats:
//
//   ["load", "x"] · ["load", "x", i, j] · ["load_or", "x", i, j, guard, fill] · ["parameter", "eps"] · ["mul", a, 0.5] · ["f32", 0.5]
//
// A number is rounded to its type. A dim that is called as a type is ("f32") is a type there.
//
// Floats are written hexadecimal, exact, or "inf", "-inf", "nan". The encoding depends on the content alone, is linear in the
// distinct nodes, and nests at most 20 levels whatever the expression.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "algorithms/ir/algorithm.h"
#include "support/files/json_reader.h"

namespace tessera {

inline constexpr int expr_max_height = 1000;  // levels of an expression that JSON may give

// What names stand for where an expression is read: tensors and results of earlier steps, and parameters.
struct Declared {
    std::map<std::string, Tensor> tensors;
    std::map<std::string, DType> parameters;
};

nlohmann::json to_json(const Expr &e);
// equal(expr_from_json(to_json(e)), e) for every e of at most expr_max_height. Constants fold as everywhere.
// UserErrors with a JSON pointer: json.type, json.value, json.expression (unknown kind, wrong number of operands, bad
// reference, too high), and expr.type, expr.bitcast, dtype.unknown of the expression itself.
Expr expr_from_json(const nlohmann::json &value);
Expr expr_from_json(const JsonReader &reader, const Declared &declared = {});

nlohmann::json to_json(const Scalar &value);  // as a constant above, an index too as ["index", n]
Scalar scalar_from_json(const JsonReader &reader);
Scalar scalar_from_json(DType type, const JsonReader &reader);  // the second item of a constant of that type

}  // namespace tessera
