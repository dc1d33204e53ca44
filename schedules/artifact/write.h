// Writing knobs as a schedule's document has them: what read.h reads.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "schedules/knobs/schedule.h"

namespace tessera {

// What is stated of each field of Knobs, by the type of the field.
nlohmann::json json_of(const std::map<std::string, Tail> &tails);
nlohmann::json json_of(const std::map<std::string, Split> &splits);
nlohmann::json json_of(const std::vector<Directive> &directives);

// An object of the knobs that are stated. read_knobs gives the same knobs again.
nlohmann::json json_of(const Knobs &knobs);

}  // namespace tessera
