// Where a merged schedule's fields come from, and how two schedules differ.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "schedules/artifact/callee_schedules.h"
#include "schedules/artifact/library.h"

namespace tessera {

// The chain, then one field to a line: its value, who states it, and what it overrides:
//
//   linear_gelu/small -> linear_gelu/avx512
//   /stages/acc/block/M   48   linear_gelu/small, over 96 of linear_gelu/avx512
std::string explain(const Schedule &schedule, const Library &library);

// The same of a schedule for a program of calls; below the chain stand those of its callees' schedules:
//
//   feed_forward/avx512
//   up: linear_gelu/avx512 -> linear/avx512 -> linear/avx2
//   /stages/up.acc/micro/F   48   linear/avx512 at up, over 32 of linear/avx2 at up
std::string explain(const Schedule &schedule, const Library &library, const ProgramSchedule &program);
nlohmann::json explain_json(const Schedule &schedule, const Library &library, const ProgramSchedule &program);

// { "name", "chain": [name], "fields": [ {"field": pointer, "value", "from": name, "over": [ {"value", "from"} ]} ] }; of a program also
// "calls": [ {"call": scope, "chain": [name], "named"} ].
nlohmann::json explain_json(const Schedule &schedule, const Library &library);

// The fields in which two merged schedules differ, one to a line; "" when there are none:
//
//   /stages/acc/block/M   96 -> 48
//   /stages/acc/unroll/K  (none) -> 4
std::string diff(const Schedule &a, const Schedule &b, const Library &library);

}  // namespace tessera
