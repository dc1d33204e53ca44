// JSON of algorithms, an exact round trip. Expressions are written as json_expr.h says. A callee that is called in many places is written
// once, in the list "callees", before those that call it.
//
//   { "format": "tessera-algorithm", "version": 2, "name": "linear",
//     "dims": [{"name": "M"}, {"name": "N", "multiple_of": 16}, {"name": "K", "fixed": 768}, {"name": "R", "size": e}],
//     "parameters": [{"name": "eps", "dtype": "f32", "range": {"above": "0x0p+0", "max": "0x1p+0"}}],   or "min", "below"
//     "tensors": [{"name": "x", "dtype": "f32", "dims": ["M", "K"], "role": "input"}],
//     "steps": [{"name": "acc", "dims": ["M", "N"], "reduce": {"monoid": {…}, "dims": ["K"], "inputs": [e, e]}},
//               {"name": "y", "dims": ["M", "N"], "map": e},
//               {"name": "put", "dims": ["N"], "update": {"state": "s", "index": [e], "value": e}},
//               {"name": "both", "dims": ["N"], "results": ["z", ""],
//                "values": [{"value": e}, {"state": s, "index": [e], "value": e}]},
//               {"call": {"scope": "ffn", "callee": 0, "dims": {…}, "tensors": {…}, "parameters": {…}}}],
//     "callees": [{"name": …, …}],
//     "outputs": ["y"], "numerics": {…}, "effects": ["memory"], "large": ["x"],
//     "ranges": {"x": [-1, 1]}, "checks": {"acc": {"stable": true, "bounded": [-100, 100], "loss": 64}},
//     "rule": {"jvp": 0, "backward": 1, "forward": 2, "differs": true} }              by places in callees (derivative_rule.h)
//
// What is written says nearly all. What is read (tessera-algorithm.schema.json) may leave out more, and is the same algorithm:
//
//   dims         the dims of tensors, symbolic, if none are listed; "M" for {"name": "M"}
//   tensors      dtype: the policy's storage, or its type of states; role: input; dims: none
//   steps        dims: none; of a scan inclusive: true; types and indices that follow (json_expr.h)
//   monoid       "dot" for one of standard_monoids, of the type of its first input, floats in what the policy accumulates in; its inputs
//                are cast to it. An object: commutative: true
//   call         a tensor or parameter of the callee: the caller's of that name; a dim: that of a whole tensor
//   numerics     of the document f32, of a callee that of the document; "bf16" for a policy that ships
//   parameters   none; of checks stable: true
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "algorithms/ir/algorithm.h"
#include "algorithms/text/json_expr.h"
#include "support/files/json_reader.h"

namespace tessera {

inline constexpr const char *algorithm_format = "tessera-algorithm";
inline constexpr int algorithm_version = 2;

nlohmann::json to_json(const Monoid &monoid);
nlohmann::json to_json(const Algorithm &algorithm);
// The inverse. It checks the form; verify.h says whether the value is a legal algorithm. UserErrors with a JSON pointer:
// json.type, json.value, json.missing, json.unknown-field, json.version (another format or version), those of json_expr.h.
Algorithm algorithm_from_json(const nlohmann::json &value);
// A policy as algorithms have it. Without denormals they are "any".
Numerics numerics_from_json(const JsonReader &reader);

}  // namespace tessera
