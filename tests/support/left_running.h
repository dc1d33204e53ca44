// What is left running of a command.
#pragma once
#include <string>

namespace tessera::test {

// A command line that nothing else has, which sleeps for hours.
std::string long_sleep();
size_t running(const std::string &command);
// Within two seconds.
bool becomes(size_t count, const std::string &command);

}  // namespace tessera::test
