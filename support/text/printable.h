// Text from strangers, such as names in a JSON file, made safe for a terminal.
#pragma once
#include <string>
#include <string_view>

namespace tessera {

// Writes as an escape whatever could move the cursor, change colours or the direction of reading, or hide: control characters,
// format characters of Unicode (bidirectional overrides, marks of no width) and bytes that are not UTF-8; also newlines and tabs,
// unless `keep_lines`. Idempotent.
std::string printable(std::string_view text, bool keep_lines = false);

}  // namespace tessera
