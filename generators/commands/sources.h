// What a library is made from, as one document: algorithms by kernel, and schedules by name. With the targets and extents of the manifest
// beside it, generate makes the same library of it again (generators/bundle).
//
//   { "format": "tessera-sources", "version": 1,
//     "programs": {kernel: an algorithm (algorithms/text/json.h)},
//     "schedules": {name: a schedule (tessera-schedule.schema.json)} }
//
// Schedules are those of the manifest with their ancestors. The schedule of a program whose calls take schedules of their own stands there
// with all that it inherits and uses, so that it depends on no folder.
#pragma once
#include <string>

#include "generators/kernel/prepared_library.h"

namespace tessera {

inline constexpr const char *sources_format = "tessera-sources";

// `module` is what the library was prepared from. UserError sources.schedule where two different schedules have one name.
std::string sources_of(const Registry &registry, const PreparedLibrary &library, const Module &module);

}  // namespace tessera
