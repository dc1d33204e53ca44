// Independent work on several processors.
#pragma once
#include <cstddef>
#include <functional>

namespace tessera {

// Calls f(i) once for each i below `count`, in any order, from this thread and from others, of which there are as many as processors, and
// returns when all calls have. `f` must be fit for calls at the same time. What the call of the least i throws is thrown again; what others
// throw is lost. Where no thread can be had, this one does the work alone.
void for_each_in_parallel(size_t count, const std::function<void(size_t)> &f);

}  // namespace tessera
