// What is made of an algorithm before anything else is asked of it, in words. Command lines, modules and artifacts have the same ones, and
// several are applied in order:
//
//   grad x w                        its gradients by these (vjp): it takes <output>.grad and gives <input>.grad
//   grad x up.*=save *=recompute    the same; what is kept for the backward part, by stage: the first pattern that fits counts
//   grad x layers=8                 the same; with the rounds of a call in groups of 8 before
//   value_and_grad w                its outputs, of which one has no dims, and the gradients of that one
//   forward x w, backward x w       the gradient in two: its outputs and what the backward part reads; the gradients from that
//   tangent x                       its outputs and how they change with these (jvp)
//   transpose x                     the adjoint of what is linear in these
//   vmap B x                        for many of these at once, along a dim B in front
//   checkpoint layers=8             with the rounds of a call in groups of 8
//
// No names behind the first word mean all that can be meant.
#pragma once
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"
#include "algorithms/transform/derivatives/derivatives.h"

namespace tessera {

// `fixed`: extents that the kernel fixes; groups of rounds have to know how many rounds there are. UserErrors transform.unknown,
// transform.words, and those of derivatives.h and vmap.h.
Algorithm transformed(Algorithm algorithm, const std::vector<std::string> &transforms, const Extents &fixed);

// The name of what these were made of: "linear" of "linear.grad".
std::string name_before(std::string name, const std::vector<std::string> &transforms);

// "layers=8" as words of a transform, and "B" or "B=x,w". UserError transform.words.
std::string checkpoint_words(const std::string &text);
std::string vmap_words(const std::string &text);

// What words of grad or value_and_grad ask. UserError transform.words: others.
By gradient_words(const std::string &text);

// What is kept, as words of `grad`: those that are given ("layers.*=save"), or those of a file *.json,
//
//   [{"layers": 8}, {"layers.each.up.acc": "save"}, {"layers.*": "recompute"}]
//
// UserErrors transform.words, residuals.file, residuals.too-large, json.*.
std::vector<std::string> residual_words(const std::string &text);

}  // namespace tessera
