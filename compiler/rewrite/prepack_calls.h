// Inputs that callees want packed ahead of time (prepack.h), of calls that stay: the caller's own input is packed in their place. What a
// view slices off is the outermost in the packed tensor too: of w[L, K, N], of which each round takes w[l], all rounds' panels lie one
// after the other behind one header.
#pragma once
#include <functional>

#include "compiler/rewrite/calls.h"
#include "compiler/rewrite/prepack.h"

namespace tessera {

// `packed_of` gives what a callee wants packed; `computed` are tensors that are results of calls. The callees' views are of the packed
// tensors then, by the names of those. Adds the inputs to `packed`, in the order of the algorithm's inputs. UserError schedule.prepack if
// what the callee takes is no input of the caller, or a view that does not have whole inner axes, or if something else reads the input in
// another way.
Algorithm prepack_calls(Algorithm algorithm, std::map<std::string, Callee> &callees,
                        const std::function<std::vector<PackedInput>(const Callee &)> &packed_of, std::vector<PackedInput> &packed,
                        const std::set<std::string> &computed);

}  // namespace tessera
