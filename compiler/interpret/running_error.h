// A running error bound (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 3.3): for given inputs, how far what a tile
// program computes may be from what it would give in real arithmetic.
//
// The program runs, and beside each value goes a bound on its distance from the exact one. It is made of the bounds of the operands and of
// what the operation itself rounds away: half a unit in the last place of the result, or less where f32 is seen to lose less in double.
// Inputs, parameters and constants count as exact. A result's bound holds for all code that gives the program's bits, and for the order of
// operations that the schedule chose.
//
// For products of the machine (Instruction::is_exact) the interpreter runs a model, and their bound is one for every machine that, at each
// step of K products, adds these and the accumulator in any order and loses at most 2^-23 of the sum of their magnitudes in each of K + 2
// roundings. Those are such that align addends with the largest one and cut off what is 23 bits or more below, as NVIDIA's were measured to
// (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021).
//
// What a bound cannot follow makes it infinite: bits of a rounded float, a position or a branch that a comparison of values decides that
// are too near each other to tell. `unknown` says which it was.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/evaluate/tape.h"
#include "algorithms/ir/extents.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

struct RunningErrors {
    std::map<std::string, std::vector<double>> bounds;  // of each element of each argument that is written, row-major
    std::string unknown;                                // the first reason for an infinite bound; "" without any
};

// Runs the program as interpret() does, on dense arguments. Functions that it has by name (FunctionForm::named, lower.h) are bounded by
// what is known of them; the bits of their definitions would say nothing.
RunningErrors running_errors(const TileProgram &program, const std::map<std::string, TensorView> &arguments, const Extents &extents = {},
                             const std::map<std::string, Scalar> &parameters = {});

}  // namespace tessera
