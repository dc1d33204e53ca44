// Words for a shell's command line.
#pragma once
#include <string>
#include <vector>

namespace tessera {

// The word as a POSIX shell reads it back, whatever it contains. It is quoted unless it has only letters, digits and _@%+=:,./- in
// it.
std::string shell_word(const std::string &word);
// The words, quoted and separated by blanks.
std::string shell_words(const std::vector<std::string> &words);

}  // namespace tessera
