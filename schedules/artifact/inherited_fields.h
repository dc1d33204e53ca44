// What a stage takes of a schedule of another algorithm, by its role there (algorithms/transform/roles.h): each field of the stage whose
// role it has, with dims, loops and tensors in its own names.
//
//   linear/avx512 of acc                        w.grad[K, N] = dot over M of (x[M, K], y.grad[M, N])
//   "micro": {"M": 8, "N": 48}                  "micro": {"K": 8, "N": 48}
//   "pack": {"w": {"layout": ["N/48", "K", "N%48"]}}      "pack": {"y.grad": {"layout": ["N/48", "M", "N%48"]}}
//
// The product and the map that alone reads it go together, as one stands in the tiles of the other. Where there is a reader there and none
// here, the product gets the loops of both in one nest. An operand that is not packed there, and lies in another order here (x of w.grad is
// read along M), is packed in the order of the tiles. What names something that has no role (a place at a third stage, a pack of another
// operand) is left out.
#pragma once
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/transform/roles.h"
#include "schedules/artifact/fields.h"

namespace tessera {

struct InheritedFields {
    Fields fields;                      // set by "linear/avx512 of acc"
    std::vector<std::string> left_out;  // "pack of b: no operand has its role"
};

// `stated` are fields for `other`, both algorithms without calls. UserError as stages_of.
InheritedFields inherited_fields(const StageRole &role, const Fields &stated, const Algorithm &algorithm, const Algorithm &other);

}  // namespace tessera
