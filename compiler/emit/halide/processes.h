// Work that can be done apart, in processes of its own.
#pragma once
#include <functional>
#include <vector>

namespace tessera::emit {

// Runs every job in a child process, as many at a time as there are processors; a single job in this one. What a job writes to files
// stays, all else is lost, and each starts from the state of this process, so what it makes does not depend on how many run at a
// time. Limits of this process hold for each of them. The first failure ends the others: a UserError of a job is thrown as it is,
// std::bad_alloc where one is out of memory, InternalError with the words of anything else; where a signal ends one, it ends this
// process too.
void in_processes(const std::vector<std::function<void()>> &jobs);

}  // namespace tessera::emit
