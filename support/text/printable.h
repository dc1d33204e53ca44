// Text from strangers, such as names in a JSON file, as a terminal may show it: no byte of it does more than stand there.
#pragma once
#include <string>
#include <string_view>

namespace tessera {

// The text with everything that could move the cursor, change colours or the direction of reading, or hide, as an escape: control
// characters, format characters of Unicode (bidirectional overrides, marks of no width) and bytes that are not UTF-8. Newlines and tabs
// too, unless `keep_lines`. What it gives, it leaves as it is.
std::string printable(std::string_view text, bool keep_lines = false);

}  // namespace tessera
