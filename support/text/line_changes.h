#pragma once
#include <string>

namespace tessera {

// How the lines of one text become those of another: "- " before what went, "+ " before what came, "  …" where equal lines are left out.
// "" where the texts are equal.
std::string line_changes(const std::string &before, const std::string &after);

}  // namespace tessera
