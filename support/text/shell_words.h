// Words for a shell's command line.
#pragma once
#include <string>
#include <vector>

namespace tessera {

// As a POSIX shell reads it back, whatever is in it: quoted where it is not of letters, digits and _@%+=:,./- alone.
std::string shell_word(const std::string &word);
// All of them, with blanks between.
std::string shell_words(const std::vector<std::string> &words);

}  // namespace tessera
