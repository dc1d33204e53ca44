// Callees in the place of their calls: a rewrite of Algorithm to Algorithm.
#pragma once
#include <functional>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Replaces every call by the callee's stages under the call's scope. Of a call that repeats they are those of one round.
Algorithm inline_calls(const Algorithm &algorithm);

// The same, but a call stays if `keeps` holds for its scope; this includes calls of inlined callees ("ffn.up").
using KeepsCall = std::function<bool(const std::string &scope)>;
Algorithm inline_calls(const Algorithm &algorithm, const KeepsCall &keeps);

// Holds for those calls, of callees too, for which `which` holds.
KeepsCall keeps_calls(const Algorithm &algorithm, const std::function<bool(const Call &)> &which);
// Holds for the calls that repeat.
KeepsCall keeps_repeats(const Algorithm &algorithm);

// The callee with its calls, with `call.dims` and `call.tensors` for its own names and without a prefix where the scope is "".
Algorithm renamed(const Call &call, const KeepsCall &keeps);

}  // namespace tessera
