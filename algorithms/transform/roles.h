// Which stages of an algorithm do what stages of another do, with other dims and tensors in their roles. A gradient of a product is two
// products of the same dims:
//
//   acc[M, N] = dot over K of (x[M, K], w[K, N])
//   x.grad[M, K] = dot over N of (y.grad[M, N], w[K, N])      M is M, K is N, N is K; y.grad is x, w is w
//   w.grad[K, N] = dot over M of (y.grad[M, N], x[M, K])      K is M, N is N, M is K; x is x, y.grad is w
//
// It is read off the stages, so it holds for whatever made the one of the other, and however often.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

struct StageRole {
    std::string stage, of;  // here and there
    // The maps that alone read these products, at their own elements: what is made of a product tile by tile. "" where there is none.
    std::string reader, reader_of;
    std::map<std::string, std::string> dims, tensors;  // of `of` and what it is here: dims, operands, results
};

// A role for each product of `algorithm`, in order, that does what one of `other` does: it is the same stage; or it is over the same dims;
// or it has as many rows, columns and folded dims, and reads a tensor that the other reads. Calls are put in place before (inline_calls).
std::vector<StageRole> roles_in(const Algorithm &algorithm, const Algorithm &other);

}  // namespace tessera
