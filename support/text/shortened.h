// Messages that a person can read, whatever they quote: a name may have a megabyte.
#pragma once
#include <string>
#include <vector>

namespace tessera {

// "M, N and 3 more", or "none" for an empty list.
std::string first_of(const std::vector<std::string> &names, size_t most);

// Leaves out the middle of every word of more than 1000 bytes, and then that of a text of more than 32 KiB, and says how many bytes
// are left out there. No character of UTF-8 is cut. Idempotent.
std::string shortened(const std::string &text);

}  // namespace tessera
