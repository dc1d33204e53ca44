// Derivatives of algorithms, as algorithms: what they give is generated, scheduled, tuned and called like any other.
//
//   f      outputs y of inputs x and w
//   jvp    inputs x, w, x.tangent; outputs y, y.tangent: how y changes where x changes so         (forward mode)
//   vjp    inputs x, w, y.grad; outputs x.grad, w.grad: the gradient of the sum of y.grad y       (reverse mode)
//
// They are in real arithmetic those of the algorithm with every float in f64 (in_double.h): casts between floats and functions that round
// have the derivative 1, comparisons and integers 0. Of two equal operands of min or max the second counts, relu and abs have 0 at 0, and
// equal elements that are a fold's maximum share its gradient evenly. What `select` does not choose, and what `where` leaves out, is never
// multiplied, so a NaN there stays there. docs/gradients.md says more.
//
// Calls are put in place (inline_calls), but those that repeat, whose rounds run again from the last to the first, and those of algorithms
// with a rule. UserErrors, with the stage and what to do:
//   derivative.unknown   `by` names no float input, state or parameter, or `of` no float output
//   derivative.nothing   what is asked of does not change with what is asked by
//   derivative.bits      a float is made of the bits of a number that has a derivative
//   derivative.fold      a fold whose monoid says no derivative, over several dims at once or at computed positions
//   derivative.parts     parts of a scan change each other
//   derivative.write     a state that has a derivative is written
//   derivative.until     vjp of a call that stops early
//   derivative.scalar    value_and_grad of what is not one number
//   derivative.linear    transpose of what is not linear in what was named
//   derivative.residuals a pattern of residuals that fits no stage
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/derivative_rule.h"

namespace tessera {

// What the backward part finds of what the forward part computed. A stage that is saved is kept until then: in a call that repeats each
// round leaves its results, stacked. Any other is computed again just before it is read, from what is saved or computed again, and in a
// call that repeats from what the round was given. All give the same bits.
struct Residuals {
    struct Choice {
        std::string stages;  // "layers.up.acc"; "layers.*": any characters in place of each '*'
        bool save = true;
    };
    std::vector<Choice> choices = {};            // the first that fits
    std::map<std::string, int64_t> groups = {};  // calls that repeat and whose rounds are put in groups before, as checkpoint does
    // Whether the stage is saved. Where no choice fits: stages of calls that repeat are computed again, others are saved.
    bool saves(const std::string &stage, bool is_of_round) const;
};

struct By {
    std::vector<std::string> by = {};  // inputs, states and parameters; empty: all that are floats and reach `of`
    std::vector<std::string> of = {};  // outputs; empty: all that are floats
    Residuals residuals = {};
};

// f's outputs, then y.tangent of each of `of` that changes, from f's inputs, then x.tangent of each of `by`. A tangent has its tensor's
// dims and type, f32 where that has less than 16 bits. Named f.jvp.
Algorithm jvp(const Algorithm &f, const By &by = {});

// x.grad of each of `by`, in their order, from f's inputs, then y.grad of each of `of`. Named f.grad, its results with the dims of
// their tensors. States are as f finds them, and are not written.
Algorithm vjp(const Algorithm &f, const By &by = {});

// f's outputs, of which `of` is one without dims, then x.grad of each of `by`. Stages of f keep their names, so schedules of f apply.
// Named f.value_and_grad. UserError derivative.scalar.
Algorithm value_and_grad(const Algorithm &f, const By &by = {});

// The same without f's outputs, named f.grad.
Algorithm grad(const Algorithm &f, const By &by = {});

// The gradient as two algorithms. `forward`, named f.forward, gives f's outputs, and beside them what the backward part reads of its
// stages: `residuals`, by the names of their tensors, of which some may be outputs of f. `backward`, named f.backward, takes those of f's
// inputs that it reads, y.grad of each of `of` and the residuals, in the order of `forward`'s outputs, and gives x.grad of each of `by`,
// the bits of vjp(f, by). What residuals do not save `backward` computes again, and what has rows whose number data tells (ragged dims).
// UserErrors as vjp; derivative.write also where `backward` would read a state that `forward` writes.
struct ForwardBackward {
    Algorithm forward, backward;
    std::vector<std::string> residuals;
};
ForwardBackward forward_backward(const Algorithm &f, const By &by = {});

// The adjoint of an algorithm that is linear in these inputs (all of them, where none is named): inputs y.grad, outputs x.grad, and the
// inner product of y.grad with f(x) is that of x.grad with x. Other inputs are coefficients. Named f.transpose.
Algorithm transpose(const Algorithm &f, const std::vector<std::string> &linear_in = {});

// The algorithm with a derivative of its author's, which derivatives of it and of all that calls it take (as custom_vjp and custom_jvp of
// JAX). Its values, schedules and hashes stay. A call of it stays a call, "<scope>.grad" or "<scope>.tangent" beside it; where the
// derivative is differentiated again, its parts are algorithms like any other. UserErrors algorithm.rule (verify_rule.h); rule-law where
// a generator finds that differences disagree (rule_laws.h).
Algorithm with_rule(Algorithm f, DerivativeRule rule);

// The algorithm with the rounds of a call in groups of `every`: a call that repeats a call that repeats. Backward rounds of it keep what is
// carried into each group and, of one group at a time, into each round: with groups of √|L| rounds memory grows with √|L|, and each round
// runs twice more (Griewank, Walther 2000). What it gives and the gradients are the same bits. UserErrors checkpoint.unknown, .every,
// .rounds: what has no groups.
Algorithm checkpoint(const Algorithm &f, const std::string &scope, int64_t every);

}  // namespace tessera
